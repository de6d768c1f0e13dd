"""What one program of a kernel does, counted over its Program: bytes, operations, products, rounds.

The tree is run on shapes alone, with the numbers of one call and one choice of the meta symbols.
What depends on values (how often a ``while`` goes round, which side of an ``if`` is taken) is
guessed: the counts are for an estimate.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from ninetoothed.backends.base import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.language.operations import Operation
from ninetoothed.program import nodes
from ninetoothed.program.effects import operation_of
from ninetoothed.program.types import type_of
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.tuning.estimate import Product

Shape = tuple[int, ...]

#: Rounds of a loop whose length is only known when it runs.
_UNKNOWN_TRIPS = 8

#: Of a bound that is the lesser of a known number and one that depends on the program, or what is left of
#: the known number without that one: a causal mask's blocks, on average.
_PART_OF_A_BOUND = 0.5

_NOTHING_KNOWN = Operation("other")


@dataclass
class Counts:
    """What one program does over its whole life.

    Attributes:
        loaded, stored: bytes, by parameter.
        flops: operations on elements.
        special: of those, the ones of a special unit.
        reductions: values combined over whole tiles.
        products: the products of tiles.
        loops: of those, the ones of each loop that stands in no other.
        rounds: of the loop with the most loads.
        streamed: the parameters that are loaded in a loop with a product, so that their loads can
            be begun rounds ahead, with the bytes of one round.
        reread: of those streamed, the ones that several products of a round take.
        held: bytes of the tiles that products take and that are loaded once.
        kept: of these bytes, those of tiles that something else reads too: they are in registers.
        waited_for: of the bytes streamed in one round, those that no copy in the background brings.
        existing: of the elements of each parameter's tiles, the share that no mask leaves out.
        rows: in how many rows of tiles the tensors lie that are streamed.
        short: of the bytes streamed, how many come in rows of half a cache line; those in rows of a
            quarter count three times, and so on.
        largest: elements of the largest tile.
    """

    loaded: dict[str, float] = field(default_factory=dict)
    stored: dict[str, float] = field(default_factory=dict)
    flops: float = 0.0
    special: float = 0.0
    reductions: float = 0.0
    products: list[Product] = field(default_factory=list)
    loops: list[list[Product]] = field(default_factory=list)
    rounds: float = 1.0
    streamed: dict[str, int] = field(default_factory=dict)
    reread: set[str] = field(default_factory=set)
    held: dict[str, int] = field(default_factory=dict)
    kept: int = 0
    waited_for: int = 0
    existing: dict[str, float] = field(default_factory=dict)
    rows: float = 0.0
    short: float = 0.0
    largest: int = 1

    @property
    def bytes_moved(self) -> float:
        """Those of elements that exist."""
        moved = (*self.loaded.items(), *self.stored.items())
        return sum(amount * self.existing.get(name, 1.0) for name, amount in moved)

    @property
    def bytes_filled(self) -> float:
        """Those of elements that do not, in the tiles that are streamed."""
        return sum(self.loaded[name] * (1 - self.existing[name]) for name in self.streamed)


def count(kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> Counts:
    """The counts of one program of a kernel in a call.

    Args:
        environment: the value of every symbol.
    """
    counter = _Counter(kernel, call, environment)
    counter.block(kernel.optimized.body, 1.0, 0)
    return counter.counts


class _Counter:
    def __init__(self, kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> None:
        self._call = call
        self._environment = environment
        self._tiles: dict[str, Shape] = {
            parameter.name: tuple(
                next_power_of_2(self._value(size)) for size in parameter.tile_shape
            )
            for parameter in kernel.tensor_parameters
        }
        self._widths: dict[Any, int] = {None: 1}
        #: The numbers that local names hold, where they are known.
        self._numbers: dict[str, float] = {}
        #: The parameters that a local name's value was loaded from without being changed.
        self._origins: dict[str, str] = {}
        #: Those of them that each round of a loop loads anew.
        self._streaming: set[str] = set()
        self.counts = Counts(
            largest=max((math.prod(tile) for tile in self._tiles.values()), default=1)
        )

    def _value(self, expression: object) -> int:
        return evaluated(expression, self._environment)

    def _width(self, size: object) -> int:
        """In how many a dimension is held."""
        if size not in self._widths:
            self._widths[size] = next_power_of_2(self._value(size))
        return self._widths[size]

    def block(self, statements: list[ast.stmt], times: float, depth: int) -> None:
        """Counts statements that run so often, in so many loops."""
        for statement in statements:
            if isinstance(statement, ast.For):
                self._loop(statement.body, times, self._trips(statement.iter), depth)
            elif isinstance(statement, ast.While):
                self._shape(statement.test, times * _UNKNOWN_TRIPS, depth)
                self._loop(statement.body, times, _UNKNOWN_TRIPS, depth)
            elif isinstance(statement, ast.If):
                self._shape(statement.test, times, depth)
                self.block(statement.body, times, depth)
                self.block(statement.orelse, times, depth)
            else:
                self._statement(statement, times, depth)

    def _loop(self, body: list[ast.stmt], times: float, trips: float, depth: int) -> None:
        before, first = self.counts.bytes_moved, len(self.counts.products)
        self.block(body, times * trips, depth + 1)
        if depth == 0:
            self.counts.loops.append(self.counts.products[first:])
        if self.counts.bytes_moved > before:
            self.counts.rounds = max(self.counts.rounds, times * trips)

    def _trips(self, iterable: ast.expr) -> float:
        if isinstance(iterable, ast.Call) and iterable.args:
            last = iterable.args[min(1, len(iterable.args) - 1)]
            found = self._number(last)
            if found is not None:
                return max(found, 0.0)
        return _UNKNOWN_TRIPS

    def _number(self, node: ast.expr) -> float | None:
        """The number that an expression is, or is about; None where nothing is known."""
        if isinstance(node, nodes.SymbolValue):
            return self._value(node.symbol)
        if isinstance(node, nodes.SequenceLength):
            return self._call.arguments[node.parameter].shape[node.dim]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name):
            return self._numbers.get(node.id)
        if isinstance(node, ast.Call) and _function(node) in ("minimum", "min"):
            known = [self._number(argument) for argument in node.args]
            numbers = [number for number in known if number is not None]
            if numbers:
                return min(numbers) * (_PART_OF_A_BOUND if None in known else 1.0)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            whole, part = self._number(node.left), self._number(node.right)
            if whole is not None:
                return whole * _PART_OF_A_BOUND if part is None else whole - part
        return None

    def _statement(self, statement: ast.stmt, times: float, depth: int) -> None:
        if isinstance(statement, nodes.Store):
            self._shape(statement.value, times, depth)
            self._move(self.counts.stored, statement.tile.parameter, times)
            return
        if isinstance(statement, nodes.SourceStore):
            shape = self._shape(statement.value, times, depth)
            size = math.prod(shape) * self._itemsize(statement.parameter)
            self._add(self.counts.stored, statement.parameter, times * size)
            return
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.expr):
            return
        shape = self._shape(value, times, depth)
        # A product is added to what it is summed up in by the multiplication itself.
        is_sum_of_products = isinstance(value, ast.Call) and _function(value) == "dot"
        if isinstance(statement, ast.AugAssign) and not is_sum_of_products:
            self._operate(shape, times)
        for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
            if isinstance(target, ast.Name):
                self._assign(target.id, value, isinstance(statement, ast.AugAssign))
                if depth and self._is_loaded(value):
                    self._streaming.add(target.id)

    def _assign(self, name: str, value: ast.expr, is_changed: bool) -> None:
        number = None if is_changed else self._number(value)
        if number is not None:
            self._numbers[name] = number
        origin = None if is_changed else self._origin(value)
        if origin is not None:
            self._origins[name] = origin

    def _move(self, into: dict[str, float], parameter: str, times: float) -> None:
        self._add(into, parameter, times * self._tile_bytes(parameter))

    def _add(self, into: dict[str, float], parameter: str, amount: float) -> None:
        into[parameter] = into.get(parameter, 0.0) + amount

    def _itemsize(self, parameter: str) -> int:
        return self._call.arguments[parameter].dtype.itemsize

    def _tile_bytes(self, parameter: str) -> int:
        return math.prod(self._tiles[parameter]) * self._itemsize(parameter)

    def _operate(self, shape: Shape, times: float, special: bool = False) -> None:
        amount = times * math.prod(shape)
        self.counts.flops += amount
        if special:
            self.counts.special += amount

    # What expressions do, and their shapes.

    def _shape(self, node: ast.expr, times: float, depth: int) -> Shape:
        """Counts what an expression does; its shape."""
        if isinstance(node, nodes.Load):
            self._move(self.counts.loaded, node.tile.parameter, times)
            return self._tiles[node.tile.parameter]
        if isinstance(node, nodes.Mask):
            return ()
        if isinstance(node, nodes.Offsets):
            return self._known(node)
        parts = [self._shape(part, times, depth) for part in _parts(node)]
        shape = self._known(node)
        if isinstance(node, nodes.SourceLoad):
            size = times * math.prod(shape) * self._itemsize(node.parameter)
            self._add(self.counts.loaded, node.parameter, size)
        elif isinstance(node, ast.Call):
            self._operation(node, shape, parts, times, depth)
        elif isinstance(node, nodes.Masked | ast.BinOp | ast.Compare | ast.UnaryOp | ast.BoolOp):
            is_division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            self._operate(shape, times, special=is_division)
        return shape

    def _known(self, node: ast.expr) -> Shape:
        """The shape that a value's type says, of several that of the first; 1 for what it does not know."""
        value = type_of(node)
        shape = value.items[0].shape if value.items else value.shape
        return tuple(map(self._width, shape or ()))

    def _operation(
        self, node: ast.Call, shape: Shape, shapes: list[Shape], times: float, depth: int
    ) -> None:
        operation = _operation_of(node)
        if operation.kind == "product" and len(shapes) > 1:
            self._product(node, shapes, times, depth)
        elif not operation.is_free and operation.shape not in ("created", "vector"):
            each = shape if operation.is_elementwise else next(iter(shapes), ())
            self._operate(each, times, special=operation.is_transcendental)
            if operation.kind in ("reduction", "scan", "sort"):
                self.counts.reductions += times

    def _product(self, node: ast.Call, shapes: list[Shape], times: float, depth: int) -> None:
        left, right = shapes[0], shapes[1]
        if len(left) < 2 or len(right) < 2:
            return
        arguments = _arguments(node)[:2]
        origins = [self._origin(argument) for argument in arguments]
        widths = [self._call.arguments[name].dtype.bits for name in origins if name is not None]
        product = Product(
            rows=left[-2],
            columns=right[-1],
            inner=left[-1],
            times=times * math.prod(left[:-2]),
            bits=max(widths, default=16),
            in_registers=origins[0] is None,
        )
        self.counts.products.append(product)
        for argument, name in zip(arguments, origins):
            if name is None:
                continue
            is_streamed = depth > 0 and self._is_loaded(argument)
            kept = self.counts.streamed if is_streamed else self.counts.held
            if is_streamed and name in kept:
                self.counts.reread.add(name)
            kept[name] = self._tile_bytes(name)

    def _is_loaded(self, node: ast.expr) -> bool:
        """Whether an expression is made of what is loaded where it stands, or before it in the round."""
        return any(
            isinstance(part, nodes.Load)
            or (isinstance(part, ast.Name) and part.id in self._streaming & self._origins.keys())
            for part in ast.walk(node)
        )

    def _origin(self, node: ast.expr) -> str | None:
        """The parameter whose tile an expression is, maybe transposed or cast."""
        if isinstance(node, nodes.Load):
            return node.tile.parameter
        if isinstance(node, ast.Name):
            return self._origins.get(node.id)
        if isinstance(node, ast.Call) and _operation_of(node).is_free and _arguments(node):
            return self._origin(_arguments(node)[0])
        return None


def _function(node: ast.Call) -> str:
    return node.func.name.rsplit(".", 1)[-1] if isinstance(node.func, nodes.LanguageRef) else ""


def _arguments(node: ast.Call) -> list[ast.expr]:
    """The arguments of a call; of a method, which is a function of the value, that first."""
    is_method = isinstance(node.func, ast.Attribute)
    return [node.func.value, *node.args] if is_method else node.args  # type: ignore[attr-defined]


def _parts(node: ast.expr) -> Iterable[ast.expr]:
    """The expressions that one is evaluated from."""
    if isinstance(node, ast.Call):
        return _arguments(node)
    if isinstance(node, nodes.SourceLoad):
        return node.indices
    if isinstance(node, nodes.Masked | ast.Subscript):
        return [node.value]
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _operation_of(node: ast.Call) -> Operation:
    is_known = isinstance(node.func, nodes.LanguageRef | ast.Attribute)
    found = operation_of(node) if is_known else None
    return _NOTHING_KNOWN if found is None else found
