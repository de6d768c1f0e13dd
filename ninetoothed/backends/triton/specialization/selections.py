"""Which selections, as ``x[k]``, may leave their level in a call: those are asked, so that no access does.

A tile's conditions take a selection to be below its level's size. Where the program's own index is not
bounded by it, as where two operands of a product have sums of different length, or where an index is
read from memory, nothing else keeps an access within its tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import positions
from ninetoothed.program.effects import called_name, names_assigned
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementStore,
    Offsets,
    SequenceLength,
    SymbolValue,
    TileRef,
    walk,
)
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, evaluated, make, maximum, minimum
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, reads_sequences, sequence_length
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.views import viewed

#: The least and the greatest value of an integer, as expressions; None where it is not known.
Bounds = tuple[Symbol | None, Symbol | None]

_UNKNOWN: Bounds = (None, None)

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}

_CALLS = {"minimum": "min", "min": "min", "maximum": "max", "max": "max", "cdiv": "cdiv"}

#: A selection: the parameter, and its place among the positions in the middle levels.
Selection = tuple[str, int]


def taken(
    kernel: Definition, environment: Mapping[Symbol, int] | None = None, grid: tuple[int, ...] = ()
) -> dict[Selection, Bounds]:
    """The least and the greatest index that the program selects, wherever it does.

    Args:
        environment, grid: of a call: then bounds are numbers.
    """

    def located(node: Offsets, selected: Sequence[Bounds]) -> Bounds:
        if environment is None or node.dim is None:
            return _UNKNOWN
        access = kernel.arrangement.accesses[node.tile.parameter]
        parameter = kernel.program.parameter(node.tile.parameter)
        ranges = positions(parameter, access, environment, grid)
        ranges.update(zip(access.selections, map(in_numbers, selected)))
        low, high = interval(simplify(access.indices[node.dim].substitute(environment)), ranges)
        return (
            None if low == -float("inf") else as_symbol(int(low)),
            None if high == float("inf") else as_symbol(int(high)),
        )

    found: dict[Selection, Bounds] = {}
    program, lengths = kernel.optimized, lengths_of(kernel)
    for body in (program.body, *(helper.body for helper in program.helpers.values())):
        for parameter, place, bounds in _Walk(environment, located, lengths).statements(body):
            known = found.get((parameter, place))
            found[parameter, place] = bounds if known is None else _either(known, bounds)
    return found


def lengths_of(kernel: Definition) -> dict[str, Symbol]:
    """What bounds have for the length of a sequence, by the jagged tensor."""
    sources = {p.name: p.source for p in kernel.tensor_parameters}
    return {
        name: sequence_length(source, constant(0))
        for name, source in sources.items()
        if source.jagged_dim is not None
    }


def in_numbers(bounds: Bounds, ranges: Mapping[Symbol, Interval] | None = None) -> Interval:
    """Bounds of known values: infinite where there is none."""
    low, high = bounds
    return (
        -float("inf") if low is None else interval(low, ranges)[0],
        float("inf") if high is None else interval(high, ranges)[1],
    )


def unguarded(
    kernel: Definition,
    parameter: Parameter,
    numbers: Mapping[int, Interval],
    farthest: Mapping[Selection, Interval],
    environment: Mapping[Symbol, int],
    ranges: Mapping[Symbol, Interval],
    kind: Kind | None = None,
) -> Iterator[tuple[Selection, float]]:
    """The selections that leave their level, and how far from 0 positions are computed of them: conditions
    say that no element is there if a source's integers hold that, and else, infinitely far, nothing does.

    Args:
        numbers: what a call selects, by the place among the middle levels.
        farthest: the same, no sequence being longer than the call says that the longest is.
        environment: its sizes.
        ranges: the values of all positions that stay in their levels.
        kind: the calls that it stands for.
    """
    access = kernel.arrangement.accesses[parameter.name]
    for place, (low, high) in numbers.items():
        size = parameter.middle_sizes[place]
        if kind is None:
            stays = high < evaluated(size, environment)
        else:
            stays = kind.stays(parameter, place)
        if low < 0 or not (stays or is_held(kernel, parameter, place)):
            yield (parameter.name, place), float("inf")
        elif not stays:
            end = farthest[parameter.name, place][1]
            reached = {**ranges, access.selections[place]: (low, end)}
            yield (parameter.name, place), _distance(access, environment, reached)


def is_held(kernel: Definition, parameter: Parameter, place: int) -> bool:
    """Whether conditions leave out what is selected beyond a level, of a tile and of each part of one."""
    size = parameter.middle_sizes[place]
    return all(access.bounds(place, size) for access in all_accesses(kernel)[parameter.name])


@analysis
def all_accesses(kernel: Definition) -> dict[str, list[Access]]:
    """The accesses of each parameter's tiles, and of the parts of them that the program names."""
    kinds = ElementLoad | ElementStore | ElementPlace
    parts = (node for node in kernel.optimized.nodes() if isinstance(node, kinds))
    found = {name: [access] for name, access in kernel.arrangement.accesses.items()}
    for name, view in dict.fromkeys((part.parameter, part.view) for part in parts):
        of = kernel.program.parameter(name)
        found[name].append(viewed(found[name][0], of.tile_shape, view, of.source))
    return found


