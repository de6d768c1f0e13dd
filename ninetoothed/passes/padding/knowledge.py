"""What is known while a program is walked, and the masks that follow from it: for ``mask_padding``."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from ninetoothed.passes.padding.validity import UNKNOWN, Known, with_rank
from ninetoothed.passes.rewriting import Draft, assign, key_of, place_of, read
from ninetoothed.program.effects import MEMORY, has_effect, names_deciding
from ninetoothed.program.expression_types import OfParts
from ninetoothed.program.inference import type_of_round
from ninetoothed.program.nodes import (
    ElementRef,
    Masked,
    SequenceLength,
    SymbolValue,
    TileRef,
    Within,
    at,
)
from ninetoothed.program.tile_masks import TileMask
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.simplify import difference


class Knowledge:
    """What is known of each variable, and the program that is made.

    Attributes:
        known: what is known of each variable.
        statement: the statement that the expressions belong to.
        constants: the names whose values are known at compile time.
        needed: what is done though it costs, since a mask that follows from it is needed.
        wanted: what else was found to be needed.
        carried: for each variable that the innermost loop carries that assigns it, which loop that is,
            and what holds its value before a round (None where that is not needed).
        starts: what is known of the variables that loops carry where a round begins.
        rounds: the variables of loops themselves.
        ends: what those of them stay below that count up from 0.
        ways: what is known of both values of the choice that was visited last.
        indices: the variables that select tiles or elements of them, `MEMORY` where that does.
        versions: which of its values each of those has: masks of tiles that they select are the same where
            these are.
        way: which of the ways of the program's ``if`` statements is walked.
        accompanied: by function of the user's, or by a comparison, the one that only combines elements
            that are there.
    """

    def __init__(self, draft: Draft, needed: frozenset[Any] = frozenset()) -> None:
        self.draft = draft
        self.needed = needed
        self.wanted: set[Any] = set()
        self.carried: dict[str, tuple[Any, str | None]] = {}
        self.starts: dict[str, Known] = {}
        self.rounds: set[str] = set()
        self.ends: dict[str, Symbol] = {}
        self.ways = UNKNOWN, UNKNOWN
        self.helpers = dict(draft.helpers)
        self.accompanied: dict[str, str] = {}
        self.known: dict[str, Known] = {}
        self.statement: ast.stmt = ast.Pass()
        self.tensors: dict[str, Any] = {}
        self.types = OfParts({each.name: each for each in draft.program.parameters})
        self.constants: set[str] = set()
        self.indices = {
            name
            for node in draft.program.nodes()
            for index in getattr(node, "indices", ())
            for name in names_deciding(index)
        }
        self.versions: dict[str, int] = {}
        self.way: int | None = None
        self._reached: dict[Any, int] = {}
        for parameter in draft.program.parameters:
            if parameter.kind == "tensor":
                self.tensors[parameter.name] = parameter
            else:
                found = self.types.known[parameter.name]
                self.known[parameter.name] = Known(found, is_scale=parameter.is_scale)
                if parameter.kind == "constexpr":
                    self.constants.add(parameter.name)

    def get(self, target: ast.expr, value: Known) -> None:
        """A variable gets a value, or several get the items of one."""
        if isinstance(target, ast.Tuple):
            # Of what gives nobody knows how many values, each has the elements that the others have.
            items = value.items or (Known(validity=value.validity),) * len(target.elts)
            for element, item in zip(target.elts, items):
                self.get(element, item)
        elif isinstance(target, ast.Name):
            self.known[target.id] = value
            target.__dict__["type"] = replace(value.type, validity=value.validity)
            self.change({target.id})

    def reached(self, node: ast.AST, before: Any) -> int:
        """A number for a node that is reached after what was before: another one for each way to it."""
        return self._reached.setdefault((place_of(node), before, self.way), len(self._reached))

    def change(self, names: set[str]) -> None:
        """What these variables select from here on are other tiles than those that were loaded before."""
        for name in names & self.indices:
            self.versions[name] = self.reached(self.statement, self.versions.get(name))

    def key_of(self, node: Any) -> Any:
        """Equal for sizes that are the same, and for tiles whose masks are, whatever was assigned in between.

        Where an index may change after the load, one way of an ``if`` does not have the mask of another.
        """
        if MEMORY in self.indices and has_effect(node):
            self.change({MEMORY})
        deciding = names_deciding(node) & self.versions.keys()
        versions = frozenset((name, self.versions[name]) for name in deciding)
        is_stable = all(map(self.is_stable, getattr(node, "indices", ())))
        return key_of(node), versions, None if is_stable else self.way

    def enter(self, loop: ast.For) -> None:
        """A round of a loop begins."""
        assert isinstance(loop.iter, ast.Call)
        self.get(loop.target, Known(type_of_round(loop.iter)))
        if isinstance(loop.target, ast.Name) and len(loop.iter.args) == 1:
            end = _number(loop.iter.args[0])
            if end is not None:
                self.ends[loop.target.id] = end

    def is_below(self, node: ast.expr, size: Expression) -> bool:
        """Whether an index is known to be 0 or more and below a size, whatever a call gives."""
        end = self.ends.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 0:
            end = as_symbol(node.value + 1)
        if end is None or not self.is_stable(node):
            return False
        return interval(difference(as_symbol(size), end))[0] >= 0

    def visit(self, node: ast.expr) -> tuple[ast.expr, Known]:
        """The expression as it is to be, and what is known of it."""
        raise NotImplementedError

    def atomic(self, node: ast.Call) -> Known:
        """Visits an atomic operation on an access; what is known of its result."""
        raise NotImplementedError

    def beyond(self, value: Known, tile: TileRef) -> Known:
        """What is known of a value, with those masks alone where a tile that it is stored to may have more."""
        raise NotImplementedError

    def depends_on_tile(self, mask: TileMask) -> bool:
        """Whether which lanes a tile's mask leaves out may differ from one tile of its level to another."""
        raise NotImplementedError

    def has_elements(self, mask: TileMask) -> bool:
        """Whether a whole tile, or what was made, is known to have an element along each of its dimensions."""
        tile = mask.origin.tile
        if not isinstance(tile, TileRef) or isinstance(tile, ElementRef):
            return isinstance(tile, Within)
        parameter = self.tensors[tile.parameter]
        is_within = all(map(self.is_below, tile.indices, parameter.middle_sizes))
        return is_within and parameter.has_first_elements

    def masks(self, value: Known, origin: ast.AST) -> list[ast.expr]:
        """The masks of a value."""
        found = []
        for mask in with_rank(value).validity:
            if mask.wanted is not None:
                self.wanted.add(mask.wanted)
            else:
                found.append(self.mask(mask, origin))
        return found

    def mask(self, mask: TileMask, origin: ast.AST) -> ast.expr:
        """The node for a mask; indices that may have changed since the load are kept from there."""
        loaded = mask.origin
        for index, node in enumerate(getattr(loaded.tile, "indices", ())):
            if not self.is_stable(node):
                name = self.draft.fresh(f"{loaded.tile.parameter}_index")
                self.draft.insert_before(loaded.statement, assign(name, node, node))
                loaded.tile.indices[index] = read(name, node)
                loaded.replaced |= names_deciding(node)
        return at(mask.node(), origin)

    def is_stable(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.draft.counts[node.id] <= 1
        if isinstance(node, ast.BinOp):
            return self.is_stable(node.left) and self.is_stable(node.right)
        if isinstance(node, Masked):
            # Its masks are kept from where they were made.
            return self.is_stable(node.value)
        return isinstance(node, ast.Constant | SymbolValue | SequenceLength)


def _number(node: ast.expr) -> Symbol | None:
    """What is known of a number when a kernel is made."""
    if isinstance(node, SymbolValue):
        return as_symbol(node.symbol)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return as_symbol(node.value)
    return None
