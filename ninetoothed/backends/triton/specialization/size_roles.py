"""What the sizes of a kernel are to its source, and whether calls of other sizes may share it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from ninetoothed.backends.triton.specialization import size_ratios
from ninetoothed.backends.triton.specialization.constant_sizes import (
    constexpr_symbols,
    width_symbols,
)
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import names_read, targets_of
from ninetoothed.program.nodes import SymbolValue, TileRef, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import difference
from ninetoothed.tensors.access import Access


@dataclass(frozen=True)
class Roles:
    """What the sizes of a kernel are to its source.

    Attributes:
        exact: the sizes that must be known; each value is a class.
        widths: those that a tile is as wide as.
        equal: pairs that a call must have equal: positions run over one and are compared with the other.
    """

    exact: frozenset[Symbol]
    widths: frozenset[Symbol]
    equal: tuple[tuple[Symbol, Symbol], ...]


@analysis
def roles_of(kernel: Definition) -> Roles | None:
    """The roles of a kernel's sizes; None where it is compiled for each size."""
    touched = [p for p in kernel.tensor_parameters if p.name not in kernel.untouched]
    if any(p.source.jagged_dim is not None or p.name not in kernel.arranged for p in touched):
        return None
    sources = [id(parameter.source) for parameter in kernel.tensor_parameters]
    sizes = [as_symbol(s) for p in kernel.tensor_parameters for s in p.source.shape]
    named = [size for size in sizes if size.op != "const"]
    is_plain = len(set(named)) == len(named) and all(map(_is_free, named))
    if len(set(sources)) < len(sources) or not is_plain:
        return None
    exact = set(constexpr_symbols(kernel) - width_symbols(kernel))
    pairs: set[tuple[Symbol, Symbol]] = set()
    over = _selected_over(kernel)
    if over is None:
        return None
    for parameter in touched:
        access = kernel.arrangement.accesses[parameter.name]
        ratios = size_ratios.divisors(access)
        for divisor in ratios:
            exact |= set(divisor.leaves())
        if not all(_is_sum(index, access, ratios) for index in access.indices):
            return None
        middle = [as_symbol(size) for size in parameter.middle_sizes]
        counts = {
            **dict(zip(access.programs, map(as_symbol, kernel.grid))),
            **dict(zip(access.selections, middle)),
        }
        for condition in access.conditions:
            if condition.op == "const":
                continue
            left, right = condition.operands
            if condition.op != "<" or not _is_sum(left, access, ratios):
                return None
            if not set(right.leaves()) & set(sizes):
                continue
            if right.op != "leaf":
                return None
            for position in set(left.leaves()) & counts.keys():
                size = _tiled_size(counts[position], sizes)
                if size is None:
                    return None
                ranged = {size}
                if position in access.selections:
                    place = access.selections.index(position)
                    ranged |= over.get((parameter.name, place), set())
                pairs |= {(each, right) for each in ranged if each is not right}
    return Roles(frozenset(exact), width_symbols(kernel), tuple(pairs))


def _is_free(size: Symbol) -> bool:
    """Whether nothing was declared of a size but that it is one."""
    if size.op != "leaf" or size.leaf.role != "size":
        return False
    leaf = size.leaf
    return leaf.lower_bound is None and leaf.upper_bound is None and not leaf.power_of_two


def _is_sum(expression: Symbol, access: Access, ratios: Collection[Symbol]) -> bool:
    """Whether positions are added up, each so many times as no size decides."""
    if expression.op in ("+", "*"):
        return all(_is_sum(operand, access, ratios) for operand in expression.operands)
    if expression.op == "//":
        return expression.operands[1] in ratios and expression.operands[0] in access.programs
    positions = (*access.programs, *access.selections, *access.coordinates)
    if expression.op == "leaf":
        return expression in positions or expression.leaf.role == "symbol"
    return expression.op == "const" and expression.operands[0] >= 0


def _tiled_size(count: Symbol, sizes: Collection[Symbol]) -> Symbol | None:
    """The size that a number of tiles is of, or of tiles of tiles: how many there are, begun ones too."""
    found = set(count.leaves()) & set(sizes)
    if len(found) != 1:
        return None
    (size,) = found
    if count is size:
        return size
    if count.op != "//":
        return None
    above, tile = map(as_symbol, count.operands)
    if size in tile.leaves():
        return None
    return _tiled_size(as_symbol(difference(above, tile - 1)), sizes)


def _selected_over(kernel: Definition) -> dict[tuple[str, int], set[Symbol]] | None:
    """The sizes that a selection's range is made of, by parameter and place.

    None where something else than the variable of a loop from 0 on selects.
    """
    made: dict[str, set[Symbol]] = {}
    loops: dict[str, set[Symbol]] = {}
    nodes = list(kernel.optimized.nodes())
    if kernel.optimized.helpers or any(hasattr(node, "view") for node in nodes):
        return None
    for statement in kernel.optimized.body:
        for part in _in_order(statement):
            if isinstance(part, ast.For):
                leaves = _symbols(part.iter) | _of_names(part.iter, made)
                if not isinstance(part.target, ast.Name) or not _counts_up(part):
                    return None
                loops[part.target.id] = loops.get(part.target.id, set()) | leaves
            else:
                own = _symbols(part) | _of_names(part, made)
                for target in targets_of(part):
                    made[target.id] = made.get(target.id, set()) | own
    found: dict[tuple[str, int], set[Symbol]] = {}
    for node in nodes:
        if isinstance(node, TileRef):
            for place, index in enumerate(node.indices):
                if not isinstance(index, ast.Name) or index.id not in loops or index.id in made:
                    return None
                found.setdefault((node.parameter, place), set()).update(loops[index.id])
    return found


def _in_order(statement: ast.stmt) -> Iterator[ast.stmt]:
    yield statement
    for name in ("body", "orelse"):
        for inner in getattr(statement, name, None) or []:
            yield from _in_order(inner)


def _counts_up(loop: ast.For) -> bool:
    """Whether a loop is over a range from 0 on."""
    call = loop.iter
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "range"
        and len(call.args) == 1
    )


def _symbols(tree: ast.AST) -> set[Symbol]:
    nodes = [node for node in walk(tree) if isinstance(node, SymbolValue)]
    leaves = (leaf for node in nodes for leaf in as_symbol(node.symbol).leaves())
    return {leaf for leaf in leaves if leaf.leaf.role == "size"}


def _of_names(tree: ast.AST, made: Mapping[str, set[Symbol]]) -> set[Symbol]:
    return {leaf for name in names_read(tree) for leaf in made.get(name, ())}
