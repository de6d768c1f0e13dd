"""What a translation must recognize in Triton's statements: loops, products, tiles' places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from ninetoothed.backends.triton.printers.gluon.trees import NotPossibleError, called, put, text
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import clone, walk


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


def element_type(value: ast.expr) -> str:
    """The tensor of whose type the elements are that a value is cast to."""
    if isinstance(value, ast.Call) and called(value) == "cast" and len(value.args) == 2:
        words = text(value.args[1]).split(".")
        if words[1:] == ["dtype", "element_ty"] and words[0].endswith("_ptr"):
            return words[0].removesuffix("_ptr")
    raise NotPossibleError("a left operand whose type is not a tensor's")


def steps_to_tile(value: ast.expr) -> list[str]:
    """How a loaded tile's buffer is seen as the tile."""
    function = called(value) if isinstance(value, ast.Call) else ""
    if function == "load":
        return []
    if function not in ("reshape", "permute"):
        raise NotPossibleError("a tile that is changed while it is loaded")
    assert isinstance(value, ast.Call)
    inner = steps_to_tile(value.args[0])
    if function == "reshape" and any("permute" in step for step in inner):
        raise NotPossibleError("a turned tile in another shape")
    return [*inner, f".{function}({text(value.args[1])})"]


def cut(statements: Sequence[ast.stmt]) -> tuple[list[ast.stmt], ast.For, list[ast.stmt]]:
    """What stands before the loop, the loop, and what stands after."""
    loops = [each for each in statements if isinstance(each, ast.For)]
    if len(loops) != 1:
        raise NotPossibleError("a program without a loop, or with several")
    (loop,) = loops
    start, end = bounds_of(loop)
    if text(start) != "0":
        raise NotPossibleError("a loop that does not begin at 0")
    if names_read(end) & names_assigned(loops):
        raise NotPossibleError("a loop that changes its end")
    nested = [node for each in loop.body for node in walk(each)]
    if any(isinstance(node, ast.For | ast.While | ast.If) for node in nested):
        raise NotPossibleError("control flow in a loop")
    place = statements.index(loop)
    return list(statements[:place]), loop, list(statements[place + 1 :])


def bounds_of(loop: ast.For) -> tuple[ast.expr, ast.expr]:
    """Where a loop over a range begins and ends."""
    call = loop.iter
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    if not is_range or len(call.args) > 2 or call.keywords:  # type: ignore[attr-defined]
        raise NotPossibleError("a loop that is not over a range")
    if not isinstance(loop.target, ast.Name) or loop.target.id in names_assigned(loop.body):
        raise NotPossibleError("a loop that changes its variable")
    start, end = [ast.Constant(0), *call.args][-2:]  # type: ignore[attr-defined]
    return start, end


def before_loop(value: ast.expr, body: Sequence[ast.stmt]) -> ast.expr:
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
