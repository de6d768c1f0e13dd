"""Tile-to-program mapping: parameters paired with arranged tensors, the outermost rule, the grid."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, ArrangementError, Location, located_where_too_deep
from ninetoothed.language import dtypes
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors import grids
from ninetoothed.tensors.access import Access, access_of, positions, steps
from ninetoothed.tensors.grids import Places
from ninetoothed.tensors.level import named, operations, verify_operations
from ninetoothed.tensors.meta_operation import Evaluate, Indices, Shape, shape_text
from ninetoothed.tensors.metaops import Index, Pad, Ravel, Resize, Tile
from ninetoothed.tensors.tensor import Tensor

#: A constexpr parameter without a default.
NO_VALUE: Any = inspect.Parameter.empty

#: Where scales lie. In floats of 32 bits, or of their exponents, products of some are positive numbers too.
SCALES = 2.0**-10, 2.0**10

#: The types that a scale may have: smaller ones make 0 of a product of some.
SCALE_TYPES = dtypes.bfloat16, dtypes.float32, dtypes.float64


@dataclass(frozen=True)
class Parameter:
    """A parameter of the application and what was arranged for it.

    Attributes:
        name: the application's name for it.
        kind: ``"tensor"``; ``"scalar"``, passed by value; ``"constexpr"``, a constant given at the
            call; ``"constant"``, a value that the arrangement handed through.
        tensor: the arranged tensor, or None for a constant.
        value: the constant, or a scalar's or a constexpr's default, or `NO_VALUE`.
        given_dtype: the element type that calls give where another was declared.
        is_scale: whether calls give a float between `SCALES`.
    """

    name: str
    kind: str
    tensor: Tensor | None = None
    value: Any = NO_VALUE
    given_dtype: Any = None
    is_scale: bool = False

    @threads.cached_property
    def levels(self) -> tuple[Shape, ...]:
        """The levels' shapes, outermost first; none for what is not a tensor."""
        if self.kind != "tensor" or self.tensor is None:
            return ()
        return tuple(level.shape for level in self.tensor.levels)

    @property
    def given(self) -> Any:
        """What stands for it in an arrangement."""
        return self.value if self.kind == "constant" else self.tensor

    @property
    def middle_levels(self) -> tuple[Shape, ...]:
        """The levels that ``x[k]`` selects in."""
        return self.levels[1:-1]

    @property
    def middle_sizes(self) -> Shape:
        """The sizes of all their dimensions."""
        return tuple(size for level in self.middle_levels for size in level)

    @property
    def tile_shape(self) -> Shape:
        """The innermost level's shape; () where a program has a single element."""
        return self.levels[-1] if len(self.levels) > 1 else ()

    @threads.cached_property
    def is_padded(self) -> bool:
        """Whether `pad` added positions."""
        return self.tensor is not None and any(
            isinstance(operation, Pad) for operation in operations(self.tensor)
        )

    @threads.cached_property
    def is_by_size(self) -> bool:
        """Whether sizes alone decide which of its tiles' elements exist.

        They do not where `pad` adds positions, where windows reach beyond the end, and of sequences.
        """
        if self.tensor is None or self.source.jagged_dim is not None:
            return False
        taken = [positions(f"level_{depth}", shape) for depth, shape in enumerate(self.levels)]
        return all(
            operation.conditions(*operands) == operation.conditions_of_sizes(*operands)
            for operation, _, operands in steps(self.tensor, taken)
        )

    @threads.cached_property
    def has_first_elements(self) -> bool:
        """Whether the first element of each tile within its levels is known to exist, along each dimension.

        So it is where one operation alone cuts tiles off at the end, which lie side by side.
        """
        found = [] if self.tensor is None else list(operations(self.tensor))
        cuts = 0
        for operation in found:
            if isinstance(operation, Tile):
                sizes = zip(operation.whole, operation.tile_shape)
                cuts += any(not whole and size != 1 for whole, size in sizes)
        return (
            self.is_by_size
            and cuts <= 1
            and not any(isinstance(o, Index | Ravel | Resize) for o in found)
        )

    @threads.cached_property
    def access(self) -> Access:
        """Its access where it was placed first; else by positions of its own outermost level."""
        if self.tensor is None:
            raise TypeError(f"`{self.name}` is a constant")
        return access_of(self.tensor, positions("program", self.levels[0]))

    @property
    def source(self) -> Tensor:
        """The tensor that was arranged."""
        if self.tensor is None:
            raise TypeError(f"`{self.name}` is a constant")
        return self.tensor.source

    @property
    def dtype(self) -> Any:
        """The element type that was declared, or is given instead."""
        return None if self.tensor is None else self.given_dtype or self.tensor.source.dtype


