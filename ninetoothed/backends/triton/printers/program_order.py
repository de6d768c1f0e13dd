"""Which elements of the grid a program is: its positions from its number, where it stays or shares one too."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from ninetoothed import threads
from ninetoothed.backends.triton.analysis.program_order import INVERSE_BITS
from ninetoothed.backends.triton.ir import trees
from ninetoothed.language import dtypes
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.simplify import product

_UP = (1 << INVERSE_BITS) - 1


def plain(
    whole: str,
    targets: Mapping[int, str],
    grid: tuple[Expression, ...],
    tree: Callable[[Any], ast.expr],
) -> list[ast.stmt]:
    """Positions in the grid, row-major, from a program's number.

    Args:
        whole: the name of the number.
        targets: the name of each position that is needed, by dimension.
        tree: gives a size as an expression of the kernel.
    """
    result = []
    for dim, target in sorted(targets.items()):
        position: ast.expr = trees.name(whole)
        later = product(grid[dim + 1 :])
        if later != 1:
            position = ast.BinOp(position, ast.FloorDiv(), tree(later))
        if dim == 1 and 0 in targets and later != 1 and grid[0] != 1:
            # A remainder would be one more division, after another.
            before = ast.BinOp(trees.name(targets[0]), ast.Mult(), tree(grid[dim]))
            position = ast.BinOp(position, ast.Sub(), before)
        elif dim > 0 and product(grid[:dim]) != 1:
            position = ast.BinOp(position, ast.Mod(), tree(grid[dim]))
        result.append(trees.assign(target, position))
    return result


def by_inverses(
    whole: str,
    targets: Mapping[int, str],
    grid: tuple[Expression, ...],
    tree: Callable[[Any], ast.expr],
    inverse: Callable[[str, Symbol], ast.expr],
    fresh: Callable[[str], str],
) -> list[ast.stmt]:
    """The same as `plain`, by multiplication: a division takes some hundred cycles, before a program
    can ask for its first element. (Granlund and Montgomery, *Division by invariant integers using
    multiplication*, 1994.)

    Args:
        inverse: gives a value that sizes decide, under a name, as a parameter of the kernel.
        fresh: gives a name that nothing has.
    """
    result: list[ast.stmt] = []
    leading: dict[int, str] = {}

    def leading_up_to(dim: int) -> ast.expr:
        """The program's number among those that differ in the dimensions up to this one."""
        later = product(grid[dim + 1 :])
        if later == 1:
            return trees.name(whole)
        if dim not in leading:
            is_position = dim == 0 and 0 in targets
            leading[dim] = targets[0] if is_position else fresh(f"leading_{dim}")
            name = fresh(f"{leading[dim]}_inverse")
            factor = inverse(name, (as_symbol(later) + _UP) // later)
            wide = trees.method(trees.name(whole), "to", trees.element(dtypes.int64))
            bits = ast.Constant(INVERSE_BITS)
            quotient = ast.BinOp(ast.BinOp(wide, ast.Mult(), factor), ast.RShift(), bits)
            narrow = trees.method(quotient, "to", trees.element(dtypes.int32))
            result.append(trees.assign(leading[dim], narrow))
        return trees.name(leading[dim])

    for dim, target in sorted(targets.items()):
        position = leading_up_to(dim)
        if dim > 0 and product(grid[:dim]) != 1:
            before = ast.BinOp(leading_up_to(dim - 1), ast.Mult(), tree(grid[dim]))
            position = ast.BinOp(position, ast.Sub(), before)
        if leading.get(dim) != target:
            result.append(trees.assign(target, position))
    return result


def grouped(
    whole: str,
    targets: Mapping[int, str],
    grid: tuple[Expression, ...],
    group: int,
    tree: Callable[[Any], ast.expr],
    fresh: Callable[[str], str],
) -> list[ast.stmt]:
    """The same with the last two dimensions in groups of ``group`` rows, column by column."""
    rows, columns = grid[-2:]
    names = {
        what: fresh(what) for what in ("num_rows", "num_columns", "within", "first_row", "height")
    }
    outer = {dim: target for dim, target in targets.items() if dim < len(grid) - 2}
    lines = [
        f"{names['num_rows']} = {_text(tree(rows))}",
        f"{names['num_columns']} = {_text(tree(columns))}",
    ]
    plane = whole
    if len(grid) > 2:
        plane = fresh("plane")
        lines.append(f"{plane} = {whole} % ({names['num_rows']} * {names['num_columns']})")
    per_group = f"({group} * {names['num_columns']})"
    row, column = (targets.get(len(grid) - 2 + n) or fresh("program") for n in range(2))
    lines += [
        f"{names['first_row']} = {plane} // {per_group} * {group}",
        f"{names['height']} = min({names['num_rows']} - {names['first_row']}, {group})",
        f"{names['within']} = {plane} % {per_group}",
        f"{row} = {names['first_row']} + {names['within']} % {names['height']}",
        f"{column} = {names['within']} // {names['height']}",
    ]
    return [*plain(whole, outer, grid, tree), *threads.parse("\n".join(lines)).body]


def _text(tree: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(tree))


def staying(number: str, total: str, count: ast.expr, body: list[ast.stmt]) -> list[ast.stmt]:
    """The loop over a program's share of the grid, where programs stay (`options.persistent`).

    Args:
        number: the name of the element's number.
        total: the name of how many there are.
        count: how many there are.
        body: what is done for each.
    """
    first, step = (trees.language(n, ast.Constant(0)) for n in ("program_id", "num_programs"))
    rounds = trees.language("range", first, trees.name(total), step, flatten=ast.Constant(True))
    return [trees.assign(total, count), ast.For(ast.Name(number, ast.Store()), rounds, body, [])]


class Parts:
    """The parts of the kernel that is being emitted: their names."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._tiles, self.tile, self.part = map(fresh, ("num_tiles", "tile", "part"))

    def position(self, tree: Callable[[Any], ast.expr], grid: Any) -> list[ast.stmt]:
        """The statements that find it out.

        Args:
            tree: gives a size as an expression of the kernel.
        """
        program, tiles = trees.language("program_id", ast.Constant(0)), trees.name(self._tiles)
        return [
            # Of the sizes, which the compiler may know, and not of the launch, which it does not.
            trees.assign(self._tiles, tree(product(grid))),
            trees.assign(self.tile, ast.BinOp(program, ast.Mod(), tiles)),
            trees.assign(self.part, ast.BinOp(program, ast.FloorDiv(), tiles)),
        ]