def _distance(
    access: Access, environment: Mapping[Symbol, int], ranges: Mapping[Symbol, Interval]
) -> float:
    """How far from 0 a tile's elements may be, along a dimension or from the source's first."""
    reached = (
        interval(simplify(index.substitute(environment)), ranges)
        for index in (access.offset, *access.indices)
        # In the packed values all is computed in 64 bits.
        if not reads_sequences(index)
    )
    return max((max(-low, high) for low, high in reached), default=0)


class Kind:
    """The calls that one stands for: some of its sizes are less in others, and none of them is 0.

    Args:
        environment: its sizes.
        varying: those that are less in others.
        equal: pairs of sizes that are equal in each call.
    """

    def __init__(
        self,
        kernel: Definition,
        environment: Mapping[Symbol, int],
        varying: Set[Symbol],
        equal: Iterable[tuple[Symbol, Symbol]],
    ) -> None:
        self._taken = _taken_by_any_call(kernel)
        self._same = {leaf: as_symbol(n) for leaf, n in environment.items() if leaf not in varying}
        for pair in equal:
            one, other = (self._same.get(size, size) for size in pair)
            if one.op == "const":
                one, other = other, one
            # What is one of several stands for itself.
            known = {each: other for each, of in self._same.items() if of is one}
            self._same |= {one: other, **known} if one is not other else {}
        self._ranges: dict[Symbol, Interval] = {leaf: (1, environment[leaf]) for leaf in varying}

    def selected(self, ranges: Mapping[Symbol, Interval]) -> dict[Selection, Interval]:
        """The least and the greatest index that any of them selects."""
        return {
            key: (self._interval(low, ranges)[0], self._interval(high, ranges)[1])
            for key, (low, high) in self._taken.items()
        }

    def stays(self, parameter: Parameter, place: int) -> bool:
        """Whether a selection is below its level's size in each of them."""
        greatest = self._taken[parameter.name, place][1]
        return greatest is not None and self._is_below(
            greatest, as_symbol(parameter.middle_sizes[place])
        )

    def _is_below(self, number: Symbol, size: Symbol) -> bool:
        if number.op in ("max", "min"):
            each = [self._is_below(as_symbol(operand), size) for operand in number.operands]
            return all(each) if number.op == "max" else any(each)
        return self._interval(size - 1 - number)[0] >= 0

    def _interval(
        self, number: Symbol | None, ranges: Mapping[Symbol, Interval] | None = None
    ) -> Interval:
        if number is None:
            return -float("inf"), float("inf")
        return interval(simplify(number.substitute(self._same)), {**self._ranges, **(ranges or {})})


