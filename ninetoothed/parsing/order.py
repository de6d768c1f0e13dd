"""Order of evaluation: a value is what it was when Python reads it, whatever is evaluated after it.

A value of the running kernel is an expression of variables, put into the Program later than it is read. Whoever
holds one while something else is evaluated asks for it again with ``kept``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ninetoothed.parsing.frames import Frame
from ninetoothed.parsing.values import (
    Cell,
    Group,
    Iterated,
    Known,
    Range,
    Runtime,
    Tile,
    Undecided,
    Value,
    is_of_shapes,
    with_nodes,
)
from ninetoothed.program.arguments import Given
from ninetoothed.program.effects import (
    conflicts,
    has_effect,
    names_assigned,
    names_read,
    operation_of,
    reads_memory,
)
from ninetoothed.program.nodes import Kept, SymbolValue, clone, walk
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Bound:
    """A step of an unrolled loop: its target takes a value."""

    target: ast.expr
    value: Value

    @property
    def node(self) -> ast.expr:
        """Where it is in the source."""
        return self.target


@dataclass(frozen=True, eq=False)
class Rounds:
    """A step of an unrolled loop: a round begins, and the one before it ends.

    Attributes:
        carried: the variables that the loop assigns, and that have a value before it.
        before: what they held where the round at hand began, and what others did, which a helper may assign;
            each way of an ``if`` has its own.
        own: all variables that the loop itself assigns.
        is_last: whether no round begins.
    """

    carried: tuple[Cell, ...]
    node: ast.For
    before: Cell
    own: frozenset[Cell]
    is_last: bool = False


#: What is evaluated one after another.
Step: TypeAlias = ast.stmt | Bound | Rounds


class OrderFrame(Frame):
    """A frame that evaluates one thing after another."""

    def in_order(
        self,
        nodes: Sequence[ast.expr],
        evaluate: Callable[[Any], Any],
        keep: Callable[[Any, int, ast.AST], Any] | None = None,
    ) -> list[Any]:
        """The values of several expressions, evaluated from left to right.

        Where one of them changes what an earlier one reads, ``keep`` gives the earlier one's value as it was.
        """
        keep = keep or self.kept
        results: list[Any] = []
        for node in nodes:
            start = len(self.state.block)
            result = evaluate(node)
            grown = len(self.state.block) - start
            for index, earlier in enumerate(results):
                position = len(self.state.block) - grown
                results[index] = keep(earlier, position, nodes[index])
            if self.state.effects:
                self._keep_effects(results, result, nodes)
            results.append(result)
        return results

    def _keep_effects(self, earlier: list[Any], later: Any, nodes: Sequence[ast.expr]) -> None:
        """A call with an effect is made before a tile is loaded that stands after it.

        Loads have no order within an expression: a backend may make them before all else.
        """
        if not (isinstance(later, Tile) or _has(later, reads_memory)):
            return
        for index, value in enumerate(earlier):
            if isinstance(value, Runtime) and has_effect(value.node):
                earlier[index] = Runtime(self.saved(value.node, nodes[index], "value"))

    def kept(
        self, value: Any, start: int, origin: ast.AST, block: list[ast.stmt] | None = None
    ) -> Any:
        """``value``, saved at position ``start`` of the block where what follows there changes it."""
        block = self.state.block if block is None else block
        if len(block) == start:
            return value

        def as_before(node: ast.expr) -> ast.expr:
            if not conflicts(node, block[start:]):
                return node
            name = self.state.fresh("value")
            block.insert(start, self.assignment(name, node, origin))
            saved.append(name)
            return self.name(name, origin)

        saved: list[str] = []
        result = with_nodes(value, as_before)
        return result if saved else value

    def kept_read(self, value: Any, start: int, origin: ast.AST) -> Any:
        """The same where a tile is handed over to be read: it is loaded before what changes it."""
        if len(self.state.block) == start:
            return value
        if isinstance(value, Group):
            items = [self.kept_read(item, start, origin) for item in value.items]
            is_kept = any(a is not b for a, b in zip(items, value.items, strict=True))
            return value.with_items(items) if is_kept else value
        if not isinstance(value, Tile) or not value.is_complete:
            return self.kept(value, start, origin)
        loaded = Runtime(self.expression(value, origin))
        kept = self.kept(loaded, start, origin)
        return value if kept is loaded else kept

    # What gives its items once.

    def iterator(
        self, items: Iterable[Value], *made_of: Value, is_as_made: Callable[[], bool] | None = None
    ) -> Iterated:
        """What gives items once, of values of which some may do so too."""
        asked = [
            each for value in made_of if isinstance(value, Iterated) for each in value.is_as_made
        ]
        result = Iterated(tuple(items), is_as_made=(*asked, *filter(None, [is_as_made])))
        self.state.left.append(result.left)
        return result

    def taken(self, value: Iterated | Range, node: ast.AST) -> slice:
        """Which items are left, and are given now."""
        found = value.left and value.left.value
        if not isinstance(found, Known):
            raise self.error(
                node,
                "What `zip`, `enumerate`, `reversed` and the like give is gone over once, and this was gone over "
                "before, or each round of a loop goes over it: make a list of it, `list(...)`.",
            )
        if isinstance(value, Iterated) and not all(is_as_made() for is_as_made in value.is_as_made):
            raise self.error(
                node,
                "A generator is asked for its elements here, and what it is made of was changed since it was "
                "written: make a list there, `[... for ...]`.",
            )
        assert value.left is not None
        value.left.value = Undecided("it was gone over.")
        return found.object

    def check_reusable(self, value: Known, node: ast.AST) -> None:
        """Raises where an object from outside gives its items once: who is first, `make`, has them all."""
        if isinstance(value.object, Iterator):
            raise self.error(
                node,
                f"A {type(value.object).__name__} gives its items once, and this one is from outside of the "
                "application, which is read and run several times: make a list or a tuple of it there.",
            )

    def operand(self, node: ast.expr) -> Runtime:
        """An expression's value as a node."""
        return Runtime(self.expression(self.evaluate(node), node))

    def computed_once(self, value: Value, node: ast.AST, wish: str) -> Value:
        """A value that is used several times, in a variable where it takes computing."""
        if isinstance(value, Tile) and value.is_complete:
            value = Runtime(self.expression(value, node))
        if isinstance(value, Group):
            return value.with_items(self.computed_once(item, node, wish) for item in value.items)
        if isinstance(value, Runtime) and is_of_shapes(value.node):
            return self.sizes(value, node)
        if isinstance(value, Runtime) and not isinstance(value.node, ast.Name | ast.Constant):
            return Runtime(self.saved(value.node, node, wish))
        return value

    def sizes(self, value: Runtime, node: ast.AST) -> Runtime:
        """What is made of shapes, as it stays: of values that variables of their own hold, if need be."""

        def kept(part: Any) -> Any:
            if isinstance(part, ast.BinOp):
                part.left, part.right = kept(part.left), kept(part.right)
            elif isinstance(part, ast.Subscript):
                kept(part.value)
            elif isinstance(part, ast.Attribute) and not self._is_stable(part.value):
                part.value = self.saved(part.value, node, "value")
            return part

        return Runtime(kept(clone(value.node)))

    def _is_stable(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant | SymbolValue):
            return True
        if isinstance(node, ast.Name):
            cells = [cell for frame in self.state.frames for cell in frame.cells.values()]
            if any(node.id in cell.item_names.values() for cell in cells):
                return False
            return next((cell.is_stable for cell in cells if cell.name == node.id), True)
        if isinstance(node, ast.BinOp):
            return self._is_stable(node.left) and self._is_stable(node.right)
        return False

    # Rounds of loops that are unrolled.

    def rounds(self, cells: Iterable[Cell], own: Iterable[Cell], node: ast.For) -> Rounds:
        """The rounds of an unrolled loop whose body assigns these variables; ``own`` are its target's too."""
        carried = [cell for cell in cells if cell.value is not None and not cell.stores]
        number = f"before {node.lineno} {node.col_offset}"  # No name that is written.
        before = self.cells[number] = Cell("")
        carried.sort(key=lambda cell: cell.name)
        return Rounds(tuple(carried), node, before, frozenset(own))

    def next_round(self, rounds: Rounds) -> None:
        """Ends a round, if there was one, and begins the next: where a variable has no element it keeps what it held."""
        held = rounds.before.value
        if isinstance(held, Known):
            assigned, block, last, others = held.object
            for cell, was in zip(rounds.carried, assigned):
                self.bind(cell, self._kept_of(cell.value, was, rounds.node), rounds.node)
            self._keep_others(block, last, others, rounds.node)
        rounds.before.value = None
        if not rounds.is_last:
            now = [self._held(cell.value, rounds.node, cell.name) for cell in rounds.carried]
            others = {
                cell: value
                for cell, value in self.state.cells().items()
                if isinstance(value, Runtime | Group) and cell not in rounds.own
            }
            block = self.state.block
            rounds.before.value = Known((now, block, block[-1] if block else None, others))

    def _keep_others(
        self, block: list[ast.stmt], last: ast.stmt | None, others: dict[Cell, Value], node: ast.For
    ) -> None:
        """The same for variables that a helper assigned: they are saved where the round began, behind a statement."""
        for cell, was in others.items():
            if cell.value is was:
                continue
            with self.state.captured() as saved:
                held = self._held(was, node, cell.name, is_loaded=False)
            kept = self._kept_of(cell.value, held, node)
            if kept is not cell.value:
                start = 0 if last is None else block.index(last) + 1
                block[start:start] = saved
                self.bind(cell, kept, node)

    def bind(self, cell: Cell, value: Value, node: ast.AST) -> None:
        """Assign a variable."""
        raise NotImplementedError

    def _held(self, value: Any, node: ast.AST, wish: str, is_loaded: bool = True) -> Any:
        """What a variable holds, in one of its own; tiles too, where they are loaded."""
        if isinstance(value, Group):
            # A plain one: it is no other name of a list.
            return Group(tuple(self._held(item, node, wish, is_loaded) for item in value.items))
        value = self._loaded_once(value, node) if is_loaded else value
        if not isinstance(value, Runtime) or self.is_constant(value.node):
            return value
        return Runtime(self.saved(clone(value.node), node, f"{wish}_before"))

    def _loaded_once(self, value: Any, node: ast.AST) -> Any:
        is_tile = isinstance(value, Tile) and value.is_complete
        return self.computed_once(value, node, "value") if is_tile else value

    def _kept_of(self, value: Any, held: Any, node: ast.AST) -> Any:
        if isinstance(value, Group) and isinstance(held, Group):
            if len(value.items) != len(held.items):
                return value
            pairs = zip(value.items, held.items)
            return value.with_items([self._kept_of(item, was, node) for item, was in pairs])
        if isinstance(held, Runtime):
            value = self._loaded_once(value, node)
        are_both = isinstance(value, Runtime) and isinstance(held, Runtime)
        if not are_both or self.is_constant(value.node) or not isinstance(value.node, ast.Name):
            return value
        kept = Kept(value=clone(value.node), before=clone(held.node), masks=[])
        return Runtime(self.at(kept, node))

    def unnamed(self, value: Value) -> Value:
        """The atomic operation itself whose result a value is, where it was the last statement."""
        last = self.state.block[-1] if self.state.block else None
        if last is None or last is not self.state.atomic or not isinstance(value, Runtime):
            return value
        assert isinstance(last, ast.Assign)
        if names_read(value.node) != names_assigned([last]) or not isinstance(value.node, ast.Name):
            return value
        self.state.names.discard(value.node.id)
        self.state.block.pop()
        return Runtime(last.value)


def _has(value: Any, question: Callable[[ast.AST], bool]) -> bool:
    return isinstance(value, Runtime) and question(value.node)


def goes_on(block: Sequence[ast.stmt]) -> bool:
    """Whether what follows an ``if`` follows one of its ways: not where that ends with `return`."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        return goes_on(last.body) or goes_on(last.orelse)
    return not isinstance(last, ast.Return)


def takes_statements(test: ast.expr) -> bool:
    """Whether there is more in a condition than what each element is by itself, and what is reduced."""
    parts = list(walk(test))
    found = ((node, operation_of(node)) for node in parts if isinstance(node, ast.Call))
    return (
        reads_memory(test)
        or any(isinstance(node, ast.IfExp) for node in parts)
        or any(each is not None and Given(node).may_be_named(each) for node, each in found)
    )
