"""Symbols: immutable integer expressions over Python's syntax tree.

A `Symbol` is an operator with operands; the operators are those of Python's ``ast`` and a Symbol
turns into that tree (`Symbol.ast`) and prints as Python. Equal structure means the same object, so
comparing and hashing are those of identity. What a name *is* lives on its `Leaf`, never in its
spelling.

Nothing is simplified here: that is ``simplify``'s job.
"""

from __future__ import annotations

import ast
import functools
import keyword
import operator
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Union

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, ArrangementError, located_where_too_deep
from ninetoothed.symbols.interned import first, references
from ninetoothed.symbols.leaf import Fresh, Leaf, declared, serials
from ninetoothed.symbols.operators import COMPARISONS, FUNCTIONS, OPERATOR_OF_NODE, over
from ninetoothed.symbols.refusals import Refusals

#: What the package's functions take where they say "expression".
Expression = Union["Symbol", int]

#: What is put into itself twice, 30 times over, is a short tree that nobody can write down.
_MOST_TERMS = 10_000

#: The widest number in an expression: a product of some sizes, and no more than a float holds.
_MOST_BITS = 512

_Operator = Callable[["Symbol", Any], "Symbol"]


def _operators(op: str) -> tuple[_Operator, _Operator]:
    """Methods of `Symbol` that do a binary operator, and that do it the other way round."""
    return lambda left, right: _binary(op, left, right), lambda left, right: _binary(
        op, right, left
    )


class Symbol(Refusals):
    """An integer expression, known at compile time, when the kernel is called, or by the tuner.

    Args:
        expr: a name or any Python expression over names as a string, an int, or a Symbol.
        constexpr: the value is given when the kernel is called.
        meta: the value is chosen by the auto-tuner.
        lower_bound: the least value, inclusive. Default 32 for meta, else none.
        upper_bound: the greatest value, inclusive. Default 1024 for meta, else none.
        power_of_two: whether it is a power of two. Default: yes for meta.

    Bounds guide the tuner. A value that a call gives beyond them warns (`DeclarationWarning`) and is
    taken as it is.

    Raises:
        ArgumentError, ArrangementError: the expression is not one, or the keywords contradict each
            other.
    """

    __slots__ = ("op", "operands", "terms", "__weakref__")

    op: str
    operands: tuple[Any, ...]
    #: How many operators and operands it has as it is written.
    terms: int

    @located_where_too_deep("An integer expression", ArrangementError)
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
            if all(given is None for given in keywords):
                return expr
            expr = expr.leaf.name if expr.op == "leaf" else str(expr)
        if isinstance(expr, ast.AST):
            expr = ast.unparse(expr)
        if isinstance(expr, str):
            if expr.isidentifier():
                if keyword.iskeyword(expr):
                    raise ArrangementError(
                        f"a Symbol is given by its name in calls, and `{expr}` is a word of Python's"
                    )
                # As Python reads a name.
                return leaf(declared(unicodedata.normalize("NFKC", expr), *keywords))
            if any(given is not None for given in keywords):
                raise ArrangementError(
                    f"only a plain name takes constexpr, meta or bounds, not `{expr}`"
                )
            try:
                return _from_ast(threads.parse(expr, mode="eval").body)
            except SyntaxError as error:
                raise ArrangementError(f"`{expr}` is not a Python expression") from error
        if is_integer(expr):
            return constant(expr.__index__())
        raise ArgumentError(f"a Symbol is made of a name, an expression or an int, not {expr!r}")

    @property
    def leaf(self) -> Leaf:
        """What this name stands for; only for a leaf."""
        if self.op != "leaf":
            raise ArgumentError(f"`{self}` is an expression, not a name")
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
        if self.op == "leaf":
            return iter((self,))
        found: dict[Symbol, None] = {}
        pending = [self]
        while pending:
            node = pending.pop()
            if node.op == "leaf":
                found[node] = None
            elif node.op != "const":
                pending.extend(
                    [each for each in reversed(node.operands) if isinstance(each, Symbol)]
                )
        return iter(found)

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
        if self.op in ("leaf", "const"):
            return self
        old = self.operands
        new = [each.map(replace) if isinstance(each, Symbol) else each for each in old]
        return self if all(map(operator.is_, new, old)) else make(self.op, *new)

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
        return FUNCTIONS[op](*[operand.evaluate(values) for operand in operands])

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
        return self.leaf.label

    @property
    def sort_key(self) -> str:
        """Text that orders expressions, the same way in every process that makes the same ones."""
        return _sort_key(self)

    @located_where_too_deep("An integer expression", ArrangementError)
    def __str__(self) -> str:
        return self._label() if self.op == "leaf" else ast.unparse(self.ast())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return (make, (self.op, *self.operands))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Symbol is immutable: `{name}` cannot be set")

    def __pow__(self, exponent: Any) -> Symbol:
        """A product, for exponents that are known."""
        if isinstance(exponent, bool) or not isinstance(exponent, int) or not 0 <= exponent <= 64:
            raise ArgumentError(
                f"`({self}) ** {exponent}` needs an exponent from 0 to 64 that is known: symbols have sums, "
                "products and quotients"
            )
        product = self if exponent else as_symbol(1)
        for _ in range(exponent - 1):
            product = product * self
        return product

    def __bool__(self) -> bool:
        if self.op == "const":
            return bool(self.operands[0])
        if self.op in COMPARISONS or self.op in ("&", "|"):
            raise ArgumentError(
                f"whether `{self}` holds is only known when the kernel is called; "
                "a comparison of symbols cannot decide an `if` of an arrangement"
            )
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) and self.op == "const":
            return bool(self.operands[0] == other)
        return self is other

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __floordiv__, __rfloordiv__ = _operators("//")
    __mod__, __rmod__ = _operators("%")
    __and__, __rand__ = _operators("&")
    __or__, __ror__ = _operators("|")
    __lt__, __le__, __gt__, __ge__ = (_operators(op)[0] for op in ("<", "<=", ">", ">="))

    def __neg__(self) -> Symbol:
        return make("neg", self)

    def __pos__(self) -> Symbol:
        return self

    def __getitem__(self, index: Any) -> Symbol:
        return make("[]", self, as_symbol(index))


