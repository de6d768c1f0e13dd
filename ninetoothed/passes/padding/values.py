"""What is known of the values in a program: the expressions' part of ``mask_padding``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ninetoothed.passes.padding.calls import visit_call
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.validity import (
    OPERATORS,
    UNKNOWN,
    Known,
    in_other_lanes,
    joined,
    number,
    rearranged,
    typed,
    with_rank,
)
from ninetoothed.passes.rewriting import language, size_node
from ninetoothed.program import nodes
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import has_effect
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.tile_masks import Origin, TileMask, asked_by_store
from ninetoothed.program.types import are_same, held_shape, type_of
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.arrange import SCALES
from ninetoothed.tensors.views import View


class Values(Knowledge):
    """Visits expressions: each becomes what it is to be, and tells what is known of it."""

    def fields(self, node: Any) -> Known:
        """Visit what a node is made of; what is known of its ``value``."""
        result = UNKNOWN
        for name in node._fields:
            if name in ("target", "targets", "annotation"):
                continue
            child = getattr(node, name, None)
            if isinstance(child, list):
                for index, item in enumerate(child):
                    if isinstance(item, ast.expr):
                        child[index], _ = self.visit(item)
            elif isinstance(child, ast.expr):
                new, known = self.visit(child)
                setattr(node, name, new)
                if name == "value":
                    result = known
        return result

    def visit(self, node: ast.expr) -> tuple[ast.expr, Known]:
        """The expression as it is to be, which is typed, and what is known of it."""
        new, known = self.visited(node)
        if isinstance(node, ast.Name):
            found = known.type
        elif isinstance(node, ast.Call):
            found = type_of(node)
        else:
            found = self.types.typed(node)
        if found.validity is not known.validity:
            found = replace(found, validity=known.validity)
        node.__dict__["type"] = new.__dict__["type"] = found
        return new, typed(known, found)

    def visited(self, node: ast.expr) -> tuple[ast.expr, Known]:
        method = _VISITS.get(kind_of(node))
        if method is not None:
            return method(self, node)
        self.fields(node)
        return node, UNKNOWN

    def visit_name(self, node: ast.Name) -> tuple[ast.expr, Known]:
        return node, self.known.get(node.id, UNKNOWN)

    def visit_constant(self, node: ast.Constant) -> tuple[ast.expr, Known]:
        return node, number(node.value)

    def visit_tile(self, node: nodes.TileRef) -> tuple[ast.expr, Known]:
        """A tile as an index is its one element: an address is a number, not a tile."""
        node.indices = [self.number(item) for item in node.indices]
        return node, UNKNOWN

    def number(self, node: ast.expr) -> ast.expr:
        """An expression that must be one number: of a tile, its one element."""
        node, known = self.visit(node)
        if not known.shape:
            return node
        method = nodes.at(ast.Attribute(value=node, attr="item", ctx=ast.Load()), node)
        return nodes.at(ast.Call(func=method, args=[], keywords=[]), node)

    def visit_load(self, node: nodes.Load) -> tuple[ast.expr, Known]:
        self.visit_tile(node.tile)
        return node, self.loaded(node.tile, is_zero=True)

    def loaded(self, tile: nodes.TileRef, is_zero: bool) -> Known:
        parameter = self.tensors[tile.parameter]
        if parameter.source.other is not None:
            return UNKNOWN
        layout = tuple(range(len(parameter.tile_shape)))
        origin = Origin(tile, self.statement)
        mask = TileMask(self.key_of(tile), origin, layout, is_zero, is_loaded=True)
        is_met = parameter.is_by_size and not self.depends_on_tile(mask)
        return Known(validity=(replace(mask, is_met=is_met),))

    def visit_forwarded(self, node: nodes.Forwarded) -> tuple[ast.expr, Known]:
        """The stored value as memory would give it back."""
        node.value, value = self.visit(node.value)
        parameter = self.tensors[node.tile.parameter]
        element = nodes.at(nodes.ElementType(parameter=parameter.name), node)
        result = node.value
        shape = held_shape(parameter.tile_shape)
        if shape and not _has_shape(value, shape):
            sizes = [size_node(size, node) for size in parameter.tile_shape]
            dims = nodes.at(ast.Tuple(elts=sizes, ctx=ast.Load()), node)
            for _ in range(len(shape) - len(value.shape or shape)):
                result = language(
                    "expand_dims", [result, nodes.at(ast.Constant(value=0), node)], node
                )
            result = language("broadcast_to", [result, dims], node)
        if self.beyond(value, node.tile).validity:
            # What is not stored is still what it was.
            return self.visit(nodes.at(nodes.Load(tile=nodes.clone(node.tile)), node))
        known = self.loaded(node.tile, is_zero=True)
        masks = self.masks(known, node)
        masked = nodes.at(nodes.Masked(value=result, masks=masks, identity="zero"), node)
        # The type comes last: 0 where nothing is may make an integer of a truth value.
        return language("cast", [masked, element], node), known

    def visit_offsets(self, node: nodes.Offsets) -> tuple[ast.expr, Known]:
        self.visit_tile(node.tile)
        parameter = self.tensors[node.tile.parameter]
        if node.dim is not None:
            # It has the dimensions that it depends on, which only the access knows.
            return node, _position(parameter, node, self.key_of(node.tile))
        return node, UNKNOWN

    def visit_source_load(self, node: nodes.SourceLoad) -> tuple[ast.expr, Known]:
        # It reads where its indices are real.
        return node, in_other_lanes(joined(self.addressed(node)))

    def addressed(
        self,
        node: nodes.SourceLoad | nodes.SourceStore | nodes.SourcePlace | nodes.ElementPlace,
        first: int = 0,
    ) -> list[Known]:
        """Visits the indices, which name no element where they are padding; what is known of each.

        Args:
            first: the place of the first one that is seen to.
        """
        known = []
        for place, item in list(enumerate(node.indices))[first:]:
            index, value = self.visit(item)
            masks = self.masks(value, item)
            if masks:
                index = nodes.at(nodes.Masked(value=index, masks=masks, identity="nowhere"), item)
            node.indices[place] = index
            known.append(value)
        return known

    def visit_element_load(self, node: nodes.ElementLoad) -> tuple[ast.expr, Known]:
        return node, self.elements(node)

    def chosen(
        self, node: nodes.ElementLoad | nodes.ElementStore | nodes.ElementPlace
    ) -> list[Known]:
        """Visits what selects elements of a tile; what is known of the positions among it."""
        count = len(node.indices) - node.view.chosen
        node.indices[:count] = [self.number(item) for item in node.indices[:count]]
        return self.addressed(node, count)

    def elements(self, node: nodes.ElementLoad | nodes.ElementStore | nodes.ElementPlace) -> Known:
        """Visits what selects elements of a tile; what is known of them where they are loaded."""
        view, given = node.view, in_other_lanes(joined(self.chosen(node)))
        shape = self.types.view_shape(node)
        if shape is None:
            return UNKNOWN
        if self.tensors[node.parameter].source.other is not None:
            # What lies beyond the tile is there; a position that does not exist is nowhere.
            return before_slices(given, view).changed()
        reference = nodes.ElementRef(
            parameter=node.parameter, indices=node.indices, view=view, rank=len(shape)
        )
        origin = Origin(nodes.at(reference, node), self.statement)
        # What `pad` adds beside a tile is there to be read.
        is_loaded = self.tensors[node.parameter].is_padded
        mask = TileMask(
            self.key_of(reference),
            origin,
            tuple(range(len(shape))),
            True,
            is_loaded=is_loaded,
            is_met=False,
        )
        # A position that does not exist reads nothing, which is asked of by itself where that is not.
        masks = before_slices(given, view).validity if is_loaded else ()
        return Known(validity=(mask, *masks)).changed()

    def atomic(self, node: ast.Call) -> Known:
        place, *values = node.args
        if isinstance(place, nodes.ElementPlace):
            known = self.elements(place)
        else:
            assert isinstance(place, nodes.SourcePlace)
            known = in_other_lanes(joined(self.addressed(place)))
        given = [self.stored(value) for value in (*values, *(each.value for each in node.keywords))]
        for keyword, (value, _) in zip(reversed(node.keywords), reversed(given)):
            keyword.value = value
        node.args[1:] = [value for value, _ in given[: len(values)]]
        return joined([known, *(each for _, each in given)])

    def stored(self, value: ast.expr, is_whole: bool = False) -> tuple[ast.expr, Known]:
        """A value to be stored, of which what does not exist is left out; what is known of it.

        Args:
            is_whole: whether it is stored to a whole tile, which does not ask of what was loaded.
        """
        node, known = self.visit(value)
        asked = asked_by_store(known.validity, is_whole)
        if masks := self.masks(replace(known, validity=asked), node):
            node = nodes.at(nodes.Masked(value=node, masks=masks, identity="nowhere"), node)
        return node, known

    def visit_binary(self, node: ast.BinOp) -> tuple[ast.expr, Known]:
        node.left, left = self.visit(node.left)
        node.right, right = self.visit(node.right)
        result = joined([left, right], OPERATORS.get(type(node.op), "none"))
        if isinstance(node.op, ast.BitAnd):
            result = replace(result, false_at=left.false_at | right.false_at)
        if isinstance(node.op, ast.Mult) and (left.is_scale or right.is_scale):
            factors = ((left, node.left), (right, node.right))
            are_scales = all(known.is_scale or _is_scale(part) for known, part in factors)
            result = replace(result, is_scale=are_scales)
        return node, result

    def visit_unary(self, node: ast.UnaryOp) -> tuple[ast.expr, Known]:
        node.operand, value = self.visit(node.operand)
        if isinstance(node.op, ast.USub):
            negated = joined([value], "all")
            return node, replace(negated, is_zero=value.is_zero, is_finite=value.is_finite)
        return node, value if isinstance(node.op, ast.UAdd) else value.changed()

    def visit_compare(self, node: ast.Compare) -> tuple[ast.expr, Known]:
        node.left, left = self.visit(node.left)
        comparator = node.comparators[0]
        node.comparators[0], right = self.visit(comparator)
        result = joined([left, right])
        if isinstance(node.ops[0], ast.Lt) and isinstance(comparator, nodes.SymbolValue):
            bound = comparator.symbol
            false_at = frozenset(place for place, size in left.below if size == bound)
            result = replace(result, false_at=false_at)
        return node, result

    def visit_bool(self, node: ast.BoolOp) -> tuple[ast.expr, Known]:
        known = []
        for index, item in enumerate(node.values):
            node.values[index], value = self.visit(item)
            known.append(value)
        return node, joined(known)

    def visit_choice(self, node: ast.IfExp) -> tuple[ast.expr, Known]:
        node.test = self.number(node.test)
        node.body, one = self.visit(node.body)
        node.orelse, other = self.visit(node.orelse)
        self.ways = one, other
        if not self.says_where(node, one, other):
            return node, joined([one, other], "all")
        # Where one is chosen, lanes may exist that the other leaves out.
        validity = (m for value in (one, other) for m in with_rank(value).validity if m.stands_for)
        return node, Known(validity=tuple(replace(m, key=(m.wanted, False)) for m in validity))

    def says_where(self, node: ast.IfExp, one: Known, other: Known) -> bool:
        """Whether it depends on what is chosen which elements there are: a number has those of a tile."""
        is_of_number = one.type.is_scalar is not other.type.is_scalar
        if is_of_number and not is_constant(node.test, self.constants):
            return has_effect(node.body) or has_effect(node.orelse)
        kinds = ({(mask.place, mask.is_loaded) for mask in way.validity} for way in (one, other))
        return next(kinds) != next(kinds)

    def visit_tuple(self, node: ast.Tuple) -> tuple[ast.expr, Known]:
        known = []
        for index, item in enumerate(node.elts):
            node.elts[index], value = self.visit(item)
            known.append(value)
        return node, Known(items=tuple(known))

    def visit_subscript(self, node: ast.Subscript) -> tuple[ast.expr, Known]:
        node.value, value = self.visit(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if value.items is not None:
            index = parts[0]
            if len(parts) == 1 and isinstance(index, ast.Constant) and _fits(index, value.items):
                return node, value.items[index.value]  # type: ignore[index]
            return node, UNKNOWN
        kept = sum(isinstance(part, ast.Slice) for part in parts)
        is_view = all(
            isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None)
            for part in parts
        )
        if not is_view or (value.shape is not None and len(value.shape) < kept):
            return node, UNKNOWN
        rank = max(kept, value.rank)
        value = with_rank(value, rank)
        places: list[int | None] = []
        for part in parts:
            is_slice = isinstance(part, ast.Slice)
            places.append(sum(place is not None for place in places) if is_slice else None)
        places += range(kept, rank)
        return node, rearranged(value, places)

    def visit_attribute(self, node: ast.Attribute) -> tuple[ast.expr, Known]:
        node.value, value = self.visit(node.value)
        if node.attr == "T" and value.shape is not None and len(value.shape) >= 2:
            places = [*range(len(value.shape) - 2), len(value.shape) - 1, len(value.shape) - 2]
            return node, rearranged(value, places)
        return node, UNKNOWN

    def visit_call(self, node: ast.Call) -> tuple[ast.expr, Known]:
        return visit_call(self, node)


def before_slices(given: Known, view: View) -> Known:
    """What is known of chosen positions, with the dimensions of the slices that stand behind them."""
    behind = len(view.shape) - view.before
    return rearranged(given, [*range(given.rank), *[None] * behind])


_VISITS: dict[type, Callable[[Values, Any], tuple[ast.expr, Known]]] = {
    ast.Name: Values.visit_name,
    ast.Constant: Values.visit_constant,
    nodes.TileRef: Values.visit_tile,
    nodes.Load: Values.visit_load,
    nodes.Forwarded: Values.visit_forwarded,
    nodes.Offsets: Values.visit_offsets,
    nodes.SourceLoad: Values.visit_source_load,
    nodes.ElementLoad: Values.visit_element_load,
    ast.BinOp: Values.visit_binary,
    ast.UnaryOp: Values.visit_unary,
    ast.Compare: Values.visit_compare,
    ast.BoolOp: Values.visit_bool,
    ast.IfExp: Values.visit_choice,
    ast.Tuple: Values.visit_tuple,
    ast.Subscript: Values.visit_subscript,
    ast.Attribute: Values.visit_attribute,
    ast.Call: Values.visit_call,
}


def _position(parameter: Any, node: nodes.Offsets, key: Any) -> Known:
    """An index along a source dimension; where a comparison with that one's size says who exists."""
    assert node.dim is not None
    access = parameter.access
    reached, size = as_symbol(access.indices[node.dim]), parameter.source.shape[node.dim]
    leaves = set(reached.leaves())
    lanes = [dim for dim, leaf in enumerate(access.coordinates) if leaf in leaves]
    conditions = [c for c in access.conditions if set(c.leaves()) & set(access.coordinates)]
    own = [c for c in conditions if set(c.leaves()) & set(access.coordinates) <= leaves]
    if len(lanes) != 1 or own != [reached < size]:
        return UNKNOWN
    return Known(below=frozenset({((key, (lanes[0],)), size)}))


def _has_shape(value: Known, shape: tuple[Any, ...]) -> bool:
    return (
        value.shape is not None
        and len(value.shape) == len(shape)
        and all(map(are_same, value.shape, shape))
    )


def _is_scale(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and SCALES[0] <= value <= SCALES[1]


def _fits(index: ast.Constant, items: tuple[Known, ...]) -> bool:
    return isinstance(index.value, int) and -len(items) <= index.value < len(items)
