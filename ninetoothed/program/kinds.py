"""What is known of a value in a Program besides its elements: one number or not, its type, its sign.

An element's type is known here as far as Python tells truth values, integers and floats apart; an
integer's sign as far as bounds of sizes, positions and loops tell it. No backend is known here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ninetoothed.language.dtypes import DType
from ninetoothed.program.effects import operation_of
from ninetoothed.program.nodes import (
    DTypeRef,
    Excluded,
    Forwarded,
    LanguageRef,
    Load,
    Mask,
    Offsets,
    SequenceLength,
    SourceLoad,
    SourceStride,
    SymbolValue,
    Widened,
)
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.access import access_of, positions


@dataclass(frozen=True)
class Kind:
    """What is known of a value.

    Attributes:
        element: ``"bool"``, ``"int"`` or ``"float"``; ``""`` where that is not known.
        is_scalar: whether it is known to be one number, and no tile.
        is_natural: whether every element that exists is known not to be negative.
    """

    element: str = ""
    is_scalar: bool = False
    is_natural: bool = False


UNKNOWN = Kind()
COUNT = Kind("int", is_scalar=True, is_natural=True)
TRUTH = Kind("bool", is_natural=True)


def met(one: Kind, other: Kind) -> Kind:
    """What holds of a value that is one or the other."""
    return Kind(
        one.element if one.element == other.element else "",
        one.is_scalar and other.is_scalar,
        one.is_natural and other.is_natural,
    )


def of_type(dtype: DType | None) -> Kind:
    """What an element type tells."""
    if not isinstance(dtype, DType):
        return UNKNOWN
    element = "int" if dtype.kind == "uint" else dtype.kind
    return Kind(element, is_natural=dtype.kind in ("uint", "bool"))


def together(*kinds: Kind) -> Kind:
    """The type and rank of values that meet element by element; natural where all are."""
    elements = {kind.element for kind in kinds}
    ranked = [element for element in ("float", "int", "bool") if element in elements]
    return Kind(
        "" if "" in elements or not ranked else ranked[0],
        all(kind.is_scalar for kind in kinds),
        all(kind.is_natural for kind in kinds),
    )


@dataclass
class Kinds:
    """What is known while a program is walked.

    Attributes:
        parameters: the program's, by name.
        booleans: the tensors known to hold truth values.
        known: the kinds of variables.
    """

    parameters: Mapping[str, Any]
    booleans: Collection[str] = ()
    known: dict[str, Kind] = field(default_factory=dict)

    def of(self, node: ast.AST | None) -> Kind:
        """What is known of an expression's value."""
        rule = _RULES.get(type(node))
        if rule is None:
            rule = next((r for kind, r in _RULES.items() if isinstance(node, kind)), None)
        return UNKNOWN if rule is None else rule(self, node)

    def all_of(self, nodes: Collection[ast.expr]) -> list[Kind]:
        return [self.of(node) for node in nodes]

    def of_tensor(self, parameter: str) -> Kind:
        """What is known of a tensor's elements."""
        if parameter in self.booleans:
            return TRUTH
        return of_type(self.parameters[parameter].dtype)


def _constant(kinds: Kinds, node: ast.Constant) -> Kind:
    value = node.value
    if isinstance(value, bool):
        return replace(TRUTH, is_scalar=True)
    if isinstance(value, int | float):
        return Kind("int" if isinstance(value, int) else "float", True, value >= 0)
    return replace(UNKNOWN, is_scalar=True)


def _symbol(kinds: Kinds, node: SymbolValue) -> Kind:
    return Kind("int", True, interval(node.symbol)[0] >= 0)


def _loaded(kinds: Kinds, node: Load | Forwarded) -> Kind:
    parameter = kinds.parameters[node.tile.parameter]
    return replace(kinds.of_tensor(parameter.name), is_scalar=not parameter.tile_shape)


def _offsets(kinds: Kinds, node: Offsets) -> Kind:
    """Positions are natural where no element of the tile can lie before its source."""
    parameter = kinds.parameters[node.tile.parameter]
    access = access_of(parameter.tensor, positions("program", parameter.levels[0]))
    reached = access.offset if node.dim is None else access.indices[node.dim]
    is_natural = node.dim is not None and interval(as_symbol(reached))[0] >= 0
    return Kind("int", not parameter.tile_shape, is_natural)


def _binary(kinds: Kinds, node: ast.BinOp) -> Kind:
    left, right = kinds.of(node.left), kinds.of(node.right)
    return operated(left, node.op, right)


def operated(left: Kind, op: ast.operator, right: Kind) -> Kind:
    """``left op right`` as Python has it."""
    result = together(left, right)
    if isinstance(op, ast.BitAnd):
        either = left.is_natural or right.is_natural
        return replace(result, is_natural=either and result.element in ("int", "bool"))
    if isinstance(op, ast.BitOr | ast.BitXor):
        return result
    element = "int" if result.element == "bool" else result.element
    if isinstance(op, ast.Div):
        element = "float"
    if isinstance(op, ast.Sub):
        return replace(result, element=element, is_natural=False)
    if isinstance(op, ast.Mod):
        return replace(result, element=element, is_natural=right.is_natural)
    if isinstance(op, ast.LShift | ast.RShift):
        return replace(result, element=element, is_natural=left.is_natural)
    return replace(result, element=element)


