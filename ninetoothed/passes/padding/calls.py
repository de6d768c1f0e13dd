"""What calls of the language do to masks, by the rules of `ninetoothed.language.operations`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from ninetoothed.language import operations
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding import custom_reductions, moves, places_of_extrema
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.moves import captured
from ninetoothed.passes.padding.validity import (
    UNKNOWN,
    Known,
    accumulated,
    is_left,
    joined,
    moved,
    rearranged,
    reduced,
    reshaped,
    trailing,
    with_rank,
)
from ninetoothed.program import nodes
from ninetoothed.program.effects import is_lowest, operation_of, place_changed
from ninetoothed.program.tile_masks import Origin, TileMask
from ninetoothed.tensors.access import is_power_of_two


def visit_call(analysis: Knowledge, node: ast.Call) -> tuple[ast.expr, Known]:
    operation = operation_of(node)
    if place_changed(node):
        return node, analysis.atomic(node)
    arguments = Arguments(analysis, node)
    if operation is None:
        return node, Known(is_lowest=is_lowest(node))
    if operation.name == "bitonic_merge" and arguments.known(0).validity:
        # With padding beside them elements rise and fall more than once.
        node.func = nodes.at(nodes.LanguageRef(name="sort"), node.func)
        operation = operations.TABLE["sort"]
    if operation.takes_function:
        return custom_reductions.call(analysis, node, arguments, operation)
    if not places_of_extrema.find(arguments, operation):
        for index, identity, axis in arguments.left_out(operation):
            arguments.mask(index, identity, axis)
    rule = RULES.get(operation.shape)
    known = UNKNOWN if rule is None else rule(arguments, operation)
    return arguments.result, known


def _elementwise(arguments: Arguments, operation: Operation) -> Known:
    operands = [arguments.known(index) for index in arguments.values]
    if any(value.validity for value in arguments.named.values()):
        result = joined([*operands, *arguments.named.values()])
    elif operation.zero == "choice":
        result = _chosen(operands) if len(operands) == 3 else joined(operands)
    else:
        result = joined(operands, operation.zero)
    if operation.name in ("exp", "exp2") and len(operands) == 1:
        # Of minus infinity it is 0.
        lowest = {mask.place for mask in operands[0].validity if mask.is_lowest}
        validity = tuple(replace(m, is_zero=m.place in lowest) for m in result.validity)
        result = replace(result, validity=validity)
    return result if operation.results == 1 else Known(items=(result,) * operation.results)


def _chosen(operands: list[Known]) -> Known:
    """One or the other, as a condition says."""
    chosen = joined(operands[1:], "all")
    condition = operands[0].changed()
    zeros = {mask.place for mask in chosen.validity if mask.is_zero}
    result = joined([condition, chosen])
    beyond = operands[0].false_at
    is_zero, is_lowest = operands[2].is_zero, operands[2].is_lowest
    return Known(
        validity=tuple(
            replace(
                mask,
                is_zero=mask.place in zeros or (is_zero and trailing(mask.place) in beyond),
                is_lowest=is_lowest and trailing(mask.place) in beyond,
            )
            for mask in result.validity
        )
    )


def _mapped(arguments: Arguments, operation: Operation) -> Known:
    """One value, or several, of those elements that there are of all operands, where none are packed."""
    operands = [arguments.known(index) for index in arguments.values]
    return UNKNOWN if "pack" in arguments.named else joined(operands)


def _of_first(arguments: Arguments, operation: Operation) -> Known:
    """A value in another type, of which minus infinity is not the least where it has none."""
    value = arguments.known(0)
    if arguments.has("bitcast"):
        return value.changed()
    is_float = arguments.type.kind == "float"
    validity = tuple(replace(m, is_lowest=m.is_lowest and is_float) for m in value.validity)
    return Known(validity=validity, is_zero=value.is_zero, false_at=value.false_at)


def _reduced(arguments: Arguments, operation: Operation) -> Known:
    places = operation.places
    axis = arguments.constant("axis", places["axis"])
    if axis is not None and not isinstance(axis, int):
        return UNKNOWN
    value = arguments.known(0)
    if axis is not None:
        value = moves.decided_together(arguments, 0, axis, value)
    keep_dims = bool(arguments.constant("keep_dims", places["keep_dims"]))
    result = reduced(value, axis, keep_dims)
    if "return_indices" in places and arguments.constant("return_indices", 2):
        return Known(items=(result, result))
    return result


def _scanned(arguments: Arguments, operation: Operation) -> Known:
    return arguments.known(0).changed()


def _dot(arguments: Arguments, operation: Operation) -> Known:
    """A product exists where a row and a column do; 0 stands where one does not."""
    if arguments.type.shape is None:
        return UNKNOWN
    left, right = (
        moves.decided_together(arguments, place, -1 - place, arguments.known(place))
        for place in (0, 1)
    )
    rank = left.rank
    validity = [
        *_outer(left, [*range(rank - 1), None], rank - 1),
        *_outer(right, [*range(rank - 2), None, rank - 1], rank - 2),
    ]
    product = Known(arguments.type, tuple(validity))
    added = arguments.node_of("acc", 2)
    if added is None:
        return product
    known = arguments.named["acc"] if "acc" in arguments.named else arguments.known(2)
    return accumulated(known, product)


def _histogram(arguments: Arguments, operation: Operation) -> Known:
    """Padding is not counted."""
    node, counted = arguments.node, arguments.get(0)
    validity = with_rank(arguments.known(0)).validity
    if counted is None or not validity:
        return UNKNOWN
    zero = nodes.at(ast.Constant(value=0), node)
    real = custom_reductions.is_real(arguments.analysis, nodes.clone(counted), validity, node)
    mask = nodes.at(ast.Compare(left=real, ops=[ast.NotEq()], comparators=[zero]), node)
    arguments.take_part(mask)
    return UNKNOWN


def _sorted(arguments: Arguments, operation: Operation) -> Known:
    """Padding comes last, as it does before where elements come first."""
    value = with_rank(arguments.known(0))
    is_whole = "descending" in operation.places
    if all(
        mask.layout
        and (mask.layout[-1] is None or (is_whole and moves.is_first(arguments, mask, -1)))
        for mask in value.validity
    ):
        return moved(value).changed()
    return captured(arguments, [0], of_existing=_descending if is_whole else None).changed()


def _descending(call: ast.Call) -> ast.expr:
    """What is sorted, the greatest first."""
    keywords = [item for item in call.keywords if item.arg != "descending"]
    descending = nodes.at(ast.Constant(value=True), call)
    call.keywords = [*keywords, nodes.at(ast.keyword(arg="descending", value=descending), call)]
    del call.args[2 - isinstance(call.func, ast.Attribute) :]
    return call


def _outer(operand: Known, places: list[int | None], contracted: int) -> list[TileMask]:
    """The masks of a product's rows or columns: 0 was put where they depend on what is contracted."""
    pairs = zip(operand.validity, rearranged(operand, places).validity)
    return [
        replace(
            mask,
            is_zero=old.layout[contracted] is not None or old.is_zero,
            is_lowest=False,
            is_kept=False,
        )
        for old, mask in pairs
        if is_left(old, mask, contracted)
    ]


