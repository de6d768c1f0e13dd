"""The change of an application's tree, see `ninetoothed.backends.numpy.rewrite`."""

from __future__ import annotations

import ast
import enum
import functools
import types
from collections.abc import Mapping
from typing import Any

from ninetoothed import source as sources
from ninetoothed.backends.numpy.functions import is_direct
from ninetoothed.backends.numpy.reference import TileReference
from ninetoothed.errors import ApplicationError
from ninetoothed.expr import Symbol
from ninetoothed.parsing.objects import is_triton_function
from ninetoothed.source import FunctionSource

#: What may follow the dot of a parameter without loading it.
METADATA = frozenset(
    {"shape", "dtype", "ndim", "offsets", "source", "data_ptr", "stride", "strides"}
)

#: Of Python's own functions, those that mean something else for tiles.
OWN_BUILTINS = (max, min, abs, float, int, bool)

#: Of Python's own functions, those that leave what they iterate over as it is.
_ITERATIONS = (zip, enumerate, reversed, tuple, list)

_UNKNOWN = object()


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; `visit` gives an expression as a value, `_reference` as it is."""

    def __init__(
        self,
        source: FunctionSource,
        names: Mapping[str, Any],
        seen: frozenset[types.FunctionType] = frozenset(),
    ) -> None:
        self.source = source
        self.names = names
        self.seen = seen | {source.function}
        code = source.function.__code__
        self.parameters = set(parameter_names(source.tree.args))
        self.locals = {*code.co_varnames, *code.co_cellvars, *_stored_names(source.tree)}
        self.free = set(code.co_freevars)
        #: Names that may hold a tile without loading it: what is iterated over may be tiles.
        self.holding = self.parameters | self.free | _iterated_names(source.tree)
        self.nested = 0
        self.count = 0

    @functools.cached_property
    def assigned(self) -> set[str]:
        """The parameters that the function assigns."""
        return self.parameters & _assigned_names(self.source.tree.body, self)

    def function(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """The rewritten definition."""
        for node in ast.walk(tree):
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise ApplicationError(
                    "A function that a kernel calls cannot yield or await; it runs through.",
                    self.source.location(node),
                )
        if "type_params" in tree._fields:
            setattr(tree, "type_params", [])  # noqa: B010 - a field since Python 3.12
        tree.decorator_list = []
        tree.returns = None
        tree.args = _bare_arguments(tree.args)
        tree.body = self._statements(tree.body)
        if not isinstance(tree.body[-1], ast.Return):
            tree.body.append(_placed_at_end(self._outcome(ast.Constant(None)), tree.body[-1]))
        return tree

    # Statements

    def visit_Assert(self, node: ast.Assert) -> Any:
        holds = _call("__holds__", self.visit(node.test))
        node.test = ast.copy_location(holds, node.test)
        return node

    def _statements(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            visited = self.visit(statement)
            result.extend(visited if isinstance(visited, list) else [visited])
        return result

    def visit_Return(self, node: ast.Return) -> Any:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return ast.copy_location(self._outcome(value), node)

    def _outcome(self, value: ast.expr) -> ast.Return:
        names = sorted(self.assigned)
        last: ast.expr = ast.Dict(
            keys=[ast.Constant(name) for name in names], values=[_name(name) for name in names]
        )
        return ast.Return(_call("__outcome__", value, last))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node  # Rewritten from its own source when it is called.

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        if len(node.targets) == 1 and self._is_parameter(node.targets[0]):
            node.value = self._assign(node.targets[0].id, node.value)  # type: ignore[attr-defined]
            return node
        after: list[ast.stmt] = []
        node.targets = [self._target(target, after, node) for target in node.targets]
        return [node, *after]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        node.value = self.visit(node.value)
        if self._is_parameter(node.target):
            value = self._assign(node.target.id, node.value)  # type: ignore[union-attr]
            return ast.copy_location(ast.Assign([node.target], value), node)
        node.target = self._target(node.target, [], node)  # type: ignore[assignment]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        if self._is_parameter(node.target):
            name = node.target.id  # type: ignore[union-attr]
            read = ast.copy_location(_call("__read__", _name(name)), node.target)
            value = ast.copy_location(ast.BinOp(read, node.op, value), node)
            assign = ast.Assign([node.target], self._assign(name, value))
            return ast.copy_location(assign, node)
        node.value = value
        node.target = self._target(node.target, [], node)  # type: ignore[assignment]
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        if not self._is_parameter(node.target):
            return node
        node.value = self._assign(node.target.id, node.value)
        return ast.copy_location(_call("__read__", node), node)

    def visit_For(self, node: ast.For) -> Any:
        names = _assigned_names([node], self)
        node.iter = self._held(node.iter)
        first: list[ast.stmt] = []
        node.target = self._target(node.target, first, node)
        node.body = [*first, *self._unmark(names, node), *self._statements(node.body)]
        node.orelse = self._statements(node.orelse)
        return [node, *self._unmark(names, node)]

    def visit_While(self, node: ast.While) -> Any:
        names = _assigned_names([node], self)
        node.test = _unmark_in(self.visit(node.test), names)
        node.body = [*self._unmark(names, node), *self._statements(node.body)]
        node.orelse = self._statements(node.orelse)
        return [node, *self._unmark(names, node)]

    def visit_If(self, node: ast.If) -> Any:
        names = _assigned_names(node.body + node.orelse, self)
        node.test = self.visit(node.test)
        body, orelse = self._statements(node.body), self._statements(node.orelse)
        node.body, node.orelse = body, orelse
        if not names:
            return node
        condition = self._temporary("if")
        test = node.test
        node.test = ast.copy_location(ast.NamedExpr(_name(condition, ast.Store()), test), test)
        # Each branch ends with it, on its last line, so that a debugger steps as the user expects.
        for branch in (body, orelse):
            last = branch[-1] if branch else test
            is_tile = _call("__is_tile__", _name(condition))
            unmark = ast.If(is_tile, self._unmark(names, last), [])
            branch.append(_placed_at_end(unmark, last))
        return node

    def _unmark(self, names: set[str], place: ast.AST) -> list[ast.stmt]:
        """Statements by which the names that have a value lose their marks."""
        return [
            _placed_at(
                ast.Try(
                    body=[
                        ast.Assign([_name(name, ast.Store())], _call("__unmarked__", _name(name)))
                    ],
                    handlers=[ast.ExceptHandler(_name("NameError"), None, [ast.Pass()])],
                    orelse=[],
                    finalbody=[],
                ),
                place,
            )
            for name in sorted(names)
        ]

    def _target(self, target: ast.expr, after: list[ast.stmt], place: ast.AST) -> ast.expr:
        """A target; parameters in it are assigned by statements added to ``after``."""
        if isinstance(target, ast.Name) and target.id in self.parameters:
            temporary = self._temporary("target")
            value = self._assign(target.id, _name(temporary))
            after.append(_placed_at(ast.Assign([_name(target.id, ast.Store())], value), place))
            return ast.copy_location(_name(temporary, ast.Store()), target)
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(item, after, place) for item in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, after, place)
        elif isinstance(target, ast.Subscript):
            target.value = self._reference(target.value)
            target.slice = self._positions(target.slice)
        elif isinstance(target, ast.Attribute):
            target.value = self.visit(target.value)
        return target

    def _is_parameter(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and target.id in self.parameters

    def _assign(self, name: str, value: ast.expr) -> ast.expr:
        return ast.copy_location(_call("__assign__", _name(name), value), value)

    # Expressions

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and self._may_be_tile(node):
            return ast.copy_location(_call("__read__", node), node)
        return node

    def _may_be_tile(self, node: ast.Name) -> bool:
        if node.id in self.holding:
            return True
        if node.id in self.locals:
            return False
        return isinstance(self._resolved(node), Symbol)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return ast.copy_location(_call("__read__", self._reference(node)), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        resolved = self._resolved(node)
        if isinstance(resolved, Symbol):
            return ast.copy_location(_call("__read__", node), node)
        return self._reference(node) if resolved is _UNKNOWN else node

    def _reference(self, node: ast.expr) -> ast.expr:
        """The expression as it is: a tile stays a tile."""
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, ast.Subscript):
            node.value = self._reference(node.value)
            node.slice = self._positions(node.slice)
            return node
        if isinstance(node, ast.Attribute):
            is_metadata = node.attr in METADATA
            node.value = self._reference(node.value) if is_metadata else self.visit(node.value)
            return node
        return self.visit(node)

    def _positions(self, node: ast.expr) -> ast.expr:
        """Indices; those that depend on variables of the function are seen to."""
        if isinstance(node, ast.Tuple):
            node.elts = [self._positions(item) for item in node.elts]
            return node
        is_variable = any(
            isinstance(part, ast.Name) and part.id in self.locals for part in ast.walk(node)
        )
        node = self.visit(node)
        if not is_variable or isinstance(node, (ast.Slice, ast.Starred)):
            return node
        return ast.copy_location(_call("__position__", node), node)

    def _held(self, node: ast.expr) -> ast.expr:
        """What is iterated over: tiles in it stay tiles."""
        if isinstance(node, (ast.Tuple, ast.List)):
            node.elts = [self._held(item) for item in node.elts]
            return node
        if isinstance(node, ast.Call) and self._resolved(node.func) in _ITERATIONS:
            node.args = [self._held(item) for item in node.args]
            return node
        return self._reference(node)

    def visit_Call(self, node: ast.Call) -> Any:
        function = self._resolved(node.func)
        if function is _UNKNOWN and isinstance(node.func, ast.Attribute):
            node.func = self._reference(node.func)  # A method of a tile.
            return self._with_values(node)
        if _is_direct(function):
            if isinstance(node.func, ast.Name) and function in OWN_BUILTINS:
                node.func = ast.copy_location(
                    _call("__builtin__", ast.Constant(node.func.id)), node.func
                )
            return self._with_values(node)
        return self._invoke(node, function)

    def _with_values(self, node: ast.Call) -> ast.Call:
        node.args = [self._number(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self._number(keyword.value)
        return node

    def _invoke(self, node: ast.Call, function: Any) -> ast.expr:
        """A call of a user's function; local variables that it assigns are bound anew."""
        rebound = self._rebound(node, function)
        callee = node.func if function is not _UNKNOWN else self._reference(node.func)
        node.func = ast.copy_location(_call("__invoke__", callee), node.func)
        node.args = [
            self.visit(argument) if isinstance(argument, ast.Starred) else self._reference(argument)
            for argument in node.args
        ]
        for keyword in node.keywords:
            keyword.value = self._reference(keyword.value)
        if not rebound:
            return ast.copy_location(ast.Attribute(node, "result", ast.Load()), node)
        outcome = self._temporary("outcome")
        steps: list[ast.expr] = [ast.NamedExpr(_name(outcome, ast.Store()), node)]
        for name, key in rebound:
            last = ast.Attribute(_name(outcome), "last", ast.Load())
            value = ast.Call(last, [ast.Constant(key), _name(name)], [])
            steps.append(ast.NamedExpr(_name(name, ast.Store()), value))
        steps.append(ast.Attribute(_name(outcome), "result", ast.Load()))
        result = ast.Subscript(ast.Tuple(steps, ast.Load()), ast.Constant(-1), ast.Load())
        return _placed_at(result, node)

    def _rebound(self, node: ast.Call, function: Any) -> list[tuple[str, int | str]]:
        """The local names handed over that the function may assign: (name, position or keyword)."""
        if self.nested:
            return []
        assigned = self._assigned_by(function)
        rebound: list[tuple[str, int | str]] = []
        for position, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                break
            if isinstance(argument, ast.Name) and argument.id in self.locals:
                if assigned is None or position in assigned:
                    rebound.append((argument.id, position))
        for keyword in node.keywords:
            if isinstance(keyword.value, ast.Name) and keyword.value.id in self.locals:
                if keyword.arg is not None and (assigned is None or keyword.arg in assigned):
                    rebound.append((keyword.value.id, keyword.arg))
        return rebound

    def names_rebound_by(self, node: ast.Call) -> set[str]:
        """The local names that a call is known to assign."""
        function = self._resolved(node.func)
        if function is _UNKNOWN or _is_direct(function) or self._assigned_by(function) is None:
            return set()
        return {name for name, _ in self._rebound(node, function)}

    def _assigned_by(self, function: Any) -> frozenset[int | str] | None:
        """Positions and names of the parameters that a function assigns; None where unknown."""
        if is_triton_function(function):
            return frozenset()
        if not isinstance(function, types.FunctionType):
            return None
        source = sources.read(function)
        if source.function in self.seen:
            return frozenset()
        assigned = Rewriter(source, {}, self.seen).assigned
        names = parameter_names(source.tree.args)
        return frozenset(
            key for place, name in enumerate(names) if name in assigned for key in (place, name)
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if self.nested:
            return self.generic_visit(node)
        hook = "__and__" if isinstance(node.op, ast.And) else "__or__"
        result = self.visit(node.values[0])
        for operand in node.values[1:]:
            left = self._temporary("left")
            assign = ast.NamedExpr(_name(left, ast.Store()), result)
            joined = _call(hook, _name(left), self.visit(operand))
            stops = _call("__stops__", assign, ast.Constant(isinstance(node.op, ast.And)))
            result = ast.IfExp(stops, _name(left), joined)
        return _placed_at(result, node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        node.left, node.right = self._number(node.left), self._number(node.right)
        return node

    def _number(self, node: ast.expr) -> ast.expr:
        """An operand; a member of an enumeration counts as its value."""
        if isinstance(self._resolved(node), enum.Enum):
            return ast.copy_location(ast.Attribute(node, "value", ast.Load()), node)
        return self.visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(_call("__not__", node.operand), node)
        return node

    def _comprehension(self, node: Any) -> Any:
        # A comprehension has a scope of its own, where nothing of the function can be bound anew.
        self.nested += 1
        for generator in node.generators:
            generator.iter = self._held(generator.iter)
            generator.ifs = [self.visit(condition) for condition in generator.ifs]
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.nested -= 1
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _resolved(self, node: ast.expr) -> Any:
        """What a name, or a chain of attributes of it, stands for outside of the function."""
        if isinstance(node, ast.Attribute):
            base = self._resolved(node.value)
            return _UNKNOWN if base is _UNKNOWN else getattr(base, node.attr, _UNKNOWN)
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return _UNKNOWN
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.free and node.id not in self.source.closure:
            return _UNKNOWN  # It gets its value later.
        value = self.source.resolve(node.id, node)
        return _UNKNOWN if isinstance(value, TileReference) else value

    def _temporary(self, role: str) -> str:
        self.count += 1
        return f"__{role}_{self.count}__"


def _is_direct(function: Any) -> bool:
    return function is not _UNKNOWN and is_direct(function)


def parameter_names(arguments: ast.arguments) -> list[str]:
    """A function's parameters in order, ``*args`` and ``**kwargs`` included."""
    parameters = arguments.posonlyargs + arguments.args
    parameters += [arguments.vararg] if arguments.vararg else []
    parameters += arguments.kwonlyargs
    parameters += [arguments.kwarg] if arguments.kwarg else []
    return [parameter.arg for parameter in parameters]


def _iterated_names(tree: ast.AST) -> set[str]:
    loops = (n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension)))
    return {name for loop in loops for name in _stored_names(loop.target)}


