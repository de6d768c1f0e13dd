"""Calls: what is called, with which arguments in which order; helpers are inlined."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from ninetoothed.errors import NineToothedError
from ninetoothed.language import LanguageFunction, operations
from ninetoothed.language.dtypes import DType
from ninetoothed.language.signatures import signature_of
from ninetoothed.parsing.builtin_calls import call_builtin
from ninetoothed.parsing.frames import State
from ninetoothed.parsing.holds import Loan
from ninetoothed.parsing.language_calls import LanguageCallFrame
from ninetoothed.parsing.objects import Bound, is_inlined, is_triton_function, unbound
from ninetoothed.parsing.values import (
    Cell,
    Function,
    Group,
    Known,
    Method,
    Named,
    Runtime,
    Tile,
    Value,
    copy_of,
    same,
    same_captures,
)
from ninetoothed.program.effects import is_atomic
from ninetoothed.program.nodes import ExternRef

#: How often a helper may be inlined within itself.
DEEPEST_RECURSION = 16


class CallFrame(LanguageCallFrame):
    """A frame that evaluates calls."""

    def _evaluate_Call(self, node: ast.Call) -> Value:
        function = self.evaluate(node.func)
        bound = Bound()
        if isinstance(function, Known):
            if getattr(type(function.object), "launches_programs", False):
                raise self.error(
                    node,
                    f"{function.object!r} is launched from Python, by a call of its own; here one program "
                    "runs. Call its application, which is a function.",
                )
            item, bound = unbound(function.object)
            function = self.function_value(item, node) if is_inlined(item) else Known(item)
        if isinstance(function, Function):
            return self._inlined(function, bound, node)
        if isinstance(function, Runtime):
            return self._method_call(function, node)
        item = function.object if isinstance(function, Known) else None
        changes = isinstance(item, LanguageFunction) and is_atomic(item.name)
        start = len(self.state.block)
        arguments, keywords = self._arguments(node, changes)
        function = self.kept(function, start, node)
        arguments, keywords = [*bound.arguments, *arguments], {**bound.keywords, **keywords}
        if isinstance(function, Method) and isinstance(function.owner, Named):
            return self._entries(function, arguments, keywords, node)
        if isinstance(function, Method):
            return self.tile_method(function, arguments, keywords, node)
        if not isinstance(function, Known):
            raise self.error(node, "This cannot be called.")
        item = function.object
        if isinstance(item, LanguageFunction):
            if changes:
                if "pointer" in keywords:
                    arguments = [keywords.pop("pointer"), *arguments]
                first, *rest = arguments or [Known(None)]
                arguments = [self.place_of(first, node), *rest]
            return self.language_function(item, arguments, keywords, node)
        if is_triton_function(item):
            self._check_bound(item.fn, arguments, keywords, node)
            reference: ast.expr = self.at(ExternRef(name=self._extern(item)), node)
            return self.runtime_call(reference, arguments, keywords, node)
        if isinstance(item, DType):
            raise self.error(
                node, f"An element type cannot be called: use `ntl.cast(value, {item.name})`."
            )
        folded = self.folded(item, arguments, node)
        if folded is not None:
            return folded
        return call_builtin(self, item, arguments, keywords, node)

    def _check_bound(
        self, function: Any, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> None:
        """What a function is given is what it takes."""
        try:
            inspect.signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            name = function.__name__
            raise self.error(node, f"{name!r} cannot be called so: {error}.") from None

    def _evaluate_Lambda(self, node: ast.Lambda) -> Value:
        return self.local_function(_lambda_definition(node), node)

    # Arguments.

    def _arguments(
        self, node: ast.Call, changes: bool = False
    ) -> tuple[list[Value], dict[str, Value]]:
        """Positional and keyword arguments as values, in the order they are written.

        Args:
            changes: whether the first one is what an atomic operation changes: its place, not its value.
        """
        places = [
            *(node.args[:1] if changes else []),
            *(item.value for item in node.keywords if changes and item.arg == "pointer"),
        ]

        def evaluate(item: ast.expr) -> Value:
            value = self._plain(self._argument(item))
            return self.place_of(value, node) if item in places else value

        return self._in_call(node, evaluate, self.kept_read)

    def _plain(self, item: Value | Cell) -> Value:
        return copy_of(item.value) if isinstance(item, Cell) else item

    def _argument_cells(self, node: ast.Call) -> tuple[list[Value | Cell], dict[str, Value | Cell]]:
        """As ``_arguments``, where a bare variable is given as itself, to be rebound.

        One that a later argument rebinds is given as what it held.
        """
        held: dict[ast.AST, tuple[Value | None, Value]] = {}

        def evaluate(item: ast.expr) -> Value | Cell:
            found = self._argument(item)
            if isinstance(found, Cell) and not found.stores:
                held[item] = found.value, self._plain(found)
            return found

        def keep(earlier: Any, start: int, origin: ast.AST) -> Any:
            if isinstance(earlier, Cell) and earlier.is_former:
                return earlier
            if not isinstance(earlier, Cell) or earlier.stores:
                return self.kept(earlier, start, origin)
            value, plain = held[origin]
            kept = self.kept(plain, start, origin)
            is_unchanged = kept is plain and same(value, earlier.value)
            return earlier if is_unchanged else Cell("", kept, is_former=True)

        return self._in_call(node, evaluate, keep)

    def _in_call(
        self,
        node: ast.Call,
        evaluate: Callable[[ast.expr], Any],
        keep: Callable[[Any, int, ast.AST], Any],
    ) -> tuple[list[Any], dict[str, Any]]:
        """What a call's arguments are evaluated to, `in_order`; what is starred is spread out."""
        written = [
            *(item.value if isinstance(item, ast.Starred) else item for item in node.args),
            *(keyword.value for keyword in node.keywords),
        ]
        values = self.in_order(written, evaluate, keep)
        positional: list[Any] = []
        for item, value in zip(node.args, values, strict=False):
            if isinstance(item, ast.Starred):
                positional.extend(self.elements(self._plain(value), item))
            else:
                positional.append(value)
        keywords: dict[str, Any] = {}
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            named = self.named(self._plain(value), keyword) if keyword.arg is None else {}
            for key, given in named.items() if keyword.arg is None else [(keyword.arg, value)]:
                if key in keywords:
                    raise self.error(node, f"`{ast.unparse(node.func)}` got `{key}` twice.")
                keywords[str(key)] = given
        return positional, keywords

    def _argument(self, node: ast.expr) -> Value | Cell:
        if isinstance(node, ast.Name):
            found = self.lookup(node.id, node)
            if isinstance(found, Cell):
                self.read(found, node.id, node)
            return found
        if isinstance(node, ast.Lambda):
            return self.local_function(_lambda_definition(node), node)
        return self.evaluate(node)

    def _entries(
        self, method: Method, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """A call of ``get``, ``items``, ``keys`` or ``values`` of a dictionary."""
        entries = self.named(method.owner, node)
        keys: list[Value] = [Known(key) for key in entries]
        if method.name != "get":
            if arguments or keywords:
                raise self.error(node, f"`{method.name}` of a dictionary takes no arguments.")
            values = list(entries.values())
            pairs: list[Value] = [Group(pair) for pair in zip(keys, values, strict=True)]
            found = {"items": pairs, "keys": keys, "values": values}
            return Group(tuple(found[method.name]))
        if keywords or len(arguments) not in (1, 2) or not isinstance(arguments[0], Known):
            raise self.error(
                node,
                "`get` of a dictionary takes a key that is known at compile time, and a default.",
            )
        default = arguments[1] if len(arguments) > 1 else Known(None)
        return entries.get(arguments[0].object, default)

    def _method_call(self, function: Runtime, node: ast.Call) -> Value:
        """``value.method(...)`` of a value of the running kernel."""
        start = len(self.state.block)
        arguments, keywords = self._arguments(node)
        function = self.kept(function, start, node)
        attribute = function.node
        if isinstance(attribute, ast.Attribute) and attribute.attr in operations.OF_TILES:
            raise self.error(node, "This cannot be called.")
        operation = (
            operations.find(attribute.attr) if isinstance(attribute, ast.Attribute) else None
        )
        if operation is not None and operation.member_of == "tile":
            signature = signature_of(operation.name)
            called = ast.unparse(node.func)
            self.check_call(called, signature and signature.bound(), arguments, keywords, node)
        if operation is not None and "shape" in operation.places:
            arguments, keywords = self.padded(operation, 1, arguments, keywords, node)
        return self.runtime_call(attribute, arguments, keywords, node)

    # Helpers.

    def local_function(self, tree: ast.FunctionDef, node: ast.AST) -> Function:
        """A function defined inside of the application: it sees the variables around it."""
        positional = [item.arg for item in tree.args.posonlyargs + tree.args.args]
        values = [self._default(item) for item in tree.args.defaults]
        defaults = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
        for argument, default in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True):
            if default is not None:
                defaults[argument.arg] = self._default(default)
        own = self.own

        def resolve(name: str, node: ast.AST) -> Value | Cell:
            return own[name] if name in own else self.lookup(name, node)

        return Function(tree, self.file, resolve, defaults, tree)

    def _default(self, node: ast.expr) -> Value:
        """A default, which is what it is where the function is defined."""
        return self.hold(self.as_it_is(self.evaluate(node), node), node)

    def _inlined(self, function: Function, bound: Bound, node: ast.Call) -> Value:
        arguments, keywords = self._argument_cells(node)
        arguments, keywords = [*bound.arguments, *arguments], {**bound.keywords, **keywords}
        self.count_copies(1, node)
        frame = type(self)(self.state, function, node)
        frame.check_recursion(node)
        frame.enter(arguments, keywords, node)
        self.state.frames.append(frame)
        try:
            result = frame.result()
            if gives_function(result):
                frame.keep_variables(node)
            return result
        finally:
            self.state.frames.pop()
            for loan in frame.loans.values():
                loan.end()

    def watched(self, node: ast.GeneratorExp) -> Callable[[], bool]:
        """What tells whether all that a generator is computed of is what it is now."""
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        holds, effects = self.state.holds, self.state.effects
        stores, changes = len(holds.stores), len(holds.changes)

        def seen() -> dict[str, Value | None]:
            found: dict[str, Value | None] = {}
            for name in names:
                with contextlib.suppress(NineToothedError):
                    item = None if name.id in own else self.lookup(name.id, name)
                    found[name.id] = item.value if isinstance(item, Cell) else item
            for key, value in [*found.items()]:
                found |= _captures(value, key) if isinstance(value, Function) else {}
            return found

        before = seen()
        read = {id(value.parameter) for value in before.values() if isinstance(value, Tile)}

        def is_as_made() -> bool:
            changed = [tile.parameter for _, tile, _ in holds.stores[stores:]]
            changed += [parameter for _, parameter in holds.changes[changes:]]
            if read.intersection(map(id, changed)) or (read and self.state.effects != effects):
                return False
            now = seen()
            return before.keys() == now.keys() and all(
                one is now[key] or (not _is_computed(one) and same(one, now[key]))
                for key, one in before.items()
            )

        return is_as_made

    def check_recursion(self, node: ast.AST) -> None:
        """Raise if this function is being evaluated already, as deep as a helper may call itself."""
        within = [f for f in self.state.frames if f.function.key == self.function.key]
        if len(within) >= DEEPEST_RECURSION:
            raise within[0].error(
                node,
                f"{self.function.name!r} calls itself {len(within)} deep: a helper is inlined where it "
                "is called, so what ends it has to be known at compile time, and to come soon. Write a "
                "loop.",
            )

    def enter(
        self, arguments: list[Value | Cell], keywords: dict[str, Value | Cell], node: ast.AST
    ) -> None:
        """Bind the arguments to the parameters."""
        raise NotImplementedError

    def result(self) -> Value:
        """Evaluate the body; what it returns."""
        raise NotImplementedError

    def keep_variables(self, node: ast.AST) -> None:
        """Has this function's variables stay what they are, for a function that it gives back."""
        raise NotImplementedError

    # Variables that helpers are given.

    def lookup(self, name: str, node: ast.AST) -> Value | Cell:
        """The variable or the free name's value; a variable that a helper has as its own is not changed by it."""
        found = super().lookup(name, node)
        if isinstance(found, Cell) and found.is_lent and self.cells.get(name) is found:
            use = self.loans.get(name), found, name, node
            self.state.holds.uses.append((self.state.holds.now(), *use))
            self._check_use(*use)
        return found

    def _check_use(self, loan: Loan | None, cell: Cell, name: str, node: ast.AST) -> None:
        changed = cell.changed_by
        if changed is None or cell.value is changed.given:
            return
        if changed not in (loan.line() if loan else ()):
            raise self.state.frames[-1].error(
                node,
                f"The helper {changed.frame.function.name!r} gets one variable as {changed.name!r}, assigns to "
                f"it, and uses it as {name!r}, too: give it another variable, or have it return the value.",
            )

    def check_rounds(self, start: int) -> None:
        """Raises where a round of a loop that began then uses what the one before it changed by another name."""
        self.state.holds.check_rounds(start)
        for moment, *use in self.state.holds.uses:
            if moment > start:
                self._check_use(*use)

    # Functions that the language calls back.

    def helper(self, function: Function, node: ast.Call) -> str:
        captures = _captures(function)
        made = self.state.helper_names.setdefault(function.key, [])
        for known, name in made:
            if same_captures(known, captures):
                return name
        name = self.state.fresh(function.name)
        inner = State(names=self.state.names, externs=self.state.externs)
        inner.helpers, inner.helper_names = self.state.helpers, self.state.helper_names
        inner.decisions, inner.parameters = self.state.decisions, self.state.parameters
        inner.frames = [*self.state.frames]
        frame = type(self)(inner, function, node)
        frame.check_recursion(node)
        frame.is_isolated = True
        inner.frames.append(frame)
        self.state.helpers[name] = frame.standalone(name)
        made.append((captures, name))
        return name

    def standalone(self, name: str) -> ast.FunctionDef:
        """The function as a definition of its own."""
        raise NotImplementedError


