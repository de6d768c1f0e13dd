"""A program in Gluon whose loop's tiles come through rings of buffers that it fills itself (`rings`).

Each tile that the loop loads by descriptor has a ring of buffers in shared memory, one for each of
some rounds. The first rounds' tiles are asked for before the loop; a later one as soon as the product
that read its buffer is done. A barrier for each buffer says that the tile has come.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninetoothed import threads
from ninetoothed.backends.triton.printers import joined
from ninetoothed.backends.triton.printers.layouts import (
    Layouts,
    NotPossibleError,
    Shape,
    called,
    expression,
    parse,
    put,
    text,
)
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import at, clone, walk

if TYPE_CHECKING:
    from ninetoothed.backends.triton.printers.triton import _Emitter

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
class Product:
    """A product of matrices.

    Attributes:
        rows, inner, columns: its sizes, each the text of a constant expression.
        left: the tensor of whose type the left operand's elements are.
        right: likewise.
    """

    rows: str
    inner: str
    columns: str
    left: str
    right: str


@dataclass(frozen=True)
class Needs:
    """What must hold of a call.

    Attributes:
        products: what the matrix unit must take.
        columns: of products that values lie as, each the text of a constant expression.
        equal: pairs of such texts that must have the same value.
    """

    products: tuple[Product, ...] = ()
    columns: tuple[str, ...] = ()
    equal: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class _Tile:
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


@dataclass(frozen=True)
class _View:
    """A tile in shared memory as the program sees it."""

    tile: _Tile
    text: str
    shape: Shape


@dataclass(frozen=True)
class _Dot:
    """A statement ``target = dot(left, right)``, or one that adds the product."""

    target: str
    is_added: bool
    left: ast.expr
    right: ast.expr


class Translation:
    """The statements of a kernel, in Gluon.

    Args:
        emitter: of the kernel.
        statements: all that a program does, in Triton.

    Attributes:
        needs: what must hold of a call, once it is written.
        library: the functions of `gluon_library` that are called, likewise.
    """

    def __init__(self, emitter: _Emitter, statements: Sequence[ast.stmt]) -> None:
        assert emitter.variant.ring is not None
        if emitter.kernel.optimized.externs or emitter.kernel.optimized.helpers:
            raise NotPossibleError("functions of the user's in Triton")
        self._emitter = emitter
        self._size = emitter.variant.ring.size
        self._parameters = {p.name: p for p in emitter.used.values()}
        self._before, self._loops, self._after = _cut(statements)
        self._slot, self._phase, self._coming = map(emitter.fresh, ("slot", "phase", "coming"))
        if self._size == 1:
            self._slot = "0"
        self._held: list[_Tile] = []
        self._streamed: list[_Tile] = []
        #: Of what is stored by descriptor, the name of the memory that it is stored from.
        self._results: dict[str, str] = {}
        self._of_statement: dict[int, _Tile] = {}
        self._find_tiles()
        self._layouts = Layouts(emitter.fresh)
        self.needs = Needs()
        self.library = self._layouts.library
        self._start()

    def _start(self) -> None:
        self._views: dict[str, _View] = {}
        self._waited: set[str] = set()
        #: Products under way, oldest first, and the tiles whose buffers are free once they are done.
        self._pending: list[tuple[str, list[_Tile]]] = []
        self._found: list[Product] = []
        #: What has 32 bits, as sums of products have.
        self._sums: set[str] = set()
        self._stores = False

    @property
    def _index(self) -> str:
        """The name of the loop's variable."""
        return self._loops[-1].target.id  # type: ignore[attr-defined]

    @property
    def _end(self) -> ast.expr:
        """How many rounds there are."""
        return _bounds_of(self._loops[-1])[1]

    def statements(self) -> list[ast.stmt]:
        """What the kernel does."""
        body: list[ast.stmt] = []

        def write() -> None:
            self._start()
            body[:] = self._body()

        self._layouts.settle(write)
        write()
        products = tuple(dict.fromkeys(self._found))
        self.needs = Needs(products, self._layouts.columns, frozenset(self._layouts.equal))
        return [*self._layouts.constants(), *self._memory(), *_without_unused(body)]

    # What the program is made of.

    def _find_tiles(self) -> None:
        for statement in self._before:
            for call in self._loads_in(statement):
                self._held.append(self._tile(statement, call, is_streamed=False))
        first, *others = ([(s, c) for s in p.body for c in self._loads_in(s)] for p in self._loops)
        self._streamed = [self._tile(each, call, is_streamed=True) for each, call in first]
        names: dict[str, str] = {}
        for found in others:
            if [_owner(call) for _, call in found] != [tile.descriptor for tile in self._streamed]:
                raise NotPossibleError("the loop's parts load different tiles")
            for (statement, _), (same, _), tile in zip(found, first, self._streamed):
                self._of_statement[id(statement)] = tile
                names[_name_of(statement)] = _name_of(same)
        # A tile that the program does not name has another name in each part.
        for node in (node for loop in self._loops for node in walk(loop)):
            if isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
        if not self._streamed:
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
        return isinstance(node, ast.Call) and called(node) == "load" and self._is_box(_owner(node))

    def _is_box(self, name: str) -> bool:
        return name in self._parameters and self._parameters[name].kind == "descriptor"

    def _tile(self, statement: ast.stmt, call: ast.Call, is_streamed: bool) -> _Tile:
        assert isinstance(call.args[0], ast.List)
        corner = call.args[0].elts
        if is_streamed:
            corner = [_inlined(each, self._loops[0].body) for each in corner]
        parameter = self._parameters[_owner(call)].parameter or ""
        buffers = self._emitter.fresh(f"{parameter}_{'ring' if is_streamed else 'buffer'}")
        tile = _Tile(_owner(call), parameter, tuple(corner), is_streamed, buffers)
        self._of_statement[id(statement)] = tile
        return tile

    # Memory.

    def _memory(self) -> list[ast.stmt]:
        """Buffers and barriers."""
        lines: list[str] = []
        for tile in (*self._held, *self._streamed):
            shape = f"{tile.descriptor}.block_type.shape"
            shape = f"[{self._size}] + {shape}" if tile.is_streamed else shape
            lines.append(self._allocated(tile.buffers, tile.descriptor, shape))
        for tile in (*self._held, *self._streamed):
            shape = f"[{self._size}, 1]" if tile.is_streamed else "[1]"
            lines.append(
                f"{tile.arrived} = gl.allocate_shared_memory("
                f"gl.int64, {shape}, mbarrier.MBarrierLayout())"
            )
        lines += [f"mbarrier.init({tile.arrived}, count=1)" for tile in self._held]
        lines.append(f"for {self._coming} in gl.static_range({self._size}):")
        lines += [
            f"    mbarrier.init({tile.arrived}.index({self._coming}), count=1)"
            for tile in self._streamed
        ]
        return threads.parse("\n".join(lines)).body

    def _allocated(self, name: str, descriptor: str, shape: str) -> str:
        return (
            f"{name} = gl.allocate_shared_memory({descriptor}.dtype, {shape}, {descriptor}.layout)"
        )

    def _at(self, tile: _Tile, name: str, slot: str | None = None) -> str:
        """This round's buffer or barrier."""
        return f"{name}.index({slot or self._slot})" if tile.is_streamed else name

    def _expect(self, tile: _Tile, slot: str, turn: str | None) -> ast.stmt:
        """Tells a buffer's barrier what will arrive: the tile of round ``turn``, if there is one."""
        arrived = self._at(tile, tile.arrived, slot)
        size = f"{tile.descriptor}.block_type.nbytes{self._condition(turn)}"
        return parse(f"mbarrier.expect({arrived}, {size})")

    def _fetch(self, tile: _Tile, slot: str, turn: str | None) -> ast.stmt:
        """Asks for a tile: of round ``turn``, if there is one."""
        corner = [self._layouts.value(clone(each)) for each in tile.corner]
        if turn is not None:
            corner = [put(each, {self._index: expression(turn)}) for each in corner]
        place = ", ".join(map(text, corner))
        arrived, buffer = (self._at(tile, each, slot) for each in (tile.arrived, tile.buffers))
        return parse(
            f"tma.async_copy_global_to_shared({tile.descriptor}, [{place}], "
            f"{arrived}, {buffer}{self._condition(turn)})"
        )

    def _condition(self, turn: str | None) -> str:
        return f", pred={turn} < {text(self._layouts.value(self._end))}" if turn else ""

    @property
    def _next(self) -> str:
        """The round whose tile comes to this round's buffer."""
        return f"{self._index} + {self._size}"

    def _wait(self, tile: _Tile) -> list[ast.stmt]:
        """Waits for a tile; the barrier is told at once what comes next."""
        if not tile.is_streamed:
            return [parse(f"mbarrier.wait({tile.arrived}, 0)")]
        wait = parse(f"mbarrier.wait({self._at(tile, tile.arrived)}, {self._phase})")
        return [wait, self._expect(tile, self._slot, self._next)]

    def _asked(self) -> list[ast.stmt]:
        """Asks for the first rounds' tiles, and for those of before the loop.

        All threads meet between what barriers are told and what is asked for, and between that and
        what is waited for: before the loop, if all that waits for it is one wait.
        """
        result: list[ast.stmt] = []
        for ask in (self._expect, self._fetch):
            first = parse(f"for {self._coming} in gl.static_range({self._size}): pass")
            assert isinstance(first, ast.For)
            first.body = [ask(tile, self._coming, self._coming) for tile in self._streamed]
            result += [*(ask(tile, "", None) for tile in self._held), first]
        return [*result, *(each for tile in self._held for each in self._wait(tile))]

    # What is done.

    def _body(self) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in self._before:
            result += self._statement(statement, [])
        result += self._asked()
        known = names_assigned(result)
        loops = [self._loop(loop) for loop in self._loops]
        after = [each for statement in self._after for each in self._statement(statement, [])]
        if len(loops) == 2:
            needed = {name for each in after for name in names_read(each)}
            loops = joined.join(loops[0], loops[1], known, needed)
        result += [*loops, *after]
        if self._stores:
            result.append(parse("tma.store_wait(0)"))
        return result

    def _loop(self, loop: ast.For) -> ast.For:
        assert isinstance(loop.target, ast.Name)
        carried = self._layouts.shapes(names_assigned(loop.body))
        self._layouts.change({self._index, *names_assigned(loop.body)})
        self._waited.clear()
        rounds = [parse(f"{self._phase} = {self._index} & 1")]
        if self._size > 1:
            rounds = [
                parse(f"{self._slot} = {self._index} % {self._size}"),
                parse(f"{self._phase} = {self._index} // {self._size} & 1"),
            ]
        body = _with_products_late(loop.body)
        for number, statement in enumerate(body):
            rounds += self._statement(statement, body[number + 1 :])
        if self._pending:
            rounds += self._finish(len(self._pending) - 1)
        if carried != self._layouts.shapes(carried):
            raise NotPossibleError("what the loop carries changes its shape")
        bounds = [text(self._layouts.value(clone(each))) for each in _bounds_of(loop)]
        bounds = bounds[1:] if bounds[0] == "0" else bounds
        written = parse(f"for {self._index} in range({', '.join(bounds)}): pass")
        assert isinstance(written, ast.For)
        written.body = rounds
        return at(written, loop)

    def _statement(self, statement: ast.stmt, later: Sequence[ast.stmt]) -> list[ast.stmt]:
        touched = names_read(statement) | names_assigned([statement])
        done = [n for n, (name, _) in enumerate(self._pending) if name in touched]
        result = self._finish(done[-1]) if done else []
        dot = _dot(statement)
        if id(statement) in self._of_statement:
            result.append(self._view(statement))
        elif dot is not None:
            result += self._multiply(dot, later)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            result += self._store(statement.value)
        else:
            written = self._layouts.statement(statement)
            if text(written.targets[0]) != text(written.value):
                result.append(written)
            self._note_sum(statement)
        return [at(each, statement) for each in result]

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
        steps = "".join(_steps(statement.value))
        self._layouts.exclude(name)
        self._views[name] = _View(tile, name, self._shape(tile.parameter))
        return parse(f"{name} = {self._at(tile, tile.buffers)}{steps}")

    def _shape(self, parameter: str) -> Shape:
        shape = tuple(map(text, self._emitter.widths(parameter)))
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

    def _multiply(self, dot: _Dot, later: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Begins a product."""
        right, left = self._operand(dot.right), self._operand(dot.left)
        if right is None:
            raise NotPossibleError("a right operand that is not loaded by descriptor")
        shape = left.shape if left else self._layouts.shape(dot.left)
        if len(shape) != 2:
            raise NotPossibleError("a left operand that is no matrix")
        rows, inner = shape
        columns = right.shape[1]
        if dot.is_added and dot.target not in self._sums:
            raise NotPossibleError("a sum of products that is not float32")
        self._sums.add(dot.target)
        kind = left.tile.parameter if left else _element_type(dot.left)
        self._found.append(Product(rows, inner, columns, kind, right.tile.parameter))
        self._layouts.product(dot.target, rows, columns)
        views = [view for view in (left, right) if view is not None and view.tile.is_streamed]
        tiles = list({view.tile.buffers: view.tile for view in views}.values())
        waited = [tile for tile in tiles if tile.buffers not in self._waited]
        result = [each for tile in waited for each in self._wait(tile)]
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

    def _is_read(self, tile: _Tile, later: Sequence[ast.stmt]) -> bool:
        names = {name for name, view in self._views.items() if view.tile is tile}
        return any(names & names_read(statement) for statement in later)

    def _finish(self, last: int) -> list[ast.stmt]:
        """Waits for products under way, up to one of them, and asks for what comes next."""
        done, self._pending = self._pending[: last + 1], self._pending[last + 1 :]
        names = ", ".join(dict.fromkeys(name for name, _ in done))
        result = [parse(f"{names} = warpgroup_mma_wait({len(self._pending)}, deps=[{names}])")]
        free = [tile for _, tiles in done for tile in tiles]
        return [*result, *(self._fetch(tile, self._slot, self._next) for tile in free)]

    # What is stored.

    def _store(self, call: ast.Call) -> list[ast.stmt]:
        if called(call) != "store":
            raise NotPossibleError(f"`{called(call)}`")
        if not self._is_box(_owner(call)):
            return [ast.Expr(self._layouts.store(call))]
        descriptor, (corner, value) = _owner(call), call.args
        parameter = self._parameters[descriptor].parameter or ""
        self._stores = True
        if parameter not in self._results:
            self._results[parameter] = self._emitter.fresh(f"{parameter}_buffer")
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
            parse(self._allocated(buffer, descriptor, f"{descriptor}.block_type.shape")),
            parse(f"{viewed}.store({text(self._layouts.value(value))})"),
            parse("fence_async_shared()"),
            parse(f"tma.async_copy_shared_to_global({descriptor}, [{place}], {buffer})"),
        ]


def _inlined(value: ast.expr, body: Sequence[ast.stmt]) -> ast.expr:
    """An expression of a loop's body in terms of what is known before it, and of its variable."""
    changed = names_assigned(body)
    value = clone(value)
    while found := sorted(names_read(value) & changed):
        assigned = [each for each in body if found[0] in names_assigned([each])]
        only = assigned[0]
        if len(assigned) > 1 or not isinstance(only, ast.Assign) or found[0] in names_read(only):
            raise NotPossibleError("where a tile is depends on the round before")
        value = put(value, {found[0]: only.value})
    return value


def _with_products_late(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A round in which a sum of products is formed after what does not need it: what is computed
    from its operand, as attention's sums of a row, needs the operand's registers no longer then."""
    result = list(body)
    for statement in body:
        dot = _dot(statement)
        if dot is None or not dot.is_added:
            continue
        place = result.index(statement)
        later = result[place + 1 :]
        stays = (n for n, each in enumerate(later) if not _may_pass(each, dot, statement))
        count = next(stays, len(later))
        result[place : place + 1 + count] = [*later[:count], statement]
    return result


def _may_pass(statement: ast.stmt, dot: _Dot, product: ast.stmt) -> bool:
    """Whether a statement may as well stand before a product."""
    if not isinstance(statement, ast.Assign | ast.AugAssign) or _dot(statement) is not None:
        return False
    assigned = names_assigned([statement])
    touched = assigned | names_read(statement)
    return dot.target not in touched and assigned.isdisjoint(names_read(product))


def _dot(statement: ast.stmt) -> _Dot | None:
    """A statement that multiplies."""
    target: ast.expr
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        target, value, is_added = statement.target, statement.value, True
    elif isinstance(statement, ast.Assign):
        target, value, is_added = statement.targets[0], statement.value, False
    else:
        return None
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return None
    if called(value) != "dot":
        return None
    arguments = value.args
    if len(arguments) == 3 and not is_added and text(arguments[2]) == target.id:
        arguments, is_added = arguments[:2], True
    given = {keyword.arg for keyword in value.keywords}
    if len(arguments) != 2 or not given <= {"input_precision"}:
        raise NotPossibleError("a product with further arguments")
    return _Dot(target.id, is_added, *arguments)


def _element_type(value: ast.expr) -> str:
    """The tensor of whose type the elements are that a value is cast to."""
    if isinstance(value, ast.Call) and called(value) == "cast" and len(value.args) == 2:
        words = text(value.args[1]).split(".")
        if words[1:] == ["dtype", "element_ty"] and words[0].endswith("_ptr"):
            return words[0].removesuffix("_ptr")
    raise NotPossibleError("a left operand whose type is not a tensor's")


def _steps(value: ast.expr) -> list[str]:
    """How a loaded tile's buffer is seen as the tile."""
    function = called(value) if isinstance(value, ast.Call) else ""
    if function == "load":
        return []
    if function not in ("reshape", "permute"):
        raise NotPossibleError("a tile that is changed while it is loaded")
    assert isinstance(value, ast.Call)
    inner = _steps(value.args[0])
    if function == "reshape" and any("permute" in step for step in inner):
        raise NotPossibleError("a turned tile in another shape")
    return [*inner, f".{function}({text(value.args[1])})"]


def _cut(
    statements: Sequence[ast.stmt],
) -> tuple[list[ast.stmt], list[ast.For], list[ast.stmt]]:
    """What stands before the loop, the loop in one part or two, and what stands after."""
    loops = [each for each in statements if isinstance(each, ast.For)]
    if not loops:
        raise NotPossibleError("a program without a loop")
    first = statements.index(loops[0])
    after = list(statements[first + len(loops) :])
    if list(statements[first : first + len(loops)]) != loops:
        raise NotPossibleError("several loops")
    start = "0"
    for loop in loops:
        bounds = _bounds_of(loop)
        if text(bounds[0]) != start:
            raise NotPossibleError("several loops, or one that does not begin at 0")
        start = text(bounds[1])
    if names_read(_bounds_of(loops[-1])[1]) & names_assigned(loops):
        raise NotPossibleError("a loop that changes its end")
    nested = [node for loop in loops for each in loop.body for node in walk(each)]
    if any(isinstance(node, ast.For | ast.While | ast.If) for node in nested):
        raise NotPossibleError("control flow in a loop")
    return list(statements[:first]), loops, after


def _bounds_of(loop: ast.For) -> list[ast.expr]:
    call = loop.iter
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    if not is_range or len(call.args) > 2 or call.keywords:  # type: ignore[attr-defined]
        raise NotPossibleError("a loop that is not over a range")
    if not isinstance(loop.target, ast.Name) or loop.target.id in names_assigned(loop.body):
        raise NotPossibleError("a loop that changes its variable")
    return [ast.Constant(0), *call.args][-2:]  # type: ignore[attr-defined]


def _name_of(statement: ast.stmt) -> str:
    (name,) = names_assigned([statement])
    return name


def _owner(call: ast.AST) -> str:
    """The name whose method is called."""
    func = call.func if isinstance(call, ast.Call) else None
    return text(func.value) if isinstance(func, ast.Attribute) else ""


def _without_unused(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements without those that only compute what nobody reads."""
    count = -1
    while count != (count := sum(1 for _ in _all(body))):
        read = {name for statement in body for name in names_read(statement)}
        body = [each for each in body if not _is_unused(each, read)]
        for statement in body:
            if isinstance(statement, ast.For):
                statement.body = [each for each in statement.body if not _is_unused(each, read)]
    return body


def _all(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.For):
            yield from statement.body


def _is_unused(statement: ast.stmt, read: set[str]) -> bool:
    return isinstance(statement, ast.Assign) and names_assigned([statement]).isdisjoint(read)
