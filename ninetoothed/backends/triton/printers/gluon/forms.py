"""The form of a program: a loop, what it multiplies, and the tiles that it loads by descriptor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ninetoothed.backends.triton.ir.nodes import DescriptorLoad
from ninetoothed.backends.triton.printers.gluon.trees import called, put
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import clone, walk
from ninetoothed.program.types import Shape, held_shape
from ninetoothed.records import dataclass


class NotPossibleError(Exception):
    """A program that cannot be written in Gluon: the reason."""


@dataclass(frozen=True)
class Dot:
    """A statement ``target = dot(left, right)``, or one that adds the product."""

    target: str
    is_added: bool
    left: ast.expr
    right: ast.expr


def dot_of(statement: ast.stmt) -> Dot | None:
    """A statement that multiplies."""
    target: ast.expr
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        target, value, is_added = statement.target, statement.value, True
    elif isinstance(statement, ast.Assign):
        target, value, is_added = statement.targets[0], statement.value, False
    else:
        return None
    if not isinstance(target, ast.Name) or called(value) != "dot":
        return None
    assert isinstance(value, ast.Call)
    arguments = value.args
    if len(arguments) == 3 and not is_added and isinstance(arguments[2], ast.Name):
        is_added = arguments[2].id == target.id
        arguments = arguments[: 2 if is_added else 3]
    given = {keyword.arg for keyword in value.keywords}
    if len(arguments) != 2 or not given <= {"input_precision"}:
        raise NotPossibleError("a product with further arguments")
    return Dot(target.id, is_added, *arguments)


def with_products_late(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A round in which a sum of products is formed after what does not need it: what is computed
    from its operand, as attention's sums of a row, needs the operand's registers no longer then."""
    result = list(body)
    for statement in body:
        dot = dot_of(statement)
        if dot is None or not dot.is_added:
            continue
        place = result.index(statement)
        later = result[place + 1 :]
        stays = (n for n, each in enumerate(later) if not _may_pass(each, dot, statement))
        count = next(stays, len(later))
        result[place : place + 1 + count] = [*later[:count], statement]
    return result


def _may_pass(statement: ast.stmt, dot: Dot, product: ast.stmt) -> bool:
    """Whether a statement may as well stand before a product."""
    if not isinstance(statement, ast.Assign | ast.AugAssign) or dot_of(statement) is not None:
        return False
    assigned = names_assigned([statement])
    touched = assigned | names_read(statement)
    return dot.target not in touched and assigned.isdisjoint(names_read(product))


@dataclass(frozen=True)
class Tile:
    """What one load by descriptor gives.

    Attributes:
        name: of the variable that it is.
        load: by which it is loaded.
        steps: how its buffer is seen as the tile: calls of functions of shapes.
        shape: of the tile.
        corner: where it begins.
        is_streamed: whether each round of the loop has another.
        buffers: the name of the memory that it comes to.
    """

    name: str
    load: DescriptorLoad
    steps: tuple[ast.Call, ...]
    shape: Shape
    corner: tuple[ast.expr, ...]
    is_streamed: bool
    buffers: str

    @property
    def parameter(self) -> str:
        return self.load.parameter

    @property
    def descriptor(self) -> ast.expr:
        return self.load.descriptor

    @property
    def arrived(self) -> str:
        """The name of the barriers that say that it has come."""
        return f"{self.buffers}_arrived"


@dataclass(frozen=True)
class Form:
    """A program with one loop.

    Attributes:
        before, after: the statements outside the loop.
        loop, body: the loop, and what a round does.
        index: its variable.
        end: how many rounds there are.
        tiles: what is loaded by descriptor, by the statement that does.
    """

    before: Sequence[ast.stmt]
    loop: ast.For
    after: Sequence[ast.stmt]
    body: Sequence[ast.stmt]
    index: str
    end: ast.expr
    tiles: dict[ast.stmt, Tile]


