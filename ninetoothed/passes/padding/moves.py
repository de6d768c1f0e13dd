"""What functions that move elements do to masks: what says whether one exists is moved as it is.

That costs, so it is only done where it is needed: till then there is a mask that says what is wanted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.validity import (
    UNKNOWN,
    Known,
    in_other_lanes,
    joined,
    moved,
    with_rank,
)
from ninetoothed.passes.rewriting import assign, language, place_of, size_node
from ninetoothed.program.nodes import (
    AllHold,
    ElementRef,
    Exists,
    Flipped,
    Held,
    TileRef,
    Within,
    at,
    clone,
)
from ninetoothed.program.tile_masks import NOWHERE, Origin, TileMask
from ninetoothed.program.types import COUNT, Shape, ValueType
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol
from ninetoothed.symbols.simplify import difference


def _flipped(arguments: Arguments, operation: Operation) -> Known:
    """Elements come first in a tile, and those are reversed."""
    value = with_rank(arguments.known(0))
    dim = arguments.constant("dim", 1)
    if dim is None:
        # Of Triton's releases some know no default.
        dim = len(value.shape) - 1 if value.shape else -1
        arguments.node.keywords = [k for k in arguments.node.keywords if k.arg != "dim"]
        arguments.node.args.append(at(ast.Constant(value=dim), arguments.node))
    if dim is ...:
        return captured(arguments, [0])
    if not value.shape:
        return _flipped_whole(arguments, dim)
    dim %= len(value.shape)
    masks = arguments.analysis.masks(
        replace(value, validity=tuple(m for m in value.validity if m.layout[dim] is not None)),
        arguments.node,
    )
    operand = arguments.get(0)
    # One element is as it is, for which Triton has no `flip` of a vector.
    may_be_one = len(value.shape) == 1 and not _is_above_one(value.shape[dim])
    if operand is not None and (masks or may_be_one):
        along = (mask for mask in value.validity if mask.layout[dim] is not None)
        first = all(is_first(arguments, mask, dim) for mask in along)
        arguments.become(Flipped(value=operand, dim=dim, masks=masks, is_first=first))
    return value


def _flipped_whole(arguments: Arguments, dim: int) -> Known:
    """A value whose shape is not known: it may be one element, or a number."""

    def flipped(call: ast.Call) -> ast.expr:
        own = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
        return at(Flipped(value=own, dim=dim, masks=[], is_first=True), call)

    known = captured(arguments, [0], flipped)
    if not isinstance(arguments.result, Flipped) and arguments.get(0) is not None:
        arguments.become(flipped(arguments.node))
    return known


def _is_above_one(size: object) -> bool:
    return isinstance(size, int) and size > 1


def _broadcast_both(arguments: Arguments, operation: Operation) -> Known:
    both = arguments.known(0), arguments.known(1)
    rank = max(value.rank for value in both)
    return Known(items=tuple(Known(validity=with_rank(value, rank).validity) for value in both))


def _joined(arguments: Arguments, operation: Operation) -> Known:
    """Two tiles side by side: where both exist alike a new dimension changes nothing."""
    left, right = with_rank(arguments.known(0)), with_rank(arguments.known(1))
    if {mask.place for mask in left.validity} == {mask.place for mask in right.validity}:
        validity = joined([left, right], "all").validity
        return moved(Known(validity=tuple(replace(m, layout=(*m.layout, None)) for m in validity)))
    return captured(arguments, [0, 1])


def _interleaved(arguments: Arguments, operation: Operation) -> Known:
    return captured(arguments, [0, 1])


def _concatenated(arguments: Arguments, operation: Operation) -> Known:
    """The function may reorder elements; what says whether they exist would be reordered otherwise."""

    def in_order(call: ast.Call) -> ast.expr:
        beside = language("join", call.args[:2], call)
        order = [at(ast.Constant(value=dim), call) for dim in (1, 0)]
        turned = language("permute", [beside, *order], call)
        return _as_vector(turned, (2, *(arguments.known(0).shape or (None,))), call)

    return captured(arguments, [0, 1], in_order)


def _split(arguments: Arguments, operation: Operation) -> Known:
    value = with_rank(arguments.known(0))
    if value.shape is None or not value.shape:
        return UNKNOWN
    if all(mask.layout[-1] is None for mask in value.validity):
        validity = tuple(replace(mask, layout=mask.layout[:-1]) for mask in value.validity)
        return Known(items=(moved(Known(validity=validity)),) * 2)
    return captured(arguments, [0])


def _gathered(arguments: Arguments, operation: Operation) -> Known:
    index = arguments.named.get("index", arguments.known(1))
    # A position that does not exist may be any number, and is none of the source's.
    arguments.mask(1, "zero", name="index")
    result = captured(arguments, [0])
    return joined([result, in_other_lanes(index)]).changed() if index.validity else result


def _atomic(arguments: Arguments, operation: Operation) -> Known:
    """What does not exist changes nothing, and nowhere."""
    named, node = arguments.named, arguments.node
    value = named["val"] if "val" in named else arguments.known(1)
    masks = arguments.analysis.masks(joined([arguments.known(0), value]), node)
    if not masks or operation.name == "atomic_cas":
        return UNKNOWN
    arguments.take_part(at(AllHold(masks=masks), node))
    return UNKNOWN


def _raveled(arguments: Arguments, operation: Operation) -> Known:
    value = arguments.known(0)
    if value.shape is not None and len(value.shape) == 1:
        return moved(value)

    def in_order(call: ast.Call) -> ast.expr:
        own = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
        return _as_vector(own, value.shape, call)

    return captured(arguments, [0], in_order)


def _as_vector(node: ast.expr, like: Shape | None, origin: ast.AST) -> ast.expr:
    """A tile of as many elements as another in one dimension, none of them out of its order."""
    sizes = [size_node(size, origin) for size in like or ()]
    if not sizes or any(size is None for size in like or ()):
        return language("ravel", [node], origin)
    total = sizes[0]
    for size in sizes[1:]:
        total = at(ast.BinOp(left=total, op=ast.Mult(), right=size), origin)
    return language("reshape", [node, at(ast.Tuple(elts=[total], ctx=ast.Load()), origin)], origin)


def is_first(arguments: Arguments, mask: TileMask, axis: int) -> bool:
    """Whether what exists comes first along a dimension, which the mask follows."""
    tile, lane = mask.origin.tile, mask.layout[axis]
    if not isinstance(tile, TileRef) or isinstance(tile, ElementRef):
        return isinstance(tile, Within)
    access = arguments.analysis.tensors[tile.parameter].access
    if lane is None or not 0 <= lane < len(access.coordinates):
        # Two tiles stand side by side there.
        return False
    here = access.coordinates[lane]
    return all(is_rising(condition, here) for condition in access.conditions)


def is_rising(condition: Symbol, position: Symbol) -> bool:
    """Whether a condition holds at no position after one at which it does not."""
    if position not in condition.leaves():
        return True
    if condition.op != "<":
        return False
    slack = condition.operands[0] - condition.operands[1]
    return interval(difference(slack.substitute({position: position + 1}), slack))[0] >= 0


def captured(
    arguments: Arguments,
    places: list[int],
    in_order: Callable[[ast.Call], ast.expr] | None = None,
    of_existing: Callable[[ast.Call], ast.expr] | None = None,
) -> Known:
    """What is known of elements that moved: what says whether they exist is moved alike, on demand.

    Args:
        places: the arguments whose elements are moved.
        in_order: the call as one that leaves elements in their order, where it may reorder them.
        of_existing: the call that moves what says whether they exist, where it is another one.
    """
    if not any(arguments.known(index).validity for index in places):
        return UNKNOWN
    analysis, node, items = arguments.analysis, arguments.node, arguments.type.items
    wish = ("moved", place_of(node))
    if wish not in analysis.needed:
        rank = (arguments.type if items is None else items[0]).rank
        mask = TileMask((wish, True), NOWHERE, tuple(range(rank or 0)), wanted=wish, is_moved=True)
        known = Known(validity=(mask,))
        return known if items is None else Known(items=(known,) * len(items))
    # First, since an index may be given a name for them, which is then read where the tile is loaded.
    masks = {index: analysis.masks(with_rank(arguments.known(index)), node) for index in places}
    # It is moved once more, with what exists in its place.
    arguments.hold("moved", *range(len(node.args) + arguments.first))
    alike = clone(node)
    alike.__dict__["type"] = _of_existence(arguments.type)
    twin = Arguments.__new__(Arguments)
    twin.__dict__.update(arguments.__dict__)
    twin.node = alike
    for index in places:
        operand = arguments.get(index)
        assert operand is not None
        twin.put(index, at(Exists(value=clone(operand), masks=masks[index]), node))
    also: ast.expr = alike if of_existing is None else of_existing(alike)
    if in_order is not None:
        also = in_order(alike)
        arguments.become(in_order(node))
    if items is not None:
        names = [analysis.draft.fresh("exists") for _ in items]
        targets: list[ast.expr] = [at(ast.Name(id=each, ctx=ast.Store()), node) for each in names]
        target: ast.expr = at(ast.Tuple(elts=targets, ctx=ast.Store()), node)
        made = at(ast.Assign(targets=[target], value=alike), node)
        analysis.draft.insert_before(analysis.statement, made)
        return Known(items=tuple(_held(item, each, analysis) for item, each in zip(items, names)))
    name = analysis.draft.fresh("exists")
    analysis.draft.insert_before(analysis.statement, assign(name, also, node))
    return _held(arguments.type, name, analysis)


def _of_existence(found: ValueType) -> ValueType:
    """The type of what says which elements of a value exist."""
    if found.items is not None:
        return replace(found, items=tuple(map(_of_existence, found.items)))
    return replace(COUNT, shape=found.shape)


def decided_together(arguments: Arguments, index: int, axis: int, value: Known) -> Known:
    """What is known of an argument, or of a tuple's items, whose elements along a dimension become one.

    That one exists where all masks hold of any of them. Tiles' own masks say so apart, and for each dimension apart; of
    elements that moved, unless their tiles are known to have some there, and of those that data decide it follows
    from all together alone: they become one, on demand.
    """
    value = with_rank(value)
    if value.rank < 2 or not -value.rank <= axis < value.rank:
        return value
    for is_moved in (False, True):
        along = tuple(
            mask
            for mask in value.validity
            if mask.is_moved is is_moved and mask.layout[axis] is not None
        )
        if _are_decided_together(arguments.analysis, along):
            value = _together(arguments, index, axis, value, along)
    return value


def _are_decided_together(analysis: Knowledge, along: tuple[TileMask, ...]) -> bool:
    of_data = [mask for mask in along if _is_of_data(mask) and not mask.is_loaded]
    if len(along) > 1 and any(len(_followed(mask)) > 1 for mask in of_data):
        return True
    moved = (mask for mask in along if mask.is_moved and mask not in of_data)
    return not all(map(analysis.has_elements, moved))


def _together(
    arguments: Arguments, index: int, axis: int, value: Known, along: tuple[TileMask, ...]
) -> Known:
    """What is known of the value when some of its masks are one."""
    rest = [mask for mask in value.validity if mask not in along]
    # What a tile has in other dimensions stays its own.
    place = axis % value.rank
    own = [mask for mask in along if not (_is_of_data(mask) or mask.is_moved)]
    rest += (
        _in_dimensions(mask, set(_followed(mask)) - {place})
        for mask in own
        if _followed(mask) != [place]
    )
    along = tuple(_in_dimensions(mask, {place}) if mask in own else mask for mask in along)
    followed = set[int]().union(*map(_followed, along))
    layout = tuple(dim if dim in followed else None for dim in range(value.rank))
    analysis, node = arguments.analysis, arguments.node
    is_moved = along[0].is_moved
    wish = ("moved", place_of(node), index, is_moved)
    mask = TileMask((wish, True), NOWHERE, layout, wanted=wish, is_moved=is_moved)
    if wish in analysis.needed:
        masks = analysis.masks(replace(value, validity=along), node)
        arguments.hold("reduced", index)
        name, operand = analysis.draft.fresh("exists"), arguments.get(index)
        if isinstance(operand, ast.Tuple):
            operand.elts = [arguments.named_alone("reduced", each) for each in operand.elts]
            operand = operand.elts[0]
        assert operand is not None
        made = at(Exists(value=clone(operand), masks=masks), node)
        analysis.draft.insert_before(analysis.statement, assign(name, made, node))
        held = held_mask(name, value.rank, analysis.statement)
        mask = replace(held, layout=layout, is_moved=is_moved)
    return replace(value, validity=(*rest, mask))


def _in_dimensions(mask: TileMask, dims: set[int]) -> TileMask:
    """What a mask asks in some of a value's dimensions."""
    layout = tuple(lane if dim in dims else None for dim, lane in enumerate(mask.layout))
    return replace(mask, layout=layout)


