"""Names, attributes and subscripts: what is known is computed, the rest is left to the Program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from ninetoothed import language
from ninetoothed.errors import NineToothedError, UnresolvedNameError, near
from ninetoothed.language import LanguageNamespace
from ninetoothed.parsing import compile_time
from ninetoothed.parsing.elements import ElementFrame, has_bounds, is_reshaped_only
from ninetoothed.parsing.frames import MOST_COPIES
from ninetoothed.parsing.objects import bound_of, counted, index_of, is_function, value_of
from ninetoothed.parsing.tiles import of_type
from ninetoothed.parsing.values import (
    ENTRIES,
    Cell,
    Element,
    Elements,
    Evaluated,
    Group,
    Iterated,
    Known,
    Level,
    Listed,
    Method,
    Named,
    Range,
    Runtime,
    Source,
    Symbolic,
    Tile,
    Value,
    copy_of,
    is_shape,
    to_python,
)
from ninetoothed.program.nodes import SymbolValue
from ninetoothed.program.typed_calls import COMPUTED

_ADVICE = {
    ast.SetComp: "A set is not supported: use a list",
    ast.DictComp: "A comprehension that makes a dictionary is not supported: use a list",
    ast.Await: "`await` is not supported: a program is serial",
    ast.Yield: "`yield` is not supported: assign to a parameter to store a result",
    ast.YieldFrom: "`yield` is not supported: assign to a parameter to store a result",
    ast.Set: "A set is not supported: use a tuple",
    ast.Starred: "A star is supported in calls, tuples and indices only",
}


class ExpressionFrame(ElementFrame):
    """A frame that evaluates what names things. Operators and calls come on top of it."""

    def evaluate(self, node: ast.expr) -> Value:
        method = getattr(self, f"_evaluate_{type(node).__name__}", None)
        if method is None:
            advice = _ADVICE.get(type(node), f"{type(node).__name__} is not supported")
            raise self.error(node, f"{advice}.")
        value: Value = method(node)
        return value

    def truth(self, value: Value) -> bool | None:
        """Whether a value counts as true; None where only the running kernel knows."""
        if isinstance(value, Known):
            return bool(value.object)
        if isinstance(value, Group):
            return isinstance(value, Iterated) or bool(value.items)
        if isinstance(value, Symbolic):
            return self.state.decisions.of(SymbolValue(symbol=value.symbol))
        if isinstance(value, Runtime) and isinstance(value.node, ast.BinOp):
            return self.state.decisions.of(value.node)
        return None if isinstance(value, Runtime | Tile) else True

    # Leaves.

    def _evaluate_Evaluated(self, node: Evaluated) -> Value:
        return copy_of(node.value)

    def _evaluate_Constant(self, node: ast.Constant) -> Value:
        return Known(node.value)

    def _evaluate_Name(self, node: ast.Name) -> Value:
        found = self.lookup(node.id, node)
        return self.read(found, node.id, node) if isinstance(found, Cell) else found

    def _evaluate_Tuple(self, node: ast.Tuple) -> Value:
        return Group(tuple(self.items(node.elts)))

    def _evaluate_List(self, node: ast.List) -> Value:
        return Listed(tuple(self.items(node.elts)))

    def _evaluate_Dict(self, node: ast.Dict) -> Value:
        keys, values = [self.evaluate(key) if key else None for key in node.keys], node.values
        items: dict[Any, Value] = {}
        for key, item in zip(keys, self.in_order(values, self.evaluate, self.kept_read)):
            if key is None:
                items |= self.named(item, node)
            elif isinstance(key, Known) and isinstance(key.object, Hashable):
                items[key.object] = item
            else:
                raise self.error(node, "The keys of a dictionary are needed at compile time.")
        return Named(tuple(items.values()), tuple(items))

    def named(self, value: Value, node: ast.AST) -> dict[Any, Value]:
        """The entries of a dictionary."""
        if isinstance(value, Named):
            return dict(zip(value.keys, value.items))
        if isinstance(value, Known) and isinstance(value.object, dict):
            return {key: value_of(item) for key, item in value.object.items()}
        raise self.error(node, "`**` needs a dictionary that is known at compile time.")

    def items(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The values of a sequence's elements, stars expanded."""
        bare = [node.value if isinstance(node, ast.Starred) else node for node in nodes]
        values = self.in_order(bare, self.evaluate, self.kept_read)
        result: list[Value] = []
        for node, value in zip(nodes, values, strict=True):
            if isinstance(node, ast.Starred):
                result.extend(self.elements(value, node))
            else:
                result.append(value)
        return result

    def elements(self, value: Value, node: ast.AST) -> list[Value]:
        """The elements of something that is iterated over at compile time."""
        if isinstance(value, Named):
            return [Known(key) for key in value.keys]
        if isinstance(value, Iterated):
            return list(value.items[self.taken(value, node)])
        if isinstance(value, Group):
            return list(value.items)
        if isinstance(value, Range):
            value = replace(value, arguments=tuple(self.needed(v, node) for v in value.arguments))
            if len(value.known) == len(value.arguments):
                rounds = self._python_range(value.known, node)
                if len(rounds) > MOST_COPIES:
                    self.count_copies(len(rounds), node)
                return [Known(number) for number in rounds]
        if isinstance(value, Known):
            self.check_reusable(value, node)
            try:
                return [value_of(item) for item in value.object]
            except TypeError:
                pass
        if isinstance(value, Tile) and not value.is_complete:
            name = value.parameter.name
            raise self.error(
                node,
                f"{name!r} names several tiles here, which are gone through by their numbers: "
                f"`for k in range({name}.shape[0])`, and `{name}[k]` is one of them.",
            )
        if isinstance(value, Runtime | Tile):
            raise self.error(
                node,
                "The elements of a tile are not gone through one by one: compute with the tile as a "
                "whole; `ntl.sum`, `ntl.max` and `ntl.cumsum` go along it.",
            )
        raise self.error(
            node,
            "Iterating needs a length that is known at compile time: a tuple, or a range of "
            "constants.",
        )

    def _python_range(self, numbers: list[Any], node: ast.AST) -> range:
        self.check_bounds(numbers, node)
        return range(*map(counted, numbers))

    def check_bounds(self, numbers: Iterable[Any], node: ast.AST) -> None:
        """Raises a located error where a range is given what Python does not count by."""
        for number in numbers:
            if index_of(number) is None:
                kind = type(number).__name__
                raise self.error(node, f"A range takes integers, but got {number!r}, a {kind}.")

    # Attributes.

    def _evaluate_Attribute(self, node: ast.Attribute) -> Value:
        return self.attribute(self.evaluate(node.value), node.attr, node)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """``value.name``."""
        if isinstance(value, Known):
            return self._object_attribute(value.object, name, node)
        if isinstance(value, Tile | Level | Source | Element):
            found = self.tile_attribute(value, name, node)
            if found is not None:
                return found
            if isinstance(value, Level | Source) or not (isinstance(value, Tile) or of_type(name)):
                raise self.missing_attribute(value, name, node)
        if isinstance(value, Runtime | Tile | Symbolic | Element):
            owner, attr = self.expression(value, node), "to" if name == "cast" else name
            return Runtime(self.at(ast.Attribute(value=owner, attr=attr, ctx=ast.Load()), node))
        if isinstance(value, Named) and name in ENTRIES:
            return Method(value, name)
        if isinstance(value, Group | Range):
            raise self.error(
                node,
                f"{name!r} is not supported: tuples, lists and dictionaries have no methods in an "
                "application, and do not change. `+` joins two; a loop adds to a number or a tile.",
            )
        return Runtime(self.expression(value, node))

    def _object_attribute(self, item: Any, name: str, node: ast.AST) -> Value:
        try:
            found = getattr(item, name)
            if isinstance(found, Iterator) and getattr(item, name) is not found:
                # Made where it is asked for, as `array.flat` is.
                return self.iterator(map(value_of, found))
            return value_of(found)
        except AttributeError as error:
            what = getattr(item, "__name__", None) or type(item).__name__
            message = str(error)
            if not isinstance(item, LanguageNamespace) and item is not language:
                message = f"{what!r} has no attribute {name!r}.{near(name, dir(item))}"
            raise self.error(node, message, UnresolvedNameError) from error

    # Subscripts.

    def _evaluate_Subscript(self, node: ast.Subscript) -> Value:
        value = self.evaluate(node.value)
        if isinstance(value, Tile) and not value.is_complete:
            value, indices = self._with_indices(value, node)
            return self.select(value, indices, node)
        if isinstance(value, Source):
            return self.source_element(value, self.indices(node.slice), node)
        if isinstance(value, Group) and not isinstance(value, Iterated):
            return self._group_item(value, node)
        if isinstance(value, Known):
            return self._object_item(value, node)
        if isinstance(value, Tile):
            return self._view(value, node)
        if isinstance(value, Runtime):
            return self._runtime_item(value, node)
        raise self.error(node, "This cannot be indexed.")

    def _with_indices(self, tile: Tile, node: ast.Subscript) -> tuple[Tile, list[Value]]:
        """A tile and the indices after it, evaluated in this order."""
        start = len(self.state.block)
        indices = self.indices(node.slice)
        return self.kept(tile, start, node), indices

    def indices(self, node: ast.expr) -> list[Value]:
        """The indices of a subscript, each a value; a tuple held in a variable counts as several."""
        if isinstance(node, ast.Tuple):
            values = self.items(node.elts)
        else:
            values = [self.evaluate(node)]
            if isinstance(values[0], Group):
                values = self.elements(values[0], node)
        return [
            Runtime(self.expression(value, node)) if isinstance(value, Tile) else value
            for value in values
        ]

    def _evaluate_Slice(self, node: ast.Slice) -> Value:
        parts = [part for part in (node.lower, node.upper, node.step) if part is not None]
        values = iter(self.in_order(parts, self.evaluate))
        bounds = [
            Known(None) if part is None else next(values)
            for part in (node.lower, node.upper, node.step)
        ]
        if all(isinstance(bound, Known | Symbolic) for bound in bounds):
            return Known(
                slice(
                    *(
                        bound_of(b.object) if isinstance(b, Known) else cast(Symbolic, b).symbol
                        for b in bounds
                    )
                )
            )
        nodes = [
            None
            if isinstance(bound, Known) and bound.object is None
            else self.expression(bound, node)
            for bound in bounds
        ]
        return Runtime(self.at(ast.Slice(lower=nodes[0], upper=nodes[1], step=nodes[2]), node))

    def _group_item(self, value: Group, node: ast.Subscript) -> Value:
        start = len(self.state.block)
        index = self.evaluate(node.slice)
        value = self.kept_read(value, start, node)
        if isinstance(value, Named):
            entries, index = self.named(value, node), self.needed(index, node.slice)
            if isinstance(index, Known) and index.object in entries:
                return entries[index.object]
            known = ", ".join(map(repr, entries))
            raise self.error(node.slice, f"A key that is known now is needed here: one of {known}.")
        if isinstance(index, Known) or any(map(is_function, value.items)):
            index = self.needed(index, node.slice)
        if isinstance(index, Known):
            try:
                found = value.items[cast(Any, counted(index.object))]
            except (IndexError, TypeError) as error:
                raise self.error(
                    node, f"{error}: the tuple has {len(value.items)} elements."
                ) from error
            return type(value)(found) if isinstance(found, tuple) else found
        if isinstance(index, Group):
            raise self.error(node, "A tuple is indexed with one integer or slice, but got a tuple.")
        choice = Runtime(self.expression(index, node))
        if not self.is_constant(choice.node):
            raise self.error(
                node.slice,
                "An index into a tuple is needed at compile time; loop with `ntl.static_range` "
                "where it is a loop's variable.",
            )
        elements = self.expression(value, node)
        return Runtime(
            self.at(ast.Subscript(value=elements, slice=choice.node, ctx=ast.Load()), node)
        )

    def _object_item(self, value: Known, node: ast.Subscript) -> Value:
        index = self.needed(self.evaluate(node.slice), node.slice)
        if not isinstance(index, Known):
            raise self.error(node.slice, "This index is needed at compile time.")
        return self.computed(lambda: value.object[index.object], node)

    def _view(self, tile: Tile, node: ast.Subscript) -> Value:
        """``x[:, None]`` of one tile, or elements of it."""
        if is_reshaped_only(node.slice):
            return self._runtime_item(Runtime(self.expression(tile, node)), node)
        self.check_fresh(tile, node)
        return self.loaded_elements(self.selected(tile, node), node)

    def selected(self, tile: Tile, node: ast.Subscript) -> Elements:
        """The elements of one tile that a subscript names."""
        tile, keys = self._with_indices(tile, node)
        if any(isinstance(key, Known) and key.object is None for key in keys):
            raise self.error(
                node,
                f"`None` cannot stand beside positions in {tile.parameter.name!r}: select the elements "
                "first, `v = x[1:]`, then `v[:, None]`.",
            )
        return self.elements_of(tile, keys, node)

    def _runtime_item(self, value: Runtime, node: ast.Subscript) -> Runtime:
        is_tuple = isinstance(node.slice, ast.Tuple)
        start = len(self.state.block)
        values = self.items(node.slice.elts) if is_tuple else [self.evaluate(node.slice)]  # type: ignore[attr-defined]
        value = self.kept(value, start, node)
        if any(map(has_bounds, values)) and not is_shape(value.node):
            raise self.error(node, f"`{ast.unparse(node.value)}` {COMPUTED}")
        if not values:
            # `x[()]` is `x`.
            return value
        nodes = [self._index_node(item, node) for item in values]
        index = nodes[0]
        if is_tuple:
            index = self.at(ast.Tuple(elts=nodes, ctx=ast.Load()), node)
        return Runtime(self.at(ast.Subscript(value=value.node, slice=index, ctx=ast.Load()), node))

    def _index_node(self, value: Value, node: ast.AST) -> ast.expr:
        if isinstance(value, Known) and isinstance(value.object, slice):
            item = value.object
            bounds = [
                None if bound is None else self.expression(value_of(bound), node)
                for bound in (item.start, item.stop, item.step)
            ]
            return self.at(ast.Slice(lower=bounds[0], upper=bounds[1], step=bounds[2]), node)
        return self.expression(value, node)

    # Others.

    def _loaded(self, node: ast.expr) -> Value:
        """A value of which tiles are loaded now, before what is evaluated after it."""
        value = self.evaluate(node)
        if isinstance(value, Tile):
            return Runtime(self.expression(value, node))
        return value

    def condition(self, node: ast.expr) -> Value:
        """What is asked for no more than whether it is true."""
        self.asked.add(node)
        return self._loaded(node)

    def computed(self, function: Callable[..., Any], node: ast.AST, *operands: Any) -> Value:
        """The value of what Python computes now; its exceptions become located errors."""
        try:
            compile_time.check_operation(function, operands)
            return value_of(compile_time.checked(function(*operands)))
        except NineToothedError as error:
            raise self.error(node, error.message) from None
        except Exception as error:
            raise self.error(
                node, f"Computed at compile time, this raises {type(error).__name__}: {error}"
            ) from error

    def check_operation(
        self, function: Callable[..., Any], operands: tuple[Any, ...], node: ast.AST
    ) -> None:
        """Raises a located error where Python would make something too large."""
        try:
            compile_time.check_operation(function, operands)
        except NineToothedError as error:
            raise self.error(node, error.message) from None

    def _evaluate_NamedExpr(self, node: ast.NamedExpr) -> Value:
        cell = self.lookup(node.target.id, node.target)
        assert isinstance(cell, Cell)
        if cell.stores:
            raise self.error(node, "`:=` cannot store to a tile: use a statement of its own.")
        self.bind(cell, self.evaluate(node.value), node)
        self.assigns(node.target.id, node.target)
        return self.read(cell, node.target.id, node)

    def _evaluate_JoinedStr(self, node: ast.JoinedStr) -> Value:
        return Known("".join(self._shown(part) for part in node.values))

    def _shown(self, part: ast.expr) -> str:
        """A part of an f-string: of what is known, and of sizes, which are shown as expressions."""
        if isinstance(part, ast.Constant):
            return str(part.value)
        assert isinstance(part, ast.FormattedValue)
        shown = to_python(self.evaluate(part.value), shows_symbols=True)
        if shown is None:
            raise self.error(
                part.value,
                "An f-string shows what is known at compile time; `ntl.device_print` shows values of a "
                "running kernel.",
            )
        form = "" if part.format_spec is None else self.evaluate(part.format_spec)
        given = form.object if isinstance(form, Known) else ""
        convert = _CONVERSIONS.get(part.conversion)
        item = shown if convert is None else self.computed(convert, part.value, shown.object)
        assert isinstance(item, Known)
        formatted = self.computed(format, part.value, item.object, given)
        assert isinstance(formatted, Known)
        return str(formatted.object)


#: What an f-string does to a value by the letter after its exclamation mark.
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}
