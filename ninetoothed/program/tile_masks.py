"""Where a value holds an element: part of its type, once padding has been followed.

A value has the masks of the tiles that it is made of: where one does not hold, there is padding.
`passes.mask_padding` finds them and masks what reductions are given; `verify` asks whether that is so.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ninetoothed.program.effects import names_deciding, names_read
from ninetoothed.program.nodes import Held, Mask, Within, clone
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class TileMask:
    """The mask of a loaded tile.

    Attributes:
        key: equal for masks of the same tile.
        origin: the tile, and the statement that loaded it.
        layout: for each dimension of the value the tile's dimension that it follows, or None.
        is_zero: whether the value is zero in all lanes where the mask does not hold.
        is_lowest: whether it is minus infinity there.
        is_kept: whether a variable holds there what it held before the statement that assigned it.
        is_loaded: whether the value is in the lanes that the tile was loaded to: a store does not ask.
        is_met: of such a one, whether each call is checked for it that what is stored to has no more
            elements; else what the value is there may be stored.
        is_moved: whether the elements were moved, so that each exists by itself: what they are reduced to along a
            dimension exists where one of them does.
        wanted: what has to be done before the mask can be had, where that is only done on demand;
            None where it can be had. Till then those lanes hold anything.
        stands_for: of one of a loop's variable, the masks that are wanted.
    """

    key: Any
    origin: Origin
    layout: tuple[int | None, ...]
    is_zero: bool = False
    is_lowest: bool = False
    is_kept: bool = False
    is_loaded: bool = False
    is_met: bool = True
    is_moved: bool = False
    wanted: Any = None
    stands_for: tuple[TileMask, ...] = ()

    @property
    def place(self) -> Any:
        return self.key, self.layout

    def owned(self, owner: Any) -> TileMask:
        """What a variable has where a round begins, if that may be stored: no mask of what the round makes is it."""
        is_known = may_be_stored(self) and self.wanted is None
        return replace(self, key=Owned(owner, self.key)) if is_known else self

    def given_back(self, owner: Any) -> TileMask:
        """The mask after the round."""
        key = self.key
        return replace(self, key=key.key) if is_owned(self) and key.owner == owner else self

    @property
    def owner(self) -> Any:
        """Who has it from before the round at hand; None where nobody does."""
        return self.key.owner if is_owned(self) else None

    @property
    def is_in_place(self) -> bool:
        """Whether each dimension of the value follows the same one of the tile, or none."""
        return all(dim in (None, place) for place, dim in enumerate(self.layout))

    def node(self) -> Any:
        """The mask as a node, by what its indices are where the tile was loaded."""
        tile = clone(self.origin.tile)
        if isinstance(tile, Within | Held):
            tile.layout = self.layout
            return tile
        return Mask(tile=tile, layout=self.layout)


class Owned(NamedTuple):
    """The key of a mask that a variable has from before the round at hand.

    Where nothing exists before a round, what it computes of that is stored, if that may be; where what the round
    makes by itself does not exist, the variable keeps what it had, though it had that of the same tile.
    """

    owner: Any
    key: Any


def is_owned(mask: TileMask) -> bool:
    """Whether a variable has a mask from before the round at hand, and no matter what it is that of."""
    return isinstance(mask.key, Owned)


@dataclass(eq=False)
class Origin:
    """Where a mask comes from: the tile, and the statement that its indices are valid at.

    In place of a tile there may be what the mask is itself, a `Within` or a `Held`.

    Attributes:
        replaced: variables of its indices for which others stand there that are never assigned again.
    """

    tile: Any
    statement: ast.stmt
    replaced: frozenset[str] = frozenset()

    @property
    def names(self) -> set[str]:
        """The variables that decide what it is."""
        computed = (
            index
            for index in getattr(self.tile, "indices", ())
            if not isinstance(index, ast.Name | ast.Constant)
        )
        return names_read(self.tile).union(self.replaced, *map(names_deciding, computed))


#: The origin of a mask that cannot be had as it is.
NOWHERE = Origin(ast.Constant(value=None), ast.Pass())


def changed(mask: TileMask, **fields: Any) -> TileMask:
    """The mask with other fields; itself where it has these, as most have."""
    own = mask.__dict__
    has_them = all(own[name] == value for name, value in fields.items())
    return mask if has_them else replace(mask, **fields)


def with_dimensions(mask: TileMask, rank: int) -> TileMask:
    """The mask with dimensions in front, up to so many."""
    missing = rank - len(mask.layout)
    return replace(mask, layout=(None,) * missing + mask.layout) if missing > 0 else mask


def follows(mask: TileMask, axis: int) -> bool:
    """Whether a mask depends on a dimension; yes where there is no such dimension."""
    rank = len(mask.layout)
    return not -rank <= axis < rank or mask.layout[axis] is not None


def may_be_stored(mask: TileMask) -> bool:
    """Whether what a value is where a mask leaves it out may be stored."""
    return mask.is_loaded and not mask.is_met


def asked_by_store(masks: Sequence[TileMask], is_whole: bool) -> tuple[TileMask, ...]:
    """The masks of a value that a store asks: one to a whole tile does not ask those of what was loaded."""
    return tuple(mask for mask in masks if not (is_whole and mask.is_loaded))


def of_kind(masks: Sequence[TileMask], is_loaded: bool) -> tuple[TileMask, ...]:
    """Of masks, those that a store to a whole tile does not ask, or those that it does."""
    return tuple(mask for mask in masks if mask.is_loaded is is_loaded)


def by_kind(masks: Sequence[TileMask]) -> list[tuple[bool, tuple[TileMask, ...]]]:
    """Masks that a store to a whole tile asks, then those that it does not, each where there are some.

    What says which elements a variable has, one way or another, says it of each kind by itself.
    """
    kinds = ((is_loaded, of_kind(masks, is_loaded)) for is_loaded in (False, True))
    return [(is_loaded, own) for is_loaded, own in kinds if own]


def holds_identity(mask: TileMask, identity: str) -> bool:
    """Whether the padding is the identity already."""
    return (identity == "zero" and mask.is_zero) or (identity == "lowest" and mask.is_lowest)


def to_be_masked(
    masks: Sequence[TileMask], identity: str, axis: int | None = None
) -> list[TileMask]:
    """The masks by which padding has to be masked for what has an identity; along an axis, or whole.

    Those of other axes leave results out as a whole, which matters where these are stored all the same.
    Where the rank is not known, that of the masks is taken.
    """
    rank = max((len(mask.layout) for mask in masks), default=0)
    found = [with_dimensions(mask, rank) for mask in masks if not holds_identity(mask, identity)]
    if axis is None or rank == 1:
        return found
    return [mask for mask in found if follows(mask, axis) or may_be_stored(mask)]
