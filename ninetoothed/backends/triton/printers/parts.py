"""Which element of the grid a program belongs to, where several share it, and which part it does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.backends.triton.ir.trees import assign, language, name
from ninetoothed.symbols.simplify import product


class Parts:
    """The parts of the kernel that is being emitted: their names."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._tiles, self.tile, self.part = map(fresh, ("num_tiles", "tile", "part"))

    def position(self, tree: Callable[[Any], ast.expr], grid: Any) -> list[ast.stmt]:
        """The statements that find it out.

        Args:
            tree: gives a size as an expression of the kernel.
        """
        program, tiles = language("program_id", ast.Constant(0)), name(self._tiles)
        return [
            # Of the sizes, which the compiler may know, and not of the launch, which it does not.
            assign(self._tiles, tree(product(grid))),
            assign(self.tile, ast.BinOp(program, ast.Mod(), tiles)),
            assign(self.part, ast.BinOp(program, ast.FloorDiv(), tiles)),
        ]
