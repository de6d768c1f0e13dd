"""What the rounds of a loop do to the masks of its variables: for ``mask_padding``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ninetoothed.passes.padding.custom_reductions import is_real
from ninetoothed.passes.padding.moves import held_mask
from ninetoothed.passes.padding.stores import covers
from ninetoothed.passes.padding.validity import Known, with_rank
from ninetoothed.passes.padding.values import Values
from ninetoothed.passes.rewriting import assign, key_of, read
from ninetoothed.program.nodes import ElementRef, Kept, Store, SymbolValue, TileRef, Within, at
from ninetoothed.program.tile_masks import (
    NOWHERE,
    TileMask,
    asked_by_store,
    by_kind,
    changed,
    of_kind,
    with_dimensions,
)
from ninetoothed.symbols.expr import as_symbol

Knowns = dict[str, Known]

#: What is known after each way of an ``if``, and its statements.
Ways = tuple[tuple[Knowns, list[ast.stmt]], ...]

#: Of a mask, those that it follows.
Dimensions = tuple[bool, ...]


class Carried(Values):
    """What becomes of the variables that a loop carries: where a round has no element they keep theirs.

    Attributes:
        is_certain: whether the statement at hand runs, whatever the data.
    """

    is_certain = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: By variable that the round at hand has assigned: along which dimensions what is left out there
        #: is as it was before the round.
        self.untouched: dict[str, frozenset[Dimensions]] = {}

    def since_the_round(self, target: ast.expr, value: Known) -> Known:
        """What is assigned to a variable: a lane is kept that holds what it did before the round at hand.

        ``v = f(v)`` changes all of them, so that ``v += x[k]`` after it keeps none.
        """
        if not isinstance(target, ast.Name):
            return value
        before = self.untouched.get(target.id)
        validity = tuple(
            changed(mask, is_kept=mask.is_kept and (before is None or _followed(mask) in before))
            for mask in with_rank(value).validity
        )
        self.untouched[target.id] = frozenset(_followed(mask) for mask in validity if mask.is_kept)
        return replace(value, validity=validity)

    def of_both_ways(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        """After an ``if``, a variable is untouched along the dimensions in which both ways leave it."""
        self.untouched = {
            name: one.get(name, other.get(name)) & other.get(name, one.get(name))
            for name in one.keys() | other.keys()
        }

    def begun(self, lasting: Knowns) -> Knowns:
        """What is known of a loop's variables where a round begins."""
        return {
            name: replace(
                known,
                validity=tuple(
                    mask.owned((self.carried[name][0], name)) for mask in known.validity
                ),
            )
            for name, known in lasting.items()
        }

    def after_round(self, name: str, before: Known, after: Known, assigned: set[str]) -> Known:
        """What is known of a variable after a round: where that had no element it keeps what it had.

        It does so by itself where nothing but 0 was added. Elsewhere that is done on demand.
        """
        loop, _ = self.carried[name]
        # What says where values of a branch or of a loop exist is wanted at once: without, they keep nothing.
        places = {mask.place for mask in before.validity}
        self.wanted |= {
            mask.wanted
            for mask in after.validity
            if mask.wanted and mask.place not in places and _says_where(mask.wanted, (loop, name))
        }
        new = new_masks(before, after)
        rest = tuple(map(without_lasting, (m for m in after.validity if m not in new)))
        rest = tuple({mask.place: mask for mask in rest}.values())
        rest += self.implied(before, after, new)
        if new and (loop, name) not in self.needed:
            wanted = any(not stays_out(mask) or self.varies(mask, assigned) for mask in new)
            rest += (on_demand((loop, name), new, is_lasting=not wanted),)
            self.want_of_all(name, after, new)
        lost = lost_masks(before, replace(after, validity=rest))
        if not self.is_followed(name, loop):
            lost = tuple(
                on_demand(("either", loop, name, is_loaded), own, is_loaded=is_loaded)
                for is_loaded, own in by_kind(lost)
            )
        left = (mask.given_back((loop, name)) for mask in (*rest, *lost))
        return replace(after, validity=tuple(left))

    def is_followed(self, name: str, loop: Any) -> bool:
        """Whether variables say where one that a loop carries holds an element, of this round or one before."""
        return any(("either", loop, name, is_loaded) in self.needed for is_loaded in (False, True))

    def varies(self, mask: TileMask, assigned: set[str]) -> bool:
        """Whether which lanes a mask leaves out may differ from round to round."""
        is_assigned = bool(mask.origin.names & assigned)
        return is_assigned and (not _is_tile(mask.origin.tile) or self.depends_on_tile(mask))

    def depends_on_tile(self, mask: TileMask) -> bool:
        """Whether which lanes a tile's mask leaves out may differ from one tile of its level to another."""
        if self.may_leave_its_level(mask.origin.tile):
            return True
        access = self.tensors[mask.origin.tile.parameter].access
        unfollowed = {lane for dim, lane in enumerate(access.coordinates) if dim not in mask.layout}
        return any(
            not leaves.isdisjoint(access.selections) and leaves.isdisjoint(unfollowed)
            for leaves in (set(condition.leaves()) for condition in access.conditions)
        )

    def may_leave_its_level(self, tile: TileRef) -> bool:
        """Whether a tile may be selected beyond its level where no condition says so: it has no element."""
        parameter = self.tensors[tile.parameter]
        return any(
            not self.is_below(index, size) and not parameter.access.bounds(place, size)
            for place, (index, size) in enumerate(zip(tile.indices, parameter.middle_sizes))
        )

    def followed(self, name: str, statement: ast.stmt) -> dict[bool, str]:
        """Variables that say, before a statement, where another holds an element: for masks of each kind."""
        variables, known = {}, with_rank(self.known[name])
        for is_loaded, own in by_kind(known.validity):
            variables[is_loaded] = variable = self.draft.fresh(f"{name}_exists")
            made = self.real(name, replace(known, validity=own), statement)
            self.draft.insert_before(statement, assign(variable, made, statement))
        validity = tuple(
            replace(
                held_mask(variable, known.rank, statement, is_loaded),
                is_moved=any(m.is_moved for m in of_kind(known.validity, is_loaded)),
            )
            for is_loaded, variable in variables.items()
        )
        self.known[name] = replace(known, validity=validity)
        return variables

    def real(self, name: str, known: Known, origin: ast.AST) -> ast.expr:
        return is_real(self, read(name, origin), with_rank(known).validity, origin)

    def unite_ways(
        self, name: str, before: Known, statement: ast.If, one: Knowns, other: Knowns
    ) -> None:
        """Has a variable say which elements there are after an ``if`` in a loop, whichever way it went.

        That is needed where a way gives elements of other tiles than there were before.
        """
        loop, _ = self.carried[name]
        ways = ((one, statement.body), (other, statement.orelse))
        losses = [lost_masks(before, way[name]) for way, _ in ways]
        if loop is None or not any(losses):
            return
        if self.is_followed(name, loop):
            for is_loaded, _ in by_kind([mask for way, _ in ways for mask in way[name].validity]):
                self.say_where(name, statement, ways, is_loaded)
            return
        for (way, _), lost in zip(ways, losses):
            demanded = tuple(
                on_demand(("either", loop, name, is_loaded), own, is_loaded=is_loaded)
                for is_loaded, own in by_kind(lost)
            )
            way[name] = replace(way[name], validity=(*way[name].validity, *demanded))

    def say_where(self, name: str, statement: ast.If, ways: Ways, is_loaded: bool) -> None:
        """Has a variable say at the end of each way of an ``if`` where another holds an element.

        It stands for the masks of one kind: those that a store to a whole tile does not ask, or those that it
        does; for what the variable has from before the round another one does.
        """
        masks = [of_kind(with_rank(way[name]).validity, is_loaded) for way, _ in ways]
        for owner in dict.fromkeys(mask.owner for given in masks for mask in given):
            variable = self.draft.fresh(f"{name}_exists")
            self.rounds.add(variable)
            for (way, block), given in zip(ways, masks):
                known, own = with_rank(way[name]), tuple(m for m in given if m.owner == owner)
                made = self.real(name, replace(known, validity=own), statement)
                block.append(assign(variable, made, statement))
                mask = held_mask(variable, known.rank, statement, is_loaded)
                mask = replace(mask, is_moved=any(m.is_moved for given in masks for m in given))
                rest = (each for each in known.validity if each not in own)
                way[name] = replace(known, validity=(*rest, mask.owned(owner) if owner else mask))

    def implied(
        self, before: Known, after: Known, new: tuple[TileMask, ...]
    ) -> tuple[TileMask, ...]:
        """Masks of what was made before a round that hold wherever those of a tile of its size do."""
        places = {mask.place for mask in with_rank(after).validity}

        def is_implied(mask: TileMask) -> bool:
            made = mask.origin.tile
            return isinstance(made, Within) and any(
                _is_tile(tile := other.origin.tile)
                and _is_size(made.size, self.tensors[tile.parameter].tile_shape[dim])
                for other in new
                for own, dim in zip(mask.layout, other.layout)
                if own is not None and dim is not None
            )

        old = with_rank(before).validity
        return tuple(mask for mask in old if mask.place not in places and is_implied(mask))

    def keep(
        self, name: str, before: Known, after: Known, body: list[ast.stmt], origin: ast.AST
    ) -> None:
        """Has a variable keep what it held before a round, where its value has no element."""
        _, held = self.carried[name]
        new = new_masks(before, after)
        if not new or held is None:
            return
        masks = self.masks(replace(after, validity=new), origin)
        kept = at(Kept(value=read(name, origin), before=read(held, origin), masks=masks), origin)
        body.append(assign(name, kept, origin))

    def kept(
        self,
        body: list[ast.stmt],
        lasting: Mapping[str, Known],
        before: Mapping[str, str],
        followed: Mapping[str, Mapping[bool, str]],
    ) -> None:
        """Statements of a loop's body that have variables keep what they held before a round.

        Args:
            followed: the variables that say where others hold an element, which they do after a round
                where they did before or where its value does.
        """
        for name in before:
            if name in lasting and name in self.known and body:
                self.keep(name, lasting[name], self.known[name], body, body[-1])
        for name, variables in followed.items():
            known = self.known.get(name)
            if known is None or not body:
                continue
            for is_loaded, _ in by_kind(lost_masks(lasting.get(name, known), known)):
                variable, made = variables[is_loaded], self.real(name, known, body[-1])
                either = ast.BinOp(left=read(variable, body[-1]), op=ast.BitOr(), right=made)
                body.append(assign(variable, at(either, body[-1]), body[-1]))
        copies = [assign(held, read(name, body[0]), body[0]) for name, held in before.items()]
        body[:0] = copies

    def after_way(
        self,
        name: str,
        before: Known,
        after: Known,
        beside: Known,
        block: list[ast.stmt],
        origin: ast.AST,
    ) -> Known:
        """What is known after one way of an ``if`` in a loop, of a variable that the loop carries.

        Masks that the other way does not have would be lost: there it keeps what it had.

        Args:
            block: that way, in which there may be no statement.
        """
        loop, held = self.carried[name]
        others = {mask.place for mask in beside.validity}
        lost = tuple(mask for mask in new_masks(before, after) if mask.place not in others)
        if not lost or loop is None:
            return after
        rest = tuple(mask for mask in after.validity if mask not in lost)
        rest += self.implied(before, after, lost)
        if held is not None:
            kept = replace(after, validity=(*lost, *before.validity))
            self.keep(name, before, kept, block, block[-1] if block else origin)
            return replace(after, validity=rest)
        is_lasting = all(map(stays_out, lost)) and not self.loops_over(lost)
        self.want_of_all(name, after, lost)
        return replace(after, validity=(*rest, on_demand((loop, name), lost, is_lasting)))

    def want_of_all(self, name: str, value: Known, new: tuple[TileMask, ...]) -> None:
        """Has a tile keep what it held where one mask is that of all its elements.

        Nobody asks for such a mask who tells one element from another.
        """
        if value.rank and not all(any(_followed(mask)) for mask in new):
            self.wanted.add((self.carried[name][0], name))

    def is_stored_over(self, mask: TileMask, statement: Store) -> bool:
        """Whether lanes that a mask leaves out in each round may exist where a value is stored.

        Of another tensor's tile the call's checks say that they do not, where sizes alone decide which
        elements it has, the tensor that is stored to has no ``other``, the store is certain, and the tile is
        the one that is stored to or has the elements that any other of its level has. Of what was made, its
        size says it; of what moved, nothing.
        """
        return any(self.is_elsewhere(each, statement.tile, mask) for each in mask.stands_for)

    def beyond(self, value: Known, tile: TileRef) -> Known:
        """What is known of a value, with those masks alone where a tile that it is stored to may have more."""

        def is_beyond(mask: TileMask) -> bool:
            if mask.wanted is not None:
                return mask.wanted[0] in ("moved", "either", "way", "chosen")
            return self.is_elsewhere(mask, tile, mask)

        return replace(
            value, validity=tuple(filter(is_beyond, asked_by_store(value.validity, True)))
        )

    def is_elsewhere(self, own: TileMask, stored_to: TileRef, of_value: TileMask) -> bool:
        """Whether lanes that a mask leaves out may exist where a value is stored.

        Args:
            of_value: the mask that the value has, which may stand for the other one.
        """
        tile, indices = own.origin.tile, stored_to.indices
        target = self.tensors[stored_to.parameter]
        tile_shape = target.tile_shape
        if not _is_tile(tile):
            return not isinstance(tile, Within) or not covers(own, tile_shape)
        is_same = key_of(tile.indices) == key_of(indices) and all(map(self.is_stable, indices))
        made_of = self.tensors[tile.parameter]
        if made_of.source is not target.source:
            is_compared = self.is_certain and made_of.is_by_size and target.source.other is None
            return not is_compared or (not is_same and self.depends_on_tile(own))
        # The last dimension of a value is the last one of the tile that it is stored to.
        ranked = (with_dimensions(mask, len(tile_shape)) for mask in (own, of_value))
        return not (is_same and all(mask.is_in_place for mask in ranked))

    def loops_over(self, validity: Iterable[TileMask]) -> bool:
        """Whether masks may differ from round to round."""
        return any(mask.origin.names & {*self.carried, *self.rounds} for mask in validity)


