"""The types of a lowered program's values, and which of their sizes must be the same."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ninetoothed.backends.triton.printers.gluon.trees import called
from ninetoothed.language import dtypes
from ninetoothed.language.operations import names
from ninetoothed.program.arguments import size_of
from ninetoothed.program.inference import Inference
from ninetoothed.program.types import COUNT, Shape, ValueType, is_one, type_of
from ninetoothed.symbols.expr import Symbol, minimum
from ninetoothed.symbols.expr import padded as next_power_of_two

#: Under the same name in both languages.
ELEMENTWISE = frozenset(names(lambda each: each.is_in_gluon and each.kind == "element-wise"))
REDUCTIONS = frozenset(names(lambda each: each.is_in_gluon and each.kind == "reduction"))

#: Functions of numbers: Python's, and Triton's.
NUMBERS = frozenset({"float", "int", "max", "min", "num_programs", "program_id"})

#: Columns of a row that one group of threads holds next to each other.
_PARTS = 8


class Types(Inference):
    """The inference of a program's types, of a lowered one.

    Args:
        parameters: the kernel's.
        names: of the function's parameters, each of them a number or an address.
    """

    def __init__(self, parameters: Iterable[Any], names: Iterable[str]) -> None:
        super().__init__({parameter.name: parameter for parameter in parameters})
        self.known = {**dict.fromkeys(names, ValueType(())), **self.known}

    def of(self, node: ast.expr) -> ValueType:
        if isinstance(type_of(node).number, Symbol):
            # Who made a size said which.
            return type_of(node)
        found, rule = super().of(node), _OF_CALLS.get(called(node))
        if rule is not None:
            assert isinstance(node, ast.Call)
            found = node.__dict__["type"] = rule(node, found)
        return found


def _product(call: ast.Call, found: ValueType) -> ValueType:
    # Of elements of 16 bits: the matrix unit takes no others here.
    return replace(found, dtype=dtypes.float32)


def _loaded(call: ast.Call, found: ValueType) -> ValueType:
    return ValueType(type_of(call.args[0]).shape)


def _number(call: ast.Call, found: ValueType) -> ValueType:
    return found if called(call) in REDUCTIONS and not isinstance(call.func, ast.Name) else COUNT


def _least(call: ast.Call, found: ValueType) -> ValueType:
    if not isinstance(call.func, ast.Name) or len(call.args) != 2:
        return _number(call, found)
    one, other = map(size_of, call.args)
    if one is None or other is None:
        return COUNT
    least = _lesser(one, other)
    return replace(COUNT, number=least if isinstance(least, int) else next_power_of_two(least))


def _negative(call: ast.Call, found: ValueType) -> ValueType:
    return replace(type_of(call.args[0]), is_natural=False, number=None)


def _column(call: ast.Call, found: ValueType) -> ValueType:
    value = type_of(call.args[0])
    return replace(value, shape=(*value.shape, 1) if value.shape else value.shape)


def _partial_sums(call: ast.Call, found: ValueType) -> ValueType:
    value = type_of(call.args[0])
    if value.rank != 2 or value.shape is None or None in value.shape:
        return ValueType()
    return replace(value, shape=(value.shape[0], _lesser(_PARTS, value.shape[1])))


def _lesser(one: Any, other: Any) -> Any:
    are_numbers = isinstance(one, int) and isinstance(other, int)
    return min(one, other) if are_numbers else minimum(one, other)


_OF_CALLS: dict[str, Callable[[ast.Call, ValueType], ValueType]] = {
    "dot": _product,
    "load": _loaded,
    "int": _number,
    "max": _number,
    "min": _least,
    "floor_quotient": _number,
    "negative": _negative,
    "as_column": _column,
    "partial_sums": _partial_sums,
}


class Sizes:
    """The sizes of a program's values; a value's type knows its shape.

    Args:
        width: gives a size as an expression of the kernel.

    Attributes:
        equal: pairs that must be the same.
    """

    def __init__(self, width: Callable[[Any], ast.expr]) -> None:
        self._width = width
        self._same: dict[Any, Any] = {}
        self.equal: list[tuple[Any, Any]] = []

    def shape(self, value: ast.expr) -> Shape:
        """A value's shape, each size the first of all that are the same; of numbers ()."""
        return tuple(map(self.same, type_of(value).shape or ()))

    def meet(self, one: Any, other: Any) -> None:
        """Takes note that two sizes must be the same."""
        one, other = self.same(one), self.same(other)
        if one is not other and one != other:
            self.equal.append((one, other))
            self._same[other] = one

    def same(self, size: Any) -> Any:
        """The first of all sizes that are the same as one."""
        while size in self._same:
            size = self._same[size]
        if isinstance(size, Symbol) and size.op == "max":
            # Two that have met as two sizes that may differ.
            first, second = map(self.same, size.operands)
            return first if first is second else size
        return size

    def tree(self, size: Any) -> ast.expr:
        """A size as an expression of the kernel."""
        if not isinstance(size, Symbol):
            return self._width(size)
        if size.op == "const":
            return self._width(size.operands[0])
        if size.op == "min":
            return ast.Call(ast.Name("min", ast.Load()), [*map(self.tree, size.operands)], [])
        return self._width(size)


def is_matrix(shape: Shape) -> bool:
    """Whether this has rows and columns, so that its shape says how it lies."""
    return len(shape) == 2 and not any(map(is_one, shape))
