"""What a program may be written as without another meaning: each function changes one place, where one fits."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.hunt.spelling.scopes import (
    Application,
    Renamed,
    Run,
    assigned,
    expression,
    names_of,
    parsed,
    reads,
    walked,
)

#: By their names; True where a place was found.
REWRITINGS: dict[str, Callable[[Application], bool]] = {}


def rewriting(function: Callable[[Application], bool]) -> Callable[[Application], bool]:
    REWRITINGS[function.__name__] = function
    return function


# Loops.

#: So many rounds are not unrolled.
MOST_ROUNDS = 8


def _loops(app: Application) -> Iterator[tuple[Run, ast.For, str, str]]:
    """Loops over a ``range`` from 0, or over as many numbers that are known; their variables and counts."""
    for run, loop in app.statements():
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
            continue
        name = loop.target.id
        if name in run.known or name in assigned(loop.body):
            continue
        match loop.iter:
            case ast.Call(ast.Name("range"), [count]):
                yield run, loop, name, ast.unparse(count)
            case ast.Call(ast.Attribute(attr="static_range"), [ast.Constant(count)]):
                yield run, loop, name, str(count)
            case ast.Tuple(items) if ast.unparse(loop.iter) == str(tuple(range(len(items)))):
                yield run, loop, name, str(len(items))


def _only_selects(loop: ast.For, name: str) -> bool:
    """Whether a loop's variable is only an index as it is, so that its type is not asked for."""
    nodes = walked(loop.body)
    indices = [each for n in nodes if isinstance(n, ast.Subscript) for each in _items(n.slice)]
    selecting = [each for each in indices if isinstance(each, ast.Name) and each.id == name]
    return len(selecting) == sum(isinstance(n, ast.Name) and n.id == name for n in nodes)


