"""The change of an application's expressions, see `ninetoothed.backends.numpy.execution.rewrite`."""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from ninetoothed.backends.numpy.execution import trees
from ninetoothed.errors import UnresolvedNameError
from ninetoothed.language import LanguageFunction, LanguageNamespace
from ninetoothed.parsing.source import FunctionSource
from ninetoothed.symbols.expr import Symbol

#: What may follow the dot of a parameter without loading it.
METADATA = frozenset(
    {"shape", "dtype", "ndim", "offsets", "source", "data_ptr", "stride", "strides"}
)

#: Of Python's own functions, those that leave what they iterate over as it is.
_ITERATIONS = (zip, enumerate, reversed, tuple, list)

#: Of what a closure may hold, that which rewriting looks at. The rest is seen when it runs.
FIXED = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    type,
    LanguageFunction,
    LanguageNamespace,
    Symbol,
    enum.Enum,
)

UNKNOWN: Any = object()

#: What makes a comparison that a tile does not make itself: a framework's element type is ours, too.
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Is: "__is__",
    ast.IsNot: "__is__",
    ast.In: "__in__",
    ast.NotIn: "__in__",
}


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites expressions: `visit` gives one as a value, `reference` as it is.

    Args:
        source: the function.
        names: free names that stand for something else than for the user.
    """

    def __init__(self, source: FunctionSource, names: Mapping[str, Any]) -> None:
        self.source = source
        #: Whether division is Triton's own, in a function that was decorated with ``triton.jit``.
        self.truncates = False
        self.names = names
        code = source.function.__code__
        self.parameters = set(trees.parameter_names(source.tree.args))
        self.locals = {*code.co_varnames, *code.co_cellvars, *trees.stored_names(source.tree)}
        self.free = set(code.co_freevars)
        #: Names that may hold a tile without loading it: what is iterated over may be tiles.
        self.holding = self.parameters | self.free | trees.iterated_names(source.tree)
        #: The variables of the comprehensions at work, which are bound by these alone.
        self.own: set[str] = set()
        self._count = 0

    # Names and places.

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and self._may_be_tile(node):
            return ast.copy_location(trees.hook_call("__read__", node), node)
        return node

    def _may_be_tile(self, node: ast.Name) -> bool:
        if node.id in self.holding:
            return True
        return node.id not in self.locals and isinstance(self.resolved(node), Symbol)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return ast.copy_location(trees.hook_call("__read__", self.reference(node)), node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        resolved = self.resolved(node)
        if isinstance(resolved, Symbol):
            return ast.copy_location(trees.hook_call("__read__", node), node)
        return self.reference(node) if resolved is UNKNOWN else node

    def reference(self, node: ast.expr) -> ast.expr:
        """The expression as it is: a tile stays a tile."""
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, ast.Subscript):
            node.value = self.reference(node.value)
            node.slice = self.positions(node.slice)
            return node
        if isinstance(node, ast.Attribute):
            # What is no metadata of a tile, the tile itself loads for.
            node.value = self.reference(node.value)
            return node
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [self.reference(item) for item in node.elts]
            return node
        if _joins(node):
            node.left, node.right = self.reference(node.left), self.reference(node.right)
            return node
        if isinstance(node, ast.Dict):
            node.keys = [key and self.visit(key) for key in node.keys]
            node.values = [self.reference(item) for item in node.values]
            return node
        if isinstance(node, ast.Starred):
            node.value = self.reference(node.value)
            return node
        if isinstance(node, ast.IfExp):
            return self._choice(node, "__pick__", self.reference)
        if isinstance(node, ast.BoolOp):
            return self._several(node, self.reference)
        visited = self.visit(node)
        is_read = isinstance(node, ast.Call) and trees.is_hook_call(visited, "__read__")
        return visited.args[0] if is_read else visited

    def positions(self, node: ast.expr) -> ast.expr:
        """Indices; those that depend on variables of the function are seen to."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.positions(item) for item in node.elts]
            return node
        is_variable = self.has_locals(node) or isinstance(self.resolved(node), enum.Enum)
        node = self.visit(node)
        if not is_variable or isinstance(node, (ast.Slice, ast.Starred)):
            return node
        return ast.copy_location(trees.hook_call("__position__", node), node)

    def has_locals(self, node: ast.AST) -> bool:
        """Whether a tree reads variables of the function."""
        names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
        return any(part.id in self.locals for part in names)

    def held(self, node: ast.expr) -> ast.expr:
        """What is iterated over: tiles in it stay tiles."""
        if isinstance(node, (ast.Tuple, ast.List)):
            node.elts = [self.held(item) for item in node.elts]
            return node
        if isinstance(node, ast.Call) and is_one_of(self.resolved(node.func), _ITERATIONS):
            node.args = [self.held(item) for item in node.args]
            return node
        if isinstance(self.resolved(node), Symbol):
            # A number to count from.
            return self.visit(node)
        return self.named(node)

    def named(self, node: ast.expr) -> ast.expr:
        """An expression that another name stands for: a tile stays a tile."""
        if isinstance(node, ast.Constant | ast.Lambda):
            return self.reference(node)
        return trees.placed_at(trees.hook_call("__named__", self.reference(node)), node)

    def resolved(self, node: ast.expr) -> Any:
        """What a name, or a chain of attributes of it, stands for outside of the function."""
        if isinstance(node, ast.Attribute):
            base = self.resolved(node.value)
            return UNKNOWN if base is UNKNOWN else getattr(base, node.attr, UNKNOWN)
        if not isinstance(node, ast.Name) or node.id in self.locals:
            return UNKNOWN
        if node.id in self.names:
            return self.names[node.id]
        if node.id not in self.free:
            try:
                return self.source.resolve(node.id, node)
            except UnresolvedNameError:
                # The parser has refused it already, unless no taken branch reads it.
                return UNKNOWN
        value = self.source.closure.get(node.id, UNKNOWN)
        return value if isinstance(value, FIXED) else UNKNOWN

    # Operators.

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        is_float = self._may_be_float(node.left) and not isinstance(node.right, ast.Constant)
        node.left, node.right = self.number(node.left), self.number(node.right)
        if self.truncates and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            hook = "__quotient__" if isinstance(node.op, ast.FloorDiv) else "__remainder__"
            return ast.copy_location(trees.hook_call(hook, node.left, node.right), node)
        if is_float:
            node.left = ast.copy_location(trees.hook_call("__left__", node.left), node.left)
        return node

    def _may_be_float(self, node: ast.expr) -> bool:
        """Whether this may be a Python float, which would not leave it to a size what both together are."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, float)
        if isinstance(node, ast.Name | ast.Attribute):
            known = self.resolved(node)
            return known is UNKNOWN or isinstance(known, float)
        if isinstance(node, ast.BinOp):
            return any(map(self._may_be_float, (node.left, node.right)))
        return isinstance(node, ast.UnaryOp) and self._may_be_float(node.operand)

    def number(self, node: ast.expr) -> ast.expr:
        """An operand; a member of an enumeration counts as its value."""
        if isinstance(self.resolved(node), enum.Enum):
            return ast.copy_location(ast.Attribute(node, "value", ast.Load()), node)
        return self.visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            node.operand = self.visit(node.operand)
            return ast.copy_location(trees.hook_call("__not__", node.operand), node)
        node.operand = self.number(node.operand)
        if isinstance(node.op, ast.USub) and self.truncates:
            return ast.copy_location(trees.hook_call("__minus__", node.operand), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._several(node, self.visit)

    def _several(self, node: ast.BoolOp, last: Callable[[ast.expr], ast.expr]) -> ast.expr:
        """``and`` or ``or``; ``last`` sees to the last operand, which it is where what is known decides."""
        # As on a device, an operand that does more than give a value is evaluated only where Python
        # would evaluate it; another one may be a tile, whose elements count whatever a number is.
        hooks: list[str] = []
        functions: list[list[str]] = []
        for place, value in enumerate(node.values):
            is_there = self.is_harmless(value) and not _reads_named(value, node.values[1:place])
            settles = "__settles__" if is_there else "__stops__"
            does_more = self.does_more(value)
            hooks.append("__decides__" if does_more else settles)
            functions.append(self.open_functions(value) if does_more else [])
        way = self.visit if hooks[-1] == "__decides__" else last
        values = [*map(self.visit, node.values[:-1]), way(node.values[-1])]
        on = isinstance(node.op, ast.And)
        return trees.placed_at(self._joined(values, on, hooks, functions), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """A choice; of a tile or a number it has the tile's shape, whichever is chosen."""
        return self._choice(node, "__choose__", self.visit)

    def _choice(self, node: ast.IfExp, hook: str, way: Callable[[ast.expr], ast.expr]) -> ast.expr:
        is_value = all(
            self.is_harmless(each) and not _reads_named(each, [node.test])
            for each in (node.body, node.orelse)
        )
        node.test = self.visit(node.test)
        node.body, node.orelse = way(node.body), way(node.orelse)
        if not is_value:
            return node
        ways = map(_delayed, (node.body, node.orelse))
        return trees.placed_at(trees.hook_call(hook, node.test, *ways), node)

    def does_more(self, node: ast.AST) -> bool:
        """Whether an expression does more than give a value."""
        raise NotImplementedError

    def open_functions(self, node: ast.AST) -> list[str]:
        """The names of functions that only the running program knows, where nothing else does more."""
        raise NotImplementedError

    def is_harmless(self, node: ast.AST) -> bool:
        """Whether an expression may be evaluated for its type where Python would not ask for it."""
        raise NotImplementedError

    def visit_Compare(self, node: ast.Compare) -> Any:
        # What assigns is asked for where Python would.
        assigns = any(map(trees.stored_names, node.comparators[1:]))
        node.left = self.visit(node.left)
        node.comparators = [self.visit(item) for item in node.comparators]
        if len(node.ops) == 1:
            return trees.placed_at(_compared(node.left, node.ops[0], node.comparators[0]), node)
        # a < b < c is a < b and b < c, for tiles too, and b is made once.
        comparisons: list[ast.expr] = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            kept = self.temporary("right")
            named = ast.NamedExpr(trees.name_of(kept, ast.Store()), right)
            comparisons.append(_compared(left, operator, named))
            left = trees.name_of(kept)
        if assigns:
            whole = self._joined(comparisons, True, ["__stops__"] * len(comparisons))
            return trees.placed_at(whole, node)
        # All are made: the shape of what comes out is not for the numbers to say.
        whole = comparisons[0]
        for comparison in comparisons[1:]:
            whole = trees.hook_call("__and__", whole, comparison)
        return trees.placed_at(whole, node)

    def _joined(
        self,
        values: list[ast.expr],
        on: bool,
        hooks: list[str],
        functions: Sequence[Sequence[str]] = (),
    ) -> ast.expr:
        """``and`` (``on``) or ``or`` of values, element by element where they are tiles.

        Args:
            hooks: for each value, what says whether those before it leave it out.
            functions: for each value that may do more than give one, those that say whether it does.
        """
        result = values[0]
        asked = functions or [()] * len(values)
        for value, hook, names in zip(values[1:], hooks[1:], asked[1:], strict=True):
            left, given = self.temporary("left"), [trees.name_of(name) for name in names]
            stops = trees.hook_call(
                hook,
                ast.NamedExpr(trees.name_of(left, ast.Store()), result),
                ast.Constant(on),
                *given,
            )
            known = trees.name_of(left), ast.Constant(on)
            joined = trees.hook_call("__after__", *known, value, *given) if given else value
            if hook == "__settles__":
                value = trees.hook_call("__beside__", *known, _delayed(value))
            if hook != "__decides__":
                joined = trees.hook_call("__and__" if on else "__or__", trees.name_of(left), value)
            result = ast.IfExp(stops, trees.name_of(left), joined)
        return result

    def _comprehension(self, node: Any) -> Any:
        around, own = self.own, set[str]()
        first: ast.expr | None = None
        for place, generator in enumerate(node.generators):
            generator.iter = self.held(generator.iter)
            own |= trees.stored_names(generator.target)
            self.own = around | own
            generator.ifs = [self.visit(condition) for condition in generator.ifs]
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(generator.iter)):
                continue
            # Python has no names bound in what is gone over: that is made before, under a name.
            items = self.temporary("items")
            made = ast.NamedExpr(trees.name_of(items, ast.Store()), generator.iter)
            generator.iter = trees.placed_at(trees.name_of(items), generator.iter)
            if place == 0:
                first = made
            else:
                always = ast.Tuple([made], ast.Load())
                node.generators[place - 1].ifs.append(trees.placed_at(always, generator.iter))
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.own = around
        if first is None:
            return node
        both = ast.Tuple([first, node], ast.Load())
        return trees.placed_at(ast.Subscript(both, ast.Constant(-1), ast.Load()), node)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self.with_defaults(node)  # Rewritten from its own source when it is called.

    def with_defaults(self, node: Any) -> Any:
        """A function within this one; its defaults are this one's to compute."""
        arguments = node.args
        arguments.defaults = [self.named(default) for default in arguments.defaults]
        arguments.kw_defaults = [each and self.named(each) for each in arguments.kw_defaults]
        return node

    def temporary(self, role: str) -> str:
        """A name that the function does not have."""
        self._count += 1
        return f"__{role}_{self._count}__"


def _delayed(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _reads_named(node: ast.AST, earlier: Sequence[ast.expr]) -> bool:
    """Whether an expression reads what one before it names, which may not have been evaluated."""
    named = {
        part.target.id
        for each in earlier
        for part in ast.walk(each)
        if isinstance(part, ast.NamedExpr)
    }
    return any(isinstance(part, ast.Name) and part.id in named for part in ast.walk(node))


def _joins(node: ast.expr) -> TypeGuard[ast.BinOp]:
    """Whether an expression adds to, or repeats, a tuple or a list that is written there."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Mult)
        and any(
            isinstance(side, ast.Tuple | ast.List) or _joins(side)
            for side in (node.left, node.right)
        )
    )


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """A comparison of two values."""
    hook = _COMPARISONS.get(type(operator))
    if hook is None:
        return ast.Compare(left, [operator], [right])
    found = trees.hook_call(hook, left, right)
    is_negated = isinstance(operator, ast.IsNot | ast.NotIn)
    return trees.hook_call("__not__", found) if is_negated else found


def is_one_of(value: Any, candidates: tuple[Any, ...]) -> bool:
    """Whether ``value`` is one of the candidates, itself: tiles and arrays compare in other ways."""
    return any(value is candidate for candidate in candidates)
