"""The change of an application's statements, see `ninetoothed.backends.numpy.execution.rewrite`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ninetoothed.backends.numpy.execution.rewrite_calls import CallRewriter
from ninetoothed.backends.numpy.execution.trees import (
    argument_keys,
    bare_arguments,
    hook_call,
    name_of,
    placed_at,
    placed_at_end,
)
from ninetoothed.errors import ApplicationError
from ninetoothed.language import LanguageFunction
from ninetoothed.parsing.syntax import walks


class Rewriter(CallRewriter):
    """Rewrites one function."""

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
        tree.args = bare_arguments(tree.args)
        self._returning: list[str] = []
        self._pending: list[ast.stmt] = []
        #: Of the names that hold what others did before, those of others that may stay as they are.
        self._unsure: set[str] = set()
        #: What loops that are not spelled as one over a range go over, by the names held before a round.
        self._unrolled: dict[str, str] = {}
        keys = argument_keys(tree.args)
        assigned = self.assigned()
        self._assigned = {key: name for key, name in keys.items() if name in assigned}
        tree.body = self._statements(tree.body)
        if not isinstance(tree.body[-1], ast.Return):
            last = [*self._pending, self._outcome(ast.Constant(None))]
            tree.body.extend([placed_at_end(each, tree.body[-1]) for each in last])
        return tree

    def visit_Assert(self, node: ast.Assert) -> Any:
        """What fails says so as `ntl.device_assert` does."""
        said = node.msg or ast.Constant(ast.unparse(node.test))
        failed = ast.Expr(hook_call("__failed__", self.visit(said)))
        holds = hook_call("__holds__", self.visit(node.test))
        return placed_at(ast.If(ast.UnaryOp(ast.Not(), holds), [failed], []), node)

    def _statements(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements of a block. What is to follow one is put before the next one, in its line: a debugger
        stops there once."""
        result: list[ast.stmt] = []
        for statement in statements:
            result.extend([placed_at(each, statement) for each in self._pending])
            self._pending = []
            visited = self.visit(statement)
            result.extend(visited if isinstance(visited, list) else [visited])
        return result

    def visit_Return(self, node: ast.Return) -> Any:
        value = ast.Constant(None) if node.value is None else self.reference(node.value)
        for test in self._returning:
            given = ast.Constant(test), ast.Constant(None)
            asked = hook_call("__value__", hook_call("__locals__"), *given)
            value = hook_call("__met__", asked, value)
        return ast.copy_location(self._outcome(value), node)

    def _outcome(self, value: ast.expr) -> ast.Return:
        last: ast.expr = ast.Dict(
            keys=[ast.Constant(key) for key in self._assigned],
            values=[name_of(name) for name in self._assigned.values()],
        )
        return ast.Return(hook_call("__outcome__", value, last))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self.with_defaults(node)  # Rewritten from its own source when it is called.

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
        is_division = isinstance(node.op, (ast.FloorDiv, ast.Mod))
        if self.truncates and is_division and isinstance(node.target, ast.Name):
            value = ast.BinOp(name_of(node.target.id), node.op, node.value)
            return self.visit_Assign(placed_at(ast.Assign([node.target], value), node))
        value = self.visit(node.value)
        if self._is_parameter(node.target):
            name = node.target.id  # type: ignore[union-attr]
            read = ast.copy_location(hook_call("__read__", name_of(name)), node.target)
            value = ast.copy_location(ast.BinOp(read, node.op, value), node)
            assign = ast.Assign([node.target], self._assign(name, value))
            return ast.copy_location(assign, node)
        if isinstance(node.target, ast.Name) and not isinstance(value, ast.Constant):
            before = placed_at(hook_call("__left__", name_of(node.target.id)), node.target)
            value = ast.copy_location(ast.BinOp(before, node.op, value), node)
            return ast.copy_location(ast.Assign([node.target], value), node)
        node.value = value
        node.target = self._target(node.target, [], node)  # type: ignore[assignment]
        if isinstance(node.target, ast.Subscript):
            tiles = node.target.value
            node.target.value = placed_at(hook_call("__augmented__", tiles), tiles)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self.visit(node.value)
        if not self._is_parameter(node.target):
            return node
        node.value = self._assign(node.target.id, node.value)
        return ast.copy_location(hook_call("__read__", node), node)

    def visit_For(self, node: ast.For) -> Any:
        is_unrolled, names = self._is_unrolled(node.iter), self.assigned_in(node.body)
        turns = self.temporary("turns")
        node.iter = self._turns(node.iter, turns) if is_unrolled else self._rounds(node.iter)
        first: list[ast.stmt] = []
        node.target = self._target(node.target, first, node)
        before = self._before(names)
        if is_unrolled:
            self._unrolled |= dict.fromkeys(before.values(), turns)
        elif isinstance(node.target, ast.Name):
            number = hook_call("__lasting__", *map(name_of, [node.target.id] * 2), ast.Constant(""))
            first.append(
                placed_at(ast.Assign([name_of(node.target.id, ast.Store())], number), node)
            )
        node.body = [*first, *self._keep(before, node), *self._statements(node.body)]
        if is_unrolled:
            node.body.extend([placed_at_end(each, node.body[-1]) for each in self._pending])
            self._pending = []
        node.orelse = self._statements(node.orelse)
        return self._held_around(node, before)

    def _turns(self, iterated: ast.expr, name: str) -> ast.expr:
        """What a loop goes over that is not spelled as a range, and may be one; it gets a name."""
        turns = hook_call("__turns__", self.held(iterated))
        return placed_at(ast.NamedExpr(name_of(name, ast.Store()), turns), iterated)

    def _rounds(self, iterated: ast.expr) -> ast.expr:
        """The numbers of a loop over a range, of the type that its bounds have together."""
        counted = self.visit(iterated)
        call = hook_call("__rounds__", counted.func, *counted.args)
        call.keywords = counted.keywords
        return placed_at(call, iterated)

    def _is_unrolled(self, iterated: ast.expr) -> bool:
        """Whether a loop's rounds are known when a kernel is compiled: it is no loop then."""
        if not isinstance(iterated, ast.Call):
            return True
        function = self.resolved(iterated.func)
        if isinstance(function, LanguageFunction) and function.name == "static_range":
            return not any(self.has_locals(argument) for argument in iterated.args)
        return function is not range and not isinstance(function, LanguageFunction)

    def visit_While(self, node: ast.While) -> Any:
        names = self.assigned_in([node])
        before, lanes = self._before(names), self.temporary("lanes")
        tested = before.keys() & {
            each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)
        }
        node.test = _asked_in(self.visit(node.test), before, lanes)
        noted = [self._reached(name, before[name], lanes, node) for name in sorted(tested)]
        node.body = [*self._keep(before, node), *self._statements(node.body), *noted]
        node.orelse = self._statements(node.orelse)
        empty = placed_at(ast.Assign([name_of(lanes, ast.Store())], ast.Dict([], [])), node)
        return [empty, *self._held_around(node, before)]

    def _reached(self, name: str, held: str, lanes: str, place: ast.AST) -> ast.stmt:
        """Notes in which lanes a round had an element for a name."""
        call = hook_call("__reached__", *map(name_of, (lanes, name, held)), ast.Constant(name))
        handlers = [ast.ExceptHandler(name_of("NameError"), None, [ast.Pass()])]
        return placed_at(ast.Try([ast.Expr(call)], handlers, [], []), place)

    def _held_around(self, loop: ast.stmt, before: Mapping[str, str]) -> list[ast.stmt]:
        """A loop, and around it what its names hold where a round had no element for them."""
        kept = self._keep(before, loop)
        if self._unrolled.keys().isdisjoint(before.values()):
            kept += self._end(before, loop)
        return [*self._hold(before, loop), loop, *kept]

    def visit_If(self, node: ast.If) -> Any:
        names, test = self.assigned_in([*node.body, *node.orelse]), self.temporary("test")
        asked = ast.NamedExpr(name_of(test, ast.Store()), self.visit(node.test))
        node.test = ast.copy_location(asked, node.test)
        if any(walks.returns_of(node)):
            # What is given back behind it is what the running kernel chose.
            self._returning.append(test)
        unsure = self._before({name: False for name, is_sure in names.items() if not is_sure})
        pending = [self._met(name, test, unsure) for name in sorted(names)]
        for way in ("body", "orelse"):
            self._pending = []
            setattr(node, way, self._statements(getattr(node, way)))
            pending = [*self._pending, *pending]
        self._pending = pending
        return [*self._hold(unsure, node), node]

    def _met(self, name: str, test: str, unsure: Mapping[str, str]) -> ast.stmt:
        """A name is what both ways of an `if` made of it, if it has a value at all."""
        given = [test, name, *([unsure[name]] if name in unsure else [])]
        met = ast.Assign([name_of(name, ast.Store())], hook_call("__met__", *map(name_of, given)))
        handlers = [ast.ExceptHandler(name_of("NameError"), None, [ast.Pass()])]
        return ast.Try([met], handlers, [], [])

    def _before(self, names: Mapping[str, bool]) -> dict[str, str]:
        """For each name that a loop assigns, one for the value that it has before a round."""
        before = {name: self.temporary("before") for name in sorted(names)}
        self._unsure |= {held for name, held in before.items() if not names[name]}
        return before

    def _hold(self, before: Mapping[str, str], place: ast.AST) -> list[ast.stmt]:
        """Statements that hold the values before a loop, an ellipsis for a name that has none yet."""
        values = {
            held: hook_call(
                "__value__", hook_call("__locals__"), ast.Constant(name), ast.Constant(...)
            )
            for name, held in before.items()
        }
        return [
            placed_at(ast.Assign([name_of(held, ast.Store())], value), place)
            for held, value in values.items()
        ]

    def _keep(self, before: Mapping[str, str], place: ast.AST) -> list[ast.stmt]:
        """Statements by which names keep what they held where a round had no element for them."""
        return [
            placed_at(
                ast.Try(
                    body=[
                        ast.Assign([name_of(name, ast.Store())], self._lasting(name, held)),
                        ast.Assign([name_of(held, ast.Store())], self._held(name, held)),
                    ],
                    handlers=[ast.ExceptHandler(name_of("NameError"), None, [ast.Pass()])],
                    orelse=[],
                    finalbody=[],
                ),
                place,
            )
            for name, held in before.items()
        ]

    def _end(self, before: Mapping[str, str], place: ast.AST) -> list[ast.stmt]:
        """Statements by which what a loop alone assigns ends with it: a later loop may begin anew."""
        return [
            placed_at(
                ast.If(
                    test=ast.BoolOp(
                        ast.And(),
                        [
                            _is_new(held),
                            ast.Compare(ast.Constant(name), [ast.In()], [hook_call("__locals__")]),
                        ],
                    ),
                    body=[ast.Delete([name_of(name, ast.Del())])],
                    orelse=[],
                ),
                place,
            )
            for name, held in before.items()
            if name not in self.parameters
        ]

    def _lasting(self, name: str, held: str) -> ast.expr:
        given = [name_of(name), name_of(held), ast.Constant(name)]
        turns = [name_of(self._unrolled[held])] if held in self._unrolled else []
        return hook_call("__lasting__", *given, ast.Constant(held not in self._unsure), *turns)

    def _held(self, name: str, held: str) -> ast.expr:
        """What a name holds before a round; an ellipsis where it held nothing before the loop."""
        is_rebound = name in self.parameters - self.storing
        value = hook_call("__read__", name_of(name)) if is_rebound else name_of(name)
        return ast.IfExp(_is_new(held), ast.Constant(...), value)

    def _target(self, target: ast.expr, after: list[ast.stmt], place: ast.AST) -> ast.expr:
        """A target; parameters in it are assigned by statements added to ``after``."""
        if self._is_parameter(target):
            assert isinstance(target, ast.Name)
            temporary = self.temporary("target")
            value = self._assign(target.id, name_of(temporary))
            after.append(placed_at(ast.Assign([name_of(target.id, ast.Store())], value), place))
            return ast.copy_location(name_of(temporary, ast.Store()), target)
        if isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self._target(item, after, place) for item in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, after, place)
        elif isinstance(target, ast.Subscript):
            target.value = self.reference(target.value)
            target.slice = self.positions(target.slice)
        elif isinstance(target, ast.Attribute):
            target.value = self.visit(target.value)
        return target

    def _is_parameter(self, target: ast.expr) -> bool:
        """Whether assigning a name may store: in a helper that returns a value it rebinds the name."""
        return isinstance(target, ast.Name) and target.id in self.storing

    def _assign(self, name: str, value: ast.expr) -> ast.expr:
        return ast.copy_location(hook_call("__assign__", name_of(name), value), value)


def _is_new(held: str) -> ast.expr:
    """Whether a name has no value before a loop."""
    return ast.Compare(name_of(held), [ast.Is()], [ast.Constant(...)])


def _asked_in(test: ast.expr, before: Mapping[str, str], lanes: str) -> ast.expr:
    """A loop's condition, with the names that the loop assigns as `_keep` leaves them.

    It asks them in lanes for which rounds had elements.
    """

    class Asked(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if isinstance(node.ctx, ast.Load) and node.id in before:
                names = map(name_of, (lanes, node.id, before[node.id]))
                return ast.copy_location(
                    hook_call("__asked__", *names, ast.Constant(node.id)), node
                )
            return node

    return Asked().visit(test)
