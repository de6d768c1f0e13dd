"""The types of what changes tensors, of what is asserted and of what is printed, and what these take."""

from __future__ import annotations

import ast
from dataclasses import replace

from ninetoothed.errors import failed_assertion
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import Operation
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementLoad,
    ElementType,
    Load,
    Offsets,
    SourceLoad,
    SourcePointer,
)
from ninetoothed.program.typed_calls import Call, literal, no_cast, not_held, not_stored
from ninetoothed.program.types import NOTHING, UNKNOWN, ValueType, may_fit, of_dtype, type_of

_OF_BITS = ("atomic_and", "atomic_or", "atomic_xor")

#: What only the running kernel knows.
_COMPUTED = Load | ElementLoad | SourceLoad | Offsets


def atomic(call: Call, operation: Operation) -> ValueType:
    """What was there before, of a change that takes a value, and elements that it fits."""
    if call.type(0).dtype is not None and not isinstance(call.get(0), SourcePointer):
        call.refuse(
            f"`ntl.{operation.name}` changes a tensor, and this is a value: give it a parameter, elements of "
            "one (`x[1:]`, `x.source[i]`), or pointers such as `x.data_ptr() + offsets`."
        )
    target = call.get(0)
    dtype = call.dtype_of(target.parameter) if isinstance(target, SourcePointer) else None
    if dtype and dtype.kind == "float" and operation.name in _OF_BITS:
        call.refuse(f"`ntl.{operation.name}` needs integers, but got {dtype}.")
    compared = ("cmp",) if operation.name == "atomic_cas" else ()
    mask = UNKNOWN if compared else call.named("mask", 2)
    if mask.dtype not in (None, dtypes.bool) or (mask.kind == "float" and mask.dtype is None):
        call.refuse("A mask is made of truth values, as a comparison gives them.")
    shape, place = call.type(0).shape, f"what `ntl.{operation.name}` is given"
    stored = [call.named(name, 1 + at) for at, name in enumerate((*compared, "val"))]
    for reason in filter(None, (no_cast(each, dtype) for each in stored)):
        call.refuse(reason)
    for what, each in (*(("value", value) for value in stored), ("mask", mask)):
        if not may_fit(each.shape, shape):
            call.refuse(not_stored(each, place, shape, what))
    if pointed := call.type(0).pointed:
        return of_dtype(pointed, shape)
    return replace(call.type(0), is_natural=False, number=None)


def pointed(call: Call, operation: Operation) -> ValueType:
    """Of a load or a store through pointers: what goes with them fits them."""
    is_store = operation.name == "store"
    named = ("value", "mask") if is_store else ("mask", "other")
    for place, what in enumerate(named, 1):
        value, shape = call.named(what, place), call.type(0).shape
        if not may_fit(value.shape, shape):
            call.refuse(not_stored(value, "what the pointer names", shape, what))
    pointed = call.type(0).pointed
    given = call.named("value", 1) if is_store else call.named("other", 2)
    if reason := not_held(given.number, pointed, "what the pointer names"):
        call.refuse(reason)
    if is_store:
        return NOTHING
    return UNKNOWN if pointed is None else of_dtype(pointed, call.type(0).shape)


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
