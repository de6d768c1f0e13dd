"""Which symbols a kernel's compiler must know the value of, and of which sizes a power of two will do."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import is_product, operation_of
from ninetoothed.program.nodes import Load, Masked, Padded, SymbolValue, Within, walk
from ninetoothed.symbols.expr import Symbol, as_symbol


@analysis
def constexpr_symbols(kernel: Definition) -> frozenset[Symbol]:
    """The symbols that Triton must know when it compiles: those that decide a tile's shape."""
    found = {*_needed(kernel), *_of_tiles(kernel), *_declared(kernel)}
    for node in kernel.optimized.nodes():
        if isinstance(node, Padded):
            found |= set(_symbols_in(node))
    return frozenset(found)


@analysis
def multiplies_tiles(kernel: Definition) -> bool:
    """Whether the application has a product of tiles."""
    return any(map(is_product, kernel.optimized.nodes()))


@analysis
def width_symbols(kernel: Definition) -> frozenset[Symbol]:
    """The sizes of which nothing but the power of two that a tile is padded to need be known.

    None where tiles are multiplied: what the matrix unit is given is no row of any length.
    """
    if multiplies_tiles(kernel):
        return frozenset()
    possible = {s for s in _of_tiles(kernel) if s.leaf.role == "size"}
    sizes = [as_symbol(size) for p in kernel.arranged_parameters for size in p.tile_shape]
    # The width of an expression would be another constant.
    possible &= set(sizes)
    possible -= {leaf for size in sizes if size.op != "leaf" for leaf in size.leaves()}
    return frozenset(possible - _needed(kernel) - _read(kernel))


def _needed(kernel: Definition) -> set[Symbol]:
    """What a call gives as a constant, the tuner chooses, or the language wants a number for."""
    found: set[Symbol] = {*kernel.symbols, *kernel.meta_symbols}
    for node in kernel.optimized.nodes():
        if _is_compile_time(node):
            found |= set(_symbols_in(node))
        elif hasattr(node, "view"):
            found |= set(node.view.symbols)
    return found


def _of_tiles(kernel: Definition) -> set[Symbol]:
    sizes = (size for p in kernel.arranged_parameters for size in p.tile_shape)
    return {leaf for size in sizes for leaf in as_symbol(size).leaves()}


def _declared(kernel: Definition) -> set[Symbol]:
    sizes = (size for p in kernel.tensor_parameters for size in p.source.shape)
    return {leaf for size in sizes for leaf in as_symbol(size).leaves() if leaf.constexpr}


def _read(kernel: Definition) -> set[Symbol]:
    """The symbols whose numbers the program computes with, but for division by them.

    What a number of the source is to Triton, its type above all, may differ from what an argument is;
    a tile over either is the same.
    """
    apart: set[int] = set()
    nodes = list(kernel.optimized.nodes())
    made = _made(nodes)
    for node in nodes:
        if isinstance(node, Padded | Within):
            apart |= {id(inner) for inner in walk(node)}
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and _is_made(node.left, made)
        ):
            apart.add(id(node.right))
    return {
        leaf
        for node in nodes
        if isinstance(node, SymbolValue) and id(node) not in apart
        for leaf in as_symbol(node.symbol).leaves()
    }


def _made(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that stand for values made of elements of tensors, wherever they are assigned."""
    made: dict[str, bool] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, known = node.targets[0].id, [n for n, is_made in made.items() if is_made]
            made[name] = made.get(name, True) and _is_made(node.value, known)
    return frozenset(name for name, is_made in made.items() if is_made)


def _is_made(node: ast.expr, made: Collection[str]) -> bool:
    """Whether a value is made of elements of tensors, as these names are."""
    if isinstance(node, ast.Name):
        return node.id in made
    if isinstance(node, Load):
        return True
    if isinstance(node, Masked | ast.UnaryOp | ast.BinOp | ast.Call):
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return any(_is_made(part, made) for part in parts)
    return False


def _is_compile_time(node: ast.AST) -> bool:
    if isinstance(node, ast.AnnAssign):
        return True
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    return operation is not None and operation.takes_constants


def _symbols_in(tree: ast.AST) -> Iterable[Symbol]:
    for node in ast.walk(tree):
        if isinstance(node, SymbolValue):
            yield from as_symbol(node.symbol).leaves()