@dataclass(frozen=True)
class Arrangement:
    """All parameters, arranged.

    Attributes:
        parameters: in the order of the application.
        grid: the outermost shape that all tensors share, dimensions of size 1 aside; one program runs
            for each element of it.
        programs: the names of the program's position in it.
        accesses: by parameter.
        places: by parameter, how its outermost shape lies in the grid; see `grids`.
    """

    parameters: tuple[Parameter, ...]
    grid: Shape
    programs: Indices
    accesses: Mapping[str, Access]
    places: Mapping[str, Places]

    def verify(self, evaluate: Evaluate, touched: Collection[str] | None = None) -> tuple[int, ...]:
        """Checks the meta-operations and the rule of arrangement on known sizes; gives the grid.

        Args:
            touched: the tensors that take part, by default all.

        Raises:
            ArrangementError: the sizes do not fit.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        for parameter in self.tensors:
            if touched is None or parameter.name in touched:
                assert parameter.tensor is not None
                verify_operations(parameter.tensor, f"`{parameter.name}`", evaluate)
                shapes[parameter.name] = tuple(max(evaluate(n), 0) for n in parameter.levels[0])
        grid = tuple(max(evaluate(size), 0) for size in self.grid)
        for name, shape in shapes.items():
            if not grids.agrees(shape, grid, self.places[name]):
                raise mismatch(shapes)
        return grid

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        """The parameters that are tensors."""
        return tuple(p for p in self.parameters if p.kind == "tensor")

    def by_number(self, names: Collection[str]) -> Arrangement:
        """The same, for a program that touches these tensors, each one's element found by the program's
        number: right in whichever dimensions sizes are 1, and dearer."""
        # The grid takes its sizes from where they stand, which is another size where that is 1.
        shapes = [p.levels[0] for p in self.tensors if p.name in names]
        grid = grids.smallest(shapes) if shapes else self.grid
        return _placed(self.parameters, grid, dict.fromkeys(self.places))

    def among(self, names: Collection[str], location: Location | None = None) -> Arrangement:
        """The same, for a program that touches these tensors: the others are exempt from the rule.

        Raises:
            ArrangementError: the outermost shapes of these provably differ.
        """
        shapes = {p.name: p.levels[0] for p in self.tensors if p.name in names}
        if not grids.may_agree(list(shapes.values())):
            raise mismatch(shapes, location)
        if len(shapes) in (0, len(self.tensors)):
            return self
        grid = grids.common(list(shapes.values()))
        places = {p.name: grids.places(p.levels[0], grid) for p in self.tensors}
        return _placed(self.parameters, grid, places, location)


def arrange(
    arrangement: Callable[..., Any], application: Callable[..., Any], tensors: Sequence[Any]
) -> Arrangement:
    """Calls the arrangement once and pairs what comes back with the application's parameters.

    Raises:
        ArrangementError: counts do not match, or levels do not belong together.
    """
    return pair(arranged_by(arrangement, tensors), application)


def arranged_by(arrangement: Callable[..., Any], tensors: Sequence[Any]) -> tuple[Any, ...]:
    """What the arrangement returns, as a tuple; it is called once."""
    if not callable(arrangement):
        raise ArgumentError(
            f"an arrangement is a function of the tensors that returns them arranged, not {arrangement!r}"
        )
    with named(parameter_names(arrangement, tensors)):
        arranged = arrangement(*tensors)
        if isinstance(arranged, Iterator):
            arranged = tuple(arranged)
    if arranged is None:
        raise ArrangementError(
            "the arrangement returned None; return the arranged tensors, one for each parameter of "
            "the application: a meta-operation changes no tensor, it gives a new one",
            _location(arrangement),
        )
    return tuple(arranged) if isinstance(arranged, (tuple, list)) else (arranged,)


def _location(arrangement: Callable[..., Any]) -> Location | None:
    code = getattr(inspect.unwrap(getattr(arrangement, "func", arrangement)), "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno)


def parameter_names(arrangement: Callable[..., Any], tensors: Sequence[Any]) -> dict[str, Any]:
    """What the arrangement calls the tensors it is given; nothing where it does not say.

    Raises:
        ArrangementError: it takes others.
    """
    try:
        signature = inspect.signature(arrangement)
    except (TypeError, ValueError):
        return {}  # Not written in Python: the call will tell.
    try:
        taken = signature.bind(*tensors).arguments
    except TypeError as error:
        raise ArrangementError(
            f"the arrangement takes {signature}, but `make` was given "
            f"{len(tensors)} tensor{'s' * (len(tensors) != 1)}: {error}",
            _location(arrangement),
        ) from None
    return {
        f"{name}[{place}]" if isinstance(value, tuple) else name: entry
        for name, value in taken.items()
        for place, entry in enumerate(value if isinstance(value, tuple) else (value,))
    }


@located_where_too_deep("An integer expression of the arrangement", ArrangementError)
def pair(arranged: Sequence[Any], application: Callable[..., Any]) -> Arrangement:
    """Pairs arranged tensors with the application's parameters, in order."""
    location = Location(application.__code__.co_filename, application.__code__.co_firstlineno)
    parameters = _paired(arranged, application, location)
    tensors = [parameter for parameter in parameters if parameter.kind == "tensor"]
    if not tensors:
        raise ArrangementError(
            f"`{application.__name__}` has no arranged tensor; at least one is needed", location
        )
    shapes = [parameter.levels[0] for parameter in tensors]
    grid = grids.common(shapes)
    places = {p.name: grids.places(p.levels[0], grid) for p in tensors}
    return _placed(parameters, grid, places, location)


