"""A tape: what a program computes, in order, and what of it depends on the inputs to be derived by."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ninetoothed.errors import ApplicationError, Location
from ninetoothed.parsing.source import written_at
from ninetoothed.program.effects import operation_of
from ninetoothed.program.nodes import Store, SymbolValue, TileRef, clone, location
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol
from ninetoothed.symbols.simplify import difference

#: The sizes of a value's dimensions, as `types.ValueType` has them.
Dims = tuple[Any, ...]


@dataclass(frozen=True)
class Operand:
    """A value as a step takes it.

    Attributes:
        expression: what computes it, or its name.
        dims: its shape; None where that is not known.
        name: of the value on the tape, None where it does not depend on the inputs.
    """

    expression: ast.expr
    dims: Dims | None
    name: str | None = None

    @property
    def copied(self) -> ast.expr:
        return clone(self.expression)


@dataclass(frozen=True)
class Way:
    """One way of ``a if test else b``.

    Attributes:
        key: what tells whether two tests are the same.
    """

    key: str
    is_body: bool
    test: ast.expr = field(compare=False)


#: By which ways a value is reached: by all of some, or by all of others.
Under = frozenset[frozenset[Way]]

#: By none that is not taken.
ALWAYS: Under = frozenset({frozenset()})

#: What a gradient is beyond that exists wherever what it is of does.
NOWHERE: frozenset[tuple[Any, str]] = frozenset()


def way(test: ast.expr, is_body: bool) -> Under:
    """What one way of a choice is under."""
    return frozenset({frozenset({Way(dump(test), is_body, test)})})


def both(one: Under, other: Under) -> Under:
    """What is reached by a way within another."""
    return frozenset(a | b for a in one for b in other)


def either(one: Under, other: Under) -> Under:
    """What is reached by one way or by another; by both ways of a choice it is whatever that chooses."""
    found = {*one, *other}
    for a, b in itertools.combinations(found, 2):
        if a < b or b < a:
            return either(frozenset(found - {max(a, b, key=len)}), frozenset())
        apart = a ^ b
        if len(apart) == 2 and len({each.key for each in apart}) == 1:
            return either(frozenset(found - {a, b} | {a & b}), frozenset())
    return frozenset(found)


def holds(under: Under) -> ast.expr:
    """Whether a value is reached, as an expression."""

    def joined(op: ast.boolop, parts: list[ast.expr]) -> ast.expr:
        return parts[0] if len(parts) == 1 else ast.BoolOp(op, parts)

    def is_taken(each: Way) -> ast.expr:
        test = clone(each.test)
        return test if each.is_body else ast.UnaryOp(ast.Not(), test)

    ordered = (sorted(each, key=lambda way: way.key) for each in under)
    ways = sorted(ordered, key=lambda each: [(way.key, way.is_body) for way in each])
    return joined(ast.Or(), [joined(ast.And(), [*map(is_taken, each)]) for each in ways])


@dataclass(frozen=True)
class Gradient:
    """A gradient of a value, or a part of one.

    Attributes:
        expression: what computes it.
        dims: its shape, which broadcasts to that of the value.
        is_exact: whether it is 0, or does not exist, wherever the value does not exist.
        over: the value, a number, that the expression is yet to be divided by.
        among: the sizes that it was summed over since it was to be divided; where one is 0, it is of nothing.
        under: where there is a gradient at all; elsewhere it is 0, whatever the expression gives.
        beyond: what left elements out that inputs have, by the identity of the item, and which inputs; and
            the place, with no name, of a tile that was stored to beside others: there it does not exist.
    """

    expression: ast.expr
    dims: Dims
    is_exact: bool
    over: str | None = None
    among: frozenset[Symbol] = frozenset()
    under: Under = ALWAYS
    beyond: frozenset[tuple[Any, str]] = NOWHERE

    @property
    def copied(self) -> ast.expr:
        return clone(self.expression)

    @property
    def whole(self) -> Gradient:
        """The same, divided."""
        if self.over is None:
            return self
        divided: ast.expr = ast.BinOp(self.expression, ast.Div(), name(self.over))
        for size in sorted(self.among, key=str):
            # A sum of quotients would be 0 of none, where that of nothing over 0 is no number.
            is_any = ast.Compare(SymbolValue(symbol=size), [ast.Gt()], [ast.Constant(0)])
            divided = ast.IfExp(is_any, divided, ast.Constant(0.0))
        return replace(self, expression=divided, over=None, among=frozenset())

    @property
    def everywhere(self) -> Gradient:
        """The same, divided, and 0 where there is none: 0 * inf on the way not taken would not be."""
        if self.under == ALWAYS:
            return self.whole
        test = holds(self.under)
        there, zero = self.whole.expression, ast.Constant(0.0)
        chosen = ast.IfExp(test, there, zero)
        if isinstance(test, ast.UnaryOp):
            chosen = ast.IfExp(test.operand, zero, there)
        return Gradient(chosen, self.dims, self.is_exact, beyond=self.beyond)


#: Gives each operand, by its place, its part of the gradient.
Rule = Callable[["Step", Gradient], Iterator[tuple[int, Gradient]]]


@dataclass(frozen=True)
class Plain:
    """``target = expression``, which does not depend on the inputs."""

    target: str
    expression: ast.expr


@dataclass(frozen=True)
class Step:
    """``target = expression``, of operands some of which depend on the inputs.

    Attributes:
        node: where it stands in the user's source.
    """

    target: str
    expression: ast.expr
    operands: tuple[Operand, ...]
    rule: Rule
    dims: Dims
    node: ast.AST

    @property
    def result(self) -> ast.expr:
        return name(self.target)


@dataclass(frozen=True)
class Read:
    """``target = tile``, of an input to be derived by."""

    target: str
    tile: TileRef
    dims: Dims
    node: ast.AST


@dataclass(frozen=True)
class Summand:
    """``target += operand`` in a loop, or ``-=``; nothing else in it reads the target."""

    target: str
    operand: Operand
    is_negative: bool
    dims: Dims
    node: ast.AST


@dataclass(frozen=True)
class Written:
    """A store to an output, or what it adds to what an earlier one stored."""

    tile: TileRef
    operand: Operand
    dims: Dims


@dataclass(frozen=True)
class Loop:
    """Rounds that do not depend on each other, but for what they sum."""

    variable: str
    iterable: ast.expr
    body: list[Item] = field(default_factory=list)

    @property
    def sums_once(self) -> bool:
        """Whether it has one round, which does nothing but add up what was made before it."""
        counts = [getattr(each, "value", None) for each in getattr(self.iterable, "args", [])]
        return counts == [1] and all(isinstance(each, Summand) for each in self.body)


@dataclass(frozen=True)
class Widened:
    """A size of a value that meets a larger one where it is 1, which is known only in a call.

    Attributes:
        own: the value's.
        whole: that which it has there.
        node: where they meet.
    """

    own: Symbol
    whole: Expression
    node: ast.AST


class AtomicSum(Store):
    """Adds a value to a tile that other programs add to meanwhile."""


class SumType(ast.expr):
    """The element type of a sum: float64 where a tensor that the program loads has that, else float32."""


Item = Plain | Step | Read | Summand | Written | Loop


def all_items(items: Iterable[Item]) -> Iterator[Item]:
    """The items of a tape, those within loops too."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from all_items(item.body)


