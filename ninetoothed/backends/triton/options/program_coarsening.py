"""Several elements of the grid for one program: where tiles are tiny, starting programs takes longest.

A device starts so many programs a second and no more: one that moves a few hundred bytes is over
before the next one begins. So many neighbours along one dimension of the grid are handled as
one: their tiles are the rows of one tile, their accesses have one more lane, and the application is
batched over it (`ir.batching`). The coarsened kernel is a kernel like another to all that follows. On an
H200 softmax of rows of 256 takes 2.3 times as long without (2026-11-22).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.analysis.resources import OTHER_REGISTERS_WITHOUT_PRODUCTS
from ninetoothed.backends.triton.ir.batching import batched
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.backends.triton.specialization.size_roles import roles_of
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import Load, Store, clone
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated, index
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, needed, offset_of, positions
from ninetoothed.tensors.arrange import Parameter

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tensors.meta_operation import Shape
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: What goes through memory while a program starts, in bytes: on an H200 that takes 0.62 ns. Where each
#: moves more, memory is what is waited for, and fewer programs gain nothing: two in one of 4096 bytes
#: each lost 3.4% in a row of calls (2026-11-22).
_STARTING_BYTES = 2700

#: What a coarsened program should move.
_ENOUGH_BYTES = 4096

#: The most elements of a coarsened tile: a program's registers hold no more.
_MOST_ELEMENTS = 2**15

#: Fewer programs than this leave multiprocessors without work.
_FEWEST_PROGRAMS = 1024


def choices(kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> tuple[int, ...]:
    """How many programs to make one of, the most promising first; nothing where programs are few or large."""
    if kernel.meta_symbols or not _is_batchable(kernel):
        return ()
    grid = [max(evaluated(size, environment), 0) for size in kernel.grid]
    most = math.prod(grid) // _FEWEST_PROGRAMS
    possible = _possible(kernel, grid)
    if not possible or most < 2:
        return ()
    moved = max(_bytes_moved(kernel, call, environment, possible[-1]), 1)
    if moved > _STARTING_BYTES:
        return ()
    found = []
    for wanted in (2 * _ENOUGH_BYTES // moved, _ENOUGH_BYTES // moved):
        count = 1 << max(min(wanted, most), 1).bit_length() - 1
        longest = grid[_dimension(kernel, grid, count)]
        found.append(min(count, next_power_of_2(longest)))
    return tuple(dict.fromkeys(count for count in found if count > 1))


def is_possible(kernel: Definition, environment: Mapping[Symbol, int], count: int) -> bool:
    """Whether so many can be coarsened, be it worth it or not."""
    grid = [evaluated(size, environment) for size in kernel.grid]
    largest = max(math.prod(_tile(p, environment)) for p in kernel.tensor_parameters)
    is_power = count & (count - 1) == 0 < count
    return is_power and count * largest <= _MOST_ELEMENTS and bool(_possible(kernel, grid))


def coarsened(kernel: Definition, count: int, grid: Sequence[int]) -> Definition:
    """The kernel with so many programs of a grid of this size in one; itself where there is one anyway.

    Raises:
        ArgumentError: the kernel's programs cannot be joined.
    """
    if count == 1:
        return kernel
    if not _is_batchable(kernel):
        raise ArgumentError(f"the programs of kernel `{kernel.name}` cannot be joined")
    if not _possible(kernel, grid):
        return kernel
    dim = _dimension(kernel, grid, count)
    return _coarsened(kernel, dim, count)


def _bytes_moved(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int], dim: int
) -> int:
    """What one program loads and stores of its own, that its neighbours do not."""
    total, followers = 0, _followers(kernel, dim)
    for node in kernel.optimized.nodes():
        if isinstance(node, (Load, Store)) and node.tile.parameter in followers:
            parameter = kernel.program.parameter(node.tile.parameter)
            count = math.prod(_tile(parameter, environment))
            total += count * call.arguments[parameter.name].dtype.itemsize
    return total


def _tile(parameter: Parameter, environment: Mapping[Symbol, int]) -> list[int]:
    """The size of a parameter's tile."""
    return [evaluated(size, environment) for size in parameter.tile_shape]


def _is_batchable(kernel: Definition) -> bool:
    return any(_batched(kernel, dim) is not None for dim in range(len(kernel.grid)))


def _possible(kernel: Definition, grid: Sequence[int]) -> list[int]:
    """The dimensions of the grid along which programs can be coarsened."""
    return [d for d, size in enumerate(grid) if size > 1 and _batched(kernel, d) is not None]


def _dimension(kernel: Definition, grid: Sequence[int], count: int) -> int:
    """The innermost of those dimensions that is long enough, or else the longest."""
    possible = _possible(kernel, grid)
    enough = [dim for dim in possible if grid[dim] >= count]
    return max(enough) if enough else max(possible, key=lambda dim: grid[dim])


@analysis
def _batched(kernel: Definition, dim: int) -> Program | None:
    """The program for several along a dimension of the grid, with the kernel's own parameters."""
    places = kernel.arrangement.places.values()
    if any(place is None or place[dim : dim + 1] != (dim,) for place in places):
        return None
    if any(parameter.source.jagged_dim is not None for parameter in kernel.tensor_parameters):
        return None
    program = kernel.optimized
    return batched(program, program.parameters, _followers(kernel, dim))