def _says_where(wish: Any, own: Any) -> bool:
    """Whether a wish is for what says where values of another variable than a loop's own exist."""
    return wish[0] in ("way", "chosen") or (wish[0] == "either" and wish[1:3] != own)


def _followed(mask: TileMask) -> Dimensions:
    return tuple(dim is not None for dim in mask.layout)


def _is_tile(node: Any) -> bool:
    """Whether a mask is that of a whole tile: of selected elements, positions decide."""
    return isinstance(node, TileRef) and not isinstance(node, ElementRef)


def _is_size(node: ast.expr, size: Any) -> bool:
    known = node.symbol if isinstance(node, SymbolValue) else getattr(node, "value", None)
    return known is not None and as_symbol(known) == as_symbol(size)


def new_masks(before: Known, after: Known) -> tuple[TileMask, ...]:
    """The masks that a variable got, but where it holds what it had, in the lanes in which it had it."""
    old = {mask.place for mask in with_rank(before).validity}
    keys = {key for key, _ in old}
    owners = {mask.owner for mask in before.validity} - {None}
    return tuple(
        mask
        for mask in with_rank(after).validity
        if mask.place not in old
        and (mask.key in keys or mask.owner not in owners)
        and not mask.is_kept
        and mask.wanted is None
    )


def lost_masks(before: Known, after: Known) -> tuple[TileMask, ...]:
    """The masks that a variable had, and has no more; or no more as one of the same kind."""
    places = {(mask.place, mask.is_loaded) for mask in with_rank(after).validity}
    return tuple(
        mask
        for mask in with_rank(before).validity
        if (mask.place, mask.is_loaded) not in places and mask.wanted is None
    )


