"""Expressions: what is known is computed, the rest becomes expressions of the Program."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

from ninetoothed.errors import UnresolvedNameError, near
from ninetoothed.parsing.objects import literal, value_of
from ninetoothed.parsing.tiles import TileFrame
from ninetoothed.parsing.values import (
    Cell,
    Element,
    Group,
    Known,
    Level,
    Method,
    Range,
    Runtime,
    Source,
    Symbolic,
    Tile,
    Value,
    same,
)
from ninetoothed.program import clone

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.MatMult: operator.matmul,
}

#: The operations that a symbolic integer supports itself.
_SYMBOLIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)

_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_ADVICE = {
    ast.Lambda: "A lambda can only be handed to the language's own functions, `ntl.reduce` for one",
    ast.ListComp: "A comprehension is not supported: write a loop",
    ast.SetComp: "A comprehension is not supported: write a loop",
    ast.DictComp: "A comprehension is not supported: write a loop",
    ast.GeneratorExp: "A generator is not supported: write a loop",
    ast.Await: "`await` is not supported: a program is serial",
    ast.Yield: "`yield` is not supported: assign to a parameter to store a result",
    ast.YieldFrom: "`yield` is not supported: assign to a parameter to store a result",
    ast.Dict: "A dictionary is not supported: use variables or a tuple",
    ast.Set: "A set is not supported: use a tuple",
    ast.Starred: "A star is supported in calls, tuples and indices only",
}


class ExpressionFrame(TileFrame):
    """A frame that evaluates expressions, calls aside."""

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
            return bool(value.items)
        return None if isinstance(value, Runtime | Symbolic | Tile) else True

    # Leaves.

    def _evaluate_Constant(self, node: ast.Constant) -> Value:
        return Known(node.value)

    def _evaluate_Name(self, node: ast.Name) -> Value:
        found = self.lookup(node.id, node)
        return self.read(found, node.id, node) if isinstance(found, Cell) else found

    def _evaluate_Tuple(self, node: ast.Tuple | ast.List) -> Value:
        return Group(tuple(self.items(node.elts)))

    _evaluate_List = _evaluate_Tuple

    def items(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The values of a sequence's elements, stars expanded."""
        bare = [node.value if isinstance(node, ast.Starred) else node for node in nodes]
        values = self.in_order(bare, self.evaluate)
        result: list[Value] = []
        for node, value in zip(nodes, values, strict=True):
            if isinstance(node, ast.Starred):
                result.extend(self.elements(value, node))
            else:
                result.append(value)
        return result

    def elements(self, value: Value, node: ast.AST) -> list[Value]:
        """The elements of something that is iterated over at compile time."""
        if isinstance(value, Group):
            return list(value.items)
        if isinstance(value, Range):
            numbers = [item.object for item in value.arguments if isinstance(item, Known)]
            if len(numbers) == len(value.arguments):
                return [Known(number) for number in range(*numbers)]
        if isinstance(value, Known):
            try:
                return [value_of(item) for item in value.object]
            except TypeError:
                pass
        raise self.error(
            node,
            "Iterating needs a length that is known at compile time: a tuple, or a range of "
            "constants.",
        )

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
            if isinstance(value, Level | Source):
                raise self.missing_attribute(value, name, node)
        if isinstance(value, Runtime | Tile | Symbolic | Element):
            owner = self.expression(value, node)
            return Runtime(self.at(ast.Attribute(value=owner, attr=name, ctx=ast.Load()), node))
        if isinstance(value, Group | Range):
            raise self.error(node, f"A tuple has no attribute {name!r} in an application.")
        return Runtime(self.expression(value, node))

    def _object_attribute(self, item: Any, name: str, node: ast.AST) -> Value:
        try:
            return value_of(getattr(item, name))
        except AttributeError as error:
            what = getattr(item, "__name__", None) or type(item).__name__
            message = str(error)
            if "Did you mean" not in message:
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
        if isinstance(value, Group):
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
        if len(self.state.block) > start:
            tile = self._kept(tile, start, node)
        return tile, indices

    def indices(self, node: ast.expr) -> list[Value]:
        """The indices of a subscript, each a value; a tuple held in a variable counts as several."""
        if isinstance(node, ast.Tuple):
            values = self.items(node.elts)
        else:
            values = [self.evaluate(node)]
            if isinstance(values[0], Group):
                values = list(values[0].items)
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
        if all(isinstance(bound, Known) for bound in bounds):
            return Known(slice(*(bound.object for bound in bounds)))
        nodes = [
            None
            if isinstance(bound, Known) and bound.object is None
            else self.expression(bound, node)
            for bound in bounds
        ]
        return Runtime(self.at(ast.Slice(lower=nodes[0], upper=nodes[1], step=nodes[2]), node))

    def _group_item(self, value: Group, node: ast.Subscript) -> Value:
        index = self.evaluate(node.slice)
        if isinstance(index, Known):
            try:
                found = value.items[cast(Any, literal(index.object))]
            except (IndexError, TypeError) as error:
                raise self.error(
                    node, f"{error}: the tuple has {len(value.items)} elements."
                ) from error
            return Group(found) if isinstance(found, tuple) else found
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
        index = self.evaluate(node.slice)
        if not isinstance(index, Known):
            raise self.error(node.slice, "This index is needed at compile time.")
        return self.computed(lambda: value.object[index.object], node)

    def _view(self, tile: Tile, node: ast.Subscript) -> Value:
        """``x[:, None]`` of one tile; to pick an element of it there is no way."""
        value = Runtime(self.expression(tile, node))
        result = self._runtime_item(value, node)
        index = getattr(result.node, "slice", None)
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if not all(_is_view(part) for part in parts):
            raise self.error(
                node,
                f"{tile.parameter.name!r} is one tile here: there is no level left to select in, "
                "and a tile's own elements cannot be picked. Only `:` and `None` can stand here.",
            )
        return result

    def _runtime_item(self, value: Runtime, node: ast.Subscript) -> Runtime:
        is_tuple = isinstance(node.slice, ast.Tuple)
        values = self.items(node.slice.elts) if is_tuple else [self.evaluate(node.slice)]  # type: ignore[attr-defined]
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

    # Operators.

    def _evaluate_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.in_order([node.left, node.right], self._loaded)
        return self.binary(left, node.op, right, node)

    def _loaded(self, node: ast.expr) -> Value:
        """A value of which tiles are loaded now, before what is evaluated after it."""
        value = self.evaluate(node)
        if isinstance(value, Tile):
            return Runtime(self.expression(value, node))
        return value

    def binary(self, left: Value, op: ast.operator, right: Value, node: ast.AST) -> Value:
        """``left op right``."""
        if isinstance(op, ast.MatMult):
            raise self.error(node, "`@` is not supported: use `ntl.dot`.")
        if isinstance(left, Group) or isinstance(right, Group):
            joined = self._joined(left, op, right)
            if joined is not None:
                return joined
        if isinstance(left, Known) and isinstance(right, Known):
            one, other = literal(left.object), literal(right.object)
            return self.computed(lambda: _BINARY[type(op)](one, other), node)
        if isinstance(op, _SYMBOLIC) and _is_symbolic(left) and _is_symbolic(right):
            one, other = _symbol(left), _symbol(right)
            return self.computed(lambda: _BINARY[type(op)](one, other), node)
        operands = [self.expression(value, node) for value in (left, right)]
        if isinstance(op, ast.Pow) and not all(map(self.is_constant, operands)):
            raise self.error(
                node,
                "`**` of a value of the running kernel is not supported: multiply, or use "
                "`ntl.libdevice.pow` or `ntl.exp2(exponent * ntl.log2(base))`.",
            )
        return Runtime(self.at(ast.BinOp(left=operands[0], op=op, right=operands[1]), node))

    def _joined(self, left: Value, op: ast.operator, right: Value) -> Group | None:
        """Tuples added, or repeated."""
        if isinstance(op, ast.Add) and isinstance(left, Group) and isinstance(right, Group):
            return Group(left.items + right.items)
        if isinstance(op, ast.Mult):
            group, count = (left, right) if isinstance(left, Group) else (right, left)
            if isinstance(count, Known) and isinstance(count.object, int):
                assert isinstance(group, Group)
                return Group(group.items * count.object)
        return None

    def computed(self, compute: Callable[[], Any], node: ast.AST) -> Value:
        """The value of what Python computes now; its exceptions become located errors."""
        try:
            return value_of(compute())
        except Exception as error:
            raise self.error(
                node, f"Computed at compile time, this raises {type(error).__name__}: {error}"
            ) from error

    def _evaluate_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            if truth is not None:
                return Known(not truth)
        if isinstance(value, Known):
            item = literal(value.object)
            return self.computed(lambda: _UNARY[type(node.op)](item), node)
        if isinstance(value, Symbolic) and isinstance(node.op, ast.USub):
            return self.computed(lambda: 0 - value.symbol, node)
        operand = self.expression(value, node)
        return Runtime(self.at(ast.UnaryOp(op=node.op, operand=operand), node))

    def _evaluate_BoolOp(self, node: ast.BoolOp) -> Value:
        wanted = isinstance(node.op, ast.And)
        parts: list[ast.expr] = []
        for position, operand in enumerate(node.values):
            with self.state.captured() as statements:
                value = self._loaded(operand)
            truth = self.truth(value)
            is_last = position == len(node.values) - 1
            if not parts and (is_last or truth is (not wanted)):
                self.state.block.extend(statements)
                return value
            if truth is wanted and not is_last and not statements:
                continue
            expression = self.expression(value, operand)
            if parts and statements:
                parts = [self._short_circuit(node, parts, statements, expression)]
            else:
                self.state.block.extend(statements)
                parts.append(expression)
            if truth is (not wanted):
                break
        return Runtime(self._all_of(node.op, parts, node))

    def _all_of(self, op: ast.boolop, parts: list[ast.expr], node: ast.AST) -> ast.expr:
        if len(parts) == 1:
            return parts[0]
        return self.at(ast.BoolOp(op=op, values=parts), node)

    def _short_circuit(
        self,
        node: ast.BoolOp,
        parts: list[ast.expr],
        statements: list[ast.stmt],
        last: ast.expr,
    ) -> ast.expr:
        """An operand that takes statements is only evaluated where Python would evaluate it."""
        result = self.saved(self._all_of(node.op, parts, node), node, "condition")
        test: ast.expr = clone(result)
        if isinstance(node.op, ast.Or):
            test = self.at(ast.UnaryOp(op=ast.Not(), operand=test), node)
        statements.append(self.assignment(result.id, last, node))
        self.emit(ast.If(test=test, body=statements, orelse=[]), node)
        return result

    def _evaluate_IfExp(self, node: ast.IfExp) -> Value:
        condition = self._loaded(node.test)
        truth = self.truth(condition)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse)
        test = self.expression(condition, node.test)
        with self.state.captured() as body:
            one = self._loaded(node.body)
        with self.state.captured() as orelse:
            other = self._loaded(node.orelse)
        if not body and not orelse:
            if same(one, other):
                return one
            nodes = self.expression(one, node.body), self.expression(other, node.orelse)
            return Runtime(self.at(ast.IfExp(test=test, body=nodes[0], orelse=nodes[1]), node))
        cell = Cell(self.state.fresh("choice"))
        value = self.merge(cell, (one, body), (other, orelse), node, self.is_constant(test))
        self.conditional(test, body, orelse, node)
        cell.value = value
        return self.read(cell, cell.name, node)

    def conditional(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], node: ast.AST
    ) -> None:
        """Add an ``if``, turned round where only its second branch has statements."""
        if not body and not orelse:
            return
        if not body:
            test = self.at(ast.UnaryOp(op=ast.Not(), operand=test), node)
            body, orelse = orelse, []
        self.emit(ast.If(test=test, body=body, orelse=orelse), node)

    def _evaluate_NamedExpr(self, node: ast.NamedExpr) -> Value:
        cell = self.lookup(node.target.id, node.target)
        assert isinstance(cell, Cell)
        if cell.stores:
            raise self.error(node, "`:=` cannot store to a tile: use a statement of its own.")
        self.bind(cell, self.evaluate(node.value), node)
        return self.read(cell, node.target.id, node)

    def _evaluate_JoinedStr(self, node: ast.JoinedStr) -> Value:
        texts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value)
                if not isinstance(value, Known) or part.format_spec or part.conversion != -1:
                    raise self.error(
                        node,
                        "An f-string is only supported over compile-time constants, without "
                        "formats; `ntl.device_print` shows values of a running kernel.",
                    )
                texts.append(str(value.object))
            else:
                texts.append(str(cast(ast.Constant, part).value))
        return Known("".join(texts))

    # Comparisons.

    def _evaluate_Compare(self, node: ast.Compare) -> Value:
        # `is` asks what a tile is, not what it holds.
        asks = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        operands = [node.left, *node.comparators]
        values = self.in_order(operands, self.evaluate if asks else self._loaded)
        if len(node.ops) == 1:
            return self._compare(values[0], node.ops[0], values[1], node)
        results: list[Value] = []
        for index, op in enumerate(node.ops):
            left, right = values[index], values[index + 1]
            if isinstance(right, Runtime) and index < len(node.ops) - 1:
                if not isinstance(right.node, ast.Name | ast.Constant):
                    right = Runtime(self.saved(right.node, node, "value"))
                values[index + 1] = Runtime(clone(right.node))
            results.append(self._compare(left, op, right, node))
        return self._conjunction(results, node)

    def _conjunction(self, results: list[Value], node: ast.AST) -> Value:
        """All of several comparisons, of tiles too."""
        if any(self.truth(result) is False for result in results):
            return Known(False)
        rest = [result for result in results if self.truth(result) is None]
        if not rest:
            return Known(True)
        whole = self.expression(rest[0], node)
        for result in rest[1:]:
            right = self.expression(result, node)
            whole = self.at(ast.BinOp(left=whole, op=ast.BitAnd(), right=right), node)
        return Runtime(whole)

    def _compare(self, left: Value, op: ast.cmpop, right: Value, node: ast.Compare) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(left, op, right, node)
        if isinstance(op, ast.Is | ast.IsNot):
            known = self._identical(left, right)
            if known is not None:
                return Known(known is isinstance(op, ast.Is))
        elif isinstance(left, Known) and isinstance(right, Known):
            one, other = literal(left.object), literal(right.object)
            return self.computed(lambda: _COMPARE[type(op)](one, other), node)
        elif isinstance(op, ast.Eq | ast.NotEq):
            equal = self._equal(left, right, node)
            if equal is not None:
                return equal if isinstance(op, ast.Eq) else self._negated(equal, node)
        nodes = self.expression(left, node), self.expression(right, node)
        return Runtime(self.at(ast.Compare(left=nodes[0], ops=[op], comparators=[nodes[1]]), node))

    def _negated(self, value: Value, node: ast.AST) -> Value:
        truth = self.truth(value)
        if truth is not None:
            return Known(not truth)
        operand = self.expression(value, node)
        return Runtime(self.at(ast.UnaryOp(op=ast.Not(), operand=operand), node))

    def _identical(self, left: Value, right: Value) -> bool | None:
        """``left is right`` where it is known."""
        if isinstance(left, Known) and isinstance(right, Known):
            return left.object is right.object or same(left, right)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Known) and one.object is None and not isinstance(other, Runtime):
                return False
        return None

    def _equal(self, left: Value, right: Value, node: ast.Compare) -> Value | None:
        """``left == right`` where that is no comparison of two numbers of the running kernel."""
        if isinstance(left, Symbolic) and same(left, right):
            return Known(True)
        if isinstance(left, Group) and isinstance(right, Group):
            if len(left.items) != len(right.items):
                return Known(False)
            pairs = zip(left.items, right.items, strict=True)
            return self._conjunction([self._compare(a, ast.Eq(), b, node) for a, b in pairs], node)
        if isinstance(left, Level | Method | Range) or isinstance(right, Level | Method | Range):
            return Known(same(left, right))
        return None

    def _contained(self, left: Value, op: ast.cmpop, right: Value, node: ast.Compare) -> Value:
        """``left in right``."""
        if isinstance(right, Known) and isinstance(left, Known):
            item, container = left.object, right.object
            found = self.computed(lambda: item in container, node)
            return found if isinstance(op, ast.In) else self._negated(found, node)
        if not isinstance(right, Group):
            raise self.error(node, "`in` needs a tuple of compile-time constants on its right.")
        if isinstance(left, Runtime) and not isinstance(left.node, ast.Name):
            left = Runtime(self.saved(left.node, node, "value"))
        results = []
        for item in right.items:
            copy: Value = Runtime(clone(left.node)) if isinstance(left, Runtime) else left
            result = self._compare(copy, ast.Eq(), item, node)
            if self.truth(result):
                return Known(isinstance(op, ast.In))
            if self.truth(result) is None:
                results.append(self.expression(result, node))
        if not results:
            return Known(isinstance(op, ast.NotIn))
        found = Runtime(self._all_of(ast.Or(), results, node))
        return found if isinstance(op, ast.In) else self._negated(found, node)


def _is_symbolic(value: Value) -> bool:
    if isinstance(value, Symbolic):
        return True
    return (
        isinstance(value, Known)
        and isinstance(value.object, int)
        and not isinstance(value.object, bool)
    )


def _symbol(value: Value) -> Any:
    return value.symbol if isinstance(value, Symbolic) else literal(cast(Known, value).object)


def _is_view(index: ast.AST | None) -> bool:
    if isinstance(index, ast.Slice):
        return index.lower is None and index.upper is None and index.step is None
    return isinstance(index, ast.Constant) and (index.value is None or index.value is Ellipsis)