def _stored_names(tree: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _assigned_names(statements: list[ast.stmt], rewriter: Rewriter) -> set[str]:
    """The names that statements assign, by calls of helpers too."""
    names: set[str] = set()
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Call):
            names |= rewriter.names_rebound_by(node)
        pending.extend(ast.iter_child_nodes(node))
    return names


def _unmark_in(test: ast.expr, names: set[str]) -> ast.expr:
    """A loop's condition, with the names that the loop assigns read without marks."""

    class Unmark(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if isinstance(node.ctx, ast.Load) and node.id in names:
                return ast.copy_location(_call("__unmarked__", node), node)
            return node

    return Unmark().visit(test)


def _bare_arguments(arguments: ast.arguments) -> ast.arguments:
    """Parameters without annotations and defaults: the function object keeps the defaults."""

    def bare(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(argument.arg), argument)

    return ast.arguments(
        posonlyargs=[bare(argument) for argument in arguments.posonlyargs],
        args=[bare(argument) for argument in arguments.args],
        vararg=arguments.vararg and bare(arguments.vararg),
        kwonlyargs=[bare(argument) for argument in arguments.kwonlyargs],
        kw_defaults=[None] * len(arguments.kwonlyargs),
        kwarg=arguments.kwarg and bare(arguments.kwarg),
        defaults=[],
    )


def _name(identifier: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(identifier, context or ast.Load())


def _call(hook: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_name(hook), list(arguments), [])


def _placed_at(node: Any, place: ast.AST) -> Any:
    """``node``, its new parts on the line of ``place``."""
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _placed_at_end(node: Any, place: Any) -> Any:
    """``node``, all of it on the last line of ``place``."""
    line = place.end_lineno or place.lineno
    part: Any
    for part in ast.walk(_placed_at(node, place)):
        if hasattr(part, "lineno"):
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0
    return node