def on_demand(
    wish: Any,
    validity: tuple[TileMask, ...],
    is_lasting: bool | None = None,
    is_loaded: bool = False,
) -> TileMask:
    """One for masks of lanes that hold anything till it is wanted that they keep what they had.

    Args:
        is_lasting: whether they hold anything after every round; None where they do not exist after any.
        is_loaded: see `held_mask`.
    """
    followed = zip(*(mask.layout for mask in validity))
    layout = tuple(
        place if any(dim is not None for dim in dims) else None
        for place, dims in enumerate(followed)
    )
    stands_for = () if is_lasting is None else validity
    key = wish, is_lasting is not False
    return TileMask(
        key,
        NOWHERE,
        layout,
        is_loaded=is_loaded,
        is_met=not is_loaded,
        is_moved=any(mask.is_moved for mask in validity),
        wanted=wish,
        stands_for=stands_for,
    )


def of_either(value: Known, one: Known, other: Known) -> Known:
    """A value of one of two ways: where only one leaves lanes out, in the other they exist."""
    both = {mask.place for mask in one.validity} & {mask.place for mask in other.validity}
    validity = (
        replace(mask, key=(mask.wanted, False))
        if mask.stands_for and mask.place not in both
        else mask
        for mask in value.validity
    )
    return replace(value, validity=tuple(validity))


def without_lasting(mask: TileMask) -> TileMask:
    """Of what a round moved, a mask that is wanted wherever its variable is stored after the loop."""
    is_moved = mask.wanted is not None and mask.wanted[0] == "moved"
    return replace(mask, key=(mask.wanted, False)) if is_moved else mask


def stays_out(mask: TileMask) -> bool:
    """Whether lanes that a mask leaves out are left out in every round of a loop."""
    return mask.wanted is None or mask.key == (mask.wanted, True)


def without_kept(value: Known) -> Known:
    """A value as it is known in a variable that did not hold what it was added to."""
    return replace(value, validity=tuple(replace(mask, is_kept=False) for mask in value.validity))
