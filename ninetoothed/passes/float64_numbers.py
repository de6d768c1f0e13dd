"""Python's floats are float64 where they meet float64, and by themselves in a call that has such elements.

A compiler makes a float32 of a literal before it asks what it meets, but for operators with floats. So a literal
is written as ``ntl.full((), 0.3, ntl.float64)``: beside float64 and beside integers, stored as it, and where a
variable of the running kernel or what an operation makes of numbers alone is to hold it. The quotient of two
integers is float64 as well.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.passes.rewriting import Draft, language
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import operation_of
from ninetoothed.program.inference import infer
from ninetoothed.program.program import Program
from ninetoothed.program.types import ValueType, of_dtype, type_of


def run(program: Program, given: Mapping[str, DType]) -> Program:
    """The program with literals of float64.

    Args:
        given: the element types of the tensors and scalars of a call.
    """
    draft = Draft(program)
    doubles = {name for name, dtype in given.items() if dtype is dtypes.float64}
    # What is not known to be float64 is where there are no other floats.
    is_only = not any(d.is_floating() and d is not dtypes.float64 for d in given.values())
    constants = {p.name for p in program.parameters if p.kind == "constexpr"}
    bodies = (draft.body, *(helper.body for helper in draft.helpers.values()))
    # What variables are shows once what they are assigned has its type.
    for _ in range(2):
        infer(draft, given)
        for body in bodies:
            rewriter = _Rewriter(doubles, constants, is_only)
            body[:] = [rewriter.visit(statement) for statement in body]
    return draft.finished(helpers=draft.helpers)


class _Rewriter(ast.NodeTransformer):
    """Goes from the leaves up; what a compiler knows stays known to it."""

    def __init__(self, doubles: Collection[str], constants: Collection[str], is_only: bool) -> None:
        self.doubles = doubles
        self.constants = set(constants)
        self.is_only = is_only

    def visit_For(self, node: ast.For) -> ast.stmt:
        constants = set(self.constants)
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        function = node.iter.func
        if isinstance(function, nodes.LanguageRef) and function.name == "static_range":
            self.constants.add(node.target.id)
        self.generic_visit(node)
        self.constants = constants
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if isinstance(node.target, ast.Name):
            self.constants.add(node.target.id)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple):
            node.value.elts = [self.wide(item) for item in node.value.elts]
        node.value = self.wide(node.value)
        return node

    def stored(self, node: Any) -> Any:
        if not isinstance(node, nodes.Store | nodes.SourceStore):
            # A name's context, which Python calls `Store` as well.
            return node
        self.generic_visit(node)
        name = node.tile.parameter if isinstance(node, nodes.Store) else node.parameter
        if name in self.doubles:
            node.value = self.wide(node.value)
        return node

    visit_Store = visit_SourceStore = visit_ElementStore = stored

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if self.is_number(node):
            return node
        node.left, node.right = self.beside_integers(node.left, node.op, node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        assert isinstance(node.target, ast.Name)
        self.generic_visit(node)
        held = nodes.at(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        held.__dict__["type"] = type_of(node)
        left, right = self.beside_integers(held, node.op, node.value)
        if left is held:
            node.value = right
            return node
        value = nodes.at(ast.BinOp(left=left, op=node.op, right=right), node)
        return nodes.at(ast.Assign(targets=[node.target], value=value), node)

    def beside_integers(
        self, left: ast.expr, op: ast.operator, right: ast.expr
    ) -> tuple[ast.expr, ast.expr]:
        """Both operands, where what they make is no float by what is not a literal."""
        kinds = {type_of(each).kind for each in (left, right) if not self.is_number(each)}
        if not kinds <= {"int", "bool"}:
            return left, right
        if isinstance(op, ast.Div) and "float" not in (type_of(left).kind, type_of(right).kind):
            made = language("cast", [left, _double(left)], left)
            made.__dict__["type"] = of_dtype(dtypes.float64, type_of(left).shape)
            return made, right
        return self.wide(left), self.wide(right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        if not self.is_number(node):
            node.values = self.met(node.values)
        return node

    visit_Rounded, visit_Logical = visit_BinOp, visit_BoolOp

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if not is_constant(node, self.constants):
            node.body, node.orelse = self.met([node.body, node.orelse])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if self.is_number(node):
            return node
        self.generic_visit(node)
        node.left, *node.comparators = self.met([node.left, *node.comparators])
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        operation = operation_of(node)
        self.generic_visit(node)
        if operation is None:
            return node
        if operation.kind in ("atomic", "memory"):
            first = Given(node).get(0)
            if first is None or not self.points(first):
                return node
            node.args = list(map(self.wide, node.args))
            for keyword in node.keywords:
                keyword.value = self.wide(keyword.value)
        elif operation.kind == "element-wise" or operation.shape == "mapped":
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            made = self.met([*owner, *node.args, *(keyword.value for keyword in node.keywords)])
            if isinstance(node.func, ast.Attribute):
                node.func.value = made.pop(0)
            node.args = made[: len(node.args)]
            for keyword, value in zip(node.keywords, made[len(node.args) :], strict=True):
                keyword.value = value
        return node

    def points(self, node: ast.expr) -> bool:
        """Whether this points to float64."""
        names = {
            each.parameter for each in nodes.walk(node) if isinstance(each, nodes.SourcePointer)
        }
        return not names.isdisjoint(self.doubles) if names else self.is_only

    def met(self, values: list[ast.expr]) -> list[ast.expr]:
        """Values that meet, or that are numbers alone."""
        others = [type_of(value) for value in values if not self.is_number(value)]
        others = [each for each in others if each.kind not in ("int", "bool")]
        if others and not any(map(self.is_double, others)):
            return values
        return list(map(self.wide, values))

    def is_double(self, value: ValueType) -> bool:
        is_unknown = value.dtype is None and value.kind not in ("int", "bool") and not value.items
        return value.dtype is dtypes.float64 or (self.is_only and is_unknown)

    def is_number(self, node: ast.expr) -> bool:
        """Whether a compiler takes this for a number, or what it is of, for none."""
        return is_constant(node, self.constants)

    def wide(self, node: ast.expr) -> ast.expr:
        """A literal float as a float64; anything else as it is."""
        if not self.is_number(node) or type_of(node).kind != "float":
            return node
        shape = nodes.at(ast.Tuple(elts=[], ctx=ast.Load()), node)
        shape.__dict__["type"] = ValueType(items=())
        made = language("full", [shape, node, _double(node)], node)
        made.__dict__["type"] = of_dtype(dtypes.float64, ())
        return made


def _double(node: ast.expr) -> ast.expr:
    return nodes.at(nodes.DTypeRef(dtype=dtypes.float64), node)
