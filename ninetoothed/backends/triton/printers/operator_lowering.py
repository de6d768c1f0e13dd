"""Python's operators where Triton's own mean something else, turned into calls of the library."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.trees import language
from ninetoothed.backends.triton.printers.validity import ValidityLowering
from ninetoothed.language import dtypes
from ninetoothed.language.promotion import scalar_dtype
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.constancy import is_count, is_nonzero
from ninetoothed.program.effects import called_name
from ninetoothed.program.operands import may_be_beyond, may_lose_sign, no_value
from ninetoothed.program.types import ValueType, type_of

#: The library's functions for operators of Python.
_FUNCTIONS: dict[type[ast.operator], str] = {
    ast.Div: "float_of_integers",
    ast.FloorDiv: "floor_quotient",
    ast.Mod: "floor_remainder",
    ast.LShift: "shifted_left",
    ast.RShift: "shifted_right",
}

#: Those where neither operand is negative and the right one is not 0, though they may be floats.
_OF_NATURALS: dict[type[ast.operator], str] = {
    ast.FloorDiv: "natural_quotient",
    ast.Mod: "natural_remainder",
}

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class OperatorLowering(ValidityLowering):
    """The part of lowering that knows operators."""

    def visit_Rounded(self, node: nodes.Rounded) -> ast.expr:
        function = _FUNCTIONS[type(node.op)]
        left, right = type_of(node.left), type_of(node.right)
        if left.is_natural and right.is_natural and is_nonzero(node.right):
            function = _OF_NATURALS.get(type(node.op), function)
        return self._emission.call(function, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of integers, which Triton makes unsigned where one is; what does not fit it refuses (3.9)."""
        left, right = type_of(node.left), type_of(node.comparators[0])
        sign = _COMPARISONS.get(type(node.ops[0]))
        is_of_types = "type" in (left.kind, right.kind) or no_value(node.left)
        self.generic_visit(node)
        is_one = sign is not None and len(node.ops) == 1 and not is_of_types
        may_differ = (
            may_lose_sign(left, right, self._emission.facts.has_unsigned)
            or self._may_be_beyond(left, right)
            or self._may_be_beyond(right, left)
        )
        if not (is_one and may_differ):
            return node
        return self._emission.call("compared", node.left, ast.Constant(sign), *node.comparators)

    def _in_own_types(self, node: ast.Call) -> None:
        """The greater or lesser of narrow integers and a number that does not fit them, which has its own type then."""
        given = Given(node)
        one, other = given.get(0), given.node_of("y", 1)
        if called_name(node) not in ("maximum", "minimum") or one is None or other is None:
            return
        for number, beside in ((one, other), (other, one)):
            if self._may_be_beyond(type_of(number), type_of(beside)):
                value = type_of(number).number
                own = scalar_dtype(value) if isinstance(value, int) else dtypes.int32
                dtype = nodes.DTypeRef(dtype=own)
                typed = language("full", ast.Tuple([], ast.Load()), nodes.clone(number), dtype)
                node.args = [typed if each is number else each for each in node.args]
                for keyword in node.keywords:
                    keyword.value = typed if keyword.value is number else keyword.value

    def _may_be_beyond(self, number: ValueType, other: ValueType) -> bool:
        facts = self._emission.facts
        return may_be_beyond(number, other, facts.narrowest, facts.has_unsigned)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``-x`` of a float, which is ``0 - x`` in Triton: the negative of 0.0 is -0.0."""
        operand = node.operand
        is_literal = isinstance(operand, ast.Constant)
        if not isinstance(node.op, ast.USub) or type_of(operand).kind in ("int", "bool"):
            self.generic_visit(node)
            return node
        if is_literal:
            is_zero = not operand.value  # type: ignore[attr-defined]
            return self._emission.function("MINUS_ZERO") if is_zero else node
        value = self.visit(operand)
        if type_of(operand).kind == "float" and type_of(operand).number is None:
            return ast.BinOp(value, ast.Mult(), ast.UnaryOp(ast.USub(), ast.Constant(1.0)))
        return self._emission.call("negative", value)

    def visit_Logical(self, node: nodes.Logical) -> ast.expr:
        function = "both" if isinstance(node.op, ast.And) else "either"
        result, *rest = [self.visit(value) for value in node.values]
        for value in rest:
            result = self._emission.call(function, result, value)
        return result

    def _float(self, node: ast.Call) -> ast.expr | None:
        """``float(x)`` in a call that has elements of float64; None of any other call."""
        dtype = Given(node).node_of("dtype", 1) if called_name(node) == "cast" else None
        if not isinstance(dtype, nodes.NumberType) or not dtype.dtype.is_floating():
            return None
        if not self._emission.facts.beside_float64:
            return None
        return self._emission.call("as_float", self.visit(node.args[0]))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``.T``, which is Triton's of a matrix alone: of more dimensions it exchanges the last two."""
        is_batch = node.attr == "T" and (type_of(node.value).rank or 0) > 2
        self.generic_visit(node)
        return language("trans", node.value) if is_batch else node

    def _quotient(self, node: ast.Call) -> ast.expr | None:
        """``cdiv`` of what may not be counts, or by what may be 0, and ``fdiv``; None of any other call."""
        called, given = called_name(node), Given(node)
        if called == "fdiv" and given.node_of("ieee_rounding", 2) is None:
            dividend, divisor = given.get(0), given.node_of("y", 1)
            assert dividend is not None and divisor is not None
            return self._emission.call("float_quotient", self.visit(dividend), self.visit(divisor))
        if called != "cdiv":
            return None
        dividend, divisor = given.get(0), given.node_of("div", 1)
        if dividend is None or divisor is None:
            return None
        if is_count(dividend) and is_count(divisor) and is_nonzero(divisor):
            return None
        return self._emission.call("ceil_quotient", self.visit(dividend), self.visit(divisor))
