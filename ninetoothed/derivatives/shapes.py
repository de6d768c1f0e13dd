"""The shapes of a Program's values, as far as a derivative needs them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ninetoothed.derivatives.tape import Dims
from ninetoothed.language.operations import Operation
from ninetoothed.program.effects import operation_of
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementLoad,
    ElementType,
    LanguageRef,
    Load,
    Offsets,
    SequenceLength,
    SourceLoad,
    SourcePointer,
    SourceStride,
    SymbolValue,
    Widened,
)
from ninetoothed.symbols.expr import Expression, as_expression, as_symbol
from ninetoothed.symbols.simplify import difference, simplify

_NUMBERS = (
    ast.Constant,
    SymbolValue,
    SourceStride,
    SourcePointer,
    SequenceLength,
    ElementType,
    DTypeRef,
    Widened,
)


def is_same(one: Expression | str, other: Expression | str) -> bool:
    """Whether two sizes are certainly the same."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return difference(one, other) == 0


def are_same(one: Dims, other: Dims) -> bool:
    """Whether two shapes are certainly the same."""
    return len(one) == len(other) and all(map(is_same, one, other))


def together(*shapes: Dims | None) -> Dims | None:
    """The shape of values that meet element by element; None where one is not known."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(next((s for s in sizes if s != 1), 1) for sizes in zip(*padded))


class Shapes:
    """The shapes of expressions.

    Attributes:
        parameters: the program's, by name.
        known: the shapes of variables.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.known: dict[str, Dims | None] = {}

    def of(self, node: ast.expr) -> Dims | None:
        """An expression's shape; None where it is not known."""
        if isinstance(node, _NUMBERS):
            return ()
        if isinstance(node, ast.Name):
            return self.known.get(node.id, ())
        if isinstance(node, Load | Offsets):
            return tuple(self.parameters[node.tile.parameter].tile_shape)
        if isinstance(node, SourceLoad) and not isinstance(node, ElementLoad):
            return together(*map(self.of, node.indices))
        if isinstance(node, ElementLoad):
            return tuple(node.view.shape) if not node.view.chosen else None
        if isinstance(node, ast.BinOp):
            return together(self.of(node.left), self.of(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.Compare):
            return together(*map(self.of, [node.left, *node.comparators]))
        if isinstance(node, ast.BoolOp):
            return together(*map(self.of, node.values))
        if isinstance(node, ast.IfExp):
            return together(self.of(node.body), self.of(node.orelse))
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Attribute):
            found = self.of(node.value)
            if node.attr != "T":
                return ()
            return None if found is None else found[::-1]
        return self._call(node) if isinstance(node, ast.Call) else None

    def sizes(self, node: ast.expr) -> Dims | None:
        """The sizes that an expression for a shape stands for."""
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.size(entry) for entry in node.elts)
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return self.of(node.value)
        return (self.size(node),)

    def size(self, node: ast.expr) -> Expression | str:
        """The size that an expression stands for, not widened."""
        if isinstance(node, Widened):
            return self.size(node.value)
        if isinstance(node, SymbolValue):
            return as_expression(simplify(as_symbol(node.symbol)))
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
            shape = self.sizes(node.value)
            if shape is not None and isinstance(node.slice, ast.Constant | ast.UnaryOp):
                return shape[ast.literal_eval(node.slice)]
        return ast.unparse(node)

    def _subscript(self, node: ast.Subscript) -> Dims | None:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return ()
        shape = self.of(node.value)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if shape is None or not all(map(is_axis, entries)):
            return None
        left = iter(shape)
        own = [1 if isinstance(entry, ast.Constant) else next(left) for entry in entries]
        return (*own, *left)

    def _call(self, node: ast.Call) -> Dims | None:
        operation = operation_of(node)
        if operation is None:
            return () if isinstance(node.func, ast.Name) else None
        arguments = arguments_of(node)
        rule = _RULES.get(operation.shape)
        if operation.name == "dot":
            return self._dot(arguments)
        return None if rule is None else rule(self, operation, node, arguments)

    def _dot(self, arguments: Sequence[ast.expr]) -> Dims | None:
        left, right = self.of(arguments[0]), self.of(arguments[1])
        return None if not left or not right else (*left[:-1], right[-1])


