"""Calls of the language's functions: folded where what they take is known, else put into the Program."""

from __future__ import annotations

import ast
import itertools
from typing import Any

from ninetoothed.errors import ApplicationError, failed_assertion, near
from ninetoothed.language import LanguageFunction, operations
from ninetoothed.language.operations import Operation
from ninetoothed.language.signatures import Signature, signature_of, words_of
from ninetoothed.parsing import source
from ninetoothed.parsing.objects import comes_from, is_inlined, literal, value_of
from ninetoothed.parsing.operators import OperatorFrame, is_symbolic, symbol_of
from ninetoothed.parsing.values import Function, Group, Known, Range, Runtime, Value, is_shape
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import called_name, is_effect, operation_of
from ninetoothed.symbols.operators import next_power_of_2

_RANGES = frozenset({"range", "static_range"})

#: What decides the shape or the kind of a result, by its name: the compiler has to know it.
_DECISIVE = frozenset("axis descending dim k keep_dims num_bins return_indices reverse".split())


class LanguageCallFrame(OperatorFrame):
    """A frame that calls the language."""

    def language_call(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """A call of the language's function ``name``."""
        reference = self.at(nodes.LanguageRef(name=name), node)
        return self.runtime_call(reference, arguments, keywords, node)

    def language_function(
        self,
        function: LanguageFunction,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
    ) -> Value:
        name = function.name
        self.check_call(f"ntl.{name}", signature_of(name), arguments, keywords, node)
        if name in _RANGES:
            return _range(function, arguments, keywords)
        if name == "constexpr":
            return next(iter((*arguments, *keywords.values())))
        if name == "static_assert":
            # Triton's has no names for what it is given.
            arguments = [*arguments, *(keywords[key] for key in ("cond", "msg") if key in keywords)]
            keywords = {}
            if self.truth(arguments[0]) is not None:
                return self.asserted(arguments, node)
        folded = self.folded(function, arguments, node)
        if folded is not None:
            return folded
        operation = operations.find(name)
        if operation is not None and operation.shape == "vector":
            return self._vector(name, arguments, keywords, node)
        if operation is not None and "shape" in operation.places:
            arguments, keywords = self.padded(operation, 0, arguments, keywords, node)
        elif operation is not None and operation.takes_constants:
            for value in (*arguments, *keywords.values()):
                self._check_size(value, node)
        return self.language_call(name, arguments, keywords, node)

    def check_call(
        self,
        called: str,
        signature: Signature | None,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.AST,
    ) -> None:
        """What a function or a method is given is what it takes."""
        problem = signature and signature.problem(len(arguments), keywords)
        if problem:
            raise self.error(node, f"`{called}` {problem}")

    def asserted(self, arguments: list[Value], node: ast.AST) -> Value:
        """An assertion that is decided now."""
        if self.truth(arguments[0]):
            return Known(None)
        text = arguments[1] if len(arguments) > 1 else Known("")
        raise self.error(node, failed_assertion(text.object if isinstance(text, Known) else ""))

    def folded(self, function: Any, arguments: list[Value], node: ast.AST) -> Value | None:
        """``cdiv`` and ``next_power_of_2`` of what is known, of symbolic sizes too."""
        name = str(getattr(function, "name", None) or getattr(function, "__name__", ""))
        ours = isinstance(function, LanguageFunction) or comes_from("triton", function)
        if not ours or not arguments:
            return None
        if name.rpartition(".")[2] == "cdiv" and len(arguments) == 2:
            return self.rounded_up(arguments[0], arguments[1], node)
        if not all(map(is_symbolic, arguments)):
            return None
        if name == "next_power_of_2" and len(arguments) == 1:
            size = symbol_of(arguments[0])
            if isinstance(size, int) and size > 0:
                return Known(next_power_of_2(size))
            return self._padded_size(arguments[0], node)
        return None

    def _vector(
        self, name: str, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """``arange``, held in as many elements as are asked for, padded."""
        bounds = {**dict(zip(("start", "end"), arguments, strict=False)), **keywords}
        if len(arguments) + len(keywords) != 2 or bounds.keys() != {"start", "end"}:
            return self.language_call(name, arguments, keywords, node)
        start, end = bounds["start"], bounds["end"]
        count = end
        if not _is_zero(start):
            for value in (start, end):
                self._check_size(value, node)
            if not (is_symbolic(start) and is_symbolic(end)):
                return self.language_call(name, [start, end], {}, node)
            count = self.binary(end, ast.Sub(), start, node)
        width = self._padded_size(count, node)
        if width is count:
            return self.language_call(name, [start, end], {}, node)
        places = self.language_call(name, [Known(0), width], {}, node)
        return places if _is_zero(start) else self.binary(start, ast.Add(), places, node)

    def padded(
        self,
        operation: Operation,
        bound: int,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
    ) -> tuple[list[Value], dict[str, Value]]:
        """The arguments with the dimensions of the shape among them padded.

        Args:
            bound: how many arguments stand elsewhere: 1 for a method's own value.
        """
        first = operation.places["shape"] - bound
        # What is made anew takes its shape as one argument, and others after it.
        last = first + 1 if operation.kind == "creation" else len(arguments)
        padded = [
            self._padded_shape(value, node) if first <= index < last else value
            for index, value in enumerate(arguments)
        ]
        if operation.kind != "creation" and any(self._is_size(v) for v in padded[first:last]):
            # Sizes side by side, of which Triton takes one alone for the whole shape.
            padded[first:last] = [Group(tuple(padded[first:last]))]
        return padded, {
            key: self._padded_shape(value, node) if key == "shape" else value
            for key, value in keywords.items()
        }

    @staticmethod
    def _is_size(value: Value) -> bool:
        """Whether a part of a shape is one size, and not a whole shape."""
        is_whole = isinstance(value, Runtime) and isinstance(value.node, ast.Attribute)
        return not (is_whole or isinstance(value, Group))

    def _padded_shape(self, value: Value, node: ast.AST) -> Value:
        if isinstance(value, Group):
            return Group(
                tuple(self._padded_size(item, node) for item in self.elements(value, node))
            )
        # A whole shape that the running kernel has is that of a tile, padded already.
        if isinstance(value, Runtime) and is_shape(value.node):
            return value
        return self._padded_size(value, node)

    def _padded_size(self, value: Value, node: ast.AST) -> Value:
        if isinstance(value, Known):
            size = literal(value.object)
            if isinstance(size, bool) or not isinstance(size, int) or size & (size - 1) == 0:
                return value
            # What is made exists in the size that is asked for.
            return (
                Runtime(self.at(nodes.Padded(value=self.expression(value, node)), node))
                if size > 0
                else value
            )
        if isinstance(value, Runtime) and is_shape(value.node):
            return value
        if isinstance(value, Runtime) and isinstance(value.node, nodes.SequenceLength):
            size = f"{value.node.parameter}.source.shape[{value.node.dim}]"
            raise self.error(
                node,
                f"`{size}` is the length of the sequence at hand, and the size of a tile is the same "
                "in every program. Take that of a tile that the arrangement made.",
            )
        self._check_size(value, node)
        return Runtime(self.at(nodes.Padded(value=self.expression(value, node)), node))

    def _check_size(self, value: Value, node: ast.AST) -> None:
        """A tile's size is the same in every program: it is made of constants and of sizes."""
        if not isinstance(value, Runtime):
            return
        names = self.state.constants
        if not is_constant(_without_shapes(value.node), names):
            text = ast.unparse(node)
            raise self.error(
                node,
                f"The size of a tile is needed at compile time, and in `{text}` it is computed as the "
                "kernel runs. Make it of `.shape`, of `constexpr` symbols and of numbers; what lies "
                "beyond a smaller number of elements can be left out with `ntl.where`.",
            )

    def runtime_call(
        self, function: ast.expr, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Runtime:
        arguments, keywords = _in_place(function, arguments, keywords)
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
        self._check_constants(call, node)
        if (operation := operation_of(call)) is not None and operation.kind == "atomic":
            before = self.saved(call, node, "before")
            self.state.atomic = self.state.block[-1]
            return Runtime(before)
        self.state.effects += is_effect(call)
        return Runtime(call)

    def _check_constants(self, call: ast.Call, node: ast.AST) -> None:
        """What decides the shape or the kind of a result is known when the kernel is compiled."""
        name, arguments = called_name(call), Given(call)
        signature = signature_of(name)
        for place, key in enumerate(signature.names if signature else ()):
            what, words = f"`{key}` of `ntl.{name}`", words_of(name, key)
            if key == "*dims":
                for dim in arguments.all_from(place):
                    self.require_constant(dim, what, node)
            elif words or key in _DECISIVE:
                given = arguments.node_of(key, place)
                if given is not None:
                    self.require_constant(given, what, node)
                if words and isinstance(given, ast.Constant):
                    self._check_word(given.value, words, what, node)

    def _check_word(self, word: object, words: tuple[str, ...], what: str, node: ast.AST) -> None:
        if word not in (None, "") and str(word).lower() not in words:
            known = ", ".join(map(repr, words))
            raise self.error(
                node, f"{what} is one of {known}, but got {word!r}.{near(str(word), words)}"
            )

    def check_static(self, value: Range, node: ast.AST) -> None:
        """The compiler unrolls a loop over ``static_range``."""
        for item in value.arguments:
            self.require_constant(
                self.expression(item, node), "A bound of `ntl.static_range`", node
            )

    def require_constant(self, given: ast.expr, what: str, node: ast.AST) -> None:
        """A value that the compiler has to know, as it does sizes where it needs them."""
        if not self.is_constant(_without_shapes(given)):
            raise self.error(
                node,
                f"{what} is needed at compile time, and the running kernel computes it here. Give a constant, "
                "such as that of `Tensor(0, constexpr=True)`.",
            )

    def _given(self, value: Value, node: ast.Call, origin: ast.AST) -> ast.expr:
        """An argument's node; a function becomes a helper that the language calls back."""
        if isinstance(value, Known) and is_inlined(value.object):
            value = self.function_value(value.object, node)
        if isinstance(value, Function):
            return self.at(nodes.ExternRef(name=self.helper(value, node)), origin)
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


def _in_place(
    function: ast.expr, arguments: list[Value], keywords: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments of a call, with the operands among them that are given by name where they stand."""
    is_method, operation = isinstance(function, ast.Attribute), None
    if isinstance(function, ast.Attribute):
        operation = operations.find(function.attr)
    elif isinstance(function, nodes.LanguageRef):
        operation = operations.find(function.name)
    names = operation.operands[len(arguments) + is_method :] if operation is not None else ()
    given = list(itertools.takewhile(keywords.__contains__, names))
    rest = {key: value for key, value in keywords.items() if key not in given}
    return [*arguments, *(keywords[key] for key in given)], rest


def _range(function: LanguageFunction, arguments: list[Value], keywords: dict[str, Value]) -> Range:
    """A range of the language, with its bounds in their places; other keywords are hints."""
    names = ("arg1", "arg2", "step")
    bounds = {**dict(zip(names, arguments, strict=False)), **keywords}
    start, stop, step = map(bounds.get, names)
    if stop is None and step is not None:
        start, stop = Known(0), start
    places = tuple(each for each in (start, stop, step) if each is not None)
    hints = {key: value for key, value in keywords.items() if key not in names}
    return Range(Known(function), places, hints)


def _is_zero(value: Value) -> bool:
    return isinstance(value, Known) and literal(value.object) == 0


def _without_shapes(node: ast.expr) -> ast.expr:
    """An expression with a number for each dimension of a shape, which is known."""
    result: ast.expr = _Numbers().visit(nodes.clone(node))
    return result


class _Numbers(ast.NodeTransformer):
    """Puts numbers in the places of sizes."""

    def visit(self, part: ast.AST) -> Any:
        if isinstance(part, ast.expr) and (is_shape(part) or isinstance(part, _SIZES)):
            return ast.Constant(value=1)
        part = self.generic_visit(part)
        if isinstance(part, ast.Call) and isinstance(part.func, nodes.LanguageRef):
            # Not those that ask the running kernel, or make tiles.
            operation = operation_of(part)
            if operation is not None and operation.is_elementwise:
                return ast.Tuple(elts=part.args)
        return part


#: What stands for a size, which the compiler is given where a tile's shape needs it.
_SIZES = (nodes.SymbolValue, nodes.Padded)
