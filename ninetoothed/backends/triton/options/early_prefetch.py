"""Tiles that the second-level cache is asked for while the kernel before still runs.

A program that waits for the kernel before (`dependent_launch`) knows already where its first tiles
lie. What it does not share with other programs it asks for before it waits, a line of the cache by an
instruction: a hint that reads nothing, so that it does not matter whether the kernel before still
writes there. It is for programs that walk through memory in a loop without products, as a product of
a few rows through its weights.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.streams import streamed
from ninetoothed.backends.triton.ir.lowered import Ahead
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import Load, SymbolValue, walk
from ninetoothed.symbols.expr import Symbol, as_symbol

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.program.nodes import TileRef

#: The bytes of a line of the cache.
_LINE = 128

#: What is chosen with it, at most.
_BESIDE = ("dependent_launch", "eviction_policy", "swizzle")


def lines(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> tuple[tuple[str, int], ...]:
    """The tensors whose tiles may be asked for early, with the elements of a line."""
    loop = next((s for s in kernel.optimized.body if isinstance(s, ast.For)), None)
    if loop is None or not _is_counted(loop):
        return ()
    tiles = [node.tile for s in loop.body for node in walk(s) if isinstance(node, Load)]
    names = {tile.parameter for tile in tiles} & streamed(kernel)
    found = []
    for name in sorted(names):
        own = [tile for tile in tiles if tile.parameter == name]
        step = _LINE // call.arguments[name].dtype.itemsize
        if all(_is_selected_by(tile, loop) for tile in own) and _is_row(
            kernel, name, environment, step
        ):
            found.append((name, step))
    return tuple(found)


def _is_counted(loop: ast.For) -> bool:
    """Whether its rounds are from 0 to what sizes alone decide."""
    call = loop.iter
    return (
        isinstance(loop.target, ast.Name)
        and isinstance(call, ast.Call)
        and len(call.args) == 1
        and isinstance(call.args[0], SymbolValue | ast.Constant)
    )


def _is_selected_by(tile: TileRef, loop: ast.For) -> bool:
    """Whether a tile is selected by the loop's counter and by numbers."""
    assert isinstance(loop.target, ast.Name)
    counter = loop.target.id
    indices = tile.indices
    own = [i for i in indices if isinstance(i, ast.Name) and i.id == counter]
    others = [i for i in indices if not isinstance(i, ast.Name)]
    is_plain = all(isinstance(i, ast.Constant) for i in others)
    return (
        len(own) == 1
        and len(own) + len(others) == len(indices)
        and is_plain
        and (counter not in names_assigned(loop.body))
    )


def _is_row(kernel: Definition, name: str, environment: Mapping[Symbol, int], step: int) -> bool:
    """Whether the last dimension of a tensor's tiles is a row of whole lines, side by side."""
    access = kernel.arrangement.accesses[name]
    shape = kernel.program.parameter(name).tile_shape
    sizes = [int(as_symbol(size).evaluate(environment)) for size in shape]
    if not sizes or sizes[-1] % step or sizes[-1] & (sizes[-1] - 1):
        return False
    if any(node.op.startswith("sequence_") for node in access.offset.walk()):
        return False
    values = access.first(dict(environment))
    first = access.offset.evaluate(values)
    lane = access.lanes[-1]
    return all(
        access.offset.evaluate({**values, lane: place}) - first == place
        for place in (1, step, sizes[-1] - 1)
    )


class EarlyPrefetch(Option):
    """Of how many first rounds of its loop a program asks for the tiles before it waits."""

    name = "early_prefetch"

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return (
            value > 0
            and bool(chosen["dependent_launch"])
            and chosen.differs_only_in(*_BESIDE)
            and bool(case.known(lines))
        )

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        holding = lowered.facts.holding
        accesses = lowered.kernel.arrangement.accesses
        found = tuple(
            (name, step)
            for name, step in lines(lowered.kernel, case.call, case.environment)
            # What has no element is not asked for.
            if all((name, place) in holding for place in range(len(accesses[name].conditions)))
        )
        return replace(lowered, ahead=Ahead(value, found)) if found else lowered


OPTION = EarlyPrefetch()
