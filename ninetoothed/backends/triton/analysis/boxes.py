"""Which tiles are boxes of their source, that the copy engine of Hopper and later moves."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.backends.base import Argument, Call
from ninetoothed.backends.triton.analysis import resources
from ninetoothed.backends.triton.specialization.boxes import Box, Description
from ninetoothed.backends.triton.specialization.selections import Selection
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import is_product, writes_memory
from ninetoothed.program.nodes import Load, SourceLoad, SourcePointer, Store, walk
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import difference
from ninetoothed.tensors.access import Access
from ninetoothed.tensors.arrange import Parameter

#: What the hardware takes: dimensions, elements along one of a box, bytes that address and strides
#: are multiples of and that a box has at least along its last dimension, bytes of a stride.
_MOST_DIMENSIONS = 5
_WIDEST_BOX = 256
GRANULE = 16
LARGEST_STRIDE = 2**40

_LARGEST_INT32 = 2**31 - 1

#: Elements along the last dimension of half a tile.
_NARROWEST_HALF = 64

#: The widths of what matrix units multiply; wider operands go through registers.
_OPERAND_BITS = (8, 16)


def boxes(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, Box]]:
    """The parameters to move by descriptor in this call, and how; none where nothing is loaded so."""
    found: dict[str, Box] = {}
    for parameter, lanes in _candidates(kernel):
        access = kernel.arrangement.accesses[parameter.name]
        box = _box(parameter, access, lanes, call.arguments[parameter.name], environment)
        if box is not None:
            found[parameter.name] = box
    return frozenset(found.items()) if _loaded(kernel) & found.keys() else frozenset()


def halved(
    kernel: Definition, boxes: frozenset[tuple[str, Box]], environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, Box]]:
    """The same where what is stored waits in shared memory while other tiles are loaded: half of it
    takes half the room."""
    found = dict(boxes)
    for name in found.keys() - _loaded(kernel):
        found[name] = _halved(kernel.program.parameter(name), found[name], environment)
    return frozenset(found.items())


def _loaded(kernel: Definition) -> set[str]:
    return {n.tile.parameter for n in kernel.optimized.nodes() if isinstance(n, Load)}


def box_of(
    kernel: Definition, name: str, call: Call, environment: Mapping[Symbol, int]
) -> Box | None:
    """How any tensor's tile is a box of it in this call; None where it is none."""
    parameter, access = kernel.program.parameter(name), kernel.arrangement.accesses[name]
    lanes = _lanes(parameter, access)
    if lanes is None:
        return None
    return _box(parameter, access, lanes, call.arguments[name], environment)


def stay_in_level(boxes: frozenset[tuple[str, Box]], beyond: Iterable[Selection]) -> bool:
    """Whether no tile that is moved by descriptor is selected beyond its level: another program's may lie
    there, and a descriptor leaves out no more than what is beyond the source."""
    return dict(boxes).keys().isdisjoint(name for name, _ in beyond)


def _halved(parameter: Parameter, box: Box, environment: Mapping[Symbol, int]) -> Box:
    """The box in two halves, where these are worth an instruction and lie as the tile does."""
    is_in_order = box.kept == list(range(len(parameter.tile_shape)))
    width = _extents(parameter, box.tile_dims, environment)[-1]
    return replace(box, is_halved=is_in_order and width >= 2 * _NARROWEST_HALF)