def _captures(
    function: Function, within: str = "", seen: frozenset[object] = frozenset()
) -> dict[str, Value | None]:
    """What a function defined in the application sees around it at the moment, by name.

    Of a function that it sees so, what that one sees too.
    """
    captures: dict[str, Value | None] = {within: Known(function.key)}
    if not isinstance(function.key, ast.AST) or function.key in seen:
        return captures
    found: dict[str, Value | Cell] = {f"={name}": item for name, item in function.defaults.items()}
    for part in ast.walk(function.tree):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            with contextlib.suppress(NineToothedError):
                # Else its own, or told of where it is read.
                found[part.id] = function.resolve(part.id, part)
    for name, item in found.items():
        value = item.value if isinstance(item, Cell) else item
        if isinstance(value, Function):
            captures |= _captures(value, f"{within}.{name}", seen | {function.key})
        else:
            captures[f"{within}.{name}"] = value
    return captures


def _is_computed(value: Value | None) -> bool:
    """Whether a value is one of the running kernel, or has one."""
    if isinstance(value, Group):
        return any(map(_is_computed, value.items))
    return isinstance(value, Runtime)


def gives_function(value: Value | None) -> bool:
    """Whether a value is a function defined in the application, or has one."""
    if isinstance(value, Group):
        return any(map(gives_function, value.items))
    return isinstance(value, Function) and isinstance(value.key, ast.AST)


def _lambda_definition(node: ast.Lambda) -> ast.FunctionDef:
    body = ast.copy_location(ast.Return(value=node.body), node.body)
    return ast.copy_location(
        ast.FunctionDef(name="combine", args=node.args, body=[body], decorator_list=[]), node
    )
