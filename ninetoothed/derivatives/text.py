"""Statements of a Program as the source of an application, and the function that it defines."""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Mapping, Sequence
from typing import Any

import ninetoothed.language as ntl
from ninetoothed.derivatives.tape import AtomicSum, origin_of
from ninetoothed.errors import Location
from ninetoothed.parsing.source import keep
from ninetoothed.program import nodes
from ninetoothed.program.effects import statements_of
from ninetoothed.program.frozen import kind_of
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.views import Chosen, Fixed

_numbers = itertools.count(1)


def function_of(
    name: str,
    parameters: Sequence[str],
    body: Sequence[ast.stmt],
    levels: Mapping[str, Sequence[int]],
    symbols: Mapping[Symbol, str],
    module: str,
    about: str,
    beginning: Location,
) -> types.FunctionType:
    """An application, made of statements.

    Args:
        levels: for each tensor in how many dimensions each of its middle levels is selected.
        symbols: the names of the symbols in the statements.
        module: the module that it is to belong to.
        about: its docstring.
        beginning: where the application stands that the statements are of.
    """
    lowering = _Lowering(levels, symbols)
    lowered = [lowering.visit(nodes.clone(statement)) for statement in body]
    text = ast.unparse(ast.fix_missing_locations(ast.Module(lowered or [ast.Pass()], [])))
    lines = [f"def {name}({', '.join(parameters)}):", f'    """{about}"""', ""]
    lines += [f"    {line}" for line in text.splitlines()]
    source = "\n".join(lines) + "\n"
    file = f"<{name} {next(_numbers)}>"
    keep(file, source, _origins(body, len(lines) - len(text.splitlines()) + 1), beginning)
    namespace: dict[str, Any] = {symbols[symbol]: symbol for symbol in lowering.used}
    namespace |= {lowering.language: ntl, "__name__": module}
    exec(compile(source, file, "exec"), namespace)
    function: types.FunctionType = namespace[name]
    return function


def _origins(body: Sequence[ast.stmt], first: int) -> dict[int, Location]:
    """Where statements stand in what they were made of, where that is known, by their lines in the text.

    Args:
        first: the first of these.
    """
    statements = itertools.chain.from_iterable(map(statements_of, body))
    places = ((line, origin_of(each)) for line, each in enumerate(statements, first))
    return {line: place for line, place in places if place is not None}


def is_written(node: ast.AST) -> bool:
    """Whether a Program's node can be said in the language."""
    return kind_of(node).__module__ != nodes.Store.__module__ or kind_of(node) in _LOWERED