def _items(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _is_of_kernel(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name)


def _may_count_otherwise(loop: ast.For, name: str, count: str) -> bool:
    """Whether a loop over a ``range`` may go over its numbers in another order, or in parts."""
    return _is_of_kernel(loop) and (count.isalnum() or _only_selects(loop, name))


@rewriting
def loop_over_other_numbers(app: Application) -> bool:
    """Over `ntl.static_range`, a tuple or a `range`, of which each is the same as another."""
    for _, loop, name, count in _loops(app):
        kinds = [f"range({count})", f"range(0, {count})", f"range(0, {count}, 1)"]
        times = app.levels.get(count, int(count) if count.isdigit() else MOST_ROUNDS)
        if times < MOST_ROUNDS:
            numbers = "".join(f"{number}, " for number in range(times))
            kinds += [f"ntl.static_range({times})", f"({numbers})"] * 3
            kinds += [f"reversed({tuple(reversed(range(times)))})"]
        if not _only_selects(loop, name):
            kinds = [kind for kind in kinds if kind.startswith("range") == _is_of_kernel(loop)]
        kinds = [kind for kind in kinds if kind != ast.unparse(loop.iter)]
        if kinds:
            loop.iter = expression(app.choose.choice(kinds))
            return True
    return False


@rewriting
def loop_backwards(app: Application) -> bool:
    """From the end, where the variable counts from the beginning."""
    for _, loop, name, count in _loops(app):
        if _may_count_otherwise(loop, name, count):
            other = app.fresh("j")
            loop.iter = expression(f"reversed(range({count}))")
            loop.target = ast.Name(other, ast.Store())
            loop.body[:0] = parsed(f"{name} = {count} - 1 - {other}")
            return True
    return False


@rewriting
def loop_that_counts(app: Application) -> bool:
    """A ``while``."""
    for run, loop, name, count in _loops(app):
        if _is_of_kernel(loop):
            begun, counting = parsed(f"{name} = 0\nwhile {name} < {count}:\n    {name} += 1")
            counting.body[:0] = loop.body  # type: ignore[attr-defined]
            run.replace([begun, counting])
            return True
    return False


@rewriting
def index_that_moves_on(app: Application) -> bool:
    """One variable selects the tiles of statements, wherever they stand, and is another number at each."""
    found = {
        statement: (run.block, *app.choose.choice([*selecting.items()]))
        for _ in range(5)
        for run, statement in app.statements()
        if (selecting := _selecting(app, run, statement))
    }
    apart = [
        (statement, *places)
        for statement, places in found.items()
        if found.keys().isdisjoint({*ast.walk(statement)} - {statement})
    ]
    if len({index for _, _, index, _ in apart}) < 2:
        return False
    name = app.fresh("i")
    for statement, block, index, nodes in apart:
        for each in nodes:
            each.slice = ast.Name(name, ast.Load())
        value = f"ntl.minimum(ntl.program_id(0), 0) + {index}" if index.isdigit() else index
        block[(place := block.index(statement)) : place] = parsed(f"{name} = {value}")
    return True


def _selecting(app: Application, run: Run, statement: ast.stmt) -> dict[str, list[ast.Subscript]]:
    """What a statement selects of tensors by a name that it leaves alone, or a number, by how that is written."""
    found: dict[str, list[ast.Subscript]] = {}
    left = run.known - set(assigned(run.body)) - app.ranks.keys()
    for node in walked([statement]):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            index = ast.unparse(node.slice)
            if node.value.id in app.ranks and (index.isdigit() or index in left):
                found.setdefault(index, []).append(node)
    return found


@rewriting
def loop_in_two(app: Application) -> bool:
    """The first rounds, and the others."""
    for run, loop, name, count in _loops(app):
        if _may_count_otherwise(loop, name, count):
            half = app.choose.choice((f"{count} // 2", f"{count} // 3"))
            both = parsed(
                f"for {name} in range({half}):\n    pass\nfor {name} in range({half}, {count}):\n    pass"
            )
            for each in both:
                each.body = copy.deepcopy(loop.body)  # type: ignore[attr-defined]
            run.replace(both)
            return True
    return False


@rewriting
def loop_around_a_loop(app: Application) -> bool:
    """One of one round: what has no element, the loop within has kept already."""
    for run, loop in app.statements():
        if isinstance(loop, (ast.For, ast.While)) and not set(app.results(run)) - run.known:
            over = app.choose.choice(("range(1)", "ntl.static_range(1)", "(0,)", "range(2, 3)"))
            (around,) = parsed(f"for {app.fresh('j')} in {over}:\n    pass")
            around.body = [loop]  # type: ignore[attr-defined]
            run.replace([around])
            return True
    return False


# Branches.


def sure(app: Application) -> str:
    """A condition that always holds."""
    return app.choose.choice(
        [
            *(f"{name} == {name}" for name in (*app.numbers, *app.flags)),
            *(f"{name}.source.shape[0] >= 0" for name, rank in app.ranks.items() if rank),
            *("ntl.program_id(0) >= 0", "ntl is not None", "True"),
        ]
    )


def either(app: Application) -> str:
    """One that may hold."""
    return app.choose.choice(
        [
            *(f"{name} > 1" for name in app.numbers),
            *app.flags,
            *(f"{name}.source.shape[0] > 2" for name, rank in app.ranks.items() if rank),
            "ntl.program_id(0) == 0",
        ]
    )


def _branch(condition: str, body: list[ast.stmt], orelse: list[ast.stmt]) -> ast.If:
    test = expression(f"({condition})")
    return ast.If(test, body, orelse)


@rewriting
def branch_around(app: Application) -> bool:
    """Under a condition that always holds; or the same under one as under the other."""
    for run in app.runs():
        if set(app.results(run)) - run.known:
            continue
        if app.chance(0.5):
            run.replace([_branch(either(app), run.body, copy.deepcopy(run.body))])
        else:
            orelse = copy.deepcopy(run.body) if app.chance(0.3) else []
            run.replace([_branch(sure(app), run.body, orelse)])
        return True
    return False


@rewriting
def branch_turned(app: Application) -> bool:
    """Under the opposite."""
    for run, branch in app.statements():
        if isinstance(branch, ast.If):
            condition = f"not ({ast.unparse(branch.test)})"
            run.replace([_branch(condition, branch.orelse or [ast.Pass()], branch.body)])
            return True
    return False


@rewriting
def branch_for_choice(app: Application) -> bool:
    """An ``if`` for a conditional expression."""
    for run, statement in app.statements():
        match statement:
            case ast.Assign([target], ast.IfExp(test, one, other)):
                if not names_of(target) & run.known:
                    continue
                both = [[ast.Assign([copy.deepcopy(target)], each)] for each in (one, other)]
                run.replace([_branch(ast.unparse(test), *both)])
                return True
    return False


@rewriting
def choice_for_branch(app: Application) -> bool:
    """A conditional expression for an ``if``."""
    for run, branch in app.statements():
        match branch:
            case ast.If(test, [ast.Assign([ast.Name(name) as target], one)], orelse):
                if name in app.ranks:
                    # What is stored may have another type and shape either way.
                    continue
                match orelse:
                    case [ast.Assign([ast.Name(other_name)], other)] if other_name == name:
                        pass
                    case [] if name in run.known:
                        other = ast.Name(name, ast.Load())
                    case _:
                        continue
                run.replace([ast.Assign([target], ast.IfExp(test, one, other))])
                return True
    return False


# Assignments.


@rewriting
def augmented(app: Application) -> bool:
    """An assignment for an augmented one, or the other way."""
    for run, statement in app.statements():
        match statement:
            case ast.AugAssign(target, operator, value):
                old = expression(ast.unparse(target))
                run.replace([ast.Assign([target], ast.BinOp(old, operator, value))])
                return True
            case ast.Assign([target], ast.BinOp(left, operator, value)):
                if ast.unparse(target) == ast.unparse(left):
                    run.replace([ast.AugAssign(target, operator, value)])
                    return True
    return False


@rewriting
def several_at_once(app: Application) -> bool:
    """Two assignments as one, or one of two as two."""
    for run in app.runs(2):
        match run.body:
            case [ast.Assign([ast.Name(one)], first), ast.Assign([ast.Name(other)], second)]:
                if one == other or {one, other} & app.ranks.keys() or one in names_of(second):
                    continue
                if not _has_bindings(run.body) and not app.is_known_within(run.body):
                    run.replace(parsed(f"{one}, {other} = {_text(first)}, {_text(second)}"))
                    return True
    return False


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _has_bindings(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.NamedExpr) for node in walked(body))


