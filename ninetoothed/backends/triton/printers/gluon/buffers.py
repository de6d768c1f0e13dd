"""Tiles in shared memory: their buffers and barriers, when they are asked for and waited for.

Each tile that the loop loads by descriptor has a ring of buffers in shared memory, one for each of
some rounds. The first rounds' tiles are asked for before the loop; a later one as soon as the product
that read its buffer is done. A barrier for each buffer says that the tile has come.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from ninetoothed import threads
from ninetoothed.backends.triton.printers.gluon.layouts import Layouts
from ninetoothed.backends.triton.printers.gluon.trees import expression, parse, put, text
from ninetoothed.program.nodes import clone


@dataclass(frozen=True)
class Tile:
    """What one load by descriptor gives.

    Attributes:
        descriptor: the name of what it is loaded by.
        parameter: the tensor.
        corner: where it begins.
        is_streamed: whether each round of the loop has another.
        buffers: the name of the memory that it comes to.
    """

    descriptor: str
    parameter: str
    corner: tuple[ast.expr, ...]
    is_streamed: bool
    buffers: str

    @property
    def arrived(self) -> str:
        """The name of the barriers that say so."""
        return f"{self.buffers}_arrived"


@dataclass
class Buffers:
    """The statements that fill buffers, wait for them, and say which one is next.

    Attributes:
        size: buffers of a ring.
        index: the name of the loop's variable.
        end: how many rounds there are.
        layouts: writes numbers.
        fresh: gives a name that nothing has.
        held: the tiles that are loaded before the loop.
        streamed: those that each round loads.
    """

    size: int
    index: str
    end: ast.expr
    layouts: Layouts
    fresh: Callable[[str], str]
    held: list[Tile] = field(default_factory=list)
    streamed: list[Tile] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._slot, self._phase, self._coming = map(self.fresh, ("slot", "phase", "coming"))
        if self.size == 1:
            self._slot = "0"

    def allocations(self) -> list[ast.stmt]:
        """Buffers and barriers."""
        lines: list[str] = []
        for tile in (*self.held, *self.streamed):
            shape = f"{tile.descriptor}.block_type.shape"
            shape = f"[{self.size}] + {shape}" if tile.is_streamed else shape
            lines.append(allocated(tile.buffers, tile.descriptor, shape))
        for tile in (*self.held, *self.streamed):
            shape = f"[{self.size}, 1]" if tile.is_streamed else "[1]"
            lines.append(
                f"{tile.arrived} = gl.allocate_shared_memory("
                f"gl.int64, {shape}, mbarrier.MBarrierLayout())"
            )
        lines += [f"mbarrier.init({tile.arrived}, count=1)" for tile in self.held]
        lines.append(f"for {self._coming} in gl.static_range({self.size}):")
        lines += [
            f"    mbarrier.init({tile.arrived}.index({self._coming}), count=1)"
            for tile in self.streamed
        ]
        return threads.parse("\n".join(lines)).body

    def asked(self) -> list[ast.stmt]:
        """Asks for the first rounds' tiles, and for those of before the loop.

        All threads meet between what barriers are told and what is asked for, and between that and
        what is waited for: before the loop, if all that waits for it is one wait.
        """
        result: list[ast.stmt] = []
        for ask in (self._expect, self._fetch):
            first = parse(f"for {self._coming} in gl.static_range({self.size}): pass")
            assert isinstance(first, ast.For)
            first.body = [ask(tile, self._coming, self._coming) for tile in self.streamed]
            result += [*(ask(tile, "", None) for tile in self.held), first]
        return [*result, *(each for tile in self.held for each in self.wait(tile))]

    def begun(self) -> list[ast.stmt]:
        """What a round begins with: which buffers are its, and how often they have been filled."""
        if self.size == 1:
            return [parse(f"{self._phase} = {self.index} & 1")]
        return [
            parse(f"{self._slot} = {self.index} % {self.size}"),
            parse(f"{self._phase} = {self.index} // {self.size} & 1"),
        ]

    def buffer(self, tile: Tile) -> str:
        """This round's buffer."""
        return self._at(tile, tile.buffers, self._slot)

    def wait(self, tile: Tile) -> list[ast.stmt]:
        """Waits for a tile; the barrier is told at once what comes next."""
        if not tile.is_streamed:
            return [parse(f"mbarrier.wait({tile.arrived}, 0)")]
        arrived = self._at(tile, tile.arrived, self._slot)
        wait = parse(f"mbarrier.wait({arrived}, {self._phase})")
        return [wait, self._expect(tile, self._slot, self._next)]

    def fetch(self, tile: Tile) -> ast.stmt:
        """Asks for the tile that comes to this round's buffer next."""
        return self._fetch(tile, self._slot, self._next)

    @property
    def _next(self) -> str:
        """The round whose tile comes to this round's buffer."""
        return f"{self.index} + {self.size}"

    def _at(self, tile: Tile, name: str, slot: str) -> str:
        return f"{name}.index({slot})" if tile.is_streamed else name

    def _expect(self, tile: Tile, slot: str, turn: str | None) -> ast.stmt:
        """Tells a buffer's barrier what will arrive: the tile of round ``turn``, if there is one."""
        arrived = self._at(tile, tile.arrived, slot)
        size = f"{tile.descriptor}.block_type.nbytes{self._condition(turn)}"
        return parse(f"mbarrier.expect({arrived}, {size})")

    def _fetch(self, tile: Tile, slot: str, turn: str | None) -> ast.stmt:
        """Asks for a tile: of round ``turn``, if there is one."""
        corner = [self.layouts.value(clone(each)) for each in tile.corner]
        if turn is not None:
            corner = [put(each, {self.index: expression(turn)}) for each in corner]
        place = ", ".join(map(text, corner))
        arrived, buffer = (self._at(tile, each, slot) for each in (tile.arrived, tile.buffers))
        return parse(
            f"tma.async_copy_global_to_shared({tile.descriptor}, [{place}], "
            f"{arrived}, {buffer}{self._condition(turn)})"
        )

    def _condition(self, turn: str | None) -> str:
        return f", pred={turn} < {text(self.layouts.value(self.end))}" if turn else ""


def allocated(name: str, descriptor: str, shape: str) -> str:
    """The text that makes a buffer of a descriptor's elements."""
    return f"{name} = gl.allocate_shared_memory({descriptor}.dtype, {shape}, {descriptor}.layout)"
