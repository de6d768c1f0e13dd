"""Stores of values that were made in a size of their own: ``y = ntl.zeros((3,))``, for ``mask_padding``.

Loaded tiles that meet have the same elements: each call is checked for that, so that a store needs no masks but
its tile's. What is made exists in the size that was asked for, and where the tile may have more elements than
that, a store leaves out what does not exist.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ninetoothed.passes.validity import Known
from ninetoothed.program import nodes
from ninetoothed.program.program import Program
from ninetoothed.program.tile_masks import TileMask, with_dimensions
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.simplify import difference
from ninetoothed.tensors.views import Run, View


def makes_tiles(program: Program) -> bool:
    """Whether something is made in a size that may be no power of two."""
    return any(isinstance(node, nodes.Padded) for node in program.nodes())


def beyond(value: Known, tile_shape: tuple[Any, ...]) -> Known:
    """What is known of a value, with those masks alone of what was made smaller than a tile may be."""
    validity = (
        mask
        for mask in value.validity
        if isinstance(mask.origin.tile, nodes.Within) and not covers(mask, tile_shape)
    )
    return replace(value, validity=tuple(validity))


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
