"""A program as data: what is generated, executed by the reference, printed as text, and made smaller.

Expressions are tuples: ``("name", v)``, ``("number", n)``, ``("load", parameter, indices)``,
``("form", name, parameters, operands)``, ``("full", parameter, number, dtype)``,
``("offsets", parameter, indices, dimension)``, ``("size", parameter, dimension)``, ``("source", parameter, indices)``,
``("part", parameter, indices, keys)``, where a key is an expression, ``("slice", start, stop, step)`` or
``("rest",)``, and a slice's bound a number, None or ``("half",)`` of its dimension, ``("lanes", count)``,
``("choice", condition, one, other)``. Statements too: ``("let", name, e)``, ``("augment", name, op, e)``,
``("store", parameter, indices, e)``, ``("add", parameter, indices, op, e)``,
``("put", parameter, indices, e)``, ``("scatter", parameter, indices, e)``, ``("set", parameter, indices, keys, e)``,
``("change", parameter, indices, keys, op, e)``,
``("atomic", name, is_source, parameter, indices, keys, e)``,
``("for", name, count, body)``, where a count is a number, a scalar's name, ``(parameter, dimension)`` or
``("range", start, step, count)``; around it ``("reversed", count)``; around a number ``("static", count)``, of
`ntl.static_range`, or ``("tuple", count)``, of the numbers themselves.
``("while", name, count, body)``, ``("if", e, body, orelse)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.tensors import gather

#: The counts of loops that are unrolled: their variables are Python's numbers.
UNROLLED = ("static", "tuple")

Expression = tuple[Any, ...]
Statement = tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """A meta-operation on the level ``depth`` below the outermost.

    Attributes:
        arguments: with numbers, as the reference takes them.
        written: how the arguments are written where not as they are: sizes of other tensors.
    """

    depth: int
    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    written: str | None = None


@dataclass(frozen=True)
class Parameter:
    """A tensor parameter: what it is given, and how it is arranged.

    Attributes:
        sign: of its elements, none of which is 0: ``"negative"``, ``"positive"``, ``"mixed"``.
        other: as of `Tensor`.
        is_output: whether it begins as NaN, or as a number that nothing computes.
        same_as: the parameter whose tensor it is given too.
        is_known: whether its sizes are known when the kernel is made; of the last one ``"last"``.
        declared: as what it is declared, with ``{}`` for its own type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    steps: tuple[Step, ...]
    layout: str = "contiguous"
    sign: str = "mixed"
    other: float | None = None
    is_output: bool = False
    same_as: str | None = None
    is_known: bool | str = False
    declared: str | None = None

    def knows(self, dim: int) -> bool:
        """Whether a size is known when the kernel is made."""
        return dim == len(self.shape) - 1 if self.is_known == "last" else bool(self.is_known)


@dataclass(frozen=True)
class Program:
    """A whole program and what it is called with.

    Attributes:
        scalars: arguments that are numbers, by name.
        flags: compile-time constants, by name.
        left_out: how many of these arguments, from the last on, have defaults and are not given.
        symbols: tile sizes that are symbols, by their number.
        declares_scalars: whether the types of the numbers are declared too.
        spelling: how its text is written, as `spelling.respelled` has it.
    """

    seed: int
    family: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    scalars: tuple[tuple[str, float | int], ...] = ()
    flags: tuple[tuple[str, Any], ...] = ()
    symbols: frozenset[int] = field(default_factory=frozenset)
    left_out: int = 0
    declares_scalars: bool = False
    spelling: tuple[tuple[str, int], ...] = ()

    @property
    def numbers(self) -> tuple[tuple[str, Any], ...]:
        """The arguments that are no tensors, in order."""
        return (*self.scalars, *self.flags)

    @property
    def given(self) -> list[Any]:
        """Those that a call gives."""
        return [value for _, value in self.numbers[: len(self.numbers) - self.left_out]]

    @property
    def defaults(self) -> frozenset[str]:
        """Those that it leaves out."""
        return frozenset(name for name, _ in self.numbers[len(self.numbers) - self.left_out :])

    def parameter(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def scalar_type(self, name: str) -> str:
        """The type of a scalar argument."""
        value = dict(self.scalars)[name]
        real = "float64" if self.is_wide else "float32"
        whole = "int32" if -(2**31) <= value < 2**31 else "int64"
        return {float: real, int: whole, bool: "bool"}[type(value)]

    @property
    def is_wide(self) -> bool:
        """Whether a float that it is given keeps all that it has: a tensor that it touches has as much."""
        touched = set(_touched(self.body, dict(self.flags)))
        wide = [p.name for p in self.parameters if p.dtype == "float64"]
        # Before there is a body, it is taken to touch all.
        return bool(touched.intersection(wide) if self.body else wide)


#: What uses a parameter's elements, and where it says which parameter.
_TOUCHING = {
    **dict.fromkeys(("load", "store", "add", "put", "scatter", "offsets", "source", "part"), 1),
    **{"set": 1, "change": 1},
    "atomic": 3,
}


def _touched(part: Any, flags: dict[str, Any]) -> Iterator[str]:
    """The parameters whose elements a part of a program uses, where flags do not decide against it."""
    if not isinstance(part, tuple):
        return
    if part and part[0] in _TOUCHING:
        yield part[_TOUCHING[part[0]]]
    if part and part[0] == "if" and part[1][0] == "flag":
        part = part[2] if flags[part[1][1]] else part[3]
    for each in part:
        yield from _touched(each, flags)


def gathered(parameter: Parameter) -> gather.Gathered:
    """The index of each element of all levels in the source, -1 where there is none."""
    current = gather.Gathered.source(parameter.shape)
    for step in parameter.steps:
        current = current.apply(
            gather.Step(step.depth, step.name, step.arguments, dict(step.keywords))
        )
    return current


@dataclass(frozen=True)
class _Sizes:
    """A tensor, of which what a step is written with asks the sizes."""

    levels: gather.Gathered

    @property
    def shape(self) -> tuple[int, ...]:
        return self.levels.shape(0)

    def tile(self, sizes: tuple[int, ...]) -> _Sizes:
        return _Sizes(self.levels.tile(0, sizes))


def with_shapes(program: Program, shapes: dict[str, tuple[int, ...]]) -> Program:
    """The program called with tensors of other shapes; where steps ask for sizes, they have these."""
    parameters = [replace(p, shape=shapes[p.name]) for p in program.parameters]
    # Before Python 3.12 a step with a slice has no hash.
    asking = [step for p in parameters for step in p.steps if "shape" in (step.written or "")]
    known = {p.name: _Sizes(gather.Gathered.source(p.shape)) for p in parameters}
    known |= {
        f"{p.name}_arranged": _Sizes(gathered(p))
        for p in parameters
        if not any(step in asking for step in p.steps)
    }

    def fitting(step: Step) -> Step:
        if step.written is None:
            return step
        return replace(step, arguments=(eval(step.written, {}, dict(known)),))

    parameters = [replace(p, steps=tuple(map(fitting, p.steps))) for p in parameters]
    return replace(program, parameters=tuple(parameters))