class _Lowering(ast.NodeTransformer):
    """The Program's nodes as Python in the language.

    Attributes:
        used: the symbols that the text names.
        language: what it calls the language.
    """

    def __init__(self, levels: Mapping[str, Sequence[int]], symbols: Mapping[Symbol, str]) -> None:
        self.levels, self.symbols = levels, symbols
        self.used: dict[Symbol, None] = {}
        self.language = "ntl"

    def visit(self, node: ast.AST) -> Any:
        lower = _LOWERED.get(kind_of(node))
        return self.generic_visit(node) if lower is None else lower(self, node)

    def symbol(self, node: nodes.SymbolValue) -> ast.expr:
        def name_of(symbol: Symbol) -> ast.expr:
            self.used[symbol] = None
            return _name(self.symbols[symbol])

        return as_symbol(node.symbol).ast(name_of)

    def tile(self, node: nodes.TileRef) -> ast.expr:
        return self.selected(node.parameter, node.indices)

    def selected(self, parameter: str, indices: Sequence[ast.expr]) -> ast.expr:
        """``x[i, j][k]``: a subscript for each middle level."""
        found: ast.expr = _name(parameter)
        left = iter([self.visit(index) for index in indices])
        for count in self.levels[parameter]:
            if count:
                found = _subscript(found, list(itertools.islice(left, count)))
        return found

    def offsets(self, node: nodes.Offsets) -> ast.expr:
        function = ast.Attribute(self.tile(node.tile), "offsets", ast.Load())
        arguments: list[ast.expr] = [] if node.dim is None else [ast.Constant(node.dim)]
        return ast.Call(function, arguments, [])

    def elements(self, node: nodes.ElementLoad) -> ast.expr:
        count = len(node.indices) - node.view.chosen
        chosen = iter([self.visit(index) for index in node.indices[count:]])
        entries: list[ast.expr] = []
        for entry in node.view.entries:
            if isinstance(entry, Chosen):
                entries.append(next(chosen))
            elif isinstance(entry, Fixed):
                entries.append(self.symbol(nodes.SymbolValue(symbol=entry.position)))
            else:
                start, size = as_symbol(entry.start), as_symbol(entry.count)
                parts = [start, start + size * entry.step, as_symbol(entry.step)]
                entries.append(
                    ast.Slice(*(self.symbol(nodes.SymbolValue(symbol=p)) for p in parts))
                )
        return _subscript(self.selected(node.parameter, node.indices[:count]), entries)

    def of_source(self, parameter: str, attribute: str) -> ast.expr:
        source = ast.Attribute(_name(parameter), "source", ast.Load())
        return ast.Attribute(source, attribute, ast.Load())

    def called(self, parameter: str, method: str, *arguments: Any) -> ast.expr:
        function = ast.Attribute(_name(parameter), method, ast.Load())
        return ast.Call(function, [ast.Constant(each) for each in arguments], [])

    def length(self, node: nodes.SequenceLength) -> ast.expr:
        return _subscript(self.of_source(node.parameter, "shape"), [ast.Constant(node.dim)])

    def of_language(self, name: str) -> ast.expr:
        found: ast.expr = _name(self.language)
        for part in name.split("."):
            found = ast.Attribute(found, part, ast.Load())
        return found

    def call(self, node: ast.Call) -> ast.expr:
        dtype = node.args[-1] if node.args else None
        if isinstance(dtype, nodes.NumberType):
            function = _name("float" if dtype.dtype.is_floating() else "int")
            return ast.Call(function, [self.visit(node.args[0])], [])
        made: ast.expr = self.generic_visit(node)  # type: ignore[assignment]
        return made

    def store(self, node: nodes.Store) -> ast.stmt:
        target: Any = self.tile(node.tile)
        target.ctx = ast.Store()
        return ast.Assign([target], self.visit(node.value))

    def atomic_sum(self, node: AtomicSum) -> ast.stmt:
        function = self.of_language("atomic_add")
        return ast.Expr(ast.Call(function, [self.tile(node.tile), self.visit(node.value)], []))


def _name(text: str) -> ast.Name:
    return ast.Name(id=text, ctx=ast.Load())


def _subscript(value: ast.expr, entries: list[ast.expr]) -> ast.expr:
    index = entries[0] if len(entries) == 1 else ast.Tuple(entries, ast.Load())
    return ast.Subscript(value, index, ast.Load())


_LOWERED: dict[type, Any] = {
    nodes.TileRef: _Lowering.tile,
    nodes.Load: lambda to, node: to.tile(node.tile),
    nodes.Store: _Lowering.store,
    AtomicSum: _Lowering.atomic_sum,
    nodes.Offsets: _Lowering.offsets,
    nodes.ElementLoad: _Lowering.elements,
    nodes.SymbolValue: _Lowering.symbol,
    nodes.SourcePointer: lambda to, node: to.called(node.parameter, "data_ptr"),
    nodes.ElementType: lambda to, node: to.of_source(node.parameter, "dtype"),
    nodes.SequenceLength: _Lowering.length,
    nodes.SourceLoad: lambda to, node: _subscript(
        ast.Attribute(_name(node.parameter), "source", ast.Load()),
        [to.visit(index) for index in node.indices],
    ),
    ast.Call: _Lowering.call,
    nodes.DTypeRef: lambda to, node: to.of_language(node.dtype.triton_name),
    nodes.LanguageRef: lambda to, node: to.of_language(node.name),
    nodes.Padded: lambda to, node: to.visit(node.value),
}