def is_axis(entry: ast.expr) -> bool:
    """Whether a subscript's entry is ``:`` or None."""
    if isinstance(entry, ast.Slice):
        return entry.lower is entry.upper is entry.step is None
    return isinstance(entry, ast.Constant) and entry.value is None


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """The positional arguments of a call, a method's value first."""
    own = [] if isinstance(call.func, LanguageRef) else [call.func.value]  # type: ignore[attr-defined]
    return [*own, *call.args]


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """An argument of a call, by its place or its name; None where it is not given."""
    given = arguments_of(call)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return given[place] if place < len(given) else named.get(name)


def constant_of(node: ast.expr | None, default: Any = None) -> Any:
    """The number, or the tuple of them, that a node is; `ValueError` where it is none."""
    if node is None:
        return default
    return ast.literal_eval(node)


def reduced_axis(operation: Operation, call: ast.Call) -> tuple[int | None, bool]:
    """The axis of a reduction, and whether it keeps the dimension; `ValueError` where not known."""
    axis = constant_of(argument(call, operation.places.get("axis", 1), "axis"))
    place = operation.places.get("keep_dims", 9)
    return axis, bool(constant_of(argument(call, place, "keep_dims"), False))


def permutation(call: ast.Call, rank: int) -> tuple[int, ...]:
    """The order that ``trans`` or ``permute`` gives dimensions."""
    given = [constant_of(each) for each in arguments_of(call)[1:]]
    if not given:
        return (*range(rank - 2), rank - 1, rank - 2)
    dims = given[0] if isinstance(given[0], tuple | list) else given
    return tuple(int(dim) % rank for dim in dims)


def _reduced(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    shape = shapes.of(arguments[0])
    try:
        axis, keeps = reduced_axis(operation, call)
    except ValueError:
        return None
    if shape is None:
        return None
    if axis is None:
        return (1,) * len(shape) if keeps else ()
    axis %= len(shape)
    return (*shape[:axis], *((1,) if keeps else ()), *shape[axis + 1 :])


def _transposed(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    shape = shapes.of(arguments[0])
    return None if shape is None else tuple(shape[dim] for dim in permutation(call, len(shape)))


def _expanded(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    shape = shapes.of(arguments[0])
    if shape is None:
        return None
    found = constant_of(argument(call, 1, "axis"))
    rank = len(shape) + (len(found) if isinstance(found, tuple) else 1)
    axes = {axis % rank for axis in (found if isinstance(found, tuple) else (found,))}
    left = iter(shape)
    return tuple(1 if dim in axes else next(left) for dim in range(rank))


def _shaped(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    place = operation.places["shape"]
    given = argument(call, place, "shape")
    if given is None:
        return None
    if place and not isinstance(given, ast.Tuple | ast.List | ast.Attribute):
        return tuple(map(shapes.size, arguments[place:]))
    return shapes.sizes(given)


def _vector(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    if len(arguments) != 2:
        return None
    start, stop = map(shapes.size, arguments)
    if isinstance(start, str) or isinstance(stop, str):
        return (ast.unparse(call),)
    return (difference(stop, start),)


def _first(
    shapes: Shapes, operation: Operation, call: ast.Call, arguments: list[ast.expr]
) -> Dims | None:
    return shapes.of(arguments[0])


_RULES = {
    "broadcast": lambda shapes, operation, call, arguments: together(*map(shapes.of, arguments)),
    "number": lambda shapes, operation, call, arguments: (),
    "first": _first,
    "like": _first,
    "scanned": _first,
    "sorted": _first,
    "flipped": _first,
    "reduced": _reduced,
    "transposed": _transposed,
    "expanded": _expanded,
    "broadcast to": _shaped,
    "reshaped": _shaped,
    "created": _shaped,
    "vector": _vector,
}
