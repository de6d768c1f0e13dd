"""What a variant assumes of a call: facts for its source, and the conditions under which they hold.

What a call's numbers tell the JIT (`specialization.call_facts`) is here assumed, and asked at the
launch: each fact has a condition that implies it. The levels are a chain, the strongest last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from ninetoothed.backends.triton.specialization.call_facts import CallFacts, has_values
from ninetoothed.backends.triton.specialization.divisors import MOST
from ninetoothed.backends.triton.specialization.magnitudes import RING, operations
from ninetoothed.backends.triton.specialization.selections import Bounds, Selection, is_held, taken
from ninetoothed.backends.triton.specialization.size_arithmetic import parts, parts_of_lengths
from ninetoothed.kernels.ahead import Aligned, Condition, Position, Within
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import LARGEST_INT32, asked_offsets, counts
from ninetoothed.language.dtypes import DType
from ninetoothed.program.nodes import Offsets, SequenceLength, SymbolValue
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, maximum
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, reads_sequences
from ninetoothed.tensors.arrange import Parameter


@dataclass(frozen=True)
class Assumption:
    """What a variant's source takes for granted.

    Attributes:
        name: in a word.
        facts: what it is emitted with.
        divisors: what sizes and strides are multiples of.
        alignment: what each tensor's address is a multiple of, in bytes; 1 where nothing is assumed.
        added: what must hold of a call beyond the weaker assumptions.
        options: the backend's that are chosen beyond the usual ones, with their values.
        by_inverses: whether positions in the grid may be found by multiplication.
    """

    name: str
    facts: CallFacts
    divisors: Mapping[Symbol, int] = field(default_factory=dict)
    alignment: int = 1
    added: tuple[Condition, ...] = ()
    options: tuple[tuple[str, int], ...] = ()
    by_inverses: bool = False


class Assumptions:
    """The assumptions that variants of one kernel are made under.

    Args:
        kernel: it.
        known: the values of its constexpr and meta symbols.
        dtypes: the element types of the tensors that it touches.
    """

    def __init__(
        self, kernel: Definition, known: Mapping[Symbol, int], dtypes: Mapping[str, DType]
    ) -> None:
        self._kernel, self._known, self._dtypes = kernel, known, dtypes
        self._is_jagged = any(p.source.jagged_dim is not None for p in kernel.tensor_parameters)
        self._taken = taken(kernel)
        self._ranges: dict[str, dict[Symbol, tuple[Symbol, Symbol]]] = {}
        beyond: set[Selection] = set()
        within: list[Condition] = []
        for parameter in kernel.tensor_parameters:
            own, conditions = self._selections(parameter)
            beyond |= own
            within += conditions
        self._beyond, self._within = frozenset(beyond), within

    def chain(self) -> list[Assumption]:
        """From nothing to everything that is worth a variant."""
        always, possible = self._conditions()
        plain = CallFacts(
            holding=always,
            wide=True,
            far=asked_offsets(self._kernel),
            is_long=True,
            beyond=frozenset(self._taken),
        ).with_types(self._dtypes)
        valued = replace(plain, narrow_values=True, far=frozenset(), is_long=False)
        values = (
            [Assumption("valued", valued, added=self._values())] if has_values(self._kernel) else []
        )
        # How much is packed before a sequence, nobody but its offsets knows.
        narrow = replace(
            plain,
            wide=self._is_jagged,
            narrow_values=bool(values),
            far=frozenset(),
            is_long=False,
            beyond=self._beyond,
        )
        known = {condition for level in values for condition in level.added}
        fitting = (c for c in (*self._narrow(), *self._within) if c not in known)
        units = self._unit_strides()
        contiguous = replace(narrow, unit_strides=frozenset(units))
        divisors = self._divisors(units)
        full = replace(contiguous, holding=always | possible.keys())
        return [
            Assumption("plain", plain),
            *values,
            Assumption("narrow", narrow, added=tuple(fitting)),
            Assumption("contiguous", contiguous, added=tuple(Within(unit, 1, 1) for unit in units)),
            Assumption(
                "aligned",
                contiguous,
                divisors,
                MOST,
                (
                    *(Aligned(name, MOST) for name in self._dtypes),
                    *(Within(symbol % by, 0, 0) for symbol, by in divisors.items()),
                ),
            ),
            Assumption("full", full, divisors, MOST, tuple(dict.fromkeys(possible.values()))),
        ]

    def _expression(self, expression: object) -> Symbol:
        """With what is known put in."""
        return as_symbol(simplify(as_symbol(expression).substitute(self._known)))

    def _within_of(
        self,
        expression: Symbol,
        low: int | None,
        high: int | None,
        ranges: Mapping[Symbol, tuple[Symbol, Symbol]],
    ) -> Within:
        positions: tuple[Position, ...] = tuple(
            (leaf, *ranges[leaf]) for leaf in expression.leaves() if leaf in ranges
        )
        return Within(expression, low, high, positions)

    def _positions(
        self, parameter: Parameter, access: Access
    ) -> dict[Symbol, tuple[Symbol, Symbol]]:
        """The values that each position takes."""
        found = counts(parameter, access, self._kernel.grid)
        return {
            leaf: (constant(0), maximum(self._expression(count) - 1, 0)) for leaf, count in found
        }

    def _selections(self, parameter: Parameter) -> tuple[set[Selection], list[Condition]]:
        """The selections that may leave their level, and what must hold for the others to stay there."""
        access = self._kernel.arrangement.accesses[parameter.name]
        ranges = self._positions(parameter, access)
        middle = parameter.middle_sizes
        beyond: set[Selection] = set()
        conditions: list[Condition] = []
        for place, leaf in enumerate(access.selections):
            low, high = self._bounds((parameter.name, place))
            has_mask = is_held(self._kernel, parameter, place)
            # Of what has no end the position in the tensor need not fit.
            ends_with_sequence = high is not None and reads_sequences(high)
            has_end = high is not None and (has_mask or not ends_with_sequence)
            if low is None or interval(low)[0] < 0 or not has_end:
                beyond.add((parameter.name, place))
                continue
            assert high is not None
            if ends_with_sequence:
                # Whatever it is, the conditions on the indices see to it: none of them is left out.
                del ranges[leaf]
                continue
            ranges[leaf] = (low, high)
            room = self._expression(as_symbol(middle[place]) - 1 - high)
            if not has_mask and interval(room)[0] < 0:
                conditions.append(Within(room, 0, None))
        self._ranges[parameter.name] = ranges
        return beyond, conditions

    def _bounds(self, selection: Selection) -> Bounds:
        low, high = self._taken.get(selection, (constant(0), None))
        return (
            None if low is None else self._expression(low),
            None if high is None else self._expression(high),
        )

    def _conditions(self) -> tuple[frozenset[tuple[str, int]], dict[tuple[str, int], Condition]]:
        """The conditions of accesses that always hold, and those that may, with what implies them."""
        always: set[tuple[str, int]] = set()
        possible: dict[tuple[str, int], Condition] = {}
        for name, place, condition in self._all_conditions():
            if condition.op == "const":
                if condition.operands[0]:
                    always.add((name, place))
                continue
            if condition.op not in ("<", ">=") or reads_sequences(condition):
                continue
            left, right = condition.operands
            slack, least = (right - left, 1) if condition.op == "<" else (left - right, 0)
            ranges = self._ranges[name]
            access = self._kernel.arrangement.accesses[name]
            slack = self._expression(slack)
            if any(p in set(slack.leaves()) and p not in ranges for p in access.selections):
                continue
            asked = self._within_of(slack, least, None, ranges)
            known = {
                leaf: (interval(low)[0], interval(high)[1]) for leaf, low, high in asked.positions
            }
            known |= {leaf: interval(leaf) for leaf in slack.leaves() if leaf not in known}
            bounds = interval(slack, known)
            if bounds[0] >= least:
                always.add((name, place))
            elif bounds[1] >= least and not self._is_constant(asked):
                possible[name, place] = asked
        return frozenset(always), possible

    def _all_conditions(self) -> Iterator[tuple[str, int, Symbol]]:
        for parameter in self._kernel.tensor_parameters:
            access = self._kernel.arrangement.accesses[parameter.name]
            for place, condition in enumerate(access.conditions):
                yield parameter.name, place, self._expression(condition)

    def _values(self) -> tuple[Condition, ...]:
        """What must hold for every size, stride and offset that is a value to fit 32 bits."""
        seen: set[Within] = set()
        for node in self._kernel.optimized.nodes():
            if isinstance(node, SymbolValue):
                symbol = as_symbol(node.symbol)
                seen |= {self._fits(self._expression(n), {}) for n in (symbol, *symbol.leaves())}
            elif isinstance(node, SequenceLength):
                source = self._kernel.program.parameter(node.parameter).source
                seen.add(self._fits(self._expression(source.shape[node.dim]), {}))
            elif isinstance(node, Offsets):
                parameter = self._kernel.program.parameter(node.tile.parameter)
                access = self._kernel.arrangement.accesses[parameter.name]
                asked = access.of(node.dim)
                if not reads_sequences(asked):
                    ranges = self._everywhere(parameter, access)
                    seen.add(self._fits(self._expression(asked), ranges))
        # Of 32 bits each, and so is what is computed of several.
        computed = (*parts(self._kernel), *parts_of_lengths(self._kernel))
        seen |= {self._fits(self._expression(part), {}) for part in computed}
        return _in_order(seen)

    def _everywhere(
        self, parameter: Parameter, access: Access
    ) -> dict[Symbol, tuple[Symbol, Symbol]]:
        """The positions, beyond a level too: what leaves out a tile that is selected there is computed
        like any."""
        return {**self._positions(parameter, access), **self._ranges[parameter.name]}

    def _narrow(self) -> tuple[Condition, ...]:
        """What must hold for every number to fit 32 bits."""
        seen: set[Within] = set()
        anywhere: dict[Symbol, tuple[Symbol, Symbol]] = {}
        for parameter in self._kernel.tensor_parameters:
            access = self._kernel.arrangement.accesses[parameter.name]
            ranges = self._everywhere(parameter, access)
            anywhere |= ranges
            for number in (*parameter.source.shape, *parameter.source.strides):
                seen.add(self._fits(self._expression(number), {}))
            for expression in (*access.indices, access.offset):
                if reads_sequences(as_symbol(expression)):
                    # Which is computed in 64 bits.
                    continue
                seen.add(self._fits(self._expression(expression), ranges))
        numbers = {*self._kernel.grid, *parts(self._kernel), *parts_of_lengths(self._kernel)}
        seen |= {self._fits(self._expression(number), {}) for number in numbers}
        # A sum may wrap around on its way to a number that fits; what is divided or compared may not.
        for operation in operations(self._kernel):
            if operation.op not in RING and not reads_sequences(operation):
                operands = map(self._expression, operation.operands)
                for part in (each for each in operands if each.op in RING):
                    ranges = {**_extents(part), **anywhere}
                    if all(n.leaf.role != "index" or n in ranges for n in part.leaves()):
                        seen.add(self._fits(part, ranges))
        return _in_order(seen)

    def _fits(self, expression: Symbol, ranges: Mapping[Symbol, tuple[Symbol, Symbol]]) -> Within:
        return self._within_of(expression, -LARGEST_INT32, LARGEST_INT32, ranges)

    def _is_constant(self, asked: Within) -> bool:
        """Whether a condition is of no call's numbers."""
        known = {leaf for leaf, low, high in asked.positions if low.op == high.op == "const"}
        return set(asked.expression.leaves()) <= known

    def _unit_strides(self) -> list[Symbol]:
        """The strides of each tensor's last dimension, but where that is known to have one element."""
        found = dict.fromkeys(
            as_symbol(parameter.source.strides[-1])
            for parameter in self._kernel.tensor_parameters
            if parameter.source.ndim and parameter.name in self._dtypes
        )
        return [stride for stride in found if stride.op == "leaf"]

    def _divisors(self, units: list[Symbol]) -> dict[Symbol, int]:
        """What those numbers are multiples of that say where contiguous elements begin and end, so
        that 16 bytes may be moved at once."""
        found: dict[Symbol, int] = {}
        for parameter in self._kernel.tensor_parameters:
            if parameter.name not in self._dtypes or not parameter.source.ndim:
                continue
            step = max(MOST // self._dtypes[parameter.name].itemsize, 1)
            access = self._kernel.arrangement.accesses[parameter.name]
            numbers = [n for n in access.offset.leaves() if n.leaf.role == "stride"]
            numbers += as_symbol(parameter.source.shape[-1]).leaves()
            # Where dimensions were merged, their sizes say where a row of the tile ends.
            for node in access.offset.walk():
                if node.op in ("//", "%") and set(access.coordinates) & set(node.leaves()):
                    numbers += [n for n in node.leaves() if n.leaf.role == "size"]
            steps = self._steps(parameter)
            for number in numbers:
                if number not in units and number not in self._known:
                    by = math.gcd(step, steps.get(number, 0))
                    found[number] = max(found.get(number, 1), by)
        return {number: by for number, by in found.items() if by > 1}

    def _steps(self, parameter: Parameter) -> dict[Symbol, int]:
        """The strides of a contiguous tensor, as far as declared sizes tell them."""
        found: dict[Symbol, int] = {}
        step = 1
        for size, stride in zip(
            reversed(parameter.source.shape), reversed(parameter.source.strides)
        ):
            found[as_symbol(stride)] = step
            known = self._expression(size)
            if known.op != "const":
                break
            step *= known.operands[0]
        return found


def _extents(expression: Symbol) -> dict[Symbol, tuple[Symbol, Symbol]]:
    """The positions in an expression, as far as it is known how many there are."""
    found = {leaf: leaf.leaf.extent for leaf in expression.leaves() if leaf.leaf.role == "index"}
    return {
        leaf: (constant(0), maximum(as_symbol(extent) - 1, 0))
        for leaf, extent in found.items()
        if extent is not None
    }


def _in_order(asked: Iterable[Within]) -> tuple[Condition, ...]:
    """The conditions that a call may break."""
    found = (each for each in asked if each.expression.op != "const")
    return tuple(sorted(found, key=lambda each: (len(each.positions), each.expression.sort_key)))