def form_of(
    statements: Sequence[ast.stmt],
    shapes: Callable[[str], Sequence[object]],
    fresh: Callable[[str], str],
) -> Form:
    """The form of a lowered program.

    Args:
        shapes: gives the shape of a tensor's tiles.
        fresh: gives a name that nothing has.

    Raises:
        NotPossibleError: it has another.
    """
    loops = [each for each in statements if isinstance(each, ast.For)]
    if len(loops) != 1:
        raise NotPossibleError("a program without a loop, or with several")
    (loop,) = loops
    place = statements.index(loop)
    before, after = statements[:place], statements[place + 1 :]
    end = _end(loop)
    nested = [node for each in loop.body for node in walk(each)]
    if any(isinstance(node, ast.For | ast.While | ast.If) for node in nested):
        raise NotPossibleError("control flow in a loop")
    tiles: dict[ast.stmt, Tile] = {}
    for statement in (*before, *loop.body):
        load = _load(statement)
        if load is None:
            continue
        corner, is_streamed = load.corner.elts, statement in loop.body
        if is_streamed:
            corner = [_before_loop(each, loop.body) for each in corner]
        buffers = fresh(f"{load.parameter}_{'ring' if is_streamed else 'buffer'}")
        (name,) = names_assigned([statement])
        steps = tuple(_steps(statement.value))  # type: ignore[attr-defined]
        shape = held_shape(shapes(load.parameter))
        if len(shape) != 2:
            raise NotPossibleError("an operand that is no matrix")
        tiles[statement] = Tile(name, load, steps, shape, tuple(corner), is_streamed, buffers)
    if not any(tile.is_streamed for tile in tiles.values()):
        raise NotPossibleError("a loop that loads nothing by descriptor")
    if any(map(_load, after)):
        raise NotPossibleError("a tile that is loaded by descriptor after the loop")
    assert isinstance(loop.target, ast.Name)
    body = with_products_late(loop.body)
    return Form(before, loop, after, body, loop.target.id, end, tiles)


def _end(loop: ast.For) -> ast.expr:
    """How many rounds a loop has."""
    call = loop.iter
    if called(call) != "range" or len(call.args) > 2 or call.keywords:  # type: ignore[attr-defined]
        raise NotPossibleError("a loop that is not over a range")
    assigned = names_assigned(loop.body)
    if not isinstance(loop.target, ast.Name) or loop.target.id in assigned:
        raise NotPossibleError("a loop that changes its variable")
    start, end = [ast.Constant(0), *call.args][-2:]  # type: ignore[attr-defined]
    if not isinstance(start, ast.Constant) or start.value != 0:
        raise NotPossibleError("a loop that does not begin at 0")
    if names_read(end) & {loop.target.id, *assigned}:
        raise NotPossibleError("a loop that changes its end")
    return end


def _load(statement: ast.stmt) -> DescriptorLoad | None:
    found = [node for node in walk(statement) if isinstance(node, DescriptorLoad)]
    is_named = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    if found and (len(found) > 1 or not is_named):
        raise NotPossibleError("a loaded tile has no name")
    return found[0] if found else None


def _steps(value: ast.expr) -> list[ast.Call]:
    """How a loaded tile's buffer is seen as the tile."""
    if isinstance(value, DescriptorLoad):
        return []
    function = called(value)
    if function not in ("reshape", "permute"):
        raise NotPossibleError("a tile that is changed while it is loaded")
    assert isinstance(value, ast.Call)
    steps = _steps(value.args[0])
    if function == "reshape" and any(called(step) == "permute" for step in steps):
        raise NotPossibleError("a turned tile in another shape")
    return [*steps, value]


def _before_loop(value: ast.expr, body: Sequence[ast.stmt]) -> ast.expr:
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


def without_unused(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements without those that only compute what nobody reads."""
    while True:
        read = {name for statement in body for name in names_read(statement)}
        kept = [each for each in body if not _is_unused(each, read)]
        count = len(body) - len(kept)
        for statement in kept:
            if isinstance(statement, ast.For):
                inner = [each for each in statement.body if not _is_unused(each, read)]
                count += len(statement.body) - len(inner)
                statement.body = inner
        if not count:
            return kept
        body = kept


def _is_unused(statement: ast.stmt, read: set[str]) -> bool:
    return isinstance(statement, ast.Assign) and names_assigned([statement]).isdisjoint(read)
