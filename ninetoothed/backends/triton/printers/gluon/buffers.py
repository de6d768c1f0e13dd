"""Tiles in shared memory: their buffers and barriers, when they are asked for and waited for.

Each tile that the loop loads by descriptor has a ring of buffers in shared memory, one for each of
some rounds. The first rounds' tiles are asked for before the loop; a later one as soon as the product
that read its buffer is done. A barrier for each buffer says that the tile has come.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ninetoothed.backends.triton.printers.gluon.forms import Form, Tile
from ninetoothed.backends.triton.printers.gluon.layouts import Layouts
from ninetoothed.backends.triton.printers.gluon.trees import expression, put, statement
from ninetoothed.program.nodes import clone


class Buffers:
    """The statements that fill buffers, wait for them, and say which one is next.

    Args:
        form: the program.
        size: buffers of a ring.
        layouts: writes numbers.
        fresh: gives a name that nothing has.
    """

    def __init__(self, form: Form, size: int, layouts: Layouts, fresh: Callable[[str], str]):
        self._size, self._index, self._end = size, form.index, form.end
        self._layouts = layouts
        self._tiles = sorted(form.tiles.values(), key=lambda tile: tile.is_streamed)
        self._slot, self._phase, self._coming = map(fresh, ("slot", "phase", "coming"))

    def allocations(self) -> list[ast.stmt]:
        """Buffers and barriers."""
        lines: list[ast.stmt] = []
        for tile in self._tiles:
            shape = expression("descriptor.block_type.shape", descriptor=tile.descriptor)
            if tile.is_streamed:
                shape = expression("[size] + shape", size=self._size, shape=shape)
            lines.append(allocated(tile.buffers, tile.descriptor, shape))
        for tile in self._tiles:
            lines.append(
                statement(
                    "arrived = gl.allocate_shared_memory(gl.int64, shape, mbarrier.MBarrierLayout())",
                    arrived=tile.arrived,
                    shape=expression("[size, 1]" if tile.is_streamed else "[1]", size=self._size),
                )
            )
        lines += [
            statement("mbarrier.init(arrived, count=1)", arrived=tile.arrived)
            for tile in self._tiles
            if not tile.is_streamed
        ]
        each = [
            statement(
                "mbarrier.init(arrived.index(coming), count=1)",
                arrived=tile.arrived,
                coming=self._coming,
            )
            for tile in self._tiles
            if tile.is_streamed
        ]
        return [*lines, self._first_rounds(each)]

    def asked(self) -> list[ast.stmt]:
        """Asks for the first rounds' tiles, and for those of before the loop.

        All threads meet between what barriers are told and what is asked for, and between that and
        what is waited for: before the loop, if all that waits for it is one wait.
        """
        result: list[ast.stmt] = []
        held = [tile for tile in self._tiles if not tile.is_streamed]
        streamed = [tile for tile in self._tiles if tile.is_streamed]
        coming = ast.Name(self._coming, ast.Load())
        for ask in (self._expect, self._fetch):
            first = [ask(tile, coming, coming) for tile in streamed]
            result += [*(ask(tile, None, None) for tile in held), self._first_rounds(first)]
        return [*result, *(each for tile in held for each in self.wait(tile))]

    def _first_rounds(self, body: list[ast.stmt]) -> ast.stmt:
        """Something that is done for each of the first rounds."""
        loop = statement(
            "for coming in gl.static_range(size): pass", coming=self._coming, size=self._size
        )
        assert isinstance(loop, ast.For)
        loop.body = body
        return loop

    def begun(self) -> list[ast.stmt]:
        """What a round begins with: which buffers are its, and how often they have been filled."""
        index, size = self._index, self._size
        if size == 1:
            return [statement("phase = i & 1", phase=self._phase, i=index)]
        return [
            statement("slot = i % size", slot=self._slot, i=index, size=size),
            statement("phase = i // size & 1", phase=self._phase, i=index, size=size),
        ]

    def buffer(self, tile: Tile) -> ast.expr:
        """This round's buffer."""
        return self._at(tile, tile.buffers, self._own)

    def wait(self, tile: Tile) -> list[ast.stmt]:
        """Waits for a tile; the barrier is told at once what comes next."""
        arrived = self._at(tile, tile.arrived, self._own)
        phase = self._phase if tile.is_streamed else 0
        wait = statement("mbarrier.wait(arrived, phase)", arrived=arrived, phase=phase)
        return [wait, self._expect(tile, self._own, self._next)] if tile.is_streamed else [wait]

    def fetch(self, tile: Tile) -> ast.stmt:
        """Asks for the tile that comes to this round's buffer next."""
        return self._fetch(tile, self._own, self._next)

    @property
    def _own(self) -> ast.expr:
        """This round's place in a ring."""
        return ast.Constant(0) if self._size == 1 else ast.Name(self._slot, ast.Load())

    @property
    def _next(self) -> ast.expr:
        """The round whose tile comes to this round's buffer."""
        return expression("i + size", i=self._index, size=self._size)

    def _at(self, tile: Tile, name: str, slot: ast.expr | None) -> ast.expr:
        whole = ast.Name(name, ast.Load())
        if not tile.is_streamed or slot is None:
            return whole
        return expression("ring.index(slot)", ring=whole, slot=slot)

    def _expect(self, tile: Tile, slot: ast.expr | None, turn: ast.expr | None) -> ast.stmt:
        """Tells a buffer's barrier what will arrive: the tile of round ``turn``, if there is one."""
        told = statement(
            "mbarrier.expect(arrived, descriptor.block_type.nbytes)",
            arrived=self._at(tile, tile.arrived, slot),
            descriptor=tile.descriptor,
        )
        return self._if_there_is(turn, told)

    def _fetch(self, tile: Tile, slot: ast.expr | None, turn: ast.expr | None) -> ast.stmt:
        """Asks for a tile: of round ``turn``, if there is one."""
        corner = [self._layouts.value(clone(each)) for each in tile.corner]
        if turn is not None:
            corner = [put(each, {self._index: turn}) for each in corner]
        asked = statement(
            "tma.async_copy_global_to_shared(descriptor, place, arrived, buffer)",
            descriptor=tile.descriptor,
            place=ast.List(corner, ast.Load()),
            arrived=self._at(tile, tile.arrived, slot),
            buffer=self._at(tile, tile.buffers, slot),
        )
        return self._if_there_is(turn, asked)

    def _if_there_is(self, turn: ast.expr | None, asked: ast.stmt) -> ast.stmt:
        """What is asked for, where there is such a round."""
        if turn is not None:
            assert isinstance(asked, ast.Expr) and isinstance(asked.value, ast.Call)
            end = self._layouts.value(clone(self._end))
            condition = ast.Compare(clone(turn), [ast.Lt()], [end])
            asked.value.keywords.append(ast.keyword("pred", condition))
        return asked


def allocated(name: str, descriptor: ast.expr, shape: ast.expr) -> ast.stmt:
    """Makes a buffer of a descriptor's elements."""
    return statement(
        "name = gl.allocate_shared_memory(descriptor.dtype, shape, descriptor.layout)",
        name=name,
        descriptor=descriptor,
        shape=shape,
    )
