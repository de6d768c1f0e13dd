"""Symbols: immutable integer expressions over Python's syntax tree.

A `Symbol` is an operator with operands; the operators are those of Python's ``ast`` and a Symbol
turns into that tree (`Symbol.ast`) and prints as Python. Equal structure means the same object, so
comparing and hashing are those of identity. What a leaf *is* (its bounds, whether the tuner chooses
it, which tensor's size it stands for) lives on the `Leaf`, never in the spelling of its name.

Nothing is simplified here: that is ``simplify``'s job.
"""

from __future__ import annotations

import ast
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

#: What the package's functions take where they say "expression".
Expression = Union["Symbol", int]

CONSTEXPR_BOUNDS = (1, 2**20)
META_BOUNDS = (32, 1024)


@dataclass(frozen=True)
class Leaf:
    """What a name in an expression stands for.

    Attributes:
        name: how it prints.
        role: ``"symbol"`` (a user's), ``"size"`` or ``"stride"`` (of a tensor), ``"index"`` (a
            position that the compiler introduces).
        owner: for a size or stride, the identity of the source tensor; for a fresh symbol, a token.
        dim: for a size or stride, the dimension.
        extent: for an index, the expression that it stays below; it is never negative.
        serial: tells names that read the same apart where an order is needed, and nothing else.
    """

    name: str
    role: str = "symbol"
    owner: object = None
    dim: int | None = None
    constexpr: bool = False
    meta: bool = False
    lower_bound: int | None = None
    upper_bound: int | None = None
    power_of_two: bool = False
    extent: object = None
    serial: int = 0


def _is_zero(divisor: Any) -> bool:
    """Dividing by the size of an empty dimension gives 0: it has no element to be found there."""
    return getattr(divisor, "ndim", 0) == 0 and bool(divisor == 0)


