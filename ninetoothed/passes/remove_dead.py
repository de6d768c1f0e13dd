"""What computes nothing that is used is removed: assignments never read, and then empty blocks."""

from __future__ import annotations

import ast

from ninetoothed.passes.rewriting import Draft, blocks_of
from ninetoothed.program.effects import has_effect, names_read, targets_of
from ninetoothed.program.nodes import at
from ninetoothed.program.program import Program


def run(program: Program) -> Program:
    """The program without dead assignments, expressions and branches."""
    draft = Draft(program)
    while True:
        # The target of `v += x` is written, so that this alone does not make `v` a used name.
        used = {name for statement in draft.body for name in names_read(statement)}
        draft.body, changed = _live(draft.body, used)
        if not changed:
            return draft.finished()


def _live(block: list[ast.stmt], used: set[str]) -> tuple[list[ast.stmt], bool]:
    """The statements of a block that are needed, and whether any was not."""
    result: list[ast.stmt] = []
    changed = False
    for statement in block:
        if isinstance(statement, ast.Pass):
            continue
        for inner in blocks_of(statement):
            inner[:], inner_changed = _live(inner, used)
            changed = changed or inner_changed
        if _is_dead(statement, used):
            changed = True
            continue
        if isinstance(statement, ast.If | ast.For | ast.While) and not statement.body:
            _fill(statement)
        result.append(statement)
    return result, changed


def _is_dead(statement: ast.stmt, used: set[str]) -> bool:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        names = [target.id for target in targets_of(statement)]
        return used.isdisjoint(names) and not has_effect(statement)
    if isinstance(statement, ast.Expr) and _is_method_call(statement.value):
        # Written for what it does, `y.copy_(x)` for one: whether there is such a method is for the
        # backend to say.
        return False
    if isinstance(statement, ast.Expr | ast.If | ast.For):
        empty = not any(any(block) for block in blocks_of(statement))
        return empty and not has_effect(statement)
    # An empty `while` either never runs or never ends, which is not for us to decide.
    return False


def _is_method_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def _fill(statement: ast.If | ast.For | ast.While) -> None:
    """Give a statement a body again that has lost it."""
    if isinstance(statement, ast.If) and statement.orelse:
        negated = ast.UnaryOp(op=ast.Not(), operand=statement.test)
        statement.test = at(negated, statement.test)
        statement.body, statement.orelse = statement.orelse, []
    else:
        statement.body = [at(ast.Pass(), statement)]
