"""Operators mean what they mean in Python, where a backend's own would mean something else.

``//`` and ``%`` of what may be negative become `Rounded`, ``and`` and ``or`` of what may be more than
truth values that are single numbers `Logical`; ``not`` of what may be a tile compares it with 0. Truth
values count where they are added, and what is stored as one is whether it is not 0. Where what a
backend has is right, nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from ninetoothed.language import dtypes
from ninetoothed.passes.rewriting import Draft, language
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import has_effect, names_assigned
from ninetoothed.program.kinds import COUNT, UNKNOWN, Kind, Kinds, met, of_type, operated
from ninetoothed.program.nodes import (
    DTypeRef,
    LanguageRef,
    Logical,
    Rounded,
    SourceStore,
    Store,
    at,
    clone,
)
from ninetoothed.program.program import Program

_DIVISIONS = (ast.FloorDiv, ast.Mod)

#: The operators under which truth values count as integers; a quotient of two is a float anyway.
_COUNTING = (ast.Add, ast.Sub, ast.Mult, *_DIVISIONS)


def run(program: Program, booleans: Collection[str] = ()) -> Program:
    """The program with Python's operators.

    Args:
        booleans: tensors that hold truth values in a call, besides those declared to.
    """
    draft = Draft(program)
    parameters = {parameter.name: parameter for parameter in program.parameters}
    declared = {p.name for p in program.parameters if p.dtype is dtypes.bool}
    rewriter = _Rewriter(Kinds(parameters, {*booleans, *declared}))
    rewriter.block(draft.body)
    helpers = dict(program.helpers)
    for name, helper in helpers.items():
        helpers[name] = clone(helper)
        _Rewriter(Kinds(parameters, {*booleans, *declared})).block(helpers[name].body)
    return draft.finished(helpers=helpers)


class _Rewriter(ast.NodeTransformer):
    """Walks statements in order, knowing the kinds of variables; expressions from the leaves up."""

    def __init__(self, kinds: Kinds, constants: Collection[str] = ()) -> None:
        self.kinds = kinds
        self.constants = set(constants)
        for parameter in kinds.parameters.values():
            if parameter.kind == "constexpr":
                self.constants.add(parameter.name)
            if parameter.kind != "tensor":
                known = of_type(parameter.dtype) if parameter.kind == "scalar" else UNKNOWN
                kinds.known.setdefault(parameter.name, Kind(known.element, True, known.is_natural))

    # Statements.

    def block(self, body: list[ast.stmt]) -> None:
        for index, statement in enumerate(body):
            body[index] = self.statement(statement)

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.If):
            node.test = self.visit(node.test)
            before = dict(self.kinds.known)
            self.block(node.body)
            one, self.kinds.known = self.kinds.known, dict(before)
            self.block(node.orelse)
            self.kinds.known = _both(one, self.kinds.known)
        elif isinstance(node, ast.For | ast.While):
            self.loop(node)
        elif isinstance(node, ast.AugAssign):
            return self.augmented(node)
        else:
            self.simple(node)
        return node

    def simple(self, node: ast.stmt) -> None:
        self.generic_visit(node)
        if isinstance(node, Store | SourceStore):
            name = node.tile.parameter if isinstance(node, Store) else node.parameter
            if name in self.kinds.booleans and self.kinds.of(node.value).element != "bool":
                node.value = _compared(node.value, ast.NotEq())
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self.constants.add(node.target.id)
            self.kinds.known[node.target.id] = self.kinds.of(node.value)
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Name):
                self.kinds.known[target.id] = self.kinds.of(node.value)
            else:
                for name in names_assigned([node]):
                    self.kinds.known[name] = UNKNOWN

    def augmented(self, node: ast.AugAssign) -> ast.stmt:
        assert isinstance(node.target, ast.Name)
        target = node.target.id
        left = at(ast.Name(id=target, ctx=ast.Load()), node)
        made = self.visit(at(ast.BinOp(left=left, op=node.op, right=node.value), node))
        self.kinds.known[target] = self.kinds.of(made)
        is_same = type(made) is ast.BinOp and made.left is left
        if is_same:
            node.value = made.right
            return node
        return at(ast.Assign(targets=[node.target], value=made), node)

    def loop(self, node: ast.For | ast.While) -> None:
        """A loop's variables have the kinds that they have before it and after each round."""
        constants = set(self.constants)
        if isinstance(node, ast.For):
            self.generic_iter(node)
        known = dict(self.kinds.known)
        while True:
            rehearsal = _Rewriter(
                Kinds(self.kinds.parameters, self.kinds.booleans, dict(known)), self.constants
            )
            rehearsal.entered(node)
            rehearsal.block([clone(statement) for statement in node.body])
            lasting = _both(known, rehearsal.kinds.known)
            if lasting == known:
                break
            known = lasting
        self.kinds.known = dict(known)
        if isinstance(node, ast.While):
            node.test = self.visit(node.test)
        self.entered(node)
        self.block(node.body)
        self.kinds.known, self.constants = known, constants

    def generic_iter(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call)
        node.iter.args = [self.visit(argument) for argument in node.iter.args]

    def entered(self, node: ast.For | ast.While) -> None:
        """What is known of a loop's own variable."""
        if not isinstance(node, ast.For):
            return
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        bounds = node.iter.args
        first = self.kinds.of(bounds[0]) if len(bounds) > 1 else COUNT
        step = self.kinds.of(bounds[2]) if len(bounds) > 2 else COUNT
        # What counts down ends where its second bound says.
        if not step.is_natural:
            first = met(first, self.kinds.of(bounds[1]))
        self.kinds.known[node.target.id] = Kind("int", True, first.is_natural)
        function = node.iter.func
        if isinstance(function, LanguageRef) and function.name == "static_range":
            self.constants.add(node.target.id)

    # Expressions.

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right = self.kinds.of(node.left), self.kinds.of(node.right)
        if isinstance(node, Rounded) or is_constant(node, self.constants):
            return node
        if isinstance(node.op, _COUNTING) and left.element == right.element == "bool":
            node.left = _counted(node.left)
            if isinstance(node.op, _DIVISIONS):
                node.right = _counted(node.right)
            return node
        if not isinstance(node.op, _DIVISIONS):
            return node
        is_whole = operated(left, node.op, right).element == "int"
        if (left.is_natural and right.is_natural) and (is_whole or not _is_float(left, right)):
            return node
        return at(Rounded(left=node.left, op=node.op, right=node.right), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        operand = self.kinds.of(node.operand)
        if isinstance(node.op, ast.USub) and operand.element == "bool":
            node.operand = _counted(node.operand)
        if not isinstance(node.op, ast.Not) or _is_truth(operand):
            return node
        if is_constant(node.operand, self.constants):
            return node
        return _compared(node.operand, ast.Eq())

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Where a compiler wants both values in one type and shape, the choice brings them there."""
        self.generic_visit(node)
        one, other = self.kinds.of(node.body), self.kinds.of(node.orelse)
        if is_constant(node.test, self.constants) or not _are_unlike(one, other):
            return node
        if has_effect(node.body) or has_effect(node.orelse):
            return node
        return language("where", [node.test, node.body, node.orelse], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node, Logical):
            return node
        kinds = self.kinds.all_of(node.values)
        is_plain = all(
            is_constant(value, self.constants) or _is_truth(kind)
            for value, kind in zip(node.values, kinds)
        )
        return node if is_plain else at(Logical(op=node.op, values=node.values), node)


def _is_truth(kind: Kind) -> bool:
    """Whether a value is known to be a single truth value."""
    return kind.is_scalar and kind.element == "bool"


def _are_unlike(one: Kind, other: Kind) -> bool:
    """Whether two values are known to be of two types or ranks."""
    if one.element and other.element and one.element != other.element:
        return True
    return one.is_scalar is not other.is_scalar


def _is_float(left: Kind, right: Kind) -> bool:
    return "float" in (left.element, right.element)


def _both(one: dict[str, Kind], other: dict[str, Kind]) -> dict[str, Kind]:
    return {name: met(one[name], other[name]) for name in one if name in other}


def _counted(node: ast.expr) -> ast.expr:
    """A truth value as an integer."""
    return language("cast", [node, at(DTypeRef(dtype=dtypes.int32), node)], node)


def _compared(node: ast.expr, op: ast.cmpop) -> ast.expr:
    zero = at(ast.Constant(value=0), node)
    return at(ast.Compare(left=node, ops=[op], comparators=[zero]), node)
