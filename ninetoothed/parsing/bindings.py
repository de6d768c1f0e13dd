"""Variables: bound, carried through loops, merged where ways meet."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ninetoothed.parsing.holds import Hold, ReadLater, is_read_after
from ninetoothed.parsing.objects import literal
from ninetoothed.parsing.order import OrderFrame
from ninetoothed.parsing.values import (
    Cell,
    Group,
    Known,
    Method,
    Range,
    Runtime,
    Symbolic,
    Tile,
    Undecided,
    Value,
    copy_of,
    is_method,
    is_of_shapes,
    same,
)
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.program.effects import names_read, reads_memory
from ninetoothed.program.nodes import Load, SymbolValue

_SAY_WHICH = "keep what it was in a variable, `before = tile * 1`, or use the parameter itself for what it is now."
_DIFFERS = "it differs between the ways that run time may take."


class BindingFrame(OrderFrame):
    """A frame that knows what variables hold."""

    # Binding.

    def bind(self, cell: Cell, value: Value, node: ast.AST) -> None:
        """Assign a variable. What is known at compile time needs no statement."""
        cell.value = self._stored_in(cell, cell.name, value, node, self.state.block)

    def _stored_in(
        self, cell: Cell, name: str, value: Value, node: ast.AST, block: list[ast.stmt]
    ) -> Value:
        if isinstance(value, Tile):
            if not value.is_complete:
                return self.frozen(value, node)
            value = Runtime(self.expression(value, node))
        if isinstance(value, Group):
            items = enumerate(self._apart(cell, name, value, block, node).items)
            return value.with_items(
                self._stored_in(cell, self._item_name(cell, f"{name}_{index}"), item, node, block)
                for index, item in items
            )
        if isinstance(value, Range | Method):
            return self.as_it_is(value, node)
        if not isinstance(value, Runtime):
            return value
        if is_method(value.node):
            return self.as_it_is(value, node)
        if is_of_shapes(value.node):
            return self.sizes(value, node)
        if is_name(value.node, name):
            return value
        constant = cell.is_stable and not self.state.loops and self.is_constant(value.node)
        block.append(self.assignment(name, value.node, node, constant))
        return Runtime(self.name(name, node))

    def _apart(
        self,
        cell: Cell,
        name: str,
        value: Group,
        block: list[ast.stmt],
        node: ast.AST,
        holds: bool = False,
    ) -> Group:
        """A tuple whose items are not changed by assigning the earlier of them to a variable's own.

        An item that reads what an earlier one is assigned to is saved first, in ``block``. With
        ``holds``, tiles stay tiles.
        """
        written: set[str] = set()

        def kept(name: str, item: Value) -> Value:
            if isinstance(item, Group):
                items = enumerate(item.items)
                return item.with_items(
                    kept(self._item_name(cell, f"{name}_{index}"), each) for index, each in items
                )
            if isinstance(item, Tile) and item.is_complete and not holds:
                item = Runtime(self.expression(item, node))
            elif isinstance(item, Tile):
                item = self.frozen(item, node)
            if isinstance(item, Runtime) and not written.isdisjoint(names_read(item.node)):
                saved = self.state.fresh("value")
                block.append(self.assignment(saved, item.node, node))
                item = Runtime(self.name(saved, node))
            if not (isinstance(item, Runtime) and is_name(item.node, name)):
                written.add(name)
            return item

        result = kept(name, value)
        assert isinstance(result, Group)
        return result

    def as_it_is(self, value: Value, node: ast.AST) -> Value:
        """A value that stays what it is now, whatever happens to the variables that it is made of."""
        if isinstance(value, Group):
            return value.with_items(self.as_it_is(item, node) for item in value.items)
        if isinstance(value, Tile):
            return self.frozen(value, node)
        if isinstance(value, Range):
            arguments = tuple(self.as_it_is(item, node) for item in value.arguments)
            keywords = {key: self.as_it_is(item, node) for key, item in value.keywords.items()}
            return replace(value, arguments=arguments, keywords=keywords)
        if isinstance(value, Method):
            return Method(self.as_it_is(value.owner, node), value.name)
        if isinstance(value, Runtime) and is_method(value.node):
            owner = self.expression(self.as_it_is(Runtime(value.node.value), node), node)
            method = ast.Attribute(value=owner, attr=value.node.attr, ctx=ast.Load())
            return Runtime(self.at(method, node))
        if isinstance(value, Runtime) and is_of_shapes(value.node):
            return self.sizes(value, node)
        if isinstance(value, Runtime) and not self._is_stable(value.node):
            if names_read(value.node) or reads_memory(value.node):
                return Runtime(self.saved(value.node, node, "value"))
        return value

    # Variables that helpers are given.

    def assigns(self, name: str, node: ast.AST) -> None:
        """Notes that a name is assigned.

        Raises:
            ApplicationError: it is a parameter, and the variable that it stands for is no one's to rebind.
        """
        loan, place = self.loans.get(name), node
        if loan is None or self.cells[name] is not loan.cell:
            return
        *_, given = loan.line()
        is_read = False
        for each in loan.line():
            frame = each.frame
            names = [key for key, other in frame.loans.items() if other.cell is each.cell]
            if len(names) > 1:
                raise frame.mismatch(
                    f"gets one variable as {names[0]!r} and as {names[1]!r}, and assigns to it: give it "
                    "another variable, or have it return the value"
                )
            if each.refusal:
                raise frame.mismatch(f"assigns {each.name!r}, and {each.refusal}")
            if given.is_value and not is_read:
                tree = frame.function.tree
                is_read = is_read_after(tree, each.name, place, not given.is_place)
            if each.is_value and not is_read:
                raise frame.mismatch(
                    f"assigns {each.name!r} and does not read it afterwards, and what it gets as it is a "
                    "value: what is assigned is lost. Give it the tile, or a variable, by its name"
                )
            place = frame.call
        loan.cell.changed_by = loan

    # Names that stand for tiles.

    def hold(self, value: Value, node: ast.AST, *name: Any) -> Value:
        """A value that a name stands for from here on, or items of it: tiles in it know of the name."""
        if isinstance(value, Group):
            items = enumerate(value.items)
            return value.with_items(self.hold(item, node, *name, index) for index, item in items)
        if not isinstance(value, Tile) or not value.is_complete:
            return value
        holds, parent = self.state.holds, value.held
        place = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        key = (value.parameter.name, self.file, *place, *name)
        kept = parent.value if parent is not None else None
        if key in holds.loaded and key[0] in holds.loaded.viewed:
            raise self.error(
                node,
                f"A name for a tile of {key[0]!r} that begins here is read after the tile is assigned by another "
                "one, and of two others only the running kernel knows whether they stand for one tile: "
                f"{_SAY_WHICH}",
            )
        if kept is None and key in holds.loaded:
            kept = self.saved(self.expression(value, node), node, f"{value.parameter.name}_before")
        return replace(value, held=Hold(key, holds.now(), parent, kept))

    def assigned(self, tile: Tile, node: ast.AST) -> None:
        """Notes that a tile is stored to by assigning a name that stands for it.

        Raises:
            ApplicationError: that name has to be what the tile was before another one was assigned.
        """
        holds = self.state.holds
        # Of those that have a value, the last one was loaded; the others have it of that one.
        kept = [hold for hold in (tile.held.line() if tile.held else ()) if hold.value is not None]
        for hold in kept[-1:]:
            if hold.key in holds.loaded.certain:
                raise self.error(
                    node,
                    f"The tile {tile.parameter.name!r} is assigned here by a name that is read after the "
                    f"tile is assigned by another one, and so could mean two things: {_SAY_WHICH}",
                )
            holds.loaded.viewed.add(tile.parameter.name)
            raise ReadLater(hold.key, is_certain=False)
        holds.stored(tile)

    def check_unchanged(self, tile: Tile, node: ast.AST) -> None:
        """Raises where elements of a tile were changed for which a name stands that is loaded already."""
        if self.state.holds.is_changed(tile):
            raise self.error(
                node,
                f"The tile {tile.parameter.name!r} is read here by a name that stands for it, after it was "
                f"assigned by another one and elements of it were changed: {_SAY_WHICH}",
            )

    def check_fresh(self, tile: Tile, node: ast.AST) -> None:
        """Raises where elements are read by a name after the tile was assigned by another one."""
        if tile.held is None:
            return
        try:
            self.state.holds.read(tile)
        except ReadLater:
            raise self.stale(tile, node) from None
        if tile.held.value is not None:
            raise self.stale(tile, node)

    def stale(self, tile: Tile, node: ast.AST) -> Exception:
        """The error for elements of a tile that was assigned by another name than the one they are read by."""
        return self.error(
            node,
            f"Elements of {tile.parameter.name!r} are read by a name that stands for this tile, which is "
            f"assigned by another one before: {_SAY_WHICH}",
        )

    def _item_name(self, cell: Cell, wish: str) -> str:
        if wish not in cell.item_names:
            cell.item_names[wish] = self.state.fresh(wish)
        return cell.item_names[wish]

    def frozen(self, tile: Tile, node: ast.AST, is_certain: bool = True) -> Tile:
        """The same tile, whatever happens later to the variables in its indices.

        Args:
            is_certain: whether variables that one statement assigns are taken to stay what they are.
        """
        indices = tuple(
            index
            if isinstance(index, ast.Constant | SymbolValue)
            or (is_certain and self._is_stable(index))
            else self.saved(index, node, f"{tile.parameter.name}_index")
            for index in tile.indices
        )
        return replace(tile, indices=indices)

    # Where ways meet.

    def back(self, before: dict[Cell, Value | None]) -> dict[Cell, Value | None]:
        """What variables hold at the end of a way; they hold again what they did before it."""
        ends = {cell: cell.value for cell in before}
        for cell, value in before.items():
            cell.value = value
        return ends

    def meet(
        self,
        before: dict[Cell, Value | None],
        ends: dict[Cell, Value | None],
        body: list[ast.stmt],
        orelse: list[ast.stmt],
        node: ast.AST,
        constant: bool,
        results: tuple[Value, Value],
        over: Collection[Cell] = (),
    ) -> tuple[Value, Value]:
        """Has variables hold what they do after either of two ways.

        Args:
            ends: what they hold after the first; after the second it is what they hold now.
            results: what the two ways give.
            over: those that are of no use any more.

        Returns:
            The results, as they were before variables were made to hold the same after both.
        """
        starts = len(body), len(orelse)
        for cell, value in before.items():
            if cell not in over and (ends[cell] is not value or cell.value is not value):
                left, right = (ends[cell], body), (cell.value, orelse)
                cell.value = self.merge(cell, left, right, node, constant)
        one, other = results
        return self.kept(one, starts[0], node, body), self.kept(other, starts[1], node, orelse)

    def may_have_changed(
        self, before: dict[Cell, Value | None], statements: list[ast.stmt], node: ast.AST
    ) -> None:
        """Has variables hold what they do where statements that changed them may run or not."""
        for cell, old in before.items():
            new = cell.value
            if new is old:
                continue
            if old is None:
                # In Triton what a branch alone assigns does not outlive it.
                cell.value = None
                continue
            was = self.settle(cell, old, self.state.block, node)
            found = self.settle(cell, new, statements, node)
            is_known = was is not None and found is not None and same(was, found)
            cell.value = found if is_known else Undecided(_DIFFERS)

    def settle(
        self, cell: Cell, value: Value | None, block: list[ast.stmt], node: ast.AST
    ) -> Value | None:
        """Make a value one of the running kernel, held in the variable's own name.

        Statements for it are added to ``block``. None where that is impossible.
        """
        return self._settled(cell, cell.name, value, block, node)

    def _settled(
        self, cell: Cell, name: str, value: Value | None, block: list[ast.stmt], node: ast.AST
    ) -> Value | None:
        if isinstance(value, Group):
            value = self._apart(cell, name, value, block, node)
            items = [
                self._settled(cell, self._item_name(cell, f"{name}_{index}"), item, block, node)
                for index, item in enumerate(value.items)
            ]
            return None if None in items else value.with_items(item for item in items if item)
        if isinstance(value, Tile) and value.is_complete:
            value = Runtime(self.expression(value, node))
        if not is_carried(value):
            return None
        assert value is not None
        expression = self.expression(copy_of(value), node)
        if not is_name(expression, name):
            block.append(self.assignment(name, expression, node))
        return Runtime(self.name(name, node))

    def merge(
        self,
        cell: Cell,
        left: tuple[Value | None, list[ast.stmt]],
        right: tuple[Value | None, list[ast.stmt]],
        node: ast.AST,
        constant: bool,
    ) -> Value | None:
        """What a variable holds after two ways, each with the value and the block it ended in."""
        (one, one_block), (other, other_block) = left, right
        if same(one, other):
            return one
        if (one is None or other is None) and not constant:
            # Python would raise on the way that left it unassigned.
            return None
        if one is None or other is None:
            value, block = (other, other_block) if one is None else (one, one_block)
            return self.settle(cell, value, block, node) if isinstance(value, Group) else value
        if constant and _is_number(one) and _is_number(other):
            name = self.state.fresh(f"{cell.name}_value")
            for value, block in ((one, one_block), (other, other_block)):
                block.append(
                    self.assignment(name, self.expression(copy_of(value), node), node, True)
                )
            return Runtime(self.name(name, node))
        settled = [
            self.settle(cell, value, block, node)
            for value, block in ((one, one_block), (other, other_block))
        ]
        if None in settled or not same(settled[0], settled[1]):
            return Undecided(_DIFFERS)
        self._note_choices(settled[0], one, other)
        return settled[0]

    # Tiles that only the running kernel chooses.

    def is_choice_of_tiles(self, value: Value | None) -> bool:
        """Whether a value is one of several tiles, which are loaded where it is chosen."""
        choice, ways = value.node if isinstance(value, Runtime) else None, list[ast.expr]()
        if isinstance(choice, ast.Name):
            return choice.id in self.state.choices_of_tiles
        if isinstance(choice, ast.IfExp):
            ways = [choice.body, choice.orelse]
        elif isinstance(choice, ast.BoolOp):
            ways = choice.values
        elif isinstance(choice, ast.Subscript) and isinstance(choice.value, ast.Tuple):
            ways = choice.value.elts
        return any(map(self._is_tile, map(Runtime, ways)))

    def _is_tile(self, value: Value | None) -> bool:
        """Whether a value is a tile, or one of several."""
        is_loaded = isinstance(value, Runtime) and isinstance(value.node, Load)
        return isinstance(value, Tile) or is_loaded or self.is_choice_of_tiles(value)

    def watch(self, cell: Cell) -> None:
        """Notes that a variable may be taken for the tile that it holds, to which assigning it does not store."""
        value = cell.value
        is_tile = isinstance(value, Tile) and value.is_complete
        if is_tile or (isinstance(value, Runtime) and self.is_loaded(value.node)):
            self.state.holds.items.add(cell)
        else:
            self.state.holds.items.discard(cell)

    def _note_choices(self, merged: Value | None, *ways: Value | None) -> None:
        """Notes of the variable that holds what either of two ways gives whether that is a tile."""
        if isinstance(merged, Group):
            for items in zip(merged.items, *(way.items for way in ways if isinstance(way, Group))):
                self._note_choices(*items)
        elif isinstance(merged, Runtime) and any(map(self._is_tile, ways)):
            self.state.choices_of_tiles |= names_read(merged.node)


def is_name(node: ast.AST, name: str) -> bool:
    """Whether a node reads the variable of that name, and nothing else."""
    return isinstance(node, ast.Name) and node.id == name


def is_carried(value: Value | None) -> bool:
    """Whether a variable of the running kernel can hold the value."""
    if isinstance(value, Known):
        return _is_number(value)
    return isinstance(value, Runtime | Symbolic)


def _is_number(value: Value) -> bool:
    if isinstance(value, Symbolic):
        return is_constant_symbol(value.symbol)
    return isinstance(value, Known) and isinstance(literal(value.object), bool | int | float)