def describe(
    parameter: Parameter, box: Box, argument: Argument, environment: Mapping[Symbol, int]
) -> Description:
    """The description for a call's argument."""
    granule = GRANULE // argument.dtype.itemsize
    *outer, inner = _extents(parameter, box.tile_dims, environment)
    extents = (*outer, inner // 2 if box.is_halved else inner)
    strides = tuple(
        # Along one element nothing is ever stepped.
        argument.strides[dim] if argument.shape[dim] > 1 or dim == box.dims[-1] else granule
        for dim in box.dims
    )
    return Description(tuple(argument.shape[dim] for dim in box.dims), strides, extents)


# What may be loaded by descriptor, whatever the sizes are.


@analysis
def _candidates(kernel: Definition) -> tuple[tuple[Parameter, tuple[int | None, ...]], ...]:
    """The parameters to move as boxes, with the lane along each dimension."""
    moved = _moved(kernel.optimized)
    return tuple(
        (parameter, lanes)
        for parameter in kernel.tensor_parameters
        if parameter.name in moved
        and (lanes := _lanes(parameter, kernel.arrangement.accesses[parameter.name]))
    )


def _moved(program: Program) -> set[str]:
    """The parameters that products read in loops, and the one that the result is stored to.

    The engine moves memory behind the threads' backs: what they wrote just before it may not see,
    nor they what it has written. So all is loaded before anything is stored, and what is stored is
    not loaded.
    """
    loaded: set[str] = set()
    for statement in program.body:
        nodes = list(walk(statement))
        if isinstance(statement, Store) and statement is program.body[-1]:
            # The buffer that it is stored from leaves none for other loads.
            stored = {statement.tile.parameter}
            is_only = all(read.parameter in loaded - stored for read in _reads(program))
            return loaded | stored if is_only else loaded - stored
        if writes_memory(statement):
            return loaded
        if isinstance(statement, (ast.For, ast.While)) and any(map(is_product, nodes)):
            loaded |= {node.tile.parameter for node in nodes if isinstance(node, Load)}
    return set()


def _reads(program: Program) -> Iterator[Any]:
    for node in program.nodes():
        if isinstance(node, Load):
            yield node.tile
        elif isinstance(node, (SourceLoad, SourcePointer)):
            yield node


def _lanes(parameter: Parameter, access: Access) -> tuple[int | None, ...] | None:
    """The lane that runs along each dimension of the source; None where the tile is no box."""
    source = parameter.source
    if source.jagged_dim is not None or source.other not in (None, 0):
        return None
    single = {lane: 0 for lane, size in zip(access.coordinates, parameter.tile_shape) if size == 1}
    result: list[int | None] = []
    for index in access.indices:
        index = as_symbol(index.substitute(single))
        along = [number for number, lane in enumerate(access.coordinates) if lane in index.leaves()]
        if not along:
            result.append(None)
            continue
        lane = access.coordinates[along[0]]
        rest = as_symbol(difference(index, lane))
        if len(along) > 1 or lane in rest.leaves():
            return None
        result.append(along[0])
    kept = [lane for lane in result if lane is not None]
    wanted = [number for number, lane in enumerate(access.coordinates) if lane not in single]
    if sorted(kept) != wanted:
        return None
    if not all(_is_bound(condition, access, source.shape) for condition in access.conditions):
        return None
    return tuple(result)


def _is_bound(condition: Symbol, access: Access, shape: tuple[Any, ...]) -> bool:
    """Whether a condition says no more than that an index lies in its dimension."""
    if condition.op not in ("<", ">="):
        return False
    left, right = condition.operands
    margin = as_symbol(difference(left, right))
    if condition.op == ">=":
        return any(difference(margin, index) == 0 for index in access.indices)
    return any(difference(margin, index - size) == 0 for index, size in zip(access.indices, shape))


# What the hardware takes.


def _box(
    parameter: Parameter,
    access: Access,
    lanes: tuple[int | None, ...],
    argument: Argument,
    environment: Mapping[Symbol, int],
) -> Box | None:
    dims = range(len(lanes))
    last = [d for d in dims if argument.strides[d] == 1 and lanes[d] is not None]
    if not last or len(lanes) > _MOST_DIMENSIONS or argument.alignment < GRANULE:
        return None
    ordered = (*(d for d in dims if d != last[-1]), last[-1])
    box = Box(ordered, tuple(lanes[d] for d in ordered))
    described = describe(parameter, box, argument, environment)
    size = argument.dtype.itemsize
    fits = (
        argument.dtype.bits in _OPERAND_BITS
        and all(1 <= length <= _LARGEST_INT32 for length in described.shape)
        and all(
            0 < stride * size < LARGEST_STRIDE and stride * size % GRANULE == 0
            for stride in described.strides[:-1]
        )
        and all(extent <= _WIDEST_BOX for extent in described.extents)
        and described.extents[-1] * size >= GRANULE
        and is_multiple(access.indices[last[-1]], access.coordinates, environment, GRANULE // size)
    )
    return box if fits else None


def is_multiple(
    index: Symbol, lanes: Sequence[Symbol], environment: Mapping[Symbol, int], divisor: int
) -> bool:
    """Whether an index is a multiple of ``divisor`` where the lanes are 0, in every program."""
    if index in lanes:
        return True
    if index.op == "const":
        return bool(index.operands[0] % divisor == 0)
    if index.op == "leaf":
        return index in environment and environment[index] % divisor == 0
    parts = [is_multiple(o, lanes, environment, divisor) for o in index.operands]
    return all(parts) if index.op in ("+", "-") else index.op == "*" and any(parts)


def _extents(
    parameter: Parameter, lanes: tuple[int | None, ...], environment: Mapping[Symbol, int]
) -> list[int]:
    sizes = [resources.lanes(size, environment) for size in parameter.tile_shape]
    return [1 if lane is None else sizes[lane] for lane in lanes]