@analysis
def _taken_by_any_call(kernel: Definition) -> dict[Selection, Bounds]:
    return taken(kernel)


@analysis
def staying(kernel: Definition) -> frozenset[Selection]:
    """The selections that are in their level, whatever the sizes are."""
    found: set[Selection] = set()
    for (name, place), (low, high) in _taken_by_any_call(kernel).items():
        if low is None or high is None or interval(low)[0] < 0:
            continue
        # A loop over no tile selects none, though the first is said to be selected.
        is_of_loop = high.op == "max" and high.operands[1] == 0
        last = high.operands[0] if is_of_loop else high
        size = as_symbol(kernel.program.parameter(name).middle_sizes[place])
        if interval(simplify(size - 1 - last))[0] >= 0:
            found.add((name, place))
    return frozenset(found)


class _Walk:
    """Follows what is known of a program's integers, statement by statement."""

    def __init__(
        self,
        environment: Mapping[Symbol, int] | None,
        located: Callable[[Offsets, Sequence[Bounds]], Bounds],
        lengths: Mapping[str, Symbol],
    ) -> None:
        self._environment, self._located, self._lengths = environment, located, lengths
        self._known: dict[str, Bounds] = {}

    def statements(self, body: Iterable[ast.stmt]) -> Iterator[tuple[str, int, Bounds]]:
        """Each selection in some statements, with the values of its index."""
        for statement in body:
            blocks = [getattr(statement, name, None) or [] for name in ("body", "orelse")]
            inner = [each for block in blocks for each in block]
            if isinstance(statement, (ast.For, ast.While)):
                # What a round leaves is not known in the next one.
                self._forget(names_assigned([statement]))
            for node in _outside(statement):
                if isinstance(node, TileRef | ElementLoad | ElementStore | ElementPlace):
                    # Positions in the tile, which come last, have conditions of their own.
                    count = len(node.indices) - (node.view.chosen if hasattr(node, "view") else 0)
                    for place, index in enumerate(node.indices[:count]):
                        yield node.parameter, place, self._bounds(index)
            if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
                if statement.target.id not in names_assigned(inner):
                    self._known[statement.target.id] = self._range_of(statement.iter)
                yield from self.statements(inner)
                self._forget(names_assigned([statement]))
            elif isinstance(statement, ast.If):
                yield from self._branches(*blocks)
            elif inner:
                yield from self.statements(inner)
                self._forget(names_assigned(inner))
            else:
                self._assign(statement)

    def _branches(self, *blocks: Sequence[ast.stmt]) -> Iterator[tuple[str, int, Bounds]]:
        before, after = self._known, []
        for block in blocks:
            self._known = dict(before)
            yield from self.statements(block)
            after.append(self._known)
        one, other = after
        self._known = {name: _either(one[name], other[name]) for name in one.keys() & other.keys()}

    def _assign(self, statement: ast.stmt) -> None:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        value = statement.value if isinstance(statement, ast.Assign) else None
        self._forget(names_assigned([statement]))
        if isinstance(target, ast.Name) and value is not None:
            self._known[target.id] = self._bounds(value)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._known.pop(name, None)

    def _range_of(self, iterated: ast.expr) -> Bounds:
        """The values that a loop's variable takes."""
        if not isinstance(iterated, ast.Call) or not _called(iterated).endswith("range"):
            return _UNKNOWN
        bounds = [self._bounds(argument) for argument in iterated.args]
        if len(bounds) == 1:
            bounds = [_ZERO, *bounds]
        start, end, step = [*bounds, _ONE][:3]
        if step[0] is not None and interval(step[0])[0] > 0:
            return start[0], _of_both(maximum, _sum(end[1], constant(-1)), start[0])
        if step[1] is not None and interval(step[1])[1] < 0:
            return _of_both(minimum, _sum(end[0], constant(1)), start[1]), start[1]
        return _UNKNOWN

    def _bounds(self, node: ast.expr) -> Bounds:
        """The least and the greatest value of an integer."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return (as_symbol(node.value),) * 2
        if isinstance(node, SymbolValue):
            symbol = as_symbol(node.symbol)
            known = self._environment
            return (symbol if known is None else as_symbol(int(symbol.evaluate(known))),) * 2
        if isinstance(node, SequenceLength):
            return constant(0), self._lengths[node.parameter]
        if isinstance(node, ast.Name):
            return self._known.get(node.id, _UNKNOWN)
        if isinstance(node, Offsets):
            return self._located(node, [self._bounds(index) for index in node.tile.indices])
        if isinstance(node, ast.Call) and _called(node) in _CALLS and len(node.args) == 1:
            # Of a tile.
            return self._bounds(node.args[0])
        operands, operator = _parts(node)
        if not operator:
            return _UNKNOWN
        return _operated(operator, [self._bounds(operand) for operand in operands])


_ZERO: Bounds = (constant(0),) * 2
_ONE: Bounds = (constant(1),) * 2


def _operated(operator: str, bounds: list[Bounds]) -> Bounds:
    """What is known of a result where that is known of the operands."""
    lows, highs = zip(*bounds, strict=True)
    if operator == "neg":
        return _negated(highs[0]), _negated(lows[0])
    if operator == "+":
        return _sum(*lows), _sum(*highs)
    if operator == "-":
        return _sum(lows[0], _negated(highs[1])), _sum(highs[0], _negated(lows[1]))
    if operator == "min":
        return _of_both(minimum, *lows), _of_some(minimum, highs)
    if operator == "max":
        return _of_some(maximum, lows), _of_both(maximum, *highs)
    if operator == "cdiv":
        (low, high), by = bounds[0], lows[1]
        less = None if by is None else by - 1
        return _operated("//", [(_sum(low, less), _sum(high, less)), bounds[1]])
    if operator == "*" and lows[0] is highs[0]:
        bounds, lows, highs = bounds[::-1], lows[::-1], highs[::-1]
    (low, high), by = bounds[0], lows[1]
    if by is None or by is not highs[1] or interval(by)[0] < 1:
        return _UNKNOWN
    if operator == "%":
        return constant(0), by - 1
    # A product or a quotient by what is positive keeps the order.
    return tuple(None if bound is None else make(operator, bound, by) for bound in (low, high))  # type: ignore[return-value]


def _either(one: Bounds, other: Bounds) -> Bounds:
    """What is known where one of two is."""
    return _of_both(minimum, one[0], other[0]), _of_both(maximum, one[1], other[1])


def _sum(one: Symbol | None, other: Symbol | None) -> Symbol | None:
    return None if one is None or other is None else one + other


def _negated(bound: Symbol | None) -> Symbol | None:
    return None if bound is None else -bound


def _of_both(function: object, one: Symbol | None, other: Symbol | None) -> Symbol | None:
    if one is None or other is None:
        return None
    return one if one is other else function(one, other)  # type: ignore[operator,no-any-return]


def _of_some(function: object, bounds: Iterable[Symbol | None]) -> Symbol | None:
    """What is known of a minimum's upper bound where one operand's is."""
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else _of_both(function, *known)


def _parts(node: ast.expr) -> tuple[Sequence[ast.expr], str]:
    """The operands and the operator of an operation on integers; no operator of any other node."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right), _OPERATORS.get(type(node.op), "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return (node.operand,), "neg"
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        return node.args, _CALLS.get(_called(node), "")
    return (), ""


def _called(call: ast.Call) -> str:
    """The name of what is called."""
    return call.func.id if isinstance(call.func, ast.Name) else called_name(call)


def _outside(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and all of it but the statements within it."""
    yield statement
    for field, value in ast.iter_fields(statement):
        if field in ("body", "orelse"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield from walk(node)
