"""The arguments of a call in a Program, by place and by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from ninetoothed.language.operations import Operation
from ninetoothed.program.nodes import Padded, SymbolValue
from ninetoothed.program.types import Shape, padded, type_of
from ninetoothed.symbols.expr import Symbol, as_expression

#: What the functions of the language call their first argument.
FIRST = ("input", "x", "condition", "src", "a")


class Given:
    """The arguments of a call, a method's own value first."""

    def __init__(self, node: ast.Call) -> None:
        self.node = node
        self.first = 1 if isinstance(node.func, ast.Attribute) else 0
        self.keywords: dict[str, ast.expr] = {
            keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None
        }

    def get(self, index: int) -> ast.expr | None:
        """The node of an argument."""
        if isinstance(self.node.func, ast.Attribute) and index == 0:
            return self.node.func.value
        place = index - self.first
        if place < len(self.node.args):
            return self.node.args[place]
        if index == 0:
            for key in FIRST:
                if key in self.keywords:
                    return self.keywords[key]
        return None

    def node_of(self, name: str, index: int) -> ast.expr | None:
        """An argument's node, by name or place."""
        return self.keywords.get(name) or self.get(index)

    def has(self, name: str) -> bool:
        return name in self.keywords

    def constant(self, name: str, index: int) -> Any:
        """A literal argument by name or place; None where it is not given, `...` if no literal."""
        node = self.node_of(name, index)
        if node is None:
            return None
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return -value if isinstance(value, int) else ...
        return node.value if isinstance(node, ast.Constant) else ...

    def all_from(self, first: int) -> Iterator[ast.expr]:
        """The arguments by place from one on."""
        while (node := self.get(first)) is not None:
            yield node
            first += 1

    def listed(self, name: str, first: int, most: int | None = None) -> list[ast.expr]:
        """What is given one by one (so many at most), or as a tuple, or by name."""
        named = self.keywords.get(name)
        nodes = list(self.all_from(first))[:most] if named is None else [named]
        return list(nodes[0].elts) if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple) else nodes

    def numbers(self, name: str, first: int) -> list[int] | None:
        """Literal ints that are listed; None where there is anything else."""
        numbers = []
        for node in self.listed(name, first):
            sign = 1
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                sign, node = -1, node.operand
            if not (isinstance(node, ast.Constant) and isinstance(node.value, int)):
                return None
            numbers.append(sign * node.value)
        return numbers

    def shape(self, first: int, most: int | None = None) -> Shape | None:
        """A shape that is given; None where not even its length is known."""
        nodes = self.listed("shape", first, most)
        if len(nodes) == 1 and (items := type_of(nodes[0]).items) is not None:
            return tuple(_known(item.number) for item in items)
        if len(nodes) == 1 and size_of(nodes[0]) is None:
            return None if type_of(nodes[0]).shape != () else (None,)
        return tuple(map(size_of, nodes))

    def gives_positions(self, operation: Operation) -> bool:
        """Whether an operation gives places with these arguments, by themselves or beside elements."""
        place = operation.places.get("return_indices")
        is_asked = place is not None and self.constant("return_indices", place) is True
        return operation.gives_positions or is_asked

    def may_be_named(self, operation: Operation) -> bool:
        """Whether a pass may give names to what is given to an operation, which takes statements."""
        is_moved = operation.kind in ("movement", "rearrangement", "sort")
        return is_moved or operation.takes_function or self.gives_positions(operation)

    def left_out(self, operation: Operation) -> list[tuple[int, str, int | None]]:
        """The arguments of which what does not exist is left out.

        Returns:
            the argument's place, the identity that stands there, and the dimension along which elements
            are put together (None: all).
        """
        identity, form = operation.identity, operation.shape
        if identity is None or operation.takes_function:
            return []
        if form == "reduced":
            axis = self.constant("axis", operation.places["axis"])
            return [(0, identity, axis if isinstance(axis, int) else None)]
        if form == "product":
            return [(0, identity, -1), (1, identity, -2)]
        if form == "sorted":
            # Padding comes last.
            place = operation.places.get("descending")
            descending = place is not None and self.constant("descending", place)
            return [] if descending is ... else [(0, "lowest" if descending else identity, None)]
        return [(0, identity, None)] if form in ("scanned", "nothing") else []


def size_of(node: ast.expr) -> Any:
    """A dimension given in a Program; None where it is not known."""
    if isinstance(node, Padded):
        return size_of(node.value)
    if isinstance(node, SymbolValue):
        # Its number, where sizes are known (`inference.infer`).
        found = type_of(node).number
        return padded(node.symbol if found is None else found)
    if isinstance(node, ast.Constant):
        return padded(node.value) if isinstance(node.value, int) else None
    return _known(type_of(node).number)


def _known(number: Any) -> Any:
    """A number as a dimension; a symbol is one where it stands for its next power of two."""
    number = as_expression(number) if isinstance(number, Symbol) else number
    if isinstance(number, Symbol):
        return number.operands[0] if number.op == "padded" else None
    return number if isinstance(number, int) and number & (number - 1) == 0 else None
