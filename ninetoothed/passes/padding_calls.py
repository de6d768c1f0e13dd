"""What calls of the language do to marks, by the rules of `ninetoothed.language.operations`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.language.operations import Operation
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
from ninetoothed.program.effects import operation_of
from ninetoothed.program.nodes import ElementPlace, SourcePlace, Widened, at, clone


def visit_call(analysis: Knowledge, node: ast.Call) -> tuple[ast.expr, Marked]:
    operation = operation_of(node)
    if node.args and isinstance(node.args[0], ElementPlace | SourcePlace):
        return node, analysis.atomic(node)
    arguments = Arguments(analysis, node)
    if operation is None:
        return node, SCALAR if _is_float(node) else UNKNOWN
    if operation.takes_function:
        return custom_reductions.call(analysis, node, arguments, operation)
    rule = RULES.get(operation.shape)
    return node, UNKNOWN if rule is None else rule(arguments, operation)


def _elementwise(arguments: Arguments, operation: Operation) -> Marked:
    operands = [arguments.known(index) for index in arguments.values]
    if operation.zero == "choice":
        result = _chosen(operands) if len(operands) == 3 else joined(operands)
    else:
        result = joined(operands, operation.zero)
    return result if operation.results == 1 else Marked(items=(result,) * operation.results)


def _chosen(operands: list[Marked]) -> Marked:
    """One or the other, as a condition says."""
    chosen = joined(operands[1:], "all")
    condition = operands[0].changed()
    zeros = {mark.place for mark in chosen.marks if mark.is_zero}
    result = joined([condition, chosen])
    return Marked(
        result.shape,
        tuple(
            Mark(mark.key, mark.origin, mark.layout, mark.place in zeros) for mark in result.marks
        ),
    )


def _of_first(arguments: Arguments, operation: Operation) -> Marked:
    value = arguments.known(0)
    return value.changed() if arguments.has("bitcast") else value


def _reduced(arguments: Arguments, operation: Operation) -> Marked:
    places, value = operation.places, arguments.known(0)
    arguments.exclude(0, identity(operation))
    axis = arguments.constant("axis", places["axis"])
    if axis is not None and not isinstance(axis, int):
        return UNKNOWN
    keep_dims = bool(arguments.constant("keep_dims", places["keep_dims"]))
    result = reduced(value, axis, keep_dims)
    if "return_indices" in places and arguments.constant("return_indices", 2):
        return Marked(items=(result, result))
    return result


def _scanned(arguments: Arguments, operation: Operation) -> Marked:
    value = arguments.known(0)
    arguments.exclude(0, identity(operation))
    return value.changed()


def identity(operation: Operation) -> str:
    """The identity of an operation that has one."""
    assert operation.identity is not None
    return operation.identity


def _dot(arguments: Arguments, operation: Operation) -> Marked:
    arguments.exclude(0, identity(operation))
    arguments.exclude(1, identity(operation))
    shapes = arguments.known(0).shape, arguments.known(1).shape
    if shapes[0] is None or shapes[1] is None or len(shapes[0]) < 2 or len(shapes[1]) < 2:
        return UNKNOWN
    return Marked((*shapes[0][:-1], shapes[1][-1]))


def _checked(arguments: Arguments, operation: Operation) -> Marked:
    """What must hold holds in the padding."""
    if operation.identity is not None:
        arguments.exclude(0, operation.identity)
    return UNKNOWN


def _histogram(arguments: Arguments, operation: Operation) -> Marked:
    """Padding is not counted."""
    node, counted = arguments.node, arguments.get(0)
    marks = with_rank(arguments.known(0)).marks
    if counted is None or not marks:
        return UNKNOWN
    zero = at(ast.Constant(value=0), node)
    real = custom_reductions.is_real(arguments.analysis, clone(counted), marks, node)
    mask: ast.expr = at(ast.Compare(left=real, ops=[ast.NotEq()], comparators=[zero]), node)
    given = arguments.node_of("mask", 2)
    if given is not None:
        mask = at(ast.BinOp(left=mask, op=ast.BitAnd(), right=given), node)
    keywords = [item for item in node.keywords if item.arg != "mask"]
    node.keywords = [*keywords, at(ast.keyword(arg="mask", value=mask), node)]
    del node.args[2 - arguments.first :]
    return UNKNOWN


def _sorted(arguments: Arguments, operation: Operation) -> Marked:
    """Padding comes last. What is reduced after that is no longer told from the padding."""
    # Of the greatest ones there is one order only.
    is_shortened = "descending" not in operation.places
    descending = is_shortened or arguments.constant("descending", operation.places["descending"])
    if descending is not ...:
        arguments.exclude(0, "lowest" if descending else identity(operation))
    value = with_rank(arguments.known(0))
    marks = tuple(mark for mark in value.marks if mark.layout and mark.layout[-1] is None)
    shape = value.shape
    if shape is not None and is_shortened:
        shape = (*shape[:-1], None)
    return Marked(shape, marks).changed()


def _trans(arguments: Arguments, operation: Operation) -> Marked:
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


def _expand_dims(arguments: Arguments, operation: Operation) -> Marked:
    value = arguments.known(0)
    axes = _numbers(arguments, 1, "axis")
    if value.shape is None or not axes:
        return UNKNOWN
    rank = len(value.shape) + len(axes)
    added = {axis % rank for axis in axes}
    old = iter(range(len(value.shape)))
    places = [None if dim in added else next(old) for dim in range(rank)]
    return keep_zero(value, rearranged(value, places))


def _broadcast_to(arguments: Arguments, operation: Operation) -> Marked:
    value = arguments.known(0)
    shape = _shape_given(arguments)
    if shape is None:
        return UNKNOWN
    return keep_zero(value, with_rank(Marked(shape, value.marks)))


def _reshape(arguments: Arguments, operation: Operation) -> Marked:
    value = arguments.known(0)
    return keep_zero(value, reshaped(value, _shape_given(arguments)))


def _created(arguments: Arguments, operation: Operation) -> Marked:
    node = arguments.keywords.get("shape") or arguments.get(0)
    if isinstance(node, ast.Tuple):
        return Marked(tuple(size_of(item) for item in node.elts))
    return UNKNOWN


def _like(arguments: Arguments, operation: Operation) -> Marked:
    return Marked(arguments.known(0).shape)


def _arange(arguments: Arguments, operation: Operation) -> Marked:
    return Marked((None,))


def _number(arguments: Arguments, operation: Operation) -> Marked:
    return SCALAR


#: What is known of a result, by the operation's rule for shapes.
RULES: dict[str, Callable[[Arguments, Operation], Marked]] = {
    "broadcast": _elementwise,
    "first": _of_first,
    "like": _like,
    "nothing": _checked,
    "reduced": _reduced,
    "scanned": _scanned,
    "sorted": _sorted,
    "counted": _histogram,
    "product": _dot,
    "transposed": _trans,
    "expanded": _expand_dims,
    "broadcast to": _broadcast_to,
    "reshaped": _reshape,
    "created": _created,
    "vector": _arange,
    "number": _number,
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
    operation = operation_of(call)
    return operation is not None and (operation.is_elementwise or operation.kind == "hint")


def _is_float(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "float"
