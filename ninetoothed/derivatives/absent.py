"""Inputs that a tile may have no element of and yet be stored: what is computed of them reads 0 there.

Of a position that `pad` adds, that a window has beyond the end or that is another tile's, a store takes
what is computed of 0, element by element; what sums leaves it out. The gradient of what was stored there
is summed, so an input is, in a backward kernel, one whose elements are 0 there, where nothing else asks which exist.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field

from ninetoothed.derivatives.tape import refused
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import names_read, operation_of, targets_of
from ninetoothed.program.nodes import ElementLoad, Load, Store, SymbolValue, TileRef, walk
from ninetoothed.records import dataclass

#: The kinds of operations for which it makes a difference whether an element is 0 or does not exist.
_ASKING = frozenset({"reduction", "scan", "sort", "product", "movement", "other", "memory"})


#: The rules of shapes of what gives elements another place than that of a tile's own dimensions.
_MOVING = frozenset({"reshaped", "raveled", "flipped"})


@dataclass
class Absent:
    """The inputs of which a tile may lack elements that are no matter of sizes alone.

    Attributes:
        stored: those of which something computed element by element is stored.
        asked: those of which something is given to what leaves out what does not exist, and where first.
    """

    stored: set[str] = field(default_factory=set)
    asked: dict[str, ast.AST] = field(default_factory=dict)

    @property
    def as_zeros(self) -> frozenset[str]:
        """Those that may as well have elements of 0."""
        return frozenset(self.stored - self.asked.keys())

    @property
    def as_both(self) -> dict[str, ast.AST]:
        """Those that would have to exist, and not to, and where what leaves them out stands."""
        return {name: node for name, node in self.asked.items() if name in self.stored}


def read_as_zeros(definition: Definition, backward: Sequence[ast.stmt]) -> frozenset[str]:
    """The inputs of a kernel that have elements of 0, in its backward, where they have none.

    Raises:
        ApplicationError: one would have to have them, and not to.
    """
    found = absent(definition)
    read = {
        node.parameter
        for statement in backward
        for node in walk(statement)
        if isinstance(node, TileRef | ElementLoad)
    }
    for name, node in found.as_both.items():
        if name in read:
            raise refused(
                f"`{name}` has no element in some places of its tiles; this leaves them out, and what "
                "is computed of them is stored. Give the tensor an `other`, so that they are elements.",
                node,
            )
    return found.as_zeros


def moves(body: Sequence[ast.stmt]) -> bool:
    """Whether statements move elements to where the tile that they came from has none."""
    calls = (node for each in body for node in walk(each) if isinstance(node, ast.Call))
    found = (operation_of(call) for call in calls)
    return any(each is not None and each.shape in _MOVING for each in found)


def absent(definition: Definition) -> Absent:
    """The inputs of a kernel of which tiles may lack elements."""
    body = definition.program.body
    shifted = {
        node.parameter
        for statement in body
        for node in walk(statement)
        if isinstance(node, TileRef) and not all(map(_is_plain, node.indices))
    }
    lacking = {
        p.name
        for p in definition.tensor_parameters
        if p.source.other is None and (not p.is_by_size or p.name in shifted)
    }
    found = Absent()
    if lacking:
        _Following(lacking, found).run(body)
    return found


def _is_plain(index: ast.expr) -> bool:
    return isinstance(index, ast.Name | ast.Constant | SymbolValue)


class _Following:
    """Which inputs a value is made of element by element, through a program."""

    def __init__(self, lacking: set[str], found: Absent) -> None:
        self.lacking, self.found = lacking, found
        self.made_of: dict[str, set[str]] = {}

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Follows the statements till nothing more is learnt: a loop's come again."""
        before = -1
        while before != (before := sum(map(len, self.made_of.values()))):
            self.statements(body, is_in_loop=False)

    def statements(self, body: Sequence[ast.stmt], is_in_loop: bool) -> None:
        for node in body:
            if isinstance(node, ast.For | ast.While | ast.If):
                is_loop = is_in_loop or not isinstance(node, ast.If)
                self.statements([*node.body, *node.orelse], is_loop)
                continue
            value = getattr(node, "value", None)
            names = self.of(value) if isinstance(value, ast.expr) else set()
            if isinstance(node, Store):
                self.found.stored |= names
            for target in targets_of(node):
                is_carried = isinstance(node, ast.AugAssign) or target.id in names_read(node)
                self.made_of[target.id] = self.made_of.get(target.id, set()) | names
                if is_in_loop and is_carried:
                    # A sum over rounds keeps what it has where a round has no element.
                    self.ask(names, node)

    def of(self, node: ast.AST) -> set[str]:
        """The inputs that a value is made of element by element."""
        if isinstance(node, Load | ElementLoad):
            name = node.tile.parameter if isinstance(node, Load) else node.parameter
            return {name} & self.lacking
        if isinstance(node, ast.Name):
            return set(self.made_of.get(node.id, ()))
        found: set[str] = set()
        for child in ast.iter_child_nodes(node):
            found |= self.of(child)
        operation = operation_of(node) if isinstance(node, ast.Call) else None
        if operation is None or operation.kind not in _ASKING:
            return found
        self.ask(found, node)
        return set() if operation.kind in ("reduction", "product") else found

    def ask(self, names: set[str], node: ast.AST) -> None:
        for name in names:
            self.found.asked.setdefault(name, node)
