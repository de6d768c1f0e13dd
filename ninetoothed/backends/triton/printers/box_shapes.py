"""Values between the shape of a tile and that of its box, which a descriptor moves."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ninetoothed.backends.triton.ir.trees import language
from ninetoothed.backends.triton.specialization.boxes import Box


def as_tile(block: ast.expr, box: Box, widths: Sequence[ast.expr]) -> ast.expr:
    """What was loaded by descriptor in the shape of the tile.

    Args:
        block: it, with a dimension for each of the box's.
        widths: the tile's shape.
    """
    kept, rank = box.kept, len(box.tile_dims)
    if kept != sorted(kept):
        if len(kept) < rank:
            block = _shaped("reshape", block, [widths[lane] for lane in kept])
            rank = len(kept)
        block = _shaped("permute", block, [ast.Constant(kept.index(lane)) for lane in sorted(kept)])
    if not len(kept) == rank == len(widths):
        block = _shaped("reshape", block, widths)
    return block


def as_block(value: ast.expr, box: Box, widths: Sequence[ast.expr]) -> ast.expr:
    """A tile's value in the shape that a store by descriptor takes: `as_tile` the other way."""
    kept, rank = box.kept, len(widths)
    if kept != sorted(kept):
        if len(kept) < rank:
            value = _shaped("reshape", value, [widths[lane] for lane in sorted(kept)])
            rank = len(kept)
        value = _shaped("permute", value, [ast.Constant(sorted(kept).index(k)) for k in kept])
    if not len(kept) == rank == len(box.tile_dims):
        extents = [ast.Constant(1) if lane is None else widths[lane] for lane in box.tile_dims]
        value = _shaped("reshape", value, extents)
    return value


def halves(value: ast.expr, outer: Sequence[ast.expr], half: ast.expr) -> ast.expr:
    """The left and the right half of a value along its last dimension, as a tuple.

    Args:
        outer: the value's other dimensions.
        half: of the last one.
    """
    value = _shaped("reshape", value, [*outer, ast.Constant(2), half])
    rank = len(outer)
    order = [*range(rank), rank + 1, rank]
    moved = _shaped("permute", value, [ast.Constant(dim) for dim in order])
    return language("split", moved)


def _shaped(function: str, value: ast.expr, shape: Sequence[ast.expr]) -> ast.expr:
    return language(function, value, ast.Tuple(list(shape), ast.Load()))