def _followers(kernel: Definition, dim: int) -> set[str]:
    """The parameters whose tile depends on the program's position in a dimension."""
    position = kernel.arrangement.programs[dim]
    return {
        name
        for name, access in kernel.arrangement.accesses.items()
        if any(position in e.leaves() for e in (*access.indices, *access.conditions))
    }


@dataclass(frozen=True)
class _CoarsenedParameter(Parameter):
    """A parameter whose tiles are several programs' in one."""

    shapes: tuple[Shape, ...] = ()

    @property
    def levels(self) -> tuple[Shape, ...]:  # type: ignore[override]
        return self.shapes


@analysis
def _coarsened(kernel: Definition, dim: int, count: int) -> Definition:
    """The kernel whose programs are each so many along a dimension of the grid."""
    program = _batched(kernel, dim)
    assert program is not None
    arrangement, followers = kernel.arrangement, _followers(kernel, dim)
    fewer = simplify((as_symbol(kernel.grid[dim]) + (count - 1)) // count)
    position = index(f"program_{dim}", fewer)
    parameters = tuple(
        _parameter(parameter, dim, fewer, count if parameter.name in followers else 1)
        for parameter in kernel.parameters
    )
    accesses = {
        parameter.name: _access(kernel, parameter, dim, count, position)
        for parameter in parameters
        if parameter.kind == "tensor"
    }
    body = [clone(statement) for statement in program.body]
    coarsened = replace(program, parameters=parameters, body=body)
    for node in coarsened.nodes():
        if (known := node.__dict__.get("type")) is not None:
            # It tells which elements of one program's tile exist, not of several's: the masks say that.
            node.__dict__["type"] = replace(known, validity=())
    infer(coarsened)
    return replace(
        kernel,
        arrangement=replace(
            arrangement,
            parameters=parameters,
            grid=_put(arrangement.grid, dim, fewer),
            programs=_put(arrangement.programs, dim, position),
            accesses=accesses,
        ),
        program=coarsened,
        is_optimized=True,
    )


def _parameter(parameter: Parameter, dim: int, fewer: Expression, rows: int) -> Parameter:
    if parameter.kind != "tensor":
        return parameter
    outer, *middle = parameter.levels[:-1] or parameter.levels
    shapes = (_put(outer, dim, fewer), *middle, (rows, *parameter.tile_shape))
    same = {each.name: getattr(parameter, each.name) for each in fields(parameter)}
    return _CoarsenedParameter(**same, shapes=shapes)


def _access(
    kernel: Definition, parameter: Parameter, dim: int, count: int, position: Symbol
) -> Access:
    """Where the tiles of several programs lie; beyond the grid there is nothing."""
    access = kernel.arrangement.accesses[parameter.name]
    (row,) = positions("row", parameter.tile_shape[:1])
    number = position * count + row
    old = access.programs[dim]
    indices = tuple(as_symbol(simplify(i.substitute({old: number}))) for i in access.indices)
    conditions = [
        as_symbol(simplify(condition.substitute({old: number}))) for condition in access.conditions
    ]
    if parameter.tile_shape[0] != 1:
        plain = kernel.program.parameter(parameter.name)
        conditions.append(number < as_symbol(plain.levels[0][dim]))
    return Access(
        indices,
        tuple(needed(conditions)),
        offset_of(parameter.source, indices),
        _put(access.programs, dim, position),
        access.selections,
        (row, *access.coordinates),
    )


def _put(entries: Sequence[Any], place: int, entry: Any) -> tuple[Any, ...]:
    """The entries with another at one place."""
    return (*entries[:place], entry, *entries[place + 1 :])


def _keeps_class(case: Case, count: int) -> bool:
    """Whether a call that stands for a class does so for the coarsened kernel too."""
    if not case.call.is_general:
        return True
    several = coarsened(case.kernel, count, case.kernel.verified_grid(case.environment))
    own, theirs = roles_of(case.kernel), roles_of(several)
    if own is None or theirs is None:
        return False
    return theirs.exact <= own.exact and {*theirs.equal} <= {*own.equal}


class ProgramCoarsening(Option):
    """Elements of the grid that one program handles."""

    name = "program_coarsening"
    default = 1
    off = 1
    phase = 0

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        # Other options do not know a program that is several.
        if not chosen.differs_only_in("eviction_policy"):
            return ()
        possible = choices(case.kernel, case.call, case.environment)
        return tuple(value for value in possible if _keeps_class(case, value))

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return is_possible(case.kernel, case.environment, value) and _keeps_class(case, value)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        kernel = lowered.kernel
        several = coarsened(kernel, value, kernel.verified_grid(case.environment))
        return Lowered.of(several, case.call, case.environment)

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        more = (features.registers - OTHER_REGISTERS_WITHOUT_PRODUCTS) * (value - 1)
        return replace(
            features,
            programs=math.ceil(features.programs / value),
            bytes_moved=features.bytes_moved * value,
            accesses=features.accesses * value,
            flops=features.flops * value,
            special=features.special * value,
            registers=features.registers + more,
        )


OPTION = ProgramCoarsening()
