"""Inputs that a tile may have no element of and yet be stored: what is computed of them reads 0 there.

Of a position that `pad` adds, that a window has beyond the end or that is another tile's, a store takes
what is computed of 0, element by element; what sums leaves it out. The gradient of what was stored there
is summed, so an input is, in a backward kernel, one whose elements are 0 there, where nothing else asks which exist.

What sums leaves out has no gradient, of no other input either that it is made of and that has an element there.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import field

from ninetoothed.derivatives import tape
from ninetoothed.derivatives.positions import as_they_exist
from ninetoothed.derivatives.record import Recorder
from ninetoothed.derivatives.tape import refused
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.limits import Use
from ninetoothed.kernels.meetings.uneven import Existing, are_alike, named
from ninetoothed.program.effects import (
    is_product,
    names_read,
    operation_of,
    statements_of,
    targets_of,
)
from ninetoothed.program.nodes import ElementLoad, Load, Store, SymbolValue, TileRef, clone, walk
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
        beyond: of these, those that may have no element where something is stored.
        asked: those of which something is given to what leaves out what does not exist, and where first.
    """

    stored: set[str] = field(default_factory=set)
    beyond: set[str] = field(default_factory=set)
    asked: dict[str, ast.AST] = field(default_factory=dict)

    @property
    def as_zeros(self) -> frozenset[str]:
        """Those that may as well have elements of 0."""
        return frozenset(self.stored - self.asked.keys())

    @property
    def as_both(self) -> dict[str, ast.AST]:
        """Those that would have to exist, and not to, and where what leaves them out stands."""
        return {name: node for name, node in self.asked.items() if name in self.beyond}


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
        _Following(definition, lacking, found).run(body)
    return found


def _is_plain(index: ast.expr) -> bool:
    return isinstance(index, ast.Name | ast.Constant | SymbolValue)


def _begun(loop: ast.For | ast.While) -> set[str]:
    """The variables that a round of a loop assigns without reading them."""
    return {
        target.id
        for statement in statements_of(loop)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in targets_of(statement)
        if target.id not in names_read(statement)
    }


class _Following:
    """Which inputs a value is made of element by element, through a program."""

    def __init__(self, definition: Definition, lacking: set[str], found: Absent) -> None:
        self.definition, self.lacking, self.found = definition, lacking, found
        self.made_of: dict[str, set[str]] = {}
        #: What selects their tiles, and which of them went to other lanes.
        self.selected: dict[str, set[str]] = {}
        self.turned: set[str] = set()

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Follows the statements till nothing more is learnt: a loop's come again."""
        before = -1
        while before != (before := sum(map(len, self.made_of.values()))):
            self.statements(body, None)

    def statements(self, body: Sequence[ast.stmt], begun: set[str] | None) -> None:
        """Follows statements.

        Args:
            begun: the variables that a round of the loop around begins anew; None outside of loops.
        """
        for node in body:
            if isinstance(node, ast.For | ast.While | ast.If):
                within = begun if isinstance(node, ast.If) else _begun(node)
                self.statements([*node.body, *node.orelse], within)
                continue
            value = getattr(node, "value", None)
            names = self.of(value) if isinstance(value, ast.expr) else set()
            if isinstance(node, Store):
                self.found.stored |= names
                self.found.beyond |= {each for each in names if self.is_beyond(each, node.tile)}
            for target in targets_of(node):
                is_carried = isinstance(node, ast.AugAssign) or target.id in names_read(node)
                if begun is not None and is_carried:
                    # A sum over rounds keeps what it has where a round has no element.
                    self.ask(names, node)
                if begun is None or not is_carried or target.id in begun:
                    self.made_of[target.id] = self.made_of.get(target.id, set()) | names

    def of(self, node: ast.AST) -> set[str]:
        """The inputs that a value is made of element by element."""
        if isinstance(node, Load | ElementLoad):
            name = node.tile.parameter if isinstance(node, Load) else node.parameter
            self.selected.setdefault(name, set()).add(tape.dump(node))
            return {name} & self.lacking
        if isinstance(node, ast.Name):
            return set(self.made_of.get(node.id, ()))
        found: set[str] = set()
        for child in ast.iter_child_nodes(node):
            found |= self.of(child)
        operation = operation_of(node) if isinstance(node, ast.Call) else None
        is_turned = operation is not None and operation.kind == "rearrangement"
        if is_turned or getattr(node, "attr", "") == "T":
            self.turned |= found
        if operation is None or operation.kind not in _ASKING:
            return found
        self.ask(found, node)
        return set() if operation.kind in ("reduction", "product") else found

    def is_beyond(self, name: str, tile: TileRef) -> bool:
        """Whether an input may have no element where a tile that is stored to has one."""
        if name in self.turned or len(self.selected.get(name, ())) != 1:
            return True
        (selected,) = self.selected[name]
        own = TileRef(parameter=name, indices=tile.indices)
        if selected != tape.dump(Load(tile=own)):
            return True
        at = tuple(named(f"index {place}") for place, _ in enumerate(tile.indices))
        uses = (Use(each, at, ()) for each in (name, tile.parameter))
        return not are_alike(self.definition, *uses)

    def ask(self, names: set[str], node: ast.AST) -> None:
        for name in names:
            self.found.asked.setdefault(name, node)


def left_out(definition: Definition, recorder: Recorder) -> dict[int, frozenset[str]]:
    """What of a tape leaves out elements that some inputs have, and others beside them have not.

    Where that may be an element at a position, the tape has it where it exists from here on.

    Returns:
        These inputs, by the item's identity.
    """
    found: dict[int, frozenset[str]] = {}
    existing = Existing(definition, recorder.wrt)
    _follow(existing, recorder.items, found, recorder.elements)
    if existing.asked:
        found.clear()
        as_they_exist(recorder, recorder.items, existing.asked)
        _follow(Existing(definition, recorder.wrt), recorder.items, found, {})
    return found


def _follow(
    existing: Existing,
    items: Sequence[tape.Item],
    found: dict[int, frozenset[str]],
    elements: Mapping[str, ElementLoad],
) -> None:
    for item in items:
        more: frozenset[str] = frozenset()
        if isinstance(item, tape.Loop):
            existing.begin(item.variable, clone(item.iterable))
            _follow(existing, item.body, found, elements)
        elif isinstance(item, tape.Read):
            existing.assign(item.target, Load(tile=clone(item.tile)))
        elif isinstance(item, tape.Summand):
            known = existing.value(item.operand.copied)
            more = existing.having_more(known)
            existing.add(item.target, known)
        elif isinstance(item, tape.Plain | tape.Step):
            if isinstance(item, tape.Step) and asks(item.expression):
                given = [existing.value(each.copied) for each in item.operands]
                if is_product(item.expression):
                    more = existing.having_more_of_factors(*given[:2])
                else:
                    more = existing.having_more(given[0])
            existing.assign(item.target, clone(item.expression))
            if item.target in elements:
                existing.choose(item.target, clone(elements[item.target]))
        if more:
            found[id(item)] = more


def asks(node: ast.AST) -> bool:
    """Whether an operation leaves out what does not exist."""
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    return operation is not None and operation.kind in _ASKING
