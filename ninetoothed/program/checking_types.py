"""What is asserted and what is printed: conditions, numbers and tiles, and texts that are known."""

from __future__ import annotations

import ast

from ninetoothed.errors import failed_assertion
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import Operation
from ninetoothed.program.nodes import DTypeRef, ElementLoad, ElementType, Load, Offsets, SourceLoad
from ninetoothed.program.typed_calls import Call, literal
from ninetoothed.program.types import NOTHING, ValueType, type_of

#: What only the running kernel knows.
_COMPUTED = Load | ElementLoad | SourceLoad | Offsets


def checked(call: Call, operation: Operation) -> ValueType:
    """A call that gives no value."""
    name = call.node.func.name if hasattr(call.node.func, "name") else operation.name
    if name == "device_print":
        _require_printable(call)
    elif name in ("device_assert", "static_assert", "assume"):
        condition = call.node_of("cond", 0)
        assert condition is not None, "every call is asked for what it needs"
        given = literal(condition)
        if given is None or (isinstance(given, str) and name != "static_assert"):
            call.refuse(f"`ntl.{name}` needs a condition, but got {given!r}.")
        if name == "static_assert" and _asks_elements(condition):
            call.refuse(
                "`ntl.static_assert` needs what is known when a kernel is compiled, and only the running "
                "kernel knows elements: `ntl.device_assert` asks for them."
            )
        if name != "assume" and _of_types(condition, call) is False:
            text = call.node_of("msg", 1)
            call.refuse(failed_assertion("" if text is None else literal(text)))
    return NOTHING


def _of_types(node: ast.expr, call: Call) -> bool | None:
    """Whether a condition on element types holds; None of another, and where they are not known."""
    if isinstance(node, ast.BoolOp):
        found = [_of_types(part, call) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        holds = _of_types(node.operand, call)
        return None if holds is None else not holds
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    one, other = (_dtype(each, call) for each in (node.left, node.comparators[0]))
    if one is None or other is None or not isinstance(node.ops[0], _SAME | _OTHER):
        return None
    return (one is other) == isinstance(node.ops[0], _SAME)


_SAME, _OTHER = ast.Eq | ast.Is, ast.NotEq | ast.IsNot


def _dtype(node: ast.expr, call: Call) -> DType | None:
    if isinstance(node, DTypeRef | ElementType):
        return call.dtype(node)
    if isinstance(node, ast.Attribute) and node.attr == "dtype":
        return type_of(node.value).dtype
    return None


def _asks_elements(node: ast.AST) -> bool:
    """Whether a value is made of elements, and not only of what their types and shapes are."""
    if isinstance(node, ast.Attribute):
        return False
    return isinstance(node, _COMPUTED) or any(map(_asks_elements, ast.iter_child_nodes(node)))


def _require_printable(call: Call) -> None:
    """A text first, then numbers and tiles."""
    prefix = call.node_of("prefix", 0)
    if prefix is None or not isinstance(literal(prefix), str):
        call.refuse(
            "`ntl.device_print` needs a text first, which is known when a kernel is compiled, as in "
            '`ntl.device_print("x", x)`.'
        )
    for node in call.all_from(0 if call.has("prefix") else 1):
        given = literal(node)
        if isinstance(node, DTypeRef | ElementType):
            given = "an element type"
        if isinstance(given, str) or given is None:
            call.refuse(
                f"`ntl.device_print` prints numbers and tiles, but got {given}: what is known "
                "when a kernel is compiled goes into the text before them, as in an f-string."
            )
        if type_of(node).items is not None:
            call.refuse(
                "`ntl.device_print` prints numbers and tiles, but got a tuple: give its items one by one, "
                "as in `*x.shape`."
            )
