"""Assignments: to a tile they store, to a variable they bind. Comprehensions, whose variables are their own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ninetoothed.parsing.calls import CallFrame
from ninetoothed.parsing.elements import is_reshaped_only
from ninetoothed.parsing.objects import language_member
from ninetoothed.parsing.syntax.walks import assigned_names
from ninetoothed.parsing.values import (
    Cell,
    Elements,
    Function,
    Group,
    Known,
    Listed,
    Runtime,
    Source,
    Tile,
    Value,
    copy_of,
    is_of_shapes,
)
from ninetoothed.program.effects import names_read, reads_memory
from ninetoothed.program.nodes import clone


class AssignmentFrame(CallFrame):
    """A frame that evaluates assignments."""

    def _run_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.GeneratorExp) and isinstance(node.targets[0], ast.Name):
            raise self.error(
                node.value,
                "A generator that waits in a variable is not supported: it would be asked for its elements "
                "later, and once. Make a list: `[… for …]`.",
            )
        value = self.evaluate(node.value)
        if len(node.targets) > 1:
            value = self.computed_once(value, node, "value")
        elif isinstance(node.targets[0], ast.Name) and not self._target(node.targets[0]).stores:
            value = self.unnamed(value)
        for target in node.targets[:-1]:
            start = len(self.state.block)
            self.assign(target, copy_of(value), node)
            value = self.kept(value, start, node)
        self.assign(node.targets[-1], value, node)

    def _run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        value = self._loaded(node.value)
        annotation = self._annotation(node.annotation)
        is_local = isinstance(node.target, ast.Name) and not self._target(node.target).stores
        if (
            annotation is language_member("constexpr")
            and isinstance(value, Runtime)
            and is_local
            and not is_of_shapes(value.node)
        ):
            assert isinstance(node.target, ast.Name)
            cell = self._target(node.target)
            self.assigns(node.target.id, node.target)
            self.state.block.append(self.assignment(cell.name, value.node, node, True))
            cell.value = Runtime(self.name(cell.name, node))
            return
        self.assign(node.target, value, node)

    def _annotation(self, node: ast.expr) -> Any:
        value = self.evaluate(node)
        return value.object if isinstance(value, Known) else None

    def _run_AugAssign(self, node: ast.AugAssign) -> None:
        target = self._augmented_target(node)
        left = self._current(target, node)
        middle = len(self.state.block)
        right = self._loaded(node.value)
        left = self.kept(left, middle, node)
        if isinstance(target, tuple):
            target = self._kept_target(target, middle, node)
        result = self.binary(left, node.op, right, node)
        if isinstance(target, Cell):
            assert isinstance(node.target, ast.Name)
            self.assigns(node.target.id, node.target)
            self._check_own_list(target, left, node)
            self._note_lost(target, ast.unparse(node.target), node)
            self._rebind(target, left, right, result, node)
        else:
            self._note(node.target, target[0], node)
            self.store(target[0], target[1], result, node)

    def _check_own_list(self, cell: Cell, value: Value, node: ast.AugAssign) -> None:
        """Raises where ``v += x`` would change a list that has another name too."""
        if not isinstance(value, Listed):
            return
        others = [held for other, held in self.state.cells().items() if other is not cell]
        if value.identity is None or any(_holds_list(held, value.identity) for held in others):
            name, op = ast.unparse(node.target), ast.unparse(node).split()[1].rstrip("=")
            raise self.error(
                node,
                f"This would change the list for all its names, and a list does not change in an application: "
                f"`{name} = {name} {op} ...` makes another one.",
            )

    def _rebind(
        self, cell: Cell, left: Value, right: Value, result: Value, node: ast.AugAssign
    ) -> None:
        """``v += x``, kept as it is written where ``v`` is a variable of the running kernel."""
        in_place = (
            isinstance(left, Runtime)
            and isinstance(left.node, ast.Name)
            and left.node.id == cell.name
            and isinstance(result, Runtime)
            and isinstance(result.node, ast.BinOp)
            and not isinstance(node.op, ast.Pow)
        )
        if not in_place:
            self.bind(cell, result, node)
            return
        assert isinstance(result, Runtime) and isinstance(result.node, ast.BinOp)
        target = self.name(cell.name, node, ast.Store())
        self.emit(ast.AugAssign(target=target, op=node.op, value=result.node.right), node)
        cell.value = Runtime(self.name(cell.name, node))

    def _augmented_target(
        self, node: ast.AugAssign
    ) -> Cell | tuple[Tile | Source | Elements, list[ast.expr]]:
        target = node.target
        if isinstance(target, ast.Name):
            cell = self._target(target)
            if cell.stores and isinstance(cell.value, Tile):
                return cell.value, []
            self.read(cell, target.id, target)
            return cell
        if isinstance(target, ast.Subscript):
            place, indices = self._place(target)
            if isinstance(place, Tile):
                return self.frozen(place, node), []
            if isinstance(place, Elements):
                return place, []
            name = f"{place.parameter.name}_index"
            stable = [
                index if self._is_stable(index) else self.saved(index, node, name)
                for index in indices
            ]
            return place, stable
        raise self.error(target, "Only variables and tiles can be assigned.")

    def _current(
        self, target: Cell | tuple[Tile | Source | Elements, list[ast.expr]], node: ast.AugAssign
    ) -> Value:
        """What the target of ``+=`` holds before it."""
        if isinstance(target, Cell):
            return self.read(target, target.name, node)
        place, indices = target
        if isinstance(place, Tile):
            return Runtime(self.expression(place, node))
        if isinstance(place, Elements):
            return self.loaded_elements(place, node)
        values: list[Value] = [copy_of(Runtime(index)) for index in indices]
        return self.source_element(place, values, node)

    def _kept_target(
        self, target: tuple[Tile | Source | Elements, list[ast.expr]], start: int, node: ast.AST
    ) -> tuple[Tile | Source | Elements, list[ast.expr]]:
        place, indices = target
        kept = [self.kept(Runtime(index), start, node).node for index in indices]
        return self.kept(place, start, node), kept

    # Targets.

    def assign(self, target: ast.expr, value: Value, node: ast.AST, holds: bool = False) -> None:
        """``target = value``. With ``holds``, a variable stands for a tile without loading it."""
        if isinstance(target, ast.Name):
            self._assign_name(target, value, node, holds)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value, node, holds)
        elif isinstance(target, ast.Subscript):
            if isinstance(value, Tile):
                value = Runtime(self.expression(value, node))
            start = len(self.state.block)
            place, indices = self._place(target)
            value = self.kept(value, start, node)
            self._note(target, place, node)
            self.store(place, indices, value, node)
        else:
            raise self.error(
                target, "Only variables and tiles can be assigned: not attributes of objects."
            )

    def _target(self, node: ast.Name) -> Cell:
        return self.cells[node.id]

    def _assign_name(self, target: ast.Name, value: Value, node: ast.AST, holds: bool) -> None:
        cell = self._target(target)
        if cell.stores:
            assert isinstance(cell.value, Tile)
            self.assigned(cell.value, node)
            self.store(cell.value, [], value, node)
            return
        self.assigns(target.id, target)
        if holds:
            cell.value = self.held(cell, value, node)
            self.watch(cell)
        else:
            self._note_lost(cell, target.id, node)
            self.bind(cell, value, node)

    def _note_lost(self, cell: Cell, name: str, node: ast.AST) -> None:
        """Notes that a variable is assigned which may be taken for the tile that it holds."""
        holds = self.state.holds
        if cell in holds.items:
            holds.items.discard(cell)
            holds.lost[cell] = self.error(
                node,
                f"What {name!r} is assigned here is not read and stored to no tile, so it is lost: {name!r} is a "
                "variable that holds what a tile is. Assign the parameter by its own name, or give it, or what "
                "a loop over `(y, z)` itself goes over, to a helper that returns nothing.",
            )

    def _note(self, target: ast.expr, place: Tile | Source | Elements, node: ast.AST) -> None:
        """Notes what a store does to names that stand for its tile: `x[:] = v` changes it, others assign it."""
        if not isinstance(place, Tile):
            return
        if isinstance(target, ast.Subscript) and is_reshaped_only(target.slice):
            holds = self.state.holds
            holds.changes.append((holds.now(), place.parameter))
        else:
            self.assigned(place, node)

    def held(self, cell: Cell, value: Value, node: ast.AST) -> Value:
        """What a variable holds that stands for ``value``: tiles stay tiles."""
        if isinstance(value, Tile):
            return self.frozen(value, node)
        if isinstance(value, Group):
            value = self._apart(cell, cell.name, value, self.state.block, node, holds=True)
            items = []
            for index, item in enumerate(value.items):
                name = self._item_name(cell, f"{cell.name}_{index}")
                items.append(self.held(Cell(name), item, node))
            return value.with_items(items)
        is_choice = self.is_choice_of_tiles(value)
        self.bind(cell, value, node)
        if is_choice:
            self.state.choices_of_tiles.add(cell.name)
        assert cell.value is not None
        return cell.value

    def _place(self, target: ast.Subscript) -> tuple[Tile | Source | Elements, list[ast.expr]]:
        """The tile, or the elements of a source, that a subscript names."""
        value = self.evaluate(target.value)
        if isinstance(value, Source):
            return value, self.source_indices(value, self.indices(target.slice), target)
        if isinstance(value, Tile) and not value.is_complete:
            tile, indices = self._with_indices(value, target)
            return self.select(tile, indices, target), []
        if isinstance(value, Tile) and is_reshaped_only(target.slice):
            return value, []
        if isinstance(value, Tile):
            return self.selected(value, target), []
        text = ast.unparse(target.value)
        if isinstance(value, Group):
            raise self.error(
                target,
                f"An item of `{text}` is assigned: tuples, lists and dictionaries do not change in an application. "
                "Make another one, or store to the tile that the item is by its own name.",
            )
        raise self.error(
            target,
            f"A store to `{text}[...]`, but `{text}` is no tile of a parameter: it is a value, of which `ntl.where` "
            "makes one with other elements. Only a parameter's tiles are stored to.",
        )

    # Several targets.

    def _unpack(
        self, target: ast.Tuple | ast.List, value: Value, node: ast.AST, holds: bool
    ) -> None:
        if isinstance(value, Runtime):
            self._unpack_runtime(target, value, node)
            return
        items = self.elements(value, node)
        targets, items = self._matched(target, items, node)
        items = self._settled_before(targets, items, node, holds)
        for place, element in enumerate(targets):
            start = len(self.state.block)
            self.assign(element, items[place], node, holds)
            items[place + 1 :] = [self.kept(item, start, node) for item in items[place + 1 :]]

    def _matched(
        self, target: ast.Tuple | ast.List, items: list[Value], node: ast.AST
    ) -> tuple[list[ast.expr], list[Value]]:
        """Targets and values in pairs; a starred target takes what the others leave."""
        targets = list(target.elts)
        stars = [index for index, item in enumerate(targets) if isinstance(item, ast.Starred)]
        missing = len(items) - len(targets)
        if missing != 0 and not (stars and missing >= -1):
            raise self.error(
                target, f"{len(items)} values cannot be assigned to {len(targets)} targets."
            )
        if stars:
            star = stars[0]
            starred = targets[star]
            assert isinstance(starred, ast.Starred)
            targets[star] = starred.value
            end = star + missing + 1
            items = [*items[:star], Listed(tuple(items[star:end])), *items[end:]]
        return targets, items

    def _settled_before(
        self, targets: list[ast.expr], items: list[Value], node: ast.AST, holds: bool
    ) -> list[Value]:
        """The values, saved where assigning an earlier target would change them."""
        written: set[str] = set()
        stored = False

        def settled(item: Value) -> Value:
            if isinstance(item, Group):
                return item.with_items(map(settled, item.items))
            if isinstance(item, Tile) and item.is_complete and not holds:
                item = Runtime(self.expression(item, node))
            if isinstance(item, Tile) and any(
                not written.isdisjoint(names_read(index)) for index in item.indices
            ):
                return self.frozen(item, node, is_certain=False)
            if isinstance(item, Runtime) and (
                not names_read(item.node).isdisjoint(written)
                or (stored and reads_memory(item.node))
            ):
                return Runtime(self.saved(item.node, node, "value"))
            return item

        result: list[Value] = []
        for target, item in zip(targets, items, strict=True):
            result.append(settled(item))
            for part in ast.walk(target):
                if isinstance(part, ast.Subscript):
                    stored = True
                elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    cell = self._target(part)
                    stored = stored or cell.stores
                    written |= {cell.name, *cell.item_names.values()}
        return result

    def _unpack_runtime(self, target: ast.Tuple | ast.List, value: Runtime, node: ast.AST) -> None:
        """A tuple that only the running kernel has: a call that gives several results."""
        cells: list[Cell] = []
        stores: list[tuple[ast.expr, Cell]] = []
        for element in target.elts:
            if isinstance(element, ast.Name) and not self._target(element).stores:
                cells.append(self._target(element))
                self.assigns(element.id, element)
            elif isinstance(element, ast.Starred):
                raise self.error(element, "A star needs a tuple whose length is known.")
            else:
                cells.append(Cell(self.state.fresh("value")))
                stores.append((element, cells[-1]))
        names = [self.name(cell.name, node, ast.Store()) for cell in cells]
        targets: list[ast.expr] = [self.at(ast.Tuple(elts=list(names), ctx=ast.Store()), node)]
        is_shape = is_of_shapes(value.node)
        value = self.sizes(value, node) if is_shape else value
        self.emit(ast.Assign(targets=targets, value=value.node), node)
        for place, cell in enumerate(cells):
            cell.value = Runtime(self.name(cell.name, node))
            if is_shape:
                # The statement above sees to it that there are as many.
                size = ast.Subscript(clone(value.node), ast.Constant(place), ast.Load())
                cell.value = Runtime(self.at(size, node))
        for element, cell in stores:
            self.assign(element, self.read(cell, cell.name, node), node)

    # Comprehensions.

    def _evaluate_ListComp(self, node: ast.ListComp) -> Value:
        return Listed(self._comprehended(node))

    def _evaluate_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        items = self._comprehended(node)
        return self.iterator(items, is_as_made=self.watched(node))

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp) -> tuple[Value, ...]:
        """The elements of a comprehension."""
        # What is gone over first is no comprehension's own yet.
        first = self._loaded(node.generators[0].iter)
        targets = [generator.target for generator in node.generators]
        names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        for name in assigned_names([node]):
            if name in self.cells and name not in names:
                # `:=` assigns it for each element.
                self.cells[name].is_stable = False
        outer = {name: self.cells.get(name) for name in names}
        around = self.own
        self.own = {**around, **{name: Cell(self.state.fresh(name)) for name in sorted(names)}}
        self.cells.update((name, self.own[name]) for name in names)
        try:
            return tuple(self._elements_of(node.elt, node.generators, first))
        finally:
            self.own = around
            for name, cell in outer.items():
                if cell is None:
                    del self.cells[name]
                else:
                    self.cells[name] = cell

    def _elements_of(
        self, element: ast.expr, generators: Sequence[ast.comprehension], first: Value | None = None
    ) -> list[Value]:
        if not generators:
            value = self.computed_once(self.evaluate(element), element, "item")
            return [self.as_it_is(value, element)]
        (generator, *inner), found = generators, list[Value]()
        items = self.elements(first or self._loaded(generator.iter), generator.iter)
        self.count_copies(len(items), generator.iter)
        items = [self.hold(item, generator.iter, index) for index, item in enumerate(items)]
        start = len(self.state.block)
        for item in items:
            item = self.kept(item, start, generator.iter)
            self.assign(generator.target, item, generator.target, holds=True)
            if all(self._is_taken(condition) for condition in generator.ifs):
                found += self._elements_of(element, inner)
        return found

    def _is_taken(self, condition: ast.expr) -> bool:
        truth = self.truth(self.condition(condition))
        if truth is None:
            raise self.error(
                condition,
                "How many elements there are is needed at compile time, and so is this condition; "
                "`ntl.where` chooses in the running kernel.",
            )
        return truth


def _holds_list(value: Value | None, identity: object) -> bool:
    """Whether a value is a list, has it among its items or, a function, among its defaults."""
    if isinstance(value, Listed) and value.identity is identity:
        return True
    items = value.items if isinstance(value, Group) else ()
    if isinstance(value, Function):
        items = tuple(value.defaults.values())
    return any(_holds_list(item, identity) for item in items)