#: Nodes that are leaves to evaluation and printing: the start and length of a jagged sequence.
#: Their operands are the source tensor's identity and the sequence's number.
_OPAQUE = ("sequence_start", "sequence_length")

#: What stays as it is of constants, too. All others have one operand or two.
_UNFOLDED = frozenset((*_OPAQUE, "[]"))


@functools.lru_cache(maxsize=16384)
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
    if op not in _UNFOLDED and operands[0].op == "const" == operands[-1].op:
        values = [operand.operands[0] for operand in operands]
        if not (op in ("//", "%") and values[1] == 0):
            return constant(FUNCTIONS[op](*values))
    return _intern(op, operands)


def _intern(op: str, operands: tuple[Any, ...]) -> Symbol:
    # True and 1 are equal, and not the same.
    key = (op, type(operands[0]), operands[0]) if op == "const" else (op, *operands)
    reference = references.get(key)
    found: Symbol | None = None if reference is None else reference()
    if found is None:
        terms = 1
        for operand in operands:
            if isinstance(operand, Symbol):
                terms += operand.terms
        if terms > _MOST_TERMS:
            raise ArrangementError(
                f"an integer expression has grown to more than {_MOST_TERMS} terms, as one does that "
                "is put into itself twice at each step; make it shorter, or give the value by a "
                "constexpr Symbol of its own"
            )
        found = object.__new__(Symbol)
        object.__setattr__(found, "op", op)
        object.__setattr__(found, "operands", operands)
        object.__setattr__(found, "terms", terms)
        # Of two threads that make the same one, both must get the first.
        return first(key, found)
    return found