def widened_values(items: Iterable[Item], equal: Mapping[Symbol, Expression]) -> Iterator[Widened]:
    """The values on a tape that may be repeated, of which no gradient is summed.

    Args:
        equal: what sizes are the same as.
    """

    def known(size: Any) -> Any:
        return size.substitute(equal) if isinstance(size, Symbol) else size

    seen = set()
    for item in all_items(items):
        if isinstance(item, Step) and _is_by_element(item.expression):
            operands, node = item.operands, item.node
        elif isinstance(item, Written | Summand):
            operands = (item.operand,)
            node = item.tile if isinstance(item, Written) else item.node
        else:
            continue
        for operand in operands:
            dims = () if operand.name is None else operand.dims or ()
            for pair in zip(reversed(dims), reversed(item.dims)):
                own, whole = map(known, pair)
                is_open = isinstance(own, Symbol) and whole is not None
                if is_open and difference(own, whole) != 0 and pair not in seen:
                    seen.add(pair)
                    yield Widened(*pair, node)


def _is_by_element(expression: ast.expr) -> bool:
    """Whether a value's elements are each of those at its place, of what is repeated to its shape."""
    operation = operation_of(expression) if isinstance(expression, ast.Call) else None
    if operation is None:
        return isinstance(expression, ast.BinOp | ast.UnaryOp | ast.IfExp)
    return operation.kind == "element-wise" or operation.name == "broadcast_to"


def has_rounds(loop: Loop) -> bool:
    """Whether a loop has a round: as many as a size or a constant says."""
    counts = getattr(loop.iterable, "args", [])
    return all(isinstance(each, ast.Constant | SymbolValue) for each in counts)


def sums_outside(loop: Loop) -> list[str]:
    """The sums of a loop, and of those within it, that begin outside of it."""
    made: set[str] = set()
    summed: list[str] = []

    def look(items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Plain | Step | Read):
                made.add(item.target)
            elif isinstance(item, Summand):
                summed.append(item.target)
            elif isinstance(item, Loop):
                look(item.body)

    look(loop.body)
    return [target for target in summed if target not in made]


def name(text: str) -> ast.Name:
    return ast.Name(id=text, ctx=ast.Load())


def assignment(target: str, expression: ast.expr) -> ast.Assign:
    return ast.Assign(targets=[ast.Name(id=target, ctx=ast.Store())], value=expression)


def refused(problem: str, node: ast.AST) -> ApplicationError:
    """The error that a program has no derived backward."""
    return ApplicationError(
        f"No backward is derived: {problem} Write the backward kernel by hand, and give it to "
        "`ninetoothed.op` as its `backward`.",
        place_of(node),
    )


def place_of(node: ast.AST) -> Location | None:
    """Where a node stands in the user's source; None where it was made here."""
    return written_at(location(node)) if hasattr(node, "lineno") else None


def origin_of(node: ast.AST) -> Location | None:
    """Where that stands which a statement was made of; None where that is not known."""
    found: Location | None = getattr(node, "origin", None)
    return found or place_of(node)


def item_place(item: Item) -> Location | None:
    """Where an item of a tape stands in the user's source; None where that is not known."""
    if isinstance(item, Step | Read | Summand):
        return place_of(item.node)
    if isinstance(item, Written):
        return place_of(item.tile)
    return place_of(item.expression) if isinstance(item, Plain) else None


def dump(node: Any) -> str:
    """What tells whether two expressions are the same."""
    parts = [type(node).__name__]
    for key in getattr(node, "_fields", ()):
        value = getattr(node, key, None)
        if isinstance(value, ast.AST):
            parts.append(dump(value))
        elif isinstance(value, list):
            parts.append(f"[{', '.join(map(dump, value))}]")
        elif key not in ("ctx", "kind", "type_comment"):
            parts.append(repr(value) if not hasattr(value, "op") else f"{id(value)}")
    return f"({' '.join(parts)})" if isinstance(node, ast.AST) else repr(node)