def _placed(
    parameters: tuple[Parameter, ...],
    grid: Shape,
    places: Mapping[str, Places],
    location: Location | None = None,
) -> Arrangement:
    programs = positions("program", grid)
    accesses = {}
    for parameter in parameters:
        if parameter.kind != "tensor" or parameter.tensor is None:
            continue
        own = grids.positions_in(parameter.levels[0], grid, programs, places[parameter.name])
        try:
            accesses[parameter.name] = access_of(parameter.tensor, programs, own)
        except ArrangementError as error:
            message = f"parameter `{parameter.name}`: {error.message}"
            raise ArrangementError(message, error.location or location) from error
        parameter.__dict__.setdefault("access", accesses[parameter.name])
    return Arrangement(parameters, grid, programs, accesses, places)


def _paired(
    arranged: Sequence[Any], application: Callable[..., Any], location: Location
) -> tuple[Parameter, ...]:
    expected = list(inspect.signature(application).parameters.values())
    required = [p for p in expected if p.default is inspect.Parameter.empty]
    if not len(required) <= len(arranged) <= len(expected):
        names = ", ".join(p.name for p in expected)
        raise ArrangementError(
            f"the arrangement returned {_counted(len(arranged), 'value')}, but "
            f"`{application.__name__}` has {_counted(len(expected), 'parameter')} ({names}); return "
            "one for each",
            location,
        )
    result = [_with_default(_parameter(p.name, v), p.default) for p, v in zip(expected, arranged)]
    for parameter in result:
        if parameter.tensor is not None and parameter.source.display_name is None:
            parameter.source.display_name = parameter.name
    result += [Parameter(p.name, "constant", None, p.default) for p in expected[len(arranged) :]]
    return tuple(result)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _parameter(name: str, value: Any) -> Parameter:
    if not isinstance(value, Tensor):
        return Parameter(name, "constant", None, value)
    source = value.source
    if source.constexpr:
        return Parameter(name, "constexpr", value, source.value if source.has_default else NO_VALUE)
    if source.ndim == 0 and value is source:
        return Parameter(name, "scalar", value)
    return Parameter(name, "tensor", value)


def _with_default(parameter: Parameter, default: Any) -> Parameter:
    """A number that is not declared to have a default has the application's."""
    is_number = parameter.kind == "scalar" and isinstance(default, bool | int | float)
    if is_number or (parameter.kind == "constexpr" and parameter.value is NO_VALUE):
        return replace(parameter, value=default)
    return parameter


def mismatch(
    shapes: Mapping[str, Sequence[Any]], location: Location | None = None
) -> ArrangementError:
    """The error that the outermost shapes are not the same, naming each."""
    lines = "\n".join(f"  {name}: {shape_text(shape)}" for name, shape in shapes.items())
    return ArrangementError(
        "the outermost shapes of the arranged tensors must be the same, dimensions of size 1 aside, one "
        f"program for each element, but they are\n{lines}\nTile or expand the tensors until they match.",
        location,
    )


def symbols_of(
    arrangement: Arrangement, among: Collection[str] | None = None
) -> tuple[Symbol, ...]:
    """All names in the arrangement's shapes and accesses, in order of appearance.

    Args:
        among: the tensors whose shapes and accesses are meant, by default all.
    """
    seen: dict[Symbol, None] = {}
    expressions: list[Any] = [*arrangement.grid]
    for parameter in arrangement.parameters:
        if among is not None and parameter.name not in among:
            continue
        expressions += [size for shape in parameter.levels for size in shape]
        if parameter.name in arrangement.accesses:
            access = arrangement.accesses[parameter.name]
            expressions += [*access.indices, *access.conditions]
    for expression in expressions:
        for symbol in as_symbol(expression).leaves():
            if symbol.leaf.role != "index":
                seen.setdefault(symbol)
    return tuple(seen)