_BINARY: dict[str, tuple[type[ast.operator], Callable[[Any, Any], Any]]] = {
    "+": (ast.Add, lambda a, b: a + b),
    "-": (ast.Sub, lambda a, b: a - b),
    "*": (ast.Mult, lambda a, b: a * b),
    "//": (ast.FloorDiv, lambda a, b: a * 0 if _is_zero(b) else a // b),
    "%": (ast.Mod, lambda a, b: a * 0 if _is_zero(b) else a % b),
    "&": (ast.BitAnd, lambda a, b: a & b),
    "|": (ast.BitOr, lambda a, b: a | b),
}
_COMPARE: dict[str, tuple[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    "<": (ast.Lt, lambda a, b: a < b),
    "<=": (ast.LtE, lambda a, b: a <= b),
    ">": (ast.Gt, lambda a, b: a > b),
    ">=": (ast.GtE, lambda a, b: a >= b),
    "==": (ast.Eq, lambda a, b: a == b),
    "!=": (ast.NotEq, lambda a, b: a != b),
}
_FROM_AST = {node: op for op, (node, _) in itertools.chain(_BINARY.items(), _COMPARE.items())}


def _minimum(a: Any, b: Any) -> Any:
    return (
        (a + b - abs(a - b)) // 2 if not isinstance(a, int) or not isinstance(b, int) else min(a, b)
    )


def _maximum(a: Any, b: Any) -> Any:
    return -_minimum(-a, -b)


def next_power_of_2(size: int) -> int:
    """The least power of two that is no less."""
    return 1 << max(size - 1, 0).bit_length()


_CALLS: dict[str, Callable[..., Any]] = {
    "min": _minimum,
    "max": _maximum,
    "widened": next_power_of_2,
}

_interned: weakref.WeakValueDictionary[tuple[Any, ...], Symbol] = weakref.WeakValueDictionary()

#: Held while one is added: the dictionary itself looks and then adds. A thread may come back to it,
#: through what the garbage collector calls.
_adding = threading.RLock()


class Symbol:
    """An integer expression, known at compile time, when the kernel is called, or by the tuner.

    Args:
        expr: a name or any Python expression over names as a string, an int, or a Symbol.
        constexpr: the value is given when the kernel is called.
        meta: the value is chosen by the auto-tuner.
        lower_bound: the least value, inclusive. Default 1 for constexpr, 32 for meta.
        upper_bound: the greatest value, inclusive. Default 2**20 for constexpr, 1024 for meta.
        power_of_two: whether only powers of two are possible. Default: yes for meta.

    Raises:
        TypeError, ValueError: the expression is not one, or the keywords contradict each other.
    """

    __slots__ = ("op", "operands", "__weakref__")

    op: str
    operands: tuple[Any, ...]

    def __new__(
        cls,
        expr: Any,
        constexpr: bool | None = None,
        meta: bool | None = None,
        lower_bound: int | None = None,
        upper_bound: int | None = None,
        power_of_two: bool | None = None,
    ) -> Symbol:
        keywords = (constexpr, meta, lower_bound, upper_bound, power_of_two)
        if isinstance(expr, Symbol):
            if all(keyword is None for keyword in keywords):
                return expr
            if expr.op != "leaf":
                raise ValueError(f"only a plain name takes constexpr, meta or bounds, not `{expr}`")
            expr = expr.leaf.name
        if isinstance(expr, ast.AST):
            expr = ast.unparse(expr)
        if isinstance(expr, str):
            if expr.isidentifier():
                return leaf(_user_leaf(expr, *keywords))
            if any(keyword is not None for keyword in keywords):
                raise ValueError(f"only a plain name takes constexpr, meta or bounds, not `{expr}`")
            try:
                return _from_ast(ast.parse(expr, mode="eval").body)
            except SyntaxError as error:
                raise ValueError(f"`{expr}` is not a Python expression") from error
        if hasattr(expr, "__index__"):
            return constant(expr.__index__())
        raise TypeError(f"a Symbol is made of a name, an expression or an int, not {expr!r}")

    @property
    def leaf(self) -> Leaf:
        """What this name stands for; only for a leaf."""
        if self.op != "leaf":
            raise TypeError(f"`{self}` is an expression, not a name")
        return self.operands[0]

    @property
    def name(self) -> str:
        """The name of a leaf."""
        return self.leaf.name

    @property
    def constexpr(self) -> bool:
        return self.op == "leaf" and self.leaf.constexpr

    @property
    def meta(self) -> bool:
        return self.op == "leaf" and self.leaf.meta

    @property
    def lower_bound(self) -> int | None:
        return self.leaf.lower_bound

    @property
    def upper_bound(self) -> int | None:
        return self.leaf.upper_bound

    @property
    def power_of_two(self) -> bool:
        return self.leaf.power_of_two

    def leaves(self) -> Iterator[Symbol]:
        """The names in this expression, from left to right, each once."""
        seen: set[Symbol] = set()
        for node in self.walk():
            if node.op == "leaf" and node not in seen:
                seen.add(node)
                yield node

    def walk(self) -> Iterator[Symbol]:
        """This expression and all within it, parents first."""
        yield self
        for operand in self.operands:
            if isinstance(operand, Symbol):
                yield from operand.walk()

    def map(self, replace: Callable[[Symbol], Expression | None]) -> Symbol:
        """This expression with each node for which ``replace`` gives one replaced by that."""
        replacement = replace(self)
        if replacement is not None:
            return as_symbol(replacement)
        if not any(isinstance(operand, Symbol) for operand in self.operands):
            return self
        operands = tuple(o.map(replace) if isinstance(o, Symbol) else o for o in self.operands)
        return self if operands == self.operands else make(self.op, *operands)

    def substitute(self, values: Mapping[Symbol, Expression]) -> Symbol:
        """This expression with leaves replaced."""
        return self.map(values.get)

    def evaluate(self, values: Mapping[Symbol, Any]) -> Any:
        """The value, given a value (an int or a NumPy array) for each leaf.

        Raises:
            KeyError: a leaf has no value.
        """
        op, operands = self.op, self.operands
        if op == "const":
            return operands[0]
        if op == "leaf" or op in _OPAQUE:
            return values[self]
        if op in _BINARY:
            return _BINARY[op][1](operands[0].evaluate(values), operands[1].evaluate(values))
        if op in _COMPARE:
            return _COMPARE[op][1](operands[0].evaluate(values), operands[1].evaluate(values))
        if op == "neg":
            return -operands[0].evaluate(values)
        if op == "[]":
            return operands[0].evaluate(values)[operands[1].evaluate(values)]
        return _CALLS[op](*(operand.evaluate(values) for operand in operands))

    def ast(self, name_of: Callable[[Symbol], ast.expr] | None = None) -> ast.expr:
        """This expression as Python's syntax tree.

        Args:
            name_of: gives the tree of a leaf; by default its name.
        """
        op, operands = self.op, self.operands
        if op == "const":
            return _constant_node(operands[0])
        if op == "leaf" or op in _OPAQUE:
            return name_of(self) if name_of is not None else ast.Name(self._label(), ast.Load())
        return over(op, [operand.ast(name_of) for operand in operands])

    def _label(self) -> str:
        if self.op != "leaf":
            return f"{self.op}({self.operands[1]})"
        leaf = self.operands[0]
        label = getattr(leaf.owner, "label", None)
        if label is None:
            return leaf.name
        return label if leaf.dim is None else f"{label}_{leaf.role}_{leaf.dim}"

    @property
    def sort_key(self) -> str:
        """Text that orders expressions, the same way in every process that makes the same ones."""
        return _sort_key(self)

    def __str__(self) -> str:
        return ast.unparse(self.ast())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return (make, (self.op, *self.operands))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Symbol is immutable: `{name}` cannot be set")

    def __truediv__(self, other: Any) -> Symbol:
        raise TypeError(
            f"`({self}) / {other}` may be no integer, and symbols are; `a // b` rounds down, "
            "`(a + b - 1) // b` rounds up"
        )

    def __bool__(self) -> bool:
        if self.op == "const":
            return bool(self.operands[0])
        if self.op in _COMPARE or self.op in ("&", "|"):
            raise TypeError(
                f"whether `{self}` holds is only known when the kernel is called; "
                "a comparison of symbols cannot decide an `if` of an arrangement"
            )
        return True

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) and self.op == "const":
            return bool(self.operands[0] == other)
        return self is other

    def __add__(self, other: Any) -> Symbol:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return _binary("*", other, self)

    def __floordiv__(self, other: Any) -> Symbol:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Symbol:
        return _binary("//", other, self)

    def __mod__(self, other: Any) -> Symbol:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Symbol:
        return _binary("%", other, self)

    def __and__(self, other: Any) -> Symbol:
        return _binary("&", self, other)

    def __rand__(self, other: Any) -> Symbol:
        return _binary("&", other, self)

    def __or__(self, other: Any) -> Symbol:
        return _binary("|", self, other)

    def __ror__(self, other: Any) -> Symbol:
        return _binary("|", other, self)

    def __lt__(self, other: Any) -> Symbol:
        return _binary("<", self, other)

    def __le__(self, other: Any) -> Symbol:
        return _binary("<=", self, other)

    def __gt__(self, other: Any) -> Symbol:
        return _binary(">", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return _binary(">=", self, other)

    def __neg__(self) -> Symbol:
        return make("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __getitem__(self, index: Any) -> Symbol:
        return _binary("[]", self, index)

    def __iter__(self) -> Iterator[Symbol]:
        raise TypeError(f"`{self}` is an integer expression and cannot be iterated over")


class Fresh:
    """The identity of a name that is equal to no other, whatever it is called.

    Attributes:
        label: how it prints once a kernel has given it a name.
    """

    __slots__ = ("label",)

    def __init__(self) -> None:
        self.label: str | None = None


#: For `Leaf.serial`.
serials = itertools.count(1)

#: Nodes that are leaves to evaluation and printing: the start and length of a jagged sequence.
#: Their operands are the source tensor's identity and the sequence's number.
_OPAQUE = ("sequence_start", "sequence_length")


def over(op: str, operands: list[ast.expr]) -> ast.expr:
    """Python's tree of one of the operators over trees."""
    if op in _BINARY:
        return ast.BinOp(operands[0], _BINARY[op][0](), operands[1])
    if op in _COMPARE:
        return ast.Compare(operands[0], [_COMPARE[op][0]()], [operands[1]])
    if op == "neg":
        return ast.UnaryOp(ast.USub(), operands[0])
    if op == "[]":
        return ast.Subscript(operands[0], operands[1], ast.Load())
    return ast.Call(ast.Name(op, ast.Load()), operands, [])


@functools.lru_cache(maxsize=65536)
def _sort_key(symbol: Symbol) -> str:
    if symbol.op == "leaf":
        # Of names that read the same, the one that was made first comes first.
        return f"{symbol.leaf.name} {symbol.leaf.serial:012}"
    keys = [_sort_key(o) if isinstance(o, Symbol) else str(o) for o in symbol.operands]
    return f"{symbol.op}({', '.join(keys)})"


def make(op: str, *operands: Any) -> Symbol:
    """The Symbol of an operator and its operands; constants fold."""
    if op == "leaf":
        return leaf(operands[0])
    if op == "const":
        return constant(operands[0])
    if op not in _OPAQUE and op != "[]" and all(o.op == "const" for o in operands):
        values = [operand.operands[0] for operand in operands]
        if not (op in ("//", "%") and values[1] == 0):
            function = (_BINARY.get(op) or _COMPARE.get(op) or (None, _CALLS.get(op)))[1]
            return constant(-values[0] if op == "neg" else function(*values))  # type: ignore[misc]
    return _intern(op, operands)


def _intern(op: str, operands: tuple[Any, ...]) -> Symbol:
    # True and 1 are equal, and not the same.
    key = (op, type(operands[0]), operands[0]) if op == "const" else (op, *operands)
    found = _interned.get(key)
    if found is None:
        found = object.__new__(Symbol)
        object.__setattr__(found, "op", op)
        object.__setattr__(found, "operands", operands)
        # Of two threads that make the same one, both must get the first.
        with _adding:
            found = _interned.setdefault(key, found)
    return found


def leaf(what: Leaf) -> Symbol:
    """The Symbol of a name."""
    return _intern("leaf", (what,))


def constant(value: int | bool) -> Symbol:
    """The Symbol of a number."""
    return _intern("const", (value,))


def as_symbol(value: Any) -> Symbol:
    """``value`` as a Symbol."""
    return value if isinstance(value, Symbol) else Symbol(value)


def as_expression(value: Any) -> Expression:
    """``value`` as a Symbol, or as an int where it is a constant."""
    if isinstance(value, Symbol):
        return value.operands[0] if value.op == "const" else value
    return value.__index__()


def is_expression(value: Any) -> bool:
    """Whether ``value`` may stand where a size or an index is wanted."""
    return isinstance(value, Symbol) or (
        hasattr(value, "__index__") and not isinstance(value, bool)
    )


def index(name: str, extent: Expression | None = None) -> Symbol:
    """A position that the compiler introduces: never negative, and below ``extent``."""
    return leaf(Leaf(name, role="index", owner=Fresh(), extent=extent, serial=next(serials)))


def minimum(a: Expression, b: Expression) -> Symbol:
    return make("min", as_symbol(a), as_symbol(b))


def maximum(a: Expression, b: Expression) -> Symbol:
    return make("max", as_symbol(a), as_symbol(b))


def widened(size: Expression) -> Symbol:
    """The least power of two that is no less than ``size``: how many lanes a dimension has."""
    return make("widened", as_symbol(size))


def block_size(lower_bound: int | None = None, upper_bound: int | None = None) -> Symbol:
    """A fresh symbol whose value the auto-tuner chooses among powers of two.

    Args:
        lower_bound: the least value, inclusive; 32 by default.
        upper_bound: the greatest value, inclusive; 1024 by default.
    """
    made = _user_leaf("BLOCK_SIZE", None, True, lower_bound, upper_bound, None)
    return leaf(replace(made, owner=Fresh(), serial=next(serials)))


def _binary(op: str, left: Any, right: Any) -> Symbol:
    if not (is_expression(left) and is_expression(right)):
        return NotImplemented
    return make(op, as_symbol(left), as_symbol(right))


def _user_leaf(
    name: str,
    constexpr: bool | None,
    meta: bool | None,
    lower_bound: int | None,
    upper_bound: int | None,
    power_of_two: bool | None,
) -> Leaf:
    if constexpr and meta:
        raise ValueError(
            f"`{name}` is either given at the call (constexpr) or tuned (meta), not both"
        )
    if constexpr or meta:
        defaults = META_BOUNDS if meta else CONSTEXPR_BOUNDS
        if lower_bound is None:
            lower_bound = defaults[0] if upper_bound is None else min(defaults[0], upper_bound)
        if upper_bound is None:
            upper_bound = max(defaults[1], lower_bound)
    if power_of_two is None:
        power_of_two = bool(meta)
    if lower_bound is not None and upper_bound is not None and lower_bound > upper_bound:
        raise ValueError(f"`{name}` has no value: its bounds are {lower_bound} to {upper_bound}")
    return Leaf(
        name,
        constexpr=bool(constexpr),
        meta=bool(meta),
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        power_of_two=power_of_two,
    )


def _from_ast(node: ast.expr) -> Symbol:
    if isinstance(node, ast.Name):
        return leaf(_user_leaf(node.id, None, None, None, None, None))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return constant(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _FROM_AST:
        return make(_FROM_AST[type(node.op)], _from_ast(node.left), _from_ast(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _FROM_AST:
        operator = _FROM_AST[type(node.ops[0])]
        return make(operator, _from_ast(node.left), _from_ast(node.comparators[0]))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return make("neg", _from_ast(node.operand))
    if isinstance(node, ast.Subscript):
        return make("[]", _from_ast(node.value), _from_ast(node.slice))
    raise ValueError(
        f"`{ast.unparse(node)}` cannot be part of a Symbol: it takes + - * // %, comparisons, & | "
        "and subscripts over names and integers"
    )


def _constant_node(value: int) -> ast.expr:
    if not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