@rewriting
def under_a_second_name(app: Application) -> bool:
    """A variable or a tensor by another name, or as an item of a tuple, a list or a dictionary."""
    for run, statement in app.statements():
        asked = set(reads([statement])) & run.known - set(assigned([statement]))
        asked -= app.stored() & app.ranks.keys()
        # A tile by another name is a value: nothing is selected of it, and its tensor is not asked for.
        asked -= {
            node.value.id
            for node in ast.walk(statement)
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name)
        }
        # A function of the application's may, by whichever name it is called.
        if any(
            isinstance(n, ast.Call) and not isinstance(n.func, ast.Attribute)
            for n in walked([statement])
        ):
            asked -= app.ranks.keys()
        if not asked or _has_bindings([statement]):
            continue
        name, other = app.choose.choice(sorted(asked)), app.fresh("b")
        holds, read = app.choose.choice(
            (("{}", other), ("{}", other), ("({},)", f"{other}[0]"))
            + (("[1, {}]", f"{other}[-1]"), ("{{'a': {}}}", f"{other}['a']"))
        )
        renamed = Renamed({name: other}).visit(statement)
        for node in ast.walk(renamed):
            if isinstance(node, ast.Name) and node.id == other:
                node.id = read
        run.replace(parsed(f"{other} = {holds.format(name)}\n{ast.unparse(renamed)}"))
        return True
    return False


#: What has a value of its own wherever it stands.
_VALUES = (ast.BinOp, ast.Call, ast.Subscript, ast.Compare, ast.UnaryOp, ast.IfExp)


def _parts(node: ast.AST, is_sure: bool) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """The expressions in one, and where they are; of the sure ones those that are always evaluated."""
    if is_sure and isinstance(node, (ast.IfExp, ast.BoolOp)):
        return
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return
    for name, value in ast.iter_fields(node):
        if name in ("func", "targets", "target") or (
            name == "value" and isinstance(node, (ast.Attribute, ast.Subscript))
        ):
            continue
        for place, each in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(each, (ast.expr, ast.keyword)) or isinstance(each, ast.Slice):
                continue
            if isinstance(each, _VALUES):
                yield node, name, place, each
            yield from _parts(each, is_sure)


def expressions(
    app: Application, is_sure: bool
) -> Iterator[tuple[Run, ast.expr, Callable[[ast.expr], None]]]:
    """Expressions that are drawn, the statements that they are in, and what puts others there."""
    for run, statement in app.statements():
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or _has_bindings([statement]):
            continue
        if parts := list(_parts(statement, is_sure)):
            parent, name, place, part = app.choose.choice(parts)

            def put(
                other: ast.expr, parent: Any = parent, name: str = name, place: Any = place
            ) -> None:
                if place is None:
                    setattr(parent, name, other)
                else:
                    getattr(parent, name)[place] = other

            yield run, part, put


@rewriting
def named_before(app: Application) -> bool:
    """A part of what is computed in a variable of its own, before or as it is computed."""
    for run, part, put in expressions(app, True):
        name = app.fresh("t")
        if app.chance(0.3):
            put(ast.NamedExpr(ast.Name(name, ast.Store()), part))
        else:
            put(ast.Name(name, ast.Load()))
            run.replace([ast.Assign([ast.Name(name, ast.Store())], part), *run.body])
        return True
    return False


@rewriting
def named_as_another_before(app: Application) -> bool:
    """A variable holds something else before, maybe of another type and shape."""
    for run, statement in app.statements():
        within = set(map(id, walked(run.body)))
        outside = [node for node in walked(app.function.body) if id(node) not in within]
        names = set(assigned([statement])) - {*assigned(outside), *reads([statement])}
        if isinstance(statement, ast.If):
            names &= set(assigned(statement.body)) & set(assigned(statement.orelse))
        if isinstance(statement, (ast.Assign, ast.If)) and (names := names - app.parameters):
            values = ["0", "0.5", "True", *sorted(run.known - app.parameters)]
            name, value = app.choose.choice(sorted(names)), app.choose.choice(values)
            run.replace([*parsed(f"{name} = {value}"), statement])
            return True
    return False


@rewriting
def comparisons_apart(app: Application) -> bool:
    """The comparisons of a chain."""
    for node in walked(app.function.body):
        if isinstance(node, ast.BoolOp) or not hasattr(node, "_fields"):
            continue
        for name, value in ast.iter_fields(node):
            places = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            for place, each in places:
                if isinstance(each, ast.Compare) and len(each.ops) == 2:
                    middle = each.comparators[0]
                    one = ast.Compare(each.left, each.ops[:1], [middle])
                    two = ast.Compare(copy.deepcopy(middle), each.ops[1:], each.comparators[1:])
                    both = ast.BoolOp(ast.And(), [one, two])
                    if place is None:
                        setattr(node, name, both)
                    else:
                        value[place] = both
                    return True
    return False