def _trans(arguments: Arguments, operation: Operation) -> Known:
    value = arguments.known(0)
    if value.shape is None:
        return UNKNOWN
    rank = len(value.shape)
    dims = arguments.numbers("dims", 1) or []
    if not dims and rank >= 2:
        dims = [*range(rank - 2), rank - 1, rank - 2]
    if sorted(dims) != list(range(rank)):
        return UNKNOWN
    return rearranged(value, dims)


def _expand_dims(arguments: Arguments, operation: Operation) -> Known:
    value = arguments.known(0)
    axes = arguments.numbers("axis", 1)
    if value.shape is None or not axes:
        return UNKNOWN
    rank = len(value.shape) + len(axes)
    added = {axis % rank for axis in axes}
    old = iter(range(len(value.shape)))
    places = [None if dim in added else next(old) for dim in range(rank)]
    return rearranged(value, places)


def _broadcast_to(arguments: Arguments, operation: Operation) -> Known:
    value, shape = arguments.known(0), arguments.type.shape
    if shape is None:
        return UNKNOWN
    # What is asked for exists, whichever sizes are 1 and repeated: these may not be known here.
    made = _within(arguments, arguments.listed("shape", 1), value.is_zero)
    own = with_rank(value, len(shape)).validity
    places = {mask.place for mask in own}
    return Known(validity=(*own, *(mask for mask in made if mask.place not in places)))


def _reshape(arguments: Arguments, operation: Operation) -> Known:
    value = arguments.known(0)
    result = reshaped(value, arguments.type.shape)
    if len(result.validity) == len(value.validity):
        # As where it moves them: which dimensions there are may not be known here.
        return moved(result)
    return captured(arguments, [0])


def _created(arguments: Arguments, operation: Operation) -> Known:
    """What is made exists in the sizes that were asked for."""
    node = arguments.keywords.get("shape") or arguments.get(0)
    if not isinstance(node, ast.Tuple):
        return UNKNOWN if node is None else Known(validity=_within(arguments, [node], False))
    value = arguments.named["value"] if "value" in arguments.named else arguments.known(1)
    is_zero = operation.name == "zeros" or value.is_zero
    return Known(validity=_within(arguments, node.elts, is_zero))


def _within(arguments: Arguments, sizes: list[ast.expr], is_zero: bool) -> tuple[TileMask, ...]:
    """Masks of dimensions that are held in more than the size that was asked for."""
    validity = []
    for dim, node in enumerate(sizes):
        if not isinstance(node, nodes.Padded) or _is_power_of_two(node.value):
            continue
        layout = tuple(0 if other == dim else None for other in range(len(sizes)))
        asked = nodes.at(nodes.Within(size=nodes.clone(node.value), layout=layout), node)
        origin = Origin(asked, arguments.analysis.statement)
        key = "within", arguments.analysis.key_of(node.value)
        validity.append(TileMask(key, origin, layout, is_zero))
    return tuple(validity)


def _is_power_of_two(node: ast.expr) -> bool:
    if isinstance(node, nodes.SymbolValue):
        return is_power_of_two(node.symbol)
    number = node.value if isinstance(node, ast.Constant) else None
    return isinstance(number, int) and is_power_of_two(number)


def _like(arguments: Arguments, operation: Operation) -> Known:
    value = arguments.known(0)
    return replace(value, validity=tuple(replace(mask, is_zero=True) for mask in value.validity))


def _arange(arguments: Arguments, operation: Operation) -> Known:
    """As many elements as are asked for, from 0 on where they are held in more."""
    node = arguments.get(1)
    return Known(validity=() if node is None else _within(arguments, [node], False))


#: What is known of a result, by the operation's rule for shapes.
RULES: dict[str, Callable[[Arguments, Operation], Known]] = {
    "broadcast": _elementwise,
    "mapped": _mapped,
    "first": _of_first,
    "like": _like,
    "nothing": lambda arguments, operation: UNKNOWN,
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
    "number": lambda arguments, operation: UNKNOWN,
    "pointed": lambda arguments, operation: UNKNOWN,
    **moves.RULES,
}
