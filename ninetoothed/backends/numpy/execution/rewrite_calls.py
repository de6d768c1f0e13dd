"""The change of an application's calls, see `ninetoothed.backends.numpy.execution.rewrite`."""

from __future__ import annotations

import ast
import enum
import itertools
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ninetoothed import threads
from ninetoothed.backends.numpy.execution import trees
from ninetoothed.backends.numpy.execution.functions import OWN_BUILTINS, is_direct, is_user_function
from ninetoothed.backends.numpy.execution.helpers import Helpers
from ninetoothed.backends.numpy.execution.rewrite_expressions import (
    METADATA,
    UNKNOWN,
    ExpressionRewriter,
    is_one_of,
)
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.language import LanguageFunction, operations
from ninetoothed.parsing import source as sources
from ninetoothed.parsing.elements import is_whole
from ninetoothed.parsing.objects import is_triton_function
from ninetoothed.parsing.source import FunctionSource
from ninetoothed.parsing.syntax import walks
from ninetoothed.program.effects import is_atomic

#: Of Python's own functions, those that ask what an object is: a member of an enumeration is not its value there.
_OF_OBJECTS = (isinstance, type, str, repr, hasattr)


class CallRewriter(ExpressionRewriter):
    """Rewrites calls.

    Args:
        helpers: what is known of the functions that are called.
    """

    def __init__(
        self, source: FunctionSource, names: Mapping[str, Any], helpers: Helpers | None = None
    ) -> None:
        super().__init__(source, names)
        self.helpers = helpers or Helpers(type(self))
        definitions = (n for n in ast.walk(source.tree) if isinstance(n, ast.FunctionDef))
        self._defined = {definition.name for definition in definitions} - {source.tree.name}
        #: Functions within, of which it is being asked whether they do more than return: they may call themselves.
        self._asked: set[ast.AST] = set()

    def assigned(self) -> frozenset[str]:
        """The parameters that the function assigns, by calls of helpers too."""
        if not self.storing:
            return frozenset()
        return frozenset(self.storing & self.assigned_in(self.source.tree.body).keys())

    @threads.cached_property
    def storing(self) -> set[str]:
        """The parameters whose assignment stores, or rebinds a variable of the caller's."""
        tree = self.source.tree
        return set() if walks.returns_value(tree) else {*trees.argument_keys(tree.args).values()}

    def assigned_in(self, statements: Iterable[ast.AST]) -> dict[str, bool]:
        """The names that statements assign, by calls of helpers too, and whether they are sure to.

        What is called may be known to the running program alone, and with it what it assigns.
        """
        names: dict[str, bool] = {}
        pending = list(statements)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                pending.extend(walks.defaults_of(node))
                continue
            if isinstance(node, ast.ClassDef):
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = True
            elif isinstance(node, ast.Call):
                for name, is_sure in self._handed_over(node).items():
                    names[name] = is_sure or names.get(name, False)
            pending.extend(ast.iter_child_nodes(node))
        return names

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.resolved(node.func)
        if self.truncates and _is_cdiv(node.func, function):
            own = trees.hook_call("__upward__", *node.args)
            own.keywords = node.keywords
            if function is UNKNOWN and isinstance(node.func, ast.Attribute):
                own.args.insert(0, node.func.value)
            return self._with_values(trees.placed_at(own, node))
        if function is UNKNOWN:
            if isinstance(node.func, ast.Attribute) and _is_of_tiles(node.func.attr):
                node.func.value = trees.hook_call("__owner__", self.reference(node.func.value))
                return self._with_values(node)
            return self._read(self._invoked(node, function))
        if isinstance(function, LanguageFunction) and is_atomic(function.name):
            return self._atomic(node, function.name)
        if not is_direct(function):
            return self._read(self._invoked(node, function))
        if is_one_of(function, (getattr,)) and len(node.args) == 2 and not node.keywords:
            owner, name = node.args
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                # A tile's shape, say, is that of the tile, and not of what it holds.
                return self.visit(
                    trees.placed_at(ast.Attribute(owner, name.value, ast.Load()), node)
                )
        if is_one_of(function, OWN_BUILTINS):
            own = trees.hook_call("__builtin__", ast.Constant(function.__name__))
            node.func = ast.copy_location(own, node.func)
        if is_one_of(function, (range,)):
            node.func = ast.copy_location(trees.name_of("__range__"), node.func)
        if is_one_of(function, _OF_OBJECTS) and any(map(self._is_member, node.args[:1])):
            return node
        return self._with_values(node)

    def _is_member(self, node: ast.expr) -> bool:
        return isinstance(self.resolved(node), enum.Enum)

    def _atomic(self, node: ast.Call, name: str) -> ast.Call:
        """An atomic operation, which is given the place of what stands first."""
        given = [keyword.value for keyword in node.keywords if keyword.arg == "pointer"]
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "pointer"]
        node.args = [*given, *node.args]
        first = node.args[0]
        while (
            isinstance(first, ast.Subscript)
            and isinstance(first.value, ast.Subscript)
            and is_whole(first.slice)
        ):
            first = first.value
        if isinstance(first, ast.Subscript):
            key = self.positions(first.slice)
            place = trees.hook_call("__place__", self.reference(first.value), key)
        else:
            place = trees.hook_call("__place__", self.reference(first))
        rest = self._with_values(ast.Call(node.func, node.args[1:], node.keywords))
        call = trees.hook_call("__atomic__", ast.Constant(name), place, *rest.args)
        call.keywords = rest.keywords
        return trees.placed_at(call, node)

    def _with_values(self, node: ast.Call) -> ast.Call:
        node.args = [self._argument(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self._argument(keyword.value)
        return node

    def _argument(self, node: ast.expr) -> ast.expr:
        """An argument as a value; a user's function as one that the language can call back."""
        function = self.resolved(node)
        is_local = isinstance(node, ast.Name) and node.id in self._defined
        is_function = function is not UNKNOWN and (
            is_user_function(function) or is_triton_function(function)
        )
        if is_local or is_function or isinstance(node, ast.Lambda):
            return ast.copy_location(trees.hook_call("__function__", node), node)
        return self.number(node)

    def _read(self, node: ast.expr) -> ast.expr:
        """The value of what a helper gives, which may be a tile that it was given."""
        return ast.copy_location(trees.hook_call("__read__", node), node)

    def _invoked(self, node: ast.Call, function: Any) -> ast.expr:
        """A call of a user's function; local variables that it assigns are bound anew."""
        rebound = self._rebound(node, function)
        callee = node.func if function is not UNKNOWN else self.reference(node.func)
        node.func = ast.copy_location(trees.hook_call("__invoke__", callee), callee)
        node.args = [self.reference(argument) for argument in node.args]
        for keyword in node.keywords:
            if keyword.arg is None and isinstance(keyword.value, ast.Dict):
                entries = keyword.value
                entries.keys = [key and self.visit(key) for key in entries.keys]
                entries.values = [self.reference(item) for item in entries.values]
            else:
                keyword.value = self.reference(keyword.value)
        if not rebound:
            return ast.copy_location(ast.Attribute(node, "result", ast.Load()), node)
        outcome = self.temporary("outcome")
        steps: list[ast.expr] = [ast.NamedExpr(trees.name_of(outcome, ast.Store()), node)]
        for name, key in rebound:
            last = ast.Attribute(trees.name_of(outcome), "last", ast.Load())
            value = ast.Call(last, [ast.Constant(key), trees.name_of(name)], [])
            steps.append(ast.NamedExpr(trees.name_of(name, ast.Store()), value))
        steps.append(ast.Attribute(trees.name_of(outcome), "result", ast.Load()))
        result = ast.Subscript(ast.Tuple(steps, ast.Load()), ast.Constant(-1), ast.Load())
        return trees.placed_at(result, node)

    def _rebound(self, node: ast.Call, function: Any) -> list[tuple[str, int | str]]:
        """The local names handed over that the function may assign: (name, position or keyword)."""
        if function is UNKNOWN and isinstance(node.func, ast.Name):
            within = trees.function_within(self.source.tree, node.func.id)
            if isinstance(within, ast.Lambda) or (within and walks.returns_value(within)):
                return []
        assigned = self._assigned_by(function)
        return [
            (value.id, key)
            for key, value in _given(node)
            if isinstance(value, ast.Name) and value.id in self.locals - self.own
            if assigned is None or key in assigned
        ]

    def does_more(self, node: ast.AST) -> bool:
        """Whether an expression calls a function of the user's that has statements of its own."""
        calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        return any(map(self._does_more, calls))

    def open_functions(self, node: ast.AST) -> list[str]:
        """The names of functions that only the running program knows, where nothing else does more."""
        parts = list(ast.walk(node))
        calls = [part.func for part in parts if isinstance(part, ast.Call)]
        names = [each.id for each in calls if isinstance(each, ast.Name) and self._is_open(each)]
        others = (each for each in calls if not (isinstance(each, ast.Name) and each.id in names))
        is_named = any(isinstance(part, ast.NamedExpr) for part in parts)
        return [] if is_named or any(map(self._does_more, others)) else list(dict.fromkeys(names))

    def _is_open(self, node: ast.Name) -> bool:
        within = trees.function_within(self.source.tree, node.id)
        return self.resolved(node) is UNKNOWN and within is None

    def is_harmless(self, node: ast.AST) -> bool:
        """Whether an expression may be evaluated for its type where Python would not ask for it."""
        parts = list(ast.walk(node))
        if self.does_more(node) or any(isinstance(part, ast.NamedExpr) for part in parts):
            return False
        return not any(self._has_effect(p.func) for p in parts if isinstance(p, ast.Call))

    def _has_effect(self, node: ast.expr) -> bool:
        """Whether what is called does more than read, itself or in a function."""
        function = self.resolved(node)
        plain = function.fn if is_triton_function(function) else function
        if isinstance(plain, types.FunctionType) and not is_direct(plain):
            return self.helpers.has_effect(sources.read(plain))
        name = node.attr if isinstance(node, ast.Attribute) else getattr(function, "name", "")
        operation = operations.find(name)
        return operation is not None and operation.effect not in ("none", "reads")

    def _does_more(self, node: ast.expr) -> bool:
        """Whether what is called does more than return an expression; yes where it is unknown."""
        function = self.resolved(node)
        if function is UNKNOWN:
            if isinstance(node, ast.Name):
                return self._within_does_more(node.id)
            return not (isinstance(node, ast.Attribute) and _is_of_tiles(node.attr))
        return self.helpers.call_does_more(function)

    def _within_does_more(self, name: str) -> bool:
        """The same of a function that is defined within; yes where the name may stand for something else."""
        function = trees.function_within(self.source.tree, name)
        if function is None or function in self._asked:
            return True
        self._asked.add(function)
        try:
            return not _returns_alone(function) or self.does_more(function)
        finally:
            self._asked.remove(function)

    def has_statements(self) -> bool:
        """Whether the function itself does more than return an expression, or what it calls does."""
        return not _returns_alone(self.source.tree) or self.does_more(self.source.tree)

    def _handed_over(self, node: ast.Call) -> dict[str, bool]:
        """The local names that a call may assign, and whether it is known to."""
        function = self.resolved(node.func)
        if function is UNKNOWN:
            if isinstance(node.func, ast.Attribute) and _is_of_tiles(node.func.attr):
                return {}
        elif is_direct(function):
            return {}
        sure = self._surely_assigned_by(node.func)
        return {name: key in sure for name, key in self._rebound(node, function)}

    def _surely_assigned_by(self, node: ast.expr) -> frozenset[int | str]:
        """Places and keywords of the parameters that what is called is known to assign."""
        function = self.resolved(node)
        if function is not UNKNOWN:
            return self._assigned_by(function) or frozenset()
        within = isinstance(node, ast.Name) and trees.function_within(self.source.tree, node.id)
        if not isinstance(within, ast.FunctionDef) or within in self._asked:
            return frozenset()
        if walks.returns_value(within):
            # It rebinds its parameters for itself alone.
            return frozenset()
        self._asked.add(within)
        try:
            names = {*walks.assigned_names(within.body)}
            parts = [part for each in within.body for part in walks.of_one_function(each)]
            for call in (part for part in parts if isinstance(part, ast.Call)):
                sure, given = self._surely_assigned_by(call.func), _given(call)
                names |= {v.id for key, v in given if key in sure and isinstance(v, ast.Name)}
        finally:
            self._asked.remove(within)
        keys = trees.argument_keys(within.args)
        return frozenset(key for key, name in keys.items() if name in names)

    def _assigned_by(self, function: Any) -> frozenset[int | str] | None:
        """Places and keywords of the parameters that a function assigns; None where unknown."""
        if is_triton_function(function):
            return frozenset()
        if not isinstance(function, types.FunctionType):
            return None
        source = sources.read(function)
        assigned = self.helpers.assigned(source)
        keys = trees.argument_keys(source.tree.args)
        return frozenset(key for key, name in keys.items() if name in assigned)


def _given(node: ast.Call) -> list[tuple[int | str, ast.expr]]:
    """The arguments of a call whose place or keyword is known."""
    places = itertools.takewhile(
        lambda item: not isinstance(item[1], ast.Starred), enumerate(node.args)
    )
    return [*places, *((k.arg, k.value) for k in node.keywords if k.arg is not None)]


def _is_cdiv(node: ast.expr, function: Any) -> bool:
    """Whether what is called is ``cdiv``, of the language or a tile's."""
    if function is UNKNOWN:
        return isinstance(node, ast.Attribute) and node.attr == "cdiv"
    return isinstance(function, LanguageFunction) and function.name == "cdiv"


def _is_of_tiles(attribute: str) -> bool:
    """Whether a method of this name is a tile's, or a parameter's."""
    return attribute in METADATA or hasattr(Tile, attribute)


def _returns_alone(function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function names values, at most, and returns one."""
    if isinstance(function, ast.Lambda):
        return True
    *before, last = function.body
    return isinstance(last, ast.Return) and all(map(_only_names, before))


def _only_names(statement: ast.stmt) -> bool:
    """Whether a statement does no more than name a value, or a function."""
    if isinstance(statement, ast.FunctionDef):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assign) and all(
        isinstance(part, ast.Name | ast.Tuple | ast.expr_context)
        for target in statement.targets
        for part in ast.walk(target)
    )
