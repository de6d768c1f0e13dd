"""Stores of what may exist in fewer places than the tile that it is stored to: for ``mask_padding``.

Loaded tiles that meet have the same elements: each call is checked for that, so that a store needs no masks but
its tile's. What is made exists in the size that was asked for, what moved where its elements went, and of what a
view selects there may be less than a tile has: a store leaves out what does not exist.
"""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.program import nodes
from ninetoothed.program.effects import operation_of
from ninetoothed.program.program import Program
from ninetoothed.program.tile_masks import TileMask, with_dimensions
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.simplify import difference
from ninetoothed.tensors.views import Run, View

#: What may say that less exists than a tile has: what makes values, selects elements, or assigns in rounds.
_LESS = (
    nodes.Padded
    | nodes.ElementLoad
    | nodes.ElementPlace
    | nodes.SourceLoad
    | nodes.SourcePlace
    | ast.For
    | ast.While
)

#: The rules for shapes of what moves elements.
_MOVED = frozenset(
    ("concatenated", "gathered", "halved", "interleaved", "joined", "raveled", "reshaped", "sorted")
)


def may_have_less(program: Program) -> bool:
    """Whether something is made, moved, selected or carried by a loop, so that a store may need masks."""
    return any(
        isinstance(node, _LESS)
        or (isinstance(node, ast.Call) and (found := operation_of(node)) and found.shape in _MOVED)
        for node in program.nodes()
    )


def covers(mask: TileMask, tile_shape: tuple[Any, ...]) -> bool:
    """Whether what was made has all elements that a tile may have, in the dimensions of its mask."""
    layout = with_dimensions(mask, len(tile_shape)).layout
    sizes = (size for size, dim in zip(tile_shape, layout) if dim is not None)
    return all(_is_as_large(mask.origin.tile.size, size) for size in sizes)


def _is_as_large(node: ast.expr, size: Any) -> bool:
    """Whether the size that was asked for is known to be as large as that of a tile, or larger."""
    if isinstance(node, nodes.SymbolValue):
        asked = as_symbol(node.symbol)
    elif isinstance(node, ast.Constant):
        asked = as_symbol(node.value)
    else:
        return False
    return bool(interval(difference(asked, size))[0] >= 0)


def of_elements(store: nodes.Store, tile_shape: tuple[Any, ...]) -> nodes.ElementStore:
    """A store to all elements of a tile, of which some may be left out."""
    view = View(tuple(Run(0, 1, size, is_within=True) for size in tile_shape))
    fields = {"parameter": store.tile.parameter, "indices": store.tile.indices}
    return nodes.at(nodes.ElementStore(**fields, view=view, value=store.value), store)
