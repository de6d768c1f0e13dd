"""Whether a kernel's tiles are of sizes that Triton takes."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from ninetoothed.errors import ApplicationError, ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.verified_bounds import check_tile_sizes, empty_slices
from ninetoothed.program.effects import called_name, operation_of
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementStore,
    Padded,
    SymbolValue,
    location,
)
from ninetoothed.program.types import type_of
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.tensors.meta_operation import Shape

#: The most elements of a tile that Triton takes.
_LARGEST_TILE = 2**20


def check_tiles(kernel: Definition, environment: Mapping[Symbol, int]) -> None:
    """`ArgumentError` where a tile that is used has more elements than Triton takes, or a negative size.

    `ApplicationError` where a slice of one has none.
    """
    check_tile_sizes(kernel, environment)
    tiled = _tiled(kernel)
    for parameter in kernel.tensor_parameters:
        if parameter.name in tiled:
            _check(kernel, f"the tile of `{parameter.name}`", parameter.tile_shape, environment)
    for symbol, node in made_sizes(kernel).items():
        if (size := int(symbol.evaluate(environment))) < 0:
            raise ApplicationError(
                f"A tile's size must be 0 or more, but in this call `{symbol}` is {size}.",
                location(node),
            )
    for node, sizes in _moved(kernel):
        if any(size.evaluate(environment) == 0 for size in sizes):
            raise ApplicationError(
                f"`ntl.{called_name(node)}` moves the elements of a tile that has none in this call: one of its "
                "sizes is 0. Launch the kernel only where there are some, or move them in one dimension.",
                location(node),
            )
    for error in empty_slices(kernel, kernel.optimized, environment):
        raise error
    for node in _elements(kernel):
        _check(kernel, f"a part of the tile of `{node.parameter}`", node.view.shape, environment)


@analysis
def made_sizes(kernel: Definition) -> dict[Symbol, ast.AST]:
    """The sizes of what the program makes, of `full`, `arange` and their kin, and where each stands first."""
    found: dict[Symbol, ast.AST] = {}
    for node in kernel.optimized.nodes():
        if isinstance(node, Padded) and isinstance(node.value, SymbolValue):
            found.setdefault(as_symbol(node.value.symbol), node)
    return found


#: What moves elements and leaves open, where there are none, for which rows that is so.
_MOVING = frozenset({"reshaped", "joined", "interleaved", "gathered", "topk"})


@analysis
def _moved(kernel: Definition) -> list[tuple[ast.Call, list[Symbol]]]:
    """Calls whose result has several dimensions and which move elements, with the sizes of what they move."""
    found: list[tuple[ast.Call, list[Symbol]]] = []
    for node in kernel.program.nodes():
        if not isinstance(node, ast.Call):
            continue
        operation = operation_of(node)
        if operation is None or not _MOVING & {operation.shape, operation.name}:
            continue
        own = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        given = [*own, *node.args, *(keyword.value for keyword in node.keywords)]
        shapes = (type_of(operand).shape or () for operand in given)
        sizes = [_asked(size) for shape in shapes for size in shape if isinstance(size, Symbol)]
        if sizes and (type_of(node).rank or 0) > 1:
            found.append((node, sizes))
    return found


def _asked(size: Symbol) -> Symbol:
    """The size that was asked for, of one that is padded."""
    return as_symbol(size.operands[0]) if size.op == "padded" else size


@analysis
def _tiled(kernel: Definition) -> frozenset[str]:
    return kernel.optimized.tiled


@analysis
def _elements(kernel: Definition) -> list[ElementLoad | ElementStore | ElementPlace]:
    kinds = ElementLoad | ElementStore | ElementPlace
    return [node for node in kernel.optimized.nodes() if isinstance(node, kinds)]


def _check(
    kernel: Definition, subject: str, shape: Shape, environment: Mapping[Symbol, int]
) -> None:
    sizes = [evaluated(size, environment) for size in shape]
    count = math.prod(map(next_power_of_2, sizes))
    if count > _LARGEST_TILE:
        raise ArgumentError(
            f"kernel `{kernel.name}`: {subject} is {tuple(sizes)}, {count} elements when padded to "
            f"powers of two; a tile has at most {_LARGEST_TILE}. Tile the dimension and go through it "
            "in a loop, or use a smaller block size."
        )
