"""Calls of the language's functions: folded where what they take is known, else put into the Program."""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.errors import ApplicationError
from ninetoothed.language import LanguageFunction, operations
from ninetoothed.language.operations import Operation
from ninetoothed.parsing import source
from ninetoothed.parsing.expressions import is_shape
from ninetoothed.parsing.objects import comes_from, is_inlined, value_of
from ninetoothed.parsing.operators import OperatorFrame, is_symbolic, symbol_of
from ninetoothed.parsing.values import Function, Group, Known, Range, Runtime, Value
from ninetoothed.program.effects import is_effect
from ninetoothed.program.nodes import ExternRef, LanguageRef, SequenceLength, Widened

_RANGES = frozenset({"range", "static_range"})


class LanguageCallFrame(OperatorFrame):
    """A frame that calls the language."""

    def language_call(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """A call of the language's function ``name``."""
        reference = self.at(LanguageRef(name=name), node)
        return self.runtime_call(reference, arguments, keywords, node)

    def language_function(
        self,
        function: LanguageFunction,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
    ) -> Value:
        name = function.name
        if name in _RANGES:
            return Range(Known(function), tuple(arguments), keywords)
        if name == "constexpr" and len(arguments) == 1:
            return arguments[0]
        if name == "static_assert" and arguments and self.truth(arguments[0]) is not None:
            return self.asserted(arguments, node)
        folded = self.folded(function, arguments, node)
        if folded is not None:
            return folded
        operation = operations.find(name)
        if operation is not None and "shape" in operation.places:
            arguments, keywords = self.widened(operation, 0, arguments, keywords, node)
        return self.language_call(name, arguments, keywords, node)

    def asserted(self, arguments: list[Value], node: ast.AST) -> Value:
        """An assertion that is decided now."""
        if self.truth(arguments[0]):
            return Known(None)
        text = arguments[1] if len(arguments) > 1 else Known("")
        words = f": {text.object}" if isinstance(text, Known) and text.object else "."
        raise self.error(node, f"An assertion of the application fails{words}")

    def folded(self, function: Any, arguments: list[Value], node: ast.AST) -> Value | None:
        """``cdiv`` and ``next_power_of_2`` of what is known, of symbolic sizes too."""
        name = str(getattr(function, "name", None) or getattr(function, "__name__", ""))
        ours = isinstance(function, LanguageFunction) or comes_from("triton", function)
        if not ours or not arguments or not all(map(is_symbolic, arguments)):
            return None
        if name.endswith("cdiv") and len(arguments) == 2:
            one, other = map(symbol_of, arguments)
            return self.computed(lambda: (one + other - 1) // other, node)
        if name == "next_power_of_2" and len(arguments) == 1:
            return self._widened_size(arguments[0], node)
        return None

    def widened(
        self,
        operation: Operation,
        bound: int,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
    ) -> tuple[list[Value], dict[str, Value]]:
        """The arguments with the dimensions of the shape among them widened.

        Args:
            bound: how many arguments stand elsewhere: 1 for a method's own value.
        """
        first = operation.places["shape"] - bound
        # What is made anew takes its shape as one argument, and others after it.
        last = first + 1 if operation.kind == "creation" else len(arguments)
        widened = [
            self._widened_shape(value, node) if first <= index < last else value
            for index, value in enumerate(arguments)
        ]
        return widened, {
            key: self._widened_shape(value, node) if key == "shape" else value
            for key, value in keywords.items()
        }

    def _widened_shape(self, value: Value, node: ast.AST) -> Value:
        if isinstance(value, Group):
            return Group(tuple(self._widened_size(item, node) for item in value.items))
        # A whole shape that the running kernel has is that of a tile, widened already.
        if isinstance(value, Runtime) and is_shape(value.node):
            return value
        return self._widened_size(value, node)

    def _widened_size(self, value: Value, node: ast.AST) -> Value:
        if isinstance(value, Known):
            size = value.object
            if isinstance(size, int) and size > 0:
                return Known(1 << (size - 1).bit_length())
            return value
        if isinstance(value, Runtime) and is_shape(value.node):
            return value
        if isinstance(value, Runtime) and isinstance(value.node, SequenceLength):
            size = f"{value.node.parameter}.source.shape[{value.node.dim}]"
            raise self.error(
                node,
                f"`{size}` is the length of the sequence at hand, and the size of a tile is the same "
                "in every program. Take that of a tile that the arrangement made.",
            )
        return Runtime(self.at(Widened(value=self.expression(value, node)), node))

    def runtime_call(
        self,
        function: ast.expr,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
    ) -> Runtime:
        # Stars, and what we add ourselves, make more arguments than were written.
        origins = [*node.args, *(node for _ in arguments)]
        positional = [
            self._given(value, node, origin)
            for value, origin in zip(arguments, origins, strict=False)
        ]
        named = [
            self.at(ast.keyword(arg=key, value=self._given(value, node, node)), node)
            for key, value in keywords.items()
        ]
        call = self.at(ast.Call(func=function, args=positional, keywords=named), node)
        self.state.effects += is_effect(call)
        return Runtime(call)

    def _given(self, value: Value, node: ast.Call, origin: ast.AST) -> ast.expr:
        """An argument's node; a function becomes a helper that the language calls back."""
        if isinstance(value, Known) and is_inlined(value.object):
            value = self.function_value(value.object, node)
        if isinstance(value, Function):
            return self.at(ExternRef(name=self.helper(value, node)), origin)
        return self.expression(value, origin)

    def function_value(self, function: Any, node: ast.AST) -> Function:
        """A Python function, read from its source."""
        try:
            found = source.read(function)
        except ApplicationError as error:
            raise self.error(node, error.message) from error
        return function_of(found)

    def helper(self, function: Function, node: ast.Call) -> str:
        """The name of a function that the language calls back, evaluated on its own."""
        raise NotImplementedError


def function_of(found: source.FunctionSource) -> Function:
    """A function read from a file, to be inlined."""

    def resolve(name: str, node: ast.AST) -> Value:
        return value_of(found.resolve(name, node))

    defaults = {name: value_of(item) for name, item in found.defaults.items()}
    return Function(found.tree, found.file, resolve, defaults, found.function)
