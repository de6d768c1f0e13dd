"""What is known while a program is walked, and the masks that follow from it: for ``mask_padding``."""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.passes.rewriting import Draft, assign, read
from ninetoothed.passes.validity import SCALAR, Known, TileMask, with_rank
from ninetoothed.program.expression_types import OfParts
from ninetoothed.program.nodes import (
    Held,
    Mask,
    Masked,
    SequenceLength,
    SymbolValue,
    Within,
    at,
    clone,
)


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
        rounds: the variables of loops themselves.
    """

    def __init__(self, draft: Draft, needed: frozenset[Any] = frozenset()) -> None:
        self.draft = draft
        self.needed = needed
        self.wanted: set[Any] = set()
        self.carried: dict[str, tuple[Any, str | None]] = {}
        self.rounds: set[str] = set()
        self.helpers = dict(draft.program.helpers)
        self.known: dict[str, Known] = {}
        self.statement: ast.stmt = ast.Pass()
        self.tensors: dict[str, Any] = {}
        self.types = OfParts({each.name: each for each in draft.program.parameters})
        self.constants: set[str] = set()
        for parameter in draft.program.parameters:
            if parameter.kind == "tensor":
                self.tensors[parameter.name] = parameter
            else:
                self.known[parameter.name] = SCALAR
                if parameter.kind == "constexpr":
                    self.constants.add(parameter.name)

    def visit(self, node: ast.expr) -> tuple[ast.expr, Known]:
        """The expression as it is to be, and what is known of it."""
        raise NotImplementedError

    def atomic(self, node: ast.Call) -> Known:
        """Visits an atomic operation on an access; what is known of its result."""
        raise NotImplementedError

    def masks(self, value: Known, origin: ast.AST, but_zero: bool) -> list[ast.expr]:
        """The masks of a value; with ``but_zero`` without those where it is zero anyway."""
        found = []
        for mask in with_rank(value).validity:
            if mask.wanted is not None:
                self.wanted.add(mask.wanted)
            elif not (but_zero and mask.is_zero):
                found.append(self.mask(mask, origin))
        return found

    def mask(self, mask: TileMask, origin: ast.AST) -> ast.expr:
        """The node for a mask; indices that may have changed since the load are kept from there."""
        loaded = mask.origin
        if isinstance(loaded.tile, Within | Held):
            node = clone(loaded.tile)
            node.layout = mask.layout
            return at(node, origin)
        for index, node in enumerate(loaded.tile.indices):
            if not self.is_stable(node):
                name = self.draft.fresh(f"{loaded.tile.parameter}_index")
                self.draft.insert_before(loaded.statement, assign(name, node, node))
                loaded.tile.indices[index] = read(name, node)
        return at(Mask(tile=clone(loaded.tile), layout=mask.layout), origin)

    def is_stable(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.draft.counts[node.id] <= 1
        if isinstance(node, ast.BinOp):
            return self.is_stable(node.left) and self.is_stable(node.right)
        if isinstance(node, Masked):
            # Its masks are kept from where they were made.
            return self.is_stable(node.value)
        return isinstance(node, ast.Constant | SymbolValue | SequenceLength)