def _is_of_data(mask: TileMask) -> bool:
    """Whether it depends on data which of a tile's elements a mask leaves out: of slices it does not."""
    tile = mask.origin.tile
    if isinstance(tile, ElementRef):
        return tile.view.chosen > 0
    return mask.wanted is not None or isinstance(tile, Held)


def _followed(mask: TileMask) -> list[int]:
    """The dimensions of a value that a mask depends on."""
    return [place for place, dim in enumerate(mask.layout) if dim is not None]


def _held(result: ValueType, name: str, analysis: Knowledge) -> Known:
    """A value of which a variable says where it exists."""
    rank = result.rank
    if rank is None:
        return UNKNOWN
    return moved(Known(validity=(held_mask(name, rank, analysis.statement),)))


def held_mask(name: str, rank: int, statement: ast.stmt, is_loaded: bool = False) -> TileMask:
    """Where a variable is not 0.

    Args:
        is_loaded: whether it says where one tile or another was loaded, which a store does not ask.
    """
    layout = tuple(range(rank))
    held = at(Held(name=name, rank=rank, layout=layout), statement)
    origin = Origin(held, statement)
    return TileMask(("held", name), origin, layout, is_loaded=is_loaded, is_met=not is_loaded)


#: By the rule for an operation's shape.
RULES: dict[str, Callable[[Arguments, Operation], Known]] = {
    "broadcast both": _broadcast_both,
    "flipped": _flipped,
    "joined": _joined,
    "interleaved": _interleaved,
    "concatenated": _concatenated,
    "halved": _split,
    "gathered": _gathered,
    "raveled": _raveled,
    "atomic": _atomic,
}
