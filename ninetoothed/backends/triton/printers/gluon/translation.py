"""A program in Gluon whose loop's tiles come through rings of buffers that it fills itself.

It is made of the statements that the same program has in Triton (`tma_pipeline` offers it).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ninetoothed.backends.triton.ir.marked_loop import MarkedLoop
from ninetoothed.backends.triton.ir.products import Needs, Product
from ninetoothed.backends.triton.printers.gluon import rounds
from ninetoothed.backends.triton.printers.gluon.buffers import Buffers, Tile, allocated
from ninetoothed.backends.triton.printers.gluon.forms import (
    Dot,
    before_loop,
    bounds_of,
    cut,
    dot_of,
    element_type,
    steps_to_tile,
    with_products_late,
    without_unused,
)
from ninetoothed.backends.triton.printers.gluon.layouts import Layouts
from ninetoothed.backends.triton.printers.gluon.rounds import Step
from ninetoothed.backends.triton.printers.gluon.shapes import Shape
from ninetoothed.backends.triton.printers.gluon.trees import (
    NotPossibleError,
    called,
    owner,
    parse,
    text,
)
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import at, clone, walk

#: What the text needs.
IMPORTS = """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)"""


@dataclass(frozen=True)
class _View:
    """A tile in shared memory as the program sees it."""

    tile: Tile
    text: str
    shape: Shape


class Translation:
    """The statements of a kernel, in Gluon.

    Args:
        statements: all that a program does, in Triton.
        size: buffers of a ring.
        is_one_loop: whether a split loop is written as one.
        descriptors: the tensor that each descriptor's name is of.
        widths: gives the sizes of a tensor's tiles.
        fresh: gives a name that nothing has.

    Attributes:
        needs: what must hold of a call, once it is written.
        library: the functions of `gluon_library` that are called, likewise.

    Raises:
        NotPossibleError: there is no translation.
    """

    def __init__(
        self,
        statements: Sequence[ast.stmt],
        size: int,
        is_one_loop: bool,
        descriptors: Mapping[str, str],
        widths: Callable[[str], list[ast.expr]],
        fresh: Callable[[str], str],
    ) -> None:
        self._is_one_loop = is_one_loop
        self._descriptors = descriptors
        self._widths = widths
        self._fresh = fresh
        self._before, self._loop, self._after = cut(statements)
        assert isinstance(self._loop.target, ast.Name)
        self._index = self._loop.target.id
        self._layouts = Layouts(fresh)
        end = bounds_of(self._loop)[1]
        self._buffers = Buffers(size, self._index, end, self._layouts, fresh)
        #: Of what is stored by descriptor, the name of the memory that it is stored from.
        self._results: dict[str, str] = {}
        self._of_statement: dict[int, Tile] = {}
        self._find_tiles()
        self.needs = Needs()
        self.library = self._layouts.library
        self._start()

    def _start(self) -> None:
        self._views: dict[str, _View] = {}
        self._waited: set[str] = set()
        #: Products under way, oldest first, and the tiles whose buffers are free once they are done.
        self._pending: list[tuple[str, list[Tile]]] = []
        self._found: list[Product] = []
        #: What has 32 bits, as sums of products have.
        self._sums: set[str] = set()
        self._stores = False

    def statements(self) -> list[ast.stmt]:
        """What the kernel does."""
        body: list[ast.stmt] = []

        def write() -> None:
            self._start()
            body[:] = self._body()

        self._layouts.settle(write)
        write()
        products = tuple(dict.fromkeys(self._found))
        equal = frozenset(self._layouts.shapes.equal)
        self.needs = Needs(products, self._layouts.columns, equal)
        return [*self._layouts.constants(), *self._buffers.allocations(), *without_unused(body)]

    # What the program is made of.

    def _find_tiles(self) -> None:
        for body, tiles in (
            (self._before, self._buffers.held),
            (self._loop.body, self._buffers.streamed),
        ):
            tiles += [self._tile(each, call) for each in body for call in self._loads_in(each)]
        if not self._buffers.streamed:
            raise NotPossibleError("a loop that loads nothing by descriptor")
        if any(self._loads_in(statement) for statement in self._after):
            raise NotPossibleError("a tile is loaded by descriptor after the loop")

    def _loads_in(self, statement: ast.stmt) -> list[ast.Call]:
        found = [node for node in walk(statement) if self._is_load(node)]
        is_named = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        if found and (len(found) > 1 or not is_named):
            raise NotPossibleError("a loaded tile has no name")
        return found  # type: ignore[return-value]

    def _is_load(self, node: ast.AST) -> bool:
        is_load = isinstance(node, ast.Call) and called(node) == "load"
        return is_load and owner(node) in self._descriptors

    def _tile(self, statement: ast.stmt, call: ast.Call) -> Tile:
        assert isinstance(call.args[0], ast.List)
        corner = call.args[0].elts
        is_streamed = statement in self._loop.body
        if is_streamed:
            corner = [before_loop(each, self._loop.body) for each in corner]
        parameter = self._descriptors[owner(call)]
        buffers = self._fresh(f"{parameter}_{'ring' if is_streamed else 'buffer'}")
        tile = Tile(owner(call), parameter, tuple(corner), is_streamed, buffers)
        self._of_statement[id(statement)] = tile
        return tile

    # What is done.

    def _body(self) -> list[ast.stmt]:
        result = self._straight(self._before)
        result += self._buffers.asked()
        known = {self._index, *names_assigned(result)}
        steps = self._rounds()
        after = self._straight(self._after)
        needed = {name for each in after for name in names_read(each)}
        result += [*self._loops(steps, known, needed), *after]
        if self._stores:
            result.append(parse("tma.store_wait(0)"))
        return result

    def _straight(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements outside the loop."""
        return [step.other for each in statements for step in self._statement(each, [])]

    def _loops(self, steps: Sequence[Step], known: set[str], needed: set[str]) -> list[ast.stmt]:
        """The loop; two of them where its first rounds are better written on their own."""
        end = text(self._layouts.value(clone(bounds_of(self._loop)[1])))
        every = [step.other for step in steps]
        if all(step.is_common for step in steps):
            return [self._over(end, every)]
        assert isinstance(self._loop, MarkedLoop)
        middle = self._loop.middle
        if self._is_one_loop:
            one = rounds.in_one(steps, f"{self._index} >= {middle}", known, needed)
            if one is not None:
                return [self._over(end, one)]
        first, others = rounds.in_two(steps, needed)
        return [self._over(middle, first), self._over(f"{middle}, {end}", others)]

    def _over(self, bounds: str, body: list[ast.stmt]) -> ast.stmt:
        """The loop over a range."""
        written = parse(f"for {self._index} in range({bounds}): pass")
        assert isinstance(written, ast.For)
        written.body = body
        return at(written, self._loop)

    def _rounds(self) -> list[Step]:
        """What each round does."""
        assigned = names_assigned(self._loop.body)
        carried = self._layouts.shapes.of_names(assigned)
        self._layouts.change({self._index, *assigned})
        self._waited.clear()
        steps = rounds.common(self._buffers.begun())
        body = with_products_late(self._loop.body)
        for number, statement in enumerate(body):
            steps += self._statement(statement, body[number + 1 :])
        if self._pending:
            steps += rounds.common(self._finish(len(self._pending) - 1))
        if carried != self._layouts.shapes.of_names(carried):
            raise NotPossibleError("what the loop carries changes its shape")
        return steps

    def _statement(self, statement: ast.stmt, later: Sequence[ast.stmt]) -> list[Step]:
        touched = names_read(statement) | names_assigned([statement])
        done = [n for n, (name, _) in enumerate(self._pending) if name in touched]
        finished = self._finish(done[-1]) if done else []
        dot = dot_of(statement)
        if id(statement) in self._of_statement:
            steps = rounds.common([self._view(statement)])
        elif dot is not None:
            steps = rounds.common(self._multiply(dot, later))
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            steps = rounds.common(self._store(statement.value))
        else:
            steps = self._assignment(statement)
            self._note_sum(statement)
        steps = [*rounds.common(finished), *steps]
        for step in steps:
            for each in (step.first, step.other):
                if each is not None:
                    at(each, statement)
        return steps

    def _assignment(self, statement: ast.stmt) -> list[Step]:
        first, other = (
            None if text(each.targets[0]) == text(each.value) else each
            for each in self._layouts.statement(statement)
        )
        return [] if other is None else [Step(first, other)]

    def _note_sum(self, statement: ast.stmt) -> None:
        (target,) = names_assigned([statement])
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and called(value) in ("zeros", "full"):
            given = [*value.args, *(keyword.value for keyword in value.keywords)]
            if text(given[-1]) == "tl.float32":
                self._sums.add(target)
                return
        if target not in names_read(statement) and not isinstance(statement, ast.AugAssign):
            self._sums.discard(target)

    # Tiles in shared memory.

    def _view(self, statement: ast.stmt) -> ast.stmt:
        """The name of a tile, given to its buffer."""
        assert isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        tile, name = self._of_statement[id(statement)], statement.targets[0].id
        steps = "".join(steps_to_tile(statement.value))
        self._layouts.shapes.exclude(name)
        self._views[name] = _View(tile, name, self._shape(tile.parameter))
        return parse(f"{name} = {self._buffers.buffer(tile)}{steps}")

    def _shape(self, parameter: str) -> Shape:
        shape = tuple(map(text, self._widths(parameter)))
        if len(shape) != 2:
            raise NotPossibleError("an operand that is no matrix")
        return shape

    def _operand(self, value: ast.expr) -> _View | None:
        """A tile in shared memory, turned or not."""
        if isinstance(value, ast.Name):
            return self._views.get(value.id)
        inner = None
        if isinstance(value, ast.Call) and called(value) == "trans" and len(value.args) == 1:
            inner = self._operand(value.args[0])
        if isinstance(value, ast.Attribute) and value.attr == "T":
            inner = self._operand(value.value)
        if inner is None:
            return None
        return _View(inner.tile, f"{inner.text}.permute((1, 0))", inner.shape[::-1])

    # Products.

    def _multiply(self, dot: Dot, later: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Begins a product."""
        right, left = self._operand(dot.right), self._operand(dot.left)
        if right is None:
            raise NotPossibleError("a right operand that is not loaded by descriptor")
        shape = left.shape if left else self._layouts.shapes.of(dot.left)
        if len(shape) != 2:
            raise NotPossibleError("a left operand that is no matrix")
        rows, inner = shape
        columns = right.shape[1]
        if dot.is_added and dot.target not in self._sums:
            raise NotPossibleError("a sum of products that is not float32")
        self._sums.add(dot.target)
        kind = left.tile.parameter if left else element_type(dot.left)
        self._found.append(Product(rows, inner, columns, kind, right.tile.parameter))
        self._layouts.product(dot.target, rows, columns)
        views = [view for view in (left, right) if view is not None and view.tile.is_streamed]
        tiles = list({view.tile.buffers: view.tile for view in views}.values())
        waited = [tile for tile in tiles if tile.buffers not in self._waited]
        result = [each for tile in waited for each in self._buffers.wait(tile)]
        self._waited |= {tile.buffers for tile in tiles}
        given = left.text if left else text(self._layouts.operand(dot.left, columns))
        start, keywords = dot.target, "is_async=True"
        if not dot.is_added:
            start = text(self._layouts.nothing(rows, columns))
            keywords = "use_acc=False, is_async=True"
        call = f"warpgroup_mma({given}, {right.text}, {start}, {keywords})"
        result.append(parse(f"{dot.target} = {call}"))
        free = [tile for tile in tiles if not self._is_read(tile, later)]
        self._pending.append((dot.target, free))
        return result

    def _is_read(self, tile: Tile, later: Sequence[ast.stmt]) -> bool:
        names = {name for name, view in self._views.items() if view.tile is tile}
        return any(names & names_read(statement) for statement in later)

    def _finish(self, last: int) -> list[ast.stmt]:
        """Waits for products under way, up to one of them, and asks for what comes next."""
        done, self._pending = self._pending[: last + 1], self._pending[last + 1 :]
        names = ", ".join(dict.fromkeys(name for name, _ in done))
        result = [parse(f"{names} = warpgroup_mma_wait({len(self._pending)}, deps=[{names}])")]
        return [*result, *(self._buffers.fetch(tile) for _, tiles in done for tile in tiles)]

    # What is stored.

    def _store(self, call: ast.Call) -> list[ast.stmt]:
        if called(call) != "store":
            raise NotPossibleError(f"`{called(call)}`")
        descriptor = owner(call)
        if descriptor not in self._descriptors:
            return [ast.Expr(self._layouts.store(call))]
        corner, value = call.args
        parameter = self._descriptors[descriptor]
        self._stores = True
        if parameter not in self._results:
            self._results[parameter] = self._fresh(f"{parameter}_buffer")
        buffer = self._results[parameter]
        shape = self._shape(parameter)
        viewed = buffer
        if isinstance(value, ast.Call) and called(value) == "reshape":
            value, viewed = value.args[0], f"{buffer}.reshape(({', '.join(shape)}))"
        if not isinstance(value, ast.Name):
            raise NotPossibleError("a result that lies otherwise than its tile")
        assert isinstance(corner, ast.List)
        place = ", ".join(text(self._layouts.value(each)) for each in corner.elts)
        # Made this late it lies where the loop's tiles have been.
        return [
            parse(allocated(buffer, descriptor, f"{descriptor}.block_type.shape")),
            parse(f"{viewed}.store({text(self._layouts.value(value))})"),
            parse("fence_async_shared()"),
            parse(f"tma.async_copy_shared_to_global({descriptor}, [{place}], {buffer})"),
        ]