def _unary(kinds: Kinds, node: ast.UnaryOp) -> Kind:
    operand = kinds.of(node.operand)
    if isinstance(node.op, ast.Not):
        return replace(TRUTH, is_scalar=operand.is_scalar)
    if isinstance(node.op, ast.UAdd):
        return operand
    if isinstance(node.op, ast.Invert):
        return replace(operand, is_natural=operand.element == "bool")
    element = "int" if operand.element == "bool" else operand.element
    return replace(operand, element=element, is_natural=False)


def _compare(kinds: Kinds, node: ast.Compare) -> Kind:
    if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return replace(TRUTH, is_scalar=True)
    operands = kinds.all_of([node.left, *node.comparators])
    return replace(TRUTH, is_scalar=all(operand.is_scalar for operand in operands))


def _several(kinds: Kinds, node: ast.BoolOp) -> Kind:
    return together(*kinds.all_of(node.values))


def _choice(kinds: Kinds, node: ast.IfExp) -> Kind:
    return met(kinds.of(node.body), kinds.of(node.orelse))


def _subscript(kinds: Kinds, node: ast.Subscript) -> Kind:
    value = node.value
    if isinstance(value, ast.Attribute) and value.attr == "shape":
        return COUNT
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_view = all(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None)
        for part in parts
    )
    return replace(kinds.of(value), is_scalar=False) if is_view else UNKNOWN


def _attribute(kinds: Kinds, node: ast.Attribute) -> Kind:
    return kinds.of(node.value) if node.attr == "T" else UNKNOWN


def _called(kinds: Kinds, node: ast.Call) -> Kind:
    if isinstance(node.func, ast.Name):
        known = {"float": Kind("float", is_scalar=True), "len": COUNT}
        return known.get(node.func.id, UNKNOWN)
    operation = operation_of(node)
    if operation is None or operation.results > 1:
        return UNKNOWN
    own = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    nodes = [*own, *node.args, *(keyword.value for keyword in node.keywords)]
    operands = kinds.all_of(nodes)
    first = operands[0] if operands else UNKNOWN
    name = operation.name.rpartition(".")[2]
    if name in ("cast", "to"):
        return _cast(first, nodes[1:])
    if name in ("cdiv", "minimum", "add", "mul"):
        return together(*operands)
    if name == "maximum":
        return replace(together(*operands), is_natural=any(kind.is_natural for kind in operands))
    if name == "where" and len(operands) == 3:
        return replace(together(*operands[1:]), is_scalar=together(*operands).is_scalar)
    if name == "abs":
        return replace(first, is_natural=True)
    if name in ("max", "min", "sum"):
        element = "int" if first.element == "bool" else first.element
        return Kind(element, len(nodes) == 1, first.is_natural)
    if name == "item":
        return replace(first, is_scalar=True)
    if name in ("full", "zeros"):
        typed = next((of_type(n.dtype) for n in nodes if isinstance(n, DTypeRef)), UNKNOWN)
        value = COUNT if name == "zeros" else operands[1] if len(operands) > 1 else UNKNOWN
        return replace(typed, is_natural=value.is_natural)
    if name == "arange":
        return Kind("int", is_natural=first.is_natural)
    if operation.shape == "number":
        return COUNT
    if operation.gives_positions:
        return Kind("int", is_natural=True)
    if operation.kind == "hint" or operation.is_free:
        return first
    if operation.kind in ("movement", "scan", "sort"):
        return replace(first, element=first.element.replace("bool", ""))
    if operation.kind == "element-wise" and operation.home in ("math", "random"):
        return Kind(is_scalar=all(kind.is_scalar for kind in operands))
    return UNKNOWN


def _cast(value: Kind, types: list[ast.expr]) -> Kind:
    typed = UNKNOWN
    for node in types:
        if isinstance(node, DTypeRef):
            typed = of_type(node.dtype)
        elif isinstance(node, LanguageRef) and node.name in ("int1", "bool"):
            typed = TRUTH
    natural = typed.is_natural or (value.is_natural and typed.element != "")
    return Kind(typed.element, value.is_scalar, natural)


_RULES: dict[type, Callable[[Kinds, Any], Kind]] = {
    ast.Name: lambda kinds, node: kinds.known.get(node.id, UNKNOWN),
    ast.Constant: _constant,
    SymbolValue: _symbol,
    Widened: lambda kinds, node: COUNT,
    SequenceLength: lambda kinds, node: COUNT,
    SourceStride: lambda kinds, node: Kind("int", is_scalar=True),
    Load: _loaded,
    Forwarded: _loaded,
    SourceLoad: lambda kinds, node: replace(
        kinds.of_tensor(node.parameter),
        is_scalar=all(kind.is_scalar for kind in kinds.all_of(node.indices)),
    ),
    Offsets: _offsets,
    Mask: lambda kinds, node: TRUTH,
    Excluded: lambda kinds, node: kinds.of(node.value),
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _several,
    ast.IfExp: _choice,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.Call: _called,
}
