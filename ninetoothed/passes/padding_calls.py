"""What calls of the language do to marks: reductions, scans, element-wise functions, moves."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.passes import custom_reductions
from ninetoothed.passes.marks import (
    SCALAR,
    UNKNOWN,
    Mark,
    Marked,
    joined,
    keep_zero,
    rearranged,
    reduced,
    reshaped,
    size_of,
    with_rank,
)
from ninetoothed.passes.padding_arguments import Arguments
from ninetoothed.passes.padding_masks import Knowledge
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import ExternRef, LanguageRef, Widened, at, clone

#: Reductions: the identity, and where the arguments stand: axis, keep_dims, return_indices.
_REDUCTIONS: dict[str, tuple[str, dict[str, int]]] = {
    "sum": ("zero", {"axis": 1, "keep_dims": 2}),
    "xor_sum": ("zero", {"axis": 1, "keep_dims": 2}),
    "reduce_or": ("zero", {"axis": 1, "keep_dims": 2}),
    "max": ("lowest", {"axis": 1, "return_indices": 2, "keep_dims": 4}),
    "min": ("highest", {"axis": 1, "return_indices": 2, "keep_dims": 4}),
    "argmax": ("lowest", {"axis": 1, "keep_dims": 3}),
    "argmin": ("highest", {"axis": 1, "keep_dims": 3}),
}

#: Functions whose result has the marks of what they are given, with the identity for padding.
_SCANS = {"cumsum": "zero", "cumprod": "one", "softmax": "lowest"}

#: Element-wise functions, and which zero operands make the result zero (see `marks.joined`).
_ELEMENTWISE: dict[str, str] = {
    **dict.fromkeys(
        "abs sqrt sqrt_rn neg floor ceil sin erf tanh tan asin atan sinh asinh atanh cbrt expm1 "
        "log1p trunc rint round nearbyint add sub maximum minimum".split(),
        "all",
    ),
    "mul": "product",
    "fdiv": "first",
    "div_rn": "first",
    **dict.fromkeys(
        "clamp cos cdiv exp exp2 fma log log2 logical_and logical_or rsqrt sigmoid umulhi where "
        "rand randn randint".split(),
        "none",
    ),
    **dict.fromkeys("cast to multiple_of max_contiguous max_constancy".split(), "all"),
}

#: Those of them whose result has the elements of the first argument alone.
_OF_FIRST = frozenset("cast to multiple_of max_contiguous max_constancy".split())


def visit_call(analysis: Knowledge, node: ast.Call) -> tuple[ast.expr, Marked]:
    name = called_name(node)
    arguments = Arguments(analysis, node, name)
    if isinstance(node.func, ExternRef) or not name:
        return node, SCALAR if not name and _is_float(node) else UNKNOWN
    if name in custom_reductions.NAMES:
        return custom_reductions.call(analysis, node, arguments)
    if name in _REDUCTIONS:
        return _reduction(node, name, arguments)
    if name in _SCANS:
        value = arguments.known(0)
        arguments.exclude(0, _SCANS[name])
        return node, value.changed()
    if name in _ELEMENTWISE or is_libdevice(node.func):
        return node, _elementwise(name, arguments)
    special = _CALLS.get(name)
    return node, UNKNOWN if special is None else special(analysis, arguments)


def _reduction(node: ast.Call, name: str, arguments: Arguments) -> tuple[ast.expr, Marked]:
    identity, places = _REDUCTIONS[name]
    value = arguments.known(0)
    arguments.exclude(0, identity)
    axis = arguments.constant("axis", places["axis"])
    if axis is not None and not isinstance(axis, int):
        return node, UNKNOWN
    keep_dims = bool(arguments.constant("keep_dims", places["keep_dims"]))
    result = reduced(value, axis, keep_dims)
    if "return_indices" in places and arguments.constant("return_indices", 2):
        return node, Marked(items=(result, result))
    return node, result


def _elementwise(name: str, arguments: Arguments) -> Marked:
    operands = [arguments.known(index) for index in arguments.values]
    if name == "where" and len(operands) == 3:
        chosen = joined(operands[1:], "all")
        condition = operands[0].changed()
        zeros = {mark.place for mark in chosen.marks if mark.is_zero}
        result = joined([condition, chosen])
        return Marked(
            result.shape,
            tuple(
                Mark(mark.key, mark.origin, mark.layout, mark.place in zeros)
                for mark in result.marks
            ),
        )
    if name in _OF_FIRST:
        value = arguments.known(0)
        return value.changed() if arguments.has("bitcast") else value
    return joined(operands, _ELEMENTWISE.get(name, "none"))


def _dot(analysis: Knowledge, arguments: Arguments) -> Marked:
    arguments.exclude(0, "zero")
    arguments.exclude(1, "zero")
    shapes = arguments.known(0).shape, arguments.known(1).shape
    if shapes[0] is None or shapes[1] is None or len(shapes[0]) < 2 or len(shapes[1]) < 2:
        return UNKNOWN
    return Marked((*shapes[0][:-1], shapes[1][-1]))


def _device_assert(analysis: Knowledge, arguments: Arguments) -> Marked:
    arguments.exclude(0, "one")
    return UNKNOWN


def _histogram(analysis: Knowledge, arguments: Arguments) -> Marked:
    """Padding is not counted."""
    node, counted = arguments.node, arguments.get(0)
    marks = with_rank(arguments.known(0)).marks
    if counted is None or not marks:
        return UNKNOWN
    zero = at(ast.Constant(value=0), node)
    real = custom_reductions.is_real(analysis, clone(counted), marks, node)
    mask: ast.expr = at(ast.Compare(left=real, ops=[ast.NotEq()], comparators=[zero]), node)
    given = arguments.node_of("mask", 2)
    if given is not None:
        mask = at(ast.BinOp(left=mask, op=ast.BitAnd(), right=given), node)
    keywords = [item for item in node.keywords if item.arg != "mask"]
    node.keywords = [*keywords, at(ast.keyword(arg="mask", value=mask), node)]
    del node.args[2 - arguments.first :]
    return UNKNOWN


def _sorted(analysis: Knowledge, arguments: Arguments) -> Marked:
    """Padding comes last. What is reduced after that is no longer told from the padding."""
    descending = arguments.constant("descending", 2)
    if arguments.name == "topk":
        descending = True
    if descending is not ...:
        arguments.exclude(0, "lowest" if descending else "highest")
    value = with_rank(arguments.known(0))
    marks = tuple(mark for mark in value.marks if mark.layout and mark.layout[-1] is None)
    shape = value.shape
    if shape is not None and arguments.name == "topk":
        shape = (*shape[:-1], None)
    return Marked(shape, marks).changed()


def _trans(analysis: Knowledge, arguments: Arguments) -> Marked:
    value = arguments.known(0)
    if value.shape is None:
        return UNKNOWN
    rank = len(value.shape)
    dims = _numbers(arguments, 1)
    if not dims and rank >= 2:
        dims = [*range(rank - 2), rank - 1, rank - 2]
    if sorted(dims) != list(range(rank)):
        return UNKNOWN
    return keep_zero(value, rearranged(value, dims))


def _expand_dims(analysis: Knowledge, arguments: Arguments) -> Marked:
    value = arguments.known(0)
    axes = _numbers(arguments, 1, "axis")
    if value.shape is None or not axes:
        return UNKNOWN
    rank = len(value.shape) + len(axes)
    added = {axis % rank for axis in axes}
    old = iter(range(len(value.shape)))
    places = [None if dim in added else next(old) for dim in range(rank)]
    return keep_zero(value, rearranged(value, places))


def _broadcast_to(analysis: Knowledge, arguments: Arguments) -> Marked:
    value = arguments.known(0)
    shape = _shape_given(arguments)
    if shape is None:
        return UNKNOWN
    return keep_zero(value, with_rank(Marked(shape, value.marks)))


def _reshape(analysis: Knowledge, arguments: Arguments) -> Marked:
    value = arguments.known(0)
    return keep_zero(value, reshaped(value, _shape_given(arguments)))


def _created(analysis: Knowledge, arguments: Arguments) -> Marked:
    node = arguments.keywords.get("shape") or arguments.get(0)
    if isinstance(node, ast.Tuple):
        return Marked(tuple(size_of(item) for item in node.elts))
    return UNKNOWN


def _like(analysis: Knowledge, arguments: Arguments) -> Marked:
    return Marked(arguments.known(0).shape)


def _arange(analysis: Knowledge, arguments: Arguments) -> Marked:
    return Marked((None,))


_CALLS: dict[str, Callable[[Knowledge, Arguments], Marked]] = {
    "dot": _dot,
    "device_assert": _device_assert,
    "histogram": _histogram,
    "sort": _sorted,
    "topk": _sorted,
    "trans": _trans,
    "permute": _trans,
    "expand_dims": _expand_dims,
    "broadcast_to": _broadcast_to,
    "reshape": _reshape,
    "view": _reshape,
    "zeros": _created,
    "full": _created,
    "zeros_like": _like,
    "arange": _arange,
    "program_id": lambda analysis, arguments: SCALAR,
    "num_programs": lambda analysis, arguments: SCALAR,
}


def _numbers(arguments: Arguments, first: int, name: str = "dims") -> list[int]:
    """Literal ints from an argument on, given one by one or as a tuple; [] if there is another."""
    nodes = [node for index, node in _from(arguments, first)]
    if name in arguments.keywords:
        nodes = [arguments.keywords[name]]
    if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple):
        nodes = list(nodes[0].elts)
    result = []
    for node in nodes:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if not (isinstance(node, ast.Constant) and isinstance(node.value, int)):
            return []
        result.append(sign * node.value)
    return result


def _from(arguments: Arguments, first: int) -> list[tuple[int, ast.expr]]:
    found = []
    index = first
    while (node := arguments.get(index)) is not None:
        found.append((index, node))
        index += 1
    return found


def _shape_given(arguments: Arguments) -> tuple[Any, ...] | None:
    nodes = [node for _, node in _from(arguments, 1)]
    if "shape" in arguments.keywords:
        nodes = [arguments.keywords["shape"]]
    if len(nodes) == 1:
        if not isinstance(nodes[0], ast.Tuple):
            return (
                None if not isinstance(nodes[0], ast.Constant | Widened) else (size_of(nodes[0]),)
            )
        nodes = list(nodes[0].elts)
    return tuple(size_of(node) for node in nodes)


def is_elementwise(call: ast.Call) -> bool:
    """Whether a function of the language computes each element of its result for itself."""
    return called_name(call) in _ELEMENTWISE or is_libdevice(call.func)


def is_libdevice(function: ast.expr) -> bool:
    """Whether a function is one of the device library, all of which are element-wise."""
    return isinstance(function, LanguageRef) and function.name.startswith("libdevice.")


def _is_float(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "float"