def leaf(what: Leaf) -> Symbol:
    """The Symbol of a name."""
    return _intern("leaf", (what,))


@functools.lru_cache(maxsize=1024, typed=True)
def constant(value: int | bool) -> Symbol:
    """The Symbol of a number."""
    if value.bit_length() > _MOST_BITS:
        raise ArrangementError(
            f"an integer expression has a number of more than {_MOST_BITS} bits, and a device has 64"
        )
    return _intern("const", (value,))


def as_symbol(value: Any) -> Symbol:
    """``value`` as a Symbol."""
    if isinstance(value, Symbol):
        return value
    return constant(value) if type(value) is int else Symbol(value)


def as_expression(value: Any) -> Expression:
    """``value`` as a Symbol, or as an int where it is a constant."""
    if isinstance(value, Symbol):
        return value.operands[0] if value.op == "const" else value
    return value.__index__()


def evaluated(value: Any, values: Mapping[Symbol, int]) -> int:
    """The number that an expression is, given one for each leaf."""
    return int(as_symbol(value).evaluate(values))


def is_integer(value: Any) -> bool:
    """Whether ``value`` is an int, or one of another library's that turns into one."""
    if isinstance(value, Symbol):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def is_expression(value: Any) -> bool:
    """Whether ``value`` may stand where a size or an index is wanted."""
    return isinstance(value, Symbol) or (is_integer(value) and not isinstance(value, bool))


def index(name: str, extent: Expression | None = None) -> Symbol:
    """A position that the compiler introduces: never negative, and below ``extent``."""
    return leaf(Leaf(name, role="index", owner=Fresh(), extent=extent, serial=next(serials)))


def minimum(a: Expression, b: Expression) -> Symbol:
    return make("min", as_symbol(a), as_symbol(b))


def maximum(a: Expression, b: Expression) -> Symbol:
    return make("max", as_symbol(a), as_symbol(b))


def padded(size: Expression) -> Symbol:
    """The least power of two that is no less than ``size``: how many lanes a dimension has."""
    return make("padded", as_symbol(size))


def block_size(lower_bound: int | None = None, upper_bound: int | None = None) -> Symbol:
    """A fresh symbol whose value the auto-tuner chooses among powers of two.

    Args:
        lower_bound: the least value, inclusive; 32 by default.
        upper_bound: the greatest value, inclusive; 1024 by default.
    """
    made = declared("BLOCK_SIZE", meta=True, lower_bound=lower_bound, upper_bound=upper_bound)
    return leaf(replace(made, owner=Fresh(), serial=next(serials)))


def _binary(op: str, left: Any, right: Any) -> Symbol:
    if type(right) is int:
        right = constant(right)
    elif type(left) is int:
        left = constant(left)
    elif type(left) is not type(right):
        for symbol, other in ((left, right), (right, left)):
            if not is_expression(other):
                symbol.check_operand(other)
                return NotImplemented
        return make(op, as_symbol(left), as_symbol(right))
    return make(op, left, right)


def _from_ast(node: ast.expr) -> Symbol:
    if isinstance(node, ast.Name):
        return leaf(declared(node.id))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return constant(node.value)
    if isinstance(node, ast.BinOp) and (op := OPERATOR_OF_NODE.get(type(node.op))):
        return make(op, _from_ast(node.left), _from_ast(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if op := OPERATOR_OF_NODE.get(type(node.ops[0])):
            return make(op, _from_ast(node.left), _from_ast(node.comparators[0]))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return make("neg", _from_ast(node.operand))
    if isinstance(node, ast.Subscript):
        return make("[]", _from_ast(node.value), _from_ast(node.slice))
    raise ArrangementError(
        f"`{ast.unparse(node)}` cannot be part of a Symbol: it takes + - * // %, comparisons, & | "
        "and subscripts over names and integers"
    )


def _constant_node(value: int) -> ast.expr:
    if not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
