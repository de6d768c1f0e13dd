"""Which element of the grid a program belongs to, where several share it, and which part it does."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.printers.trees import assign, language, name
from ninetoothed.symbols.simplify import product

if TYPE_CHECKING:
    from ninetoothed.backends.triton.printers.triton import _Emitter


class Parts:
    """The parts of the kernel that is being emitted: their names."""

    def __init__(self, emitter: _Emitter) -> None:
        self._emitter = emitter
        self._tiles, self.tile, self.part = map(emitter.fresh, ("num_tiles", "tile", "part"))

    def position(self) -> list[ast.stmt]:
        """The statements that find it out."""
        program, tiles = language("program_id", ast.Constant(0)), name(self._tiles)
        return [
            # Of the sizes, which the compiler may know, and not of the launch, which it does not.
            assign(self._tiles, self._emitter.tree(product(self._emitter.kernel.grid))),
            assign(self.tile, ast.BinOp(program, ast.Mod(), tiles)),
            assign(self.part, ast.BinOp(program, ast.FloorDiv(), tiles)),
        ]
