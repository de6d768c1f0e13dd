"""What is known of a kind of call when its source is emitted: the less is unknown, the less is paid.

A `CallFacts` is decided from a call's sizes by bounding the access's expressions over all programs,
selections and lanes. Calls that agree in it share their source.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType

from ninetoothed.backends.triton.specialization import (
    comparisons,
    magic_division,
    magnitudes,
    offsets,
    size_arithmetic,
    size_ratios,
)
from ninetoothed.backends.triton.specialization.selections import (
    Kind,
    Selection,
    in_numbers,
    lengths_of,
    taken,
    unguarded,
)
from ninetoothed.backends.triton.specialization.tiles import made_sizes
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import LARGEST_INT32, Asked, counts, far_offsets, positions, reach_of
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.program.nodes import Offsets, SequenceLength, SymbolValue, TileRef, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, is_power_of_two, needed
from ninetoothed.tensors.arrange import Parameter


@dataclass(frozen=True)
class CallFacts:
    """What holds for every call that a source serves.

    Attributes:
        holding: conditions, as (parameter, position in its access), that hold for every lane.
        unit_strides: the strides that are 1.
        adjacent: the strides that are worth writing as the next dimension's size times its stride.
        bounds: dividends that have no more than so many bits (`magic_division`).
        powers_of_two: tile sizes, other than those known to be, that are powers of two.
        empty: sizes of tiles, of what the program makes too, that are 0.
        float8: the tensors of 8-bit floats; Triton makes none of them from an integer.
        booleans: the tensors and scalars of truth values; what is stored to them is whether it is not 0.
        beside_float64: the tensors and scalars with their element types, where one of these is float64.
        has_unsigned: whether some tensor or scalar is of unsigned integers.
        narrowest: the bits of the integers of fewest bits among tensors and scalars; at most 32.
        wide: whether some offset or index needs 64 bits.
        narrow_values: whether sizes, strides and offsets that are values fit 32 bits, though they are
            computed in 64.
        far: the offsets that the program asks for of which 32 bits do not hold each.
        is_long: whether some sequence of a jagged tensor may have a length that needs 64 bits, or that
            something is computed of that does.
        size_ratios: divisors that are quotients of sizes, with their values (`size_ratios`).
        comparisons: slacks (`comparisons`) of the program's comparisons that hold everywhere.
        beyond: selections that may leave their level (`selections`).
        outsized: arithmetic on sizes that 32 bits do not hold, at least on the way.
        passed: ends of loops beyond which a counter of 32 bits would go, and not fit.
        magnitudes: between which numbers sizes and positions lie, where some arithmetic on them to find
            elements needs 64 bits (`magnitudes`).
        widths: sizes that are arguments, though a tile's width is theirs padded (`size_classes`).
        quartered: of those, equal ones for whose quarters there is a body each.
    """

    holding: frozenset[tuple[str, int]] = frozenset()
    unit_strides: frozenset[Symbol] = frozenset()
    adjacent: frozenset[Symbol] = frozenset()
    bounds: frozenset[tuple[Symbol, int]] = frozenset()
    powers_of_two: frozenset[Symbol] = frozenset()
    empty: frozenset[Symbol] = frozenset()
    float8: frozenset[str] = frozenset()
    booleans: frozenset[str] = frozenset()
    beside_float64: frozenset[tuple[str, DType]] = frozenset()
    has_unsigned: bool = False
    narrowest: int = 32
    wide: bool = False
    narrow_values: bool = False
    far: frozenset[Asked] = frozenset()
    is_long: bool = False
    size_ratios: frozenset[tuple[Symbol, int]] = frozenset()
    comparisons: frozenset[Symbol] = frozenset()
    beyond: frozenset[Selection] = frozenset()
    outsized: frozenset[Symbol] = frozenset()
    passed: frozenset[Symbol] = frozenset()
    magnitudes: magnitudes.Magnitudes = frozenset()
    widths: frozenset[Symbol] = frozenset()
    quartered: frozenset[Symbol] = frozenset()

    def with_types(
        self, tensors: Mapping[str, DType], scalars: Mapping[str, DType] = MappingProxyType({})
    ) -> CallFacts:
        """What the element types say besides."""
        float8 = {name for name, own in tensors.items() if own.is_floating() and own.bits == 8}
        given = {**scalars, **tensors}
        is_beside = dtypes.float64 in given.values()
        return replace(
            self,
            float8=frozenset(float8),
            beside_float64=frozenset(given.items() if is_beside else ()),
            has_unsigned=any(own.kind == "uint" for own in given.values()),
            narrowest=min([32, *(o.bits for o in given.values() if o.kind in ("int", "uint"))]),
        )


def facts_of(
    kernel: Definition,
    environment: Mapping[Symbol, int],
    grid: tuple[int, ...],
    varying: Set[Symbol] = frozenset(),
    equal: Iterable[tuple[Symbol, Symbol]] = (),
) -> CallFacts:
    """The facts for known values of all sizes, strides, constants and meta symbols.

    Args:
        varying: sizes that are less in other calls: nothing is known of one of these by its number alone.
        equal: pairs of sizes that are equal in each of these calls.
    """
    holding: set[tuple[str, int]] = set()
    units: set[Symbol] = set()
    bounds: set[tuple[Symbol, int]] = set()
    divisors: set[tuple[Symbol, int]] = set()
    tile_sizes: dict[Expression, int] = {}
    beyond: dict[Selection, float] = {}
    kind = Kind(kernel, environment, varying, equal) if varying else None
    found = taken(kernel, environment, grid) if kind is None else {}

    def selections(ranges: Mapping[Symbol, Interval]) -> dict[Selection, Interval]:
        if kind is not None:
            return kind.selected(ranges)
        return {key: in_numbers(bounds, ranges) for key, bounds in found.items()}

    selected = selections({})
    lengths = dict.fromkeys(lengths_of(kernel).values(), (0, _longest(kernel, environment)))
    farthest = selections(lengths) if lengths else selected
    largest = 0.0
    everywhere: dict[Symbol, Interval] = {
        leaf: (1 if leaf in varying else value, value) for leaf, value in environment.items()
    }
    for parameter in kernel.tensor_parameters:
        strides = [environment[as_symbol(stride)] for stride in parameter.source.strides]
        units |= {as_symbol(s) for s, n in zip(parameter.source.strides, strides) if n == 1}
        # Elements anywhere in the source may be used.
        sizes = (evaluated(size, environment) for size in parameter.source.shape)
        largest = max(largest, sum(abs((n - 1) * step) for n, step in zip(sizes, strides)))
        if parameter.name not in kernel.arranged:
            continue
        access = kernel.arrangement.accesses[parameter.name]
        ranges = positions(parameter, access, environment, grid)
        own = {place: known for (name, place), known in selected.items() if name == parameter.name}
        reached = {**ranges, **dict(_selected(access, ranges, own, varying))}
        everywhere.update(magnitudes.within(reached, parameter, kernel, environment))
        beyond |= dict(unguarded(kernel, parameter, own, farthest, environment, ranges, kind))
        over = _places_over(varying, counts(parameter, access, kernel.grid), access)
        # Of what the program selects beyond its level, nothing is known by where a size ends.
        loose = {
            access.selections[place] for place in own if kind and not kind.stays(parameter, place)
        }
        held = _holding(access, environment, reached, varying, over, loose)
        holding |= {(parameter.name, place) for place in held}
        asked = [c for place, c in enumerate(access.conditions) if place not in held]
        bounds |= set(magic_division.bounded(access, environment, reached, asked))
        divisors |= set(size_ratios.known(access, environment))
        tile_sizes |= {n: evaluated(n, environment) for n in parameter.tile_shape}
        for expression in (access.offset, *access.indices):
            largest = max(largest, reach_of(expression, environment, ranges))
    for size in kernel.grid:
        largest = max(largest, evaluated(size, environment))
    wide = largest > LARGEST_INT32
    has_large = any(abs(value) > LARGEST_INT32 for value in environment.values())
    limit = size_arithmetic.LARGEST_INT64 if wide else LARGEST_INT32
    adjacent = offsets.adjacent(kernel, environment)
    return CallFacts(
        frozenset(holding),
        frozenset(units),
        adjacent,
        frozenset(bounds),
        frozenset(
            as_symbol(size)
            for size, n in tile_sizes.items()
            if is_power_of_two(n) and not is_power_of_two(size)
        ),
        frozenset(
            size
            for size in {*map(as_symbol, tile_sizes), *made_sizes(kernel)}
            if not evaluated(size, environment)
        ),
        wide=wide,
        far=far_offsets(kernel, environment, grid) if wide or has_large else frozenset(),
        is_long=size_arithmetic.are_long(kernel, environment),
        size_ratios=frozenset(divisors),
        comparisons=comparisons.holding(kernel, environment, grid),
        beyond=frozenset(each for each, distance in beyond.items() if distance > limit),
        outsized=frozenset(size_arithmetic.outsized(kernel, environment)),
        passed=frozenset(size_arithmetic.passed(kernel, environment)),
        magnitudes=magnitudes.magnitudes(kernel, adjacent, everywhere),
    )


def _selected(
    access: Access,
    ranges: Mapping[Symbol, Interval],
    own: Mapping[int, Interval],
    varying: Set[Symbol],
) -> Iterator[tuple[Symbol, Interval]]:
    """What the positions are, by their symbols, of which more is known than their ranges."""
    for place, (low, high) in own.items():
        symbol = access.selections[place]
        # What other sizes or a number keep below this one may be beyond it where it is less.
        yield symbol, (low, max(high, ranges[symbol][1]) if varying else high)


@analysis
def has_values(kernel: Definition) -> bool:
    """Whether the program has a size, a stride or an offset but to bound loops that number tiles."""
    program = kernel.optimized
    bounds: set[ast.AST] = set()
    for loop in (node for node in program.nodes() if isinstance(node, ast.For)):
        assert isinstance(loop.target, ast.Name)
        read = [n for s in loop.body for n in walk(s) if isinstance(n, ast.Name)]
        tiles = (n for s in loop.body for n in walk(s) if isinstance(n, TileRef))
        numbers = {each for tile in tiles for index in tile.indices for each in walk(index)}
        if all(each in numbers for each in read if each.id == loop.target.id):
            bounds |= {*walk(loop.iter)}
    values = SymbolValue, SequenceLength, Offsets
    return any(
        isinstance(node, values)
        and not (isinstance(node, SymbolValue) and is_constant_symbol(as_symbol(node.symbol)))
        for node in program.nodes()
        if node not in bounds
    )


def _longest(kernel: Definition, environment: Mapping[Symbol, int]) -> int:
    """The length of the longest sequence of a jagged tensor."""
    sources = [parameter.source for parameter in kernel.tensor_parameters]
    sizes = [s.shape[s.jagged_dim] for s in sources if s.jagged_dim is not None]
    return max((evaluated(size, environment) for size in sizes), default=0)


def existing_share(
    parameter: Parameter, access: Access, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> float:
    """Of the elements of all tiles of a parameter, about the share that exists; 1 where all do."""
    ranges, share = positions(parameter, access, environment, grid), 1.0
    for condition in access.conditions:
        known = as_symbol(simplify(condition.substitute(environment)))
        if known.op in ("<", ">=") and not _holds(known, ranges):
            (least, most), (bound, _) = (interval(side, ranges) for side in known.operands)
            inside = min(most + 1, bound) - least if known.op == "<" else most + 1 - bound
            share *= max(inside, 0) / (most + 1 - least)
    return share


def _places_over(
    varying: Set[Symbol], counted: Iterable[tuple[Symbol, Expression]], access: Access
) -> Set[Symbol]:
    """The programs and selections of which there are more or fewer as varying sizes are."""
    found = {place for place, count in counted if not varying.isdisjoint(as_symbol(count).leaves())}
    return found - {*access.coordinates}


def _holding(
    access: Access,
    environment: Mapping[Symbol, int],
    ranges: Mapping[Symbol, Interval],
    varying: Set[Symbol],
    over: Set[Symbol],
    loose: Set[Symbol],
) -> set[int]:
    """The conditions that hold for every lane, or that others imply, whatever the varying sizes are."""
    known = [as_symbol(simplify(c.substitute(environment))) for c in access.conditions]
    result = {position for position, c in enumerate(known) if _holds(c, ranges)}
    if varying:
        given = {leaf: value for leaf, value in environment.items() if leaf not in varying}
        known = [as_symbol(simplify(c.substitute(given))) for c in access.conditions]
        result = {p for p in result if _holds_in_class(known[p], environment, ranges, over, loose)}
    rest = {position: c for position, c in enumerate(known) if position not in result}
    kept = set(needed(rest.values()))
    for position, condition in rest.items():
        if condition not in kept:
            result.add(position)
        kept.discard(condition)
    return result


def _holds_in_class(
    condition: Symbol,
    environment: Mapping[Symbol, int],
    ranges: Mapping[Symbol, Interval],
    over: Set[Symbol],
    loose: Set[Symbol],
) -> bool:
    """Whether a condition that holds for the greatest size of a class holds for the lesser ones too.

    The lesser ones are multiples of what the greatest is one of, and the least of them begins the last
    tile with so many elements as its step has in common with that.

    Args:
        over: the programs and selections that go on to where the size ends.
        loose: the selections that may go on beyond it.
    """
    if condition.op == "const" or condition.operands[1] not in environment:
        # What it asks is of all calls.
        return True
    position, size = condition.operands
    number = environment[size]
    multiple = number & -number
    moving = [place for place in {*position.leaves()} & over if ranges[place][1] > 0]
    first = {**ranges, **dict.fromkeys(moving, (0, 0))}
    last = interval(position, first)[1]
    if not moving:
        return last < (1 << number.bit_length() - 1) + multiple
    (step, _) = interval(position, dict.fromkeys(ranges, (0, 0)) | {moving[0]: (1, 1)})
    (start, _) = interval(position, dict.fromkeys(ranges, (0, 0)))
    return (
        len(moving) == 1 and moving[0] not in loose and last < math.gcd(int(step - start), multiple)
    )


def _holds(condition: Symbol, ranges: Mapping[Symbol, Interval]) -> bool:
    if condition.op == "const":
        return bool(condition.operands[0])
    left, right = (interval(operand, ranges) for operand in condition.operands)
    if condition.op == "<":
        return left[1] < right[0]
    if condition.op == ">=":
        return left[0] >= right[1]
    return False
