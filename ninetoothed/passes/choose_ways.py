"""A function that combines elements has one way: what its branches assign is computed, and then chosen.

What a device combines with is one block of instructions. Where each branch would choose among values that are
there a compiler finds that by itself; any other is left to fail within it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ninetoothed.passes.rewriting import Draft, assign, language, read
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.effects import has_effect, operation_of, reads_memory
from ninetoothed.program.inference import infer
from ninetoothed.program.program import Program
from ninetoothed.program.types import type_of


def run(program: Program) -> Program:
    """The program with `ntl.where` in the place of branches, in functions that combine."""
    if not any(map(_has_ways, program.helpers.values())):
        return program
    draft = Draft(program)
    # The condition of a choice is a truth value, and a branch's may be any number.
    infer(draft)
    for name in _combining(program):
        helper = draft.helpers.get(name)
        if helper is not None and _has_ways(helper) and not _touches_memory(helper):
            here = {each.arg: each.arg for each in helper.args.args}
            helper.body = _Ways(draft.fresh).block(helper.body, here)
    return draft.finished(helpers=draft.helpers)


def _combining(program: Program) -> list[str]:
    """The functions that reductions and scans combine with, each once."""
    found: list[str] = []
    for node in program.nodes():
        if not isinstance(node, ast.Call):
            continue
        operation = operation_of(node)
        if operation is not None and operation.takes_function:
            function = Given(node).node_of("combine_fn", 2)
            if isinstance(function, nodes.ExternRef):
                found.append(function.name)
    return list(dict.fromkeys(found))


def _has_ways(helper: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.If | ast.IfExp) for node in nodes.walk(helper))


def _touches_memory(helper: ast.FunctionDef) -> bool:
    return any(has_effect(statement) or reads_memory(statement) for statement in helper.body)


class _Ways(ast.NodeTransformer):
    """Goes through statements in order; ``here`` says what holds each variable at a place."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh
        self.here: dict[str, str] = {}

    def block(self, body: list[ast.stmt], here: dict[str, str]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            self.here = here
            if isinstance(statement, ast.If):
                made += self.ways(statement, here)
            elif isinstance(statement, ast.Assign):
                statement.value = self.visit(statement.value)
                self.retarget(statement.targets, here)
                made.append(statement)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                name = statement.target.id
                held = read(here.get(name, name), statement)
                value = ast.BinOp(left=held, op=statement.op, right=self.visit(statement.value))
                here[name] = self.fresh(name)
                made.append(assign(here[name], nodes.at(value, statement), statement))
            else:
                made.append(self.visit(statement))
        return made

    def ways(self, node: ast.If, here: dict[str, str]) -> list[ast.stmt]:
        """Both branches, one after the other, and which of their values each variable is."""
        way = self.fresh("way")
        made: list[ast.stmt] = [assign(way, self.truth(node.test), node)]
        one, other = dict(here), dict(here)
        made += self.block(node.body, one)
        made += self.block(node.orelse, other)
        for name in [name for name in one if name in other]:
            here[name] = one[name]
            if one[name] != other[name]:
                values: list[ast.expr] = [
                    read(held, node) for held in (way, one[name], other[name])
                ]
                here[name] = self.fresh(name)
                made.append(assign(here[name], language("where", values, node), node))
        return made

    def retarget(self, targets: Iterable[ast.expr], here: dict[str, str]) -> None:
        """Gives what is assigned a name of its own."""
        for target in targets:
            if isinstance(target, ast.Tuple):
                self.retarget(target.elts, here)
            elif isinstance(target, ast.Name):
                here[target.id] = target.id = self.fresh(target.id)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return read(self.here.get(node.id, node.id), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        values = [self.truth(node.test), self.visit(node.body), self.visit(node.orelse)]
        return language("where", values, node)

    def truth(self, test: ast.expr) -> ast.expr:
        """A condition as a truth value."""
        is_truth = type_of(test).kind == "bool"
        test = self.visit(test)
        if is_truth:
            return test
        zero = nodes.at(ast.Constant(value=0), test)
        return nodes.at(ast.Compare(left=test, ops=[ast.NotEq()], comparators=[zero]), test)
