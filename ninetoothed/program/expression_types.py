"""The types of expressions: what a value is follows from what it is made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ninetoothed.errors import ApplicationError
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import Operation
from ninetoothed.language.promotion import as_count_of
from ninetoothed.program import nodes, typed_calls
from ninetoothed.program.constancy import is_constant, is_constant_symbol
from ninetoothed.program.effects import operation_of
from ninetoothed.program.frozen import rule_for
from ninetoothed.program.operands import SIGNS, are_one, compared, no_position, no_value, refusal
from ninetoothed.program.operation_types import type_of_call
from ninetoothed.program.typed_calls import COMPUTED, Call, no_member, several, shown, uncomputed
from ninetoothed.program.types import (
    COUNT,
    INTEGER,
    TRUTH,
    TYPE,
    UNKNOWN,
    Shape,
    ValueType,
    are_unlike,
    as_counted,
    broadcast,
    held_shape,
    leave,
    met,
    of_dtype,
    of_number,
    of_size,
    together,
    told_by,
    type_of,
    unlike,
    with_axes,
    wrapped,
)
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.expr import padded as next_power_of_two


class Expressions:
    """Knows what variables are at a place of a Program; the types of expressions are left on the nodes.

    Args:
        parameters: the program's, by name.
        given: the element types of tensors and scalars that a call gives.
        is_checked: whether what cannot be is an error; then nothing is known by what was declared, which a
            call need not give.
        sizes: the values of symbols, where those of a call are asked.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        given: Mapping[str, DType] | None = None,
        is_checked: bool = False,
        sizes: Mapping[Symbol, int] | None = None,
    ) -> None:
        self.parameters = parameters
        self.sizes = sizes or {}
        self.dtypes = {
            **({} if is_checked else {name: each.dtype for name, each in parameters.items()}),
            **(given or {}),
        }
        self.is_checked = is_checked
        self.is_wide: bool | None = dtypes.float64 in self.dtypes.values()
        if is_checked and not given:
            # What holds whatever a call gives.
            self.is_wide = None
        self.known: dict[str, ValueType] = {}
        self.constants: set[str] = set()
        for parameter in parameters.values():
            if parameter.kind == "constexpr":
                self.constants.add(parameter.name)
            if parameter.kind == "scalar":
                self.known[parameter.name] = of_dtype(self.dtype_of(parameter.name), ())
            elif parameter.kind != "tensor":
                self.known[parameter.name] = ValueType(())

    def dtype_of(self, parameter: str) -> DType | None:
        """The element type of a tensor, where it is known."""
        found = self.dtypes.get(parameter)
        return found if isinstance(found, DType) else None

    def refuse(self, node: ast.AST, message: str) -> None:
        if self.is_checked:
            raise ApplicationError(message, nodes.location(node))

    def held(self, sizes: Iterable[Any]) -> Shape:
        """The shape that a tile of these sizes is held in."""
        if self.sizes:
            sizes = [as_symbol(size).substitute(self.sizes) for size in sizes]
        return held_shape(sizes)

    def parts(self, node: ast.AST) -> None:
        """Types all that a node is made of."""
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, list):
                for item in child:
                    if isinstance(item, ast.expr):
                        self.of(item)
                    elif isinstance(item, ast.keyword):
                        self.of(item.value)
            elif isinstance(child, ast.expr):
                self.of(child)

    def of(self, node: ast.expr) -> ValueType:
        """The type of an expression, which is left on it and on all that it is made of."""
        rule = rule_for(node, _EXPRESSIONS)
        if rule is None:
            self.parts(node)
        return leave(node, UNKNOWN if rule is None else rule(self, node))

    def _tile(self, node: nodes.Load | nodes.Forwarded) -> ValueType:
        self.parts(node.tile)
        if isinstance(node, nodes.Forwarded):
            self.of(node.value)
        parameter = self.parameters[node.tile.parameter]
        return of_dtype(self.dtype_of(parameter.name), self.held(parameter.tile_shape))

    def _offsets(self, node: nodes.Offsets) -> ValueType:
        """Positions are natural where no element of the tile can lie before its source."""
        self.parts(node.tile)
        parameter = self.parameters[node.tile.parameter]
        if node.dim is None:
            return replace(INTEGER, shape=self.held(parameter.tile_shape))
        access = parameter.access
        reached = as_symbol(access.indices[node.dim])
        leaves = set(reached.leaves())
        sizes = (s for s, lane in zip(parameter.tile_shape, access.coordinates) if lane in leaves)
        natural = interval(reached)[0] >= 0
        return ValueType(self.held(sizes), "int", None, natural)

    def _source_load(self, node: nodes.SourceLoad | nodes.SourcePlace) -> ValueType:
        shape = self.chosen(node, [self.of(index) for index in node.indices], "indices")
        return of_dtype(self.dtype_of(node.parameter), shape)

    def _element_load(self, node: nodes.ElementLoad | nodes.ElementPlace) -> ValueType:
        return of_dtype(self.dtype_of(node.parameter), self.view_shape(node))

    def view_shape(self, node: Any) -> Shape | None:
        """The shape of elements that a view selects."""
        view, types = node.view, [self.of(index) for index in node.indices]
        chosen = self.chosen(node, types[len(types) - view.chosen :], "positions")
        if chosen is None:
            return None
        counts = self.held(view.shape)
        return (*counts[: view.before], *chosen, *counts[view.before :])

    def chosen(self, node: ast.AST, types: list[ValueType], what: str) -> Shape | None:
        """The shape of what positions select, which are integers."""
        for reason in filter(None, map(no_position, types)):
            self.refuse(node, reason)
        return self.together(node, types, what)

    def together(self, node: ast.AST, types: list[ValueType], what: str) -> Shape | None:
        """The shape of values that meet element by element."""
        try:
            return broadcast([each.shape for each in types])
        except ValueError:
            many = f"The {what} here need shapes that"
            subject = many if what.isalpha() else f"{what} needs tiles whose shapes"
            self.refuse(node, f"{subject} match or are 1, but got {shown(*types)}.")
            return None

    def require_value(self, *values: ast.expr) -> None:
        """Refuses what stands for neither a tile nor a number, as an operand or to be stored."""
        for node in values:
            if found := no_value(node):
                self.refuse(node, f"A tile or a number is needed here, but got {found}.")

    def _binary(self, node: ast.BinOp) -> ValueType:
        self.require_value(node.left, node.right)
        return self.operated(self.of(node.left), node.op, self.of(node.right), node)

    def operated(
        self, left: ValueType, op: ast.operator, right: ValueType, node: ast.AST
    ) -> ValueType:
        """``left op right`` as Python has it."""
        if isinstance(op, ast.LShift | ast.RShift):
            left = as_counted(left)
            if left.number is None and left.dtype and right.dtype:
                right = replace(right, dtype=as_count_of(left.dtype, right.dtype))
        shape = self.together(node, [left, right], SIGNS.get(type(op), "operator **"))
        self.require_width(node, left, right)
        for each in (left, right) if isinstance(op, ast.FloorDiv | ast.Mod) else ():
            self.require_width(node, each)
        division = isinstance(op, ast.Div | ast.FloorDiv | ast.Mod)
        if reason := refusal(left, op, right):
            self.refuse(node, reason)
        result, pointed = together([left, right], shape, division), left.pointed or right.pointed
        result = replace(result, pointed=pointed) if pointed else result
        if isinstance(op, ast.BitAnd):
            either = left.is_natural or right.is_natural
            return replace(result, is_natural=either and result.kind in ("int", "bool"))
        if isinstance(op, ast.BitOr | ast.BitXor):
            return result
        result = as_counted(result)
        if isinstance(op, ast.Div):
            if result.kind == "float":
                return result
            is_known = result.kind == "int" and None not in (result.dtype, self.is_wide)
            own = dtypes.float64 if self.is_wide else dtypes.float32
            return replace(result, kind="float", dtype=own if is_known else None, least_bits=0)
        if isinstance(op, ast.Mod | ast.RShift):
            one = right if isinstance(op, ast.Mod) else left
            return replace(result, is_natural=one.is_natural)
        if not isinstance(op, ast.FloorDiv):
            result = wrapped(result)
        return result if not isinstance(op, ast.Pow) else replace(result, dtype=None)

    def _unary(self, node: ast.UnaryOp) -> ValueType:
        operand = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            self.require_width(node, operand)
            return replace(TRUTH, shape=operand.shape)
        self.require_value(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        self.require_width(node, operand)
        if isinstance(node.op, ast.Invert):
            if operand.kind == "float":
                self.refuse(node, f"`~` needs integers, but got {operand.dtype or 'floats'}.")
            return replace(operand, is_natural=operand.kind == "bool", number=None)
        if isinstance(operand.number, bool | int | float):
            return of_number(-operand.number, self.is_wide)
        return replace(as_counted(operand), is_natural=False, number=None)

    def decided(self, node: ast.expr) -> None:
        """Refuses a tile where one number has to decide, or to be counted to."""
        value = self.of(node)
        if reason := several(value) or uncomputed([value]):
            self.refuse(node, reason)

    def require_width(self, node: ast.AST, *operands: ValueType) -> None:
        if reason := uncomputed(operands):
            self.refuse(node, reason)

    def _compare(self, node: ast.Compare) -> ValueType:
        operands = [self.of(each) for each in (node.left, *node.comparators)]
        self.require_width(node, *operands)
        self.require_value(*compared(node, self.constants))
        is_identity = isinstance(node.ops[0], ast.Is | ast.IsNot)
        shape = () if is_identity else self.together(node, operands, "comparison (<, ==, ...)")
        return replace(TRUTH, shape=shape, number=are_one(node, self.dtype_of))

    def _several(self, node: ast.BoolOp) -> ValueType:
        operands = [self.of(value) for value in node.values]
        for each in operands:
            self.require_width(node, each)
        result = together(operands, self.together(node, operands, "operators `and`, `or`"))
        if result.shape:
            # Beside a tile they are truth values, element by element; of numbers one of these.
            return replace(TRUTH, shape=result.shape)
        return (
            result if len({each.dtype for each in operands}) == 1 else replace(result, dtype=None)
        )

    def _choice(self, node: ast.IfExp) -> ValueType:
        self.decided(node.test)
        is_checked = self.is_checked
        self.is_checked &= not is_constant(node.test, self.constants)
        one, other = self.of(node.body), self.of(node.orelse)
        if one.shape and other.shape and (reason := unlike(one, other)):
            # Of a number and a tile `where` makes one value, and of no two tiles.
            self.refuse(
                node,
                f"The values of this choice have {reason}: {one} where its condition holds, {other} where "
                "not. Give them one shape and element type.",
            )
        self.is_checked = is_checked
        if isinstance(decided := type_of(node.test).number, bool):
            return one if decided else other
        are_alike = (one.number is None) is (other.number is None) and not are_unlike(one, other)
        if is_constant(node.test, self.constants) or are_alike:
            return replace(met(one, other), number=None)
        # Values of two kinds become one, as those of `where` do.
        return together([one, other], self.together(node, [one, other], "choice"))

    def _subscript(self, node: ast.Subscript) -> ValueType:
        value = self.of(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        self.of(node.slice)
        if value.items is not None:
            index = typed_calls.literal(parts[0])
            fits = isinstance(index, int) and -len(value.items) <= index < len(value.items)
            if isinstance(index, int) and not fits:
                self.refuse(node, f"There is no item {index} of {len(value.items)}.")
            return value.items[index] if fits and len(parts) == 1 else UNKNOWN  # type: ignore[index]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return COUNT
        entries = [isinstance(part, ast.Slice) for part in parts]
        if any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts):
            self.refuse(
                node, "`...` stands in an index of a parameter alone: write `:` for each axis."
            )
        if not all(
            own or (isinstance(part, ast.Constant) and part.value is None)
            for own, part in zip(entries, parts)
        ):
            if value.shape is not None:
                self.refuse(node, f"What is indexed here {COMPUTED}")
            return UNKNOWN
        try:
            shape = with_axes(value.shape, entries)
        except ValueError:
            self.refuse(node, f"This index has too many `:` for a tile of shape {shown(value)}.")
            shape = None
        return replace(value, shape=shape, number=None)

    def _attribute(self, node: ast.Attribute) -> ValueType:
        value = self.of(node.value)
        if value.shape is not None and (reason := no_member(node.attr)):
            self.refuse(node, reason)
        if isinstance(node.value, nodes.ElementType):
            return told_by(self.dtype_of(node.value.parameter), node.attr)
        if node.attr == "shape" and value.shape is not None:
            return ValueType(items=tuple(map(of_size, value.shape)))
        if node.attr != "T" or value.shape is None:
            return {"T": replace(value, number=None), "dtype": TYPE}.get(node.attr, UNKNOWN)
        if len(value.shape) < 2:
            self.refuse(
                node, f"`.T` needs two dimensions or more, but the tile's shape is {shown(value)}."
            )
            return replace(value, shape=None, number=None)
        return replace(value, shape=(*value.shape[:-2], value.shape[-1], value.shape[-2]))

    def _call(self, node: ast.Call) -> ValueType:
        self.parts(node)
        if isinstance(node.func, ast.Name):
            given = node.args[0] if node.args else None
            if node.func.id == "float" and isinstance(given, ast.Constant):
                return of_number(float(str(given.value)), self.is_wide)
            return {"float": ValueType((), "float"), "len": COUNT}.get(node.func.id, UNKNOWN)
        operation = operation_of(node)
        if operation is None:
            return type_of(node.func) if isinstance(node.func, ast.Attribute) else UNKNOWN
        call = Call(node, self.dtype_of, self.is_checked, self.is_wide)
        returned = self.called_back(call, operation)
        found = type_of_call(call, operation)
        return returned if operation.shape == "mapped" else found

    def called_back(self, call: Call, operation: Operation) -> ValueType:
        """What a function gives that an operation calls for each element, where one does."""
        return UNKNOWN

    def _value(self, node: nodes.Masked | nodes.Kept | nodes.Flipped | nodes.Exists) -> ValueType:
        self.parts(node)
        value = replace(node.value.__dict__["type"], number=None)
        return replace(COUNT, shape=value.shape) if isinstance(node, nodes.Exists) else value

    def _holds(self, node: nodes.AllHold) -> ValueType:
        self.parts(node)
        return TRUTH

    def _mask(self, node: nodes.Mask) -> ValueType:
        tile = node.tile
        if isinstance(tile, nodes.ElementRef):
            shape = self.view_shape(tile)
        else:
            self.parts(tile)
            shape = self.held(self.parameters[tile.parameter].tile_shape)
        return self.laid(shape, node.layout)

    def laid(self, shape: Shape | None, layout: tuple[int | None, ...]) -> ValueType:
        """A mask over the dimensions of a layout."""
        if shape is None:
            return replace(TRUTH, shape=(None,) * len(layout))
        return replace(TRUTH, shape=tuple(1 if dim is None else shape[dim] for dim in layout))

    def _within(self, node: nodes.Within) -> ValueType:
        self.of(node.size)
        return replace(TRUTH, shape=(None,) * len(node.layout))

    def _held(self, node: nodes.Held) -> ValueType:
        return self.laid(self.known.get(node.name, UNKNOWN).shape, node.layout)

    def _tuple(self, node: ast.Tuple) -> ValueType:
        return ValueType(items=tuple(self.of(item) for item in node.elts))


def _symbol(expressions: Expressions, node: nodes.SymbolValue) -> ValueType:
    symbol = as_symbol(node.symbol).substitute(expressions.sizes)
    bits = 0 if is_constant_symbol(symbol) else 32
    return ValueType((), "int", None, interval(symbol)[0] >= 0, symbol, bits)


def _padded(expressions: Expressions, node: nodes.Padded) -> ValueType:
    value = expressions.of(node.value)
    known = isinstance(value.number, Symbol)
    return replace(COUNT, number=next_power_of_two(value.number) if known else None)


class OfParts(Expressions):
    """The type of an expression by those that what it is made of has already."""

    def of(self, node: ast.expr) -> ValueType:
        return type_of(node)

    def parts(self, node: ast.AST) -> None:
        pass

    def typed(self, node: ast.expr) -> ValueType:
        """Types an expression whose parts are typed."""
        return Expressions.of(self, node)


_EXPRESSIONS: dict[type, Callable[[Expressions, Any], ValueType] | None] = {
    ast.Name: lambda expressions, node: expressions.known.get(node.id, UNKNOWN),
    ast.Constant: lambda expressions, node: of_number(node.value, expressions.is_wide),
    nodes.SymbolValue: _symbol,
    nodes.Padded: _padded,
    nodes.SequenceLength: lambda expressions, node: COUNT,
    nodes.Load: Expressions._tile,
    nodes.Forwarded: Expressions._tile,
    nodes.ElementLoad: Expressions._element_load,
    nodes.SourceLoad: Expressions._source_load,
    nodes.ElementPlace: Expressions._element_load,
    nodes.SourcePlace: Expressions._source_load,
    nodes.SourcePointer: lambda e, node: ValueType((), pointed=e.dtype_of(node.parameter)),
    nodes.Offsets: Expressions._offsets,
    nodes.Mask: Expressions._mask,
    nodes.Within: Expressions._within,
    nodes.Held: Expressions._held,
    nodes.AllHold: Expressions._holds,
    nodes.Masked: Expressions._value,
    nodes.Kept: Expressions._value,
    nodes.Flipped: Expressions._value,
    nodes.Exists: Expressions._value,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BoolOp: Expressions._several,
    ast.IfExp: Expressions._choice,
    ast.Subscript: Expressions._subscript,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
    ast.Tuple: Expressions._tuple,
}
