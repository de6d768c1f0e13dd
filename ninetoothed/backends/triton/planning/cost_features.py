"""What one configuration of a kernel moves and computes, for the estimate that ranks it.

An option tells its effect in `EFFECTS`: a function from the facts without it, its value and the call
to the facts with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.operation_counts import Counts, count
from ninetoothed.backends.triton.options import (
    cooperative_reduction,
    full_tile_versioning,
    tma_pipeline,
)
from ninetoothed.backends.triton.specialization import divisors, offsets
from ninetoothed.backends.triton.specialization.call_facts import is_masked
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.access import Access
from ninetoothed.tuning.estimate import DeviceLimits, Facts, estimate, resident_programs

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tensors.arrange import Parameter
    from ninetoothed.tuning.space import Config

#: The most that one thread loads with one instruction.
_WIDEST_ACCESS = divisors.MOST

#: So many positions of a lane are looked at for neighbours that lie apart.
_MOST_PLACES = 32

#: How many accesses in a row one of a single element is that lies anywhere, as in a window.
_GATHERED = 1.8

#: Registers of a thread besides those for tiles: addresses, counters, what is being computed.
_OTHER_REGISTERS = 40
_OTHER_REGISTERS_WITHOUT_PRODUCTS = 24

#: An option's effect: the facts without it, its value, the configuration, the counts -> the facts
#: with it.
Effect = Callable[[Facts, int, "Config", Counts], Facts]


#: What is left of the work of copies where descriptors do it; in a loop of several products, as in
#: attention, it is more, for the one thread that asks is late for each. Registers are saved in any
#: case, and to fetch the descriptors takes a part of what a reduction does.
_DESCRIBED, _DESCRIBED_AMONG_SEVERAL = 0.1, 2.5
_REGISTERS_SAVED = 12
_FETCHED = 0.4

#: How many times what it takes a copy takes that a mask may leave out.
_MASKED = 8.0

#: The elements of a small product's result, and how many programs are few for a multiprocessor.
_SMALL, _FEW = 64 * 128, 2

#: What is left of the work on elements where a loop's masks and comparisons are split off.
_PEELED = 0.8

#: As many stages of a pipeline hide as much of the latency as loading a round ahead does.
_STAGES_AHEAD = 3

#: What is left of the time where tiles come through rings: so many programs of a multiprocessor fill
#: each other's gaps, and each one fewer costs as much more; registers of a thread at most.
_RINGED = 0.88
_PROGRAMS_OF_RINGS, _MISSING = 4, 0.09
_MOST_REGISTERS = 255

#: What is left where a loop's sums are completed after it.
_DEFERRED = 0.93

#: Finding out which part arrives last, as many times what a reduction costs; and the bytes of sums
#: that the last one loads in the time of a reduction, all by itself.
_ARRIVAL = 5.0
_SUMMED = 20_000

#: The same where parts wait for one another: all load, and many loads at once. Where some do not run
#: yet, the others wait in vain.
_MEETING, _IN_VAIN = 8.0, 25.0
_SHARED = 40_000


def _group(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """Plain order reads more from memory; only large tensors show it."""
    return replace(facts, distinct_bytes=facts.distinct_bytes * (2.0 if value == 1 else 1.0))


def _peel(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    return replace(facts, flops=facts.flops * _PEELED, accesses=facts.accesses * _PEELED)


def _descriptors(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """All that products read is loaded ahead, whatever its rows' beginnings are multiples of."""
    copies = sum(counts.loaded.get(name, 0.0) for name in counts.streamed) / _WIDEST_ACCESS
    facts = replace(facts, stages=config.num_stages, is_waiting=False)
    left = _DESCRIBED if len(counts.products) == 1 else _DESCRIBED_AMONG_SEVERAL
    return replace(
        facts,
        copies=copies * left,
        reductions=facts.reductions + _FETCHED,
        accesses=min(facts.accesses, sum(counts.stored.values()) / _WIDEST_ACCESS),
        registers=_registers(counts, facts.threads, 0) - _REGISTERS_SAVED,
        shared_bytes=_shared_bytes(counts, facts.threads, config.num_stages),
    )


def _persistent(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """Half of the result waits to be stored where the next tiles are being loaded to."""
    waiting = int(sum(counts.stored.values())) // 2
    return replace(facts, is_persistent=True, shared_bytes=facts.shared_bytes + waiting)


def _ring(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """Tiles come by descriptor, in fewer buffers; threads have fewer registers."""
    sizes = [product.rows * product.columns for product in counts.products]
    facts = replace(
        facts,
        stages=value + 1,
        is_waiting=False,
        copies=0.0,
        registers=tma_pipeline.most_registers(sizes) or _MOST_REGISTERS,
        shared_bytes=sum(counts.held.values()) + value * sum(counts.streamed.values()),
    )
    missing = max(_PROGRAMS_OF_RINGS - resident_programs(facts), 0)
    return replace(facts, share=_RINGED * (1 + _MISSING * missing))


def _split(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """Each part does its share, and writes its sums; the last one, or each for a piece, reads all."""
    sums = max((4 * p.rows * p.columns for p in counts.products), default=facts.threads * 4)
    end = _ARRIVAL + value * sums / _SUMMED
    if dict(config.options).get("shares"):
        pieces = cooperative_reduction.count_of(value)
        fits = facts.programs * value <= resident_programs(facts) * facts.limits.multiprocessors
        end = _MEETING if fits else _IN_VAIN
        end += value * sums * math.ceil(pieces / value) / pieces / _SHARED
    return replace(
        facts,
        programs=facts.programs * value,
        bytes_moved=facts.bytes_moved / value + sums,
        # Stored once and loaded once.
        distinct_bytes=facts.distinct_bytes + 2 * sums * facts.programs * value,
        accesses=facts.accesses / value + sums / _WIDEST_ACCESS,
        copies=facts.copies / value,
        flops=facts.flops / value,
        special=facts.special / value,
        products=tuple(replace(p, times=p.times / value) for p in facts.products),
        iterations=max(facts.iterations / value, 1.0),
        reductions=facts.reductions + end,
    )


def _defer(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """A sum over a product's columns is one operation fewer for each of its elements."""
    return replace(facts, flops=facts.flops * _DEFERRED)


def _ahead(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    """The next round's tiles are under way to registers while this round's are multiplied."""
    registers = facts.registers + counts.waited_for / 2 / facts.threads
    stages = _STAGES_AHEAD if facts.stages == 1 else min(facts.stages, _STAGES_AHEAD)
    return replace(facts, stages=stages, is_waiting=False, registers=registers)


def _programs(facts: Facts, value: int, config: Config, counts: Counts) -> Facts:
    more = (facts.registers - _OTHER_REGISTERS_WITHOUT_PRODUCTS) * (value - 1)
    return replace(
        facts,
        programs=math.ceil(facts.programs / value),
        bytes_moved=facts.bytes_moved * value,
        accesses=facts.accesses * value,
        flops=facts.flops * value,
        special=facts.special * value,
        registers=facts.registers + more,
    )


#: What the options do, by name. One that is not here does nothing that the model sees: it is
#: ranked beside the same configuration without it, and the search finds out.
EFFECTS: dict[str, Effect] = {
    "ahead": _ahead,
    "defer": _defer,
    "descriptors": _descriptors,
    "group": _group,
    "peel": _peel,
    "persistent": _persistent,
    "programs": _programs,
    "ring": _ring,
    "split": _split,
}


class Estimator:
    """Estimates the configurations of one call; what they share is counted once."""

    def __init__(self, kernel: Definition, call: Call, limits: DeviceLimits) -> None:
        self._kernel = kernel
        self._call = call
        self._limits = limits
        self._counts: dict[tuple[tuple[str, int], ...], tuple[Counts, int]] = {}
        self._vectors: dict[str, int] | None = None
        accesses = kernel.arrangement.accesses
        self._divided = {
            name
            for name, access in accesses.items()
            if any(node.op in ("//", "%") for node in access.offset.walk())
        }

    def seconds(self, config: Config) -> float:
        """How long a launch should take; infinity where it does not fit."""
        return estimate(self.facts(config))

    def has_products(self, config: Config) -> bool:
        """Whether a program multiplies tiles."""
        return bool(self._counted(config)[0].products)

    def has_pipeline(self, config: Config) -> bool:
        """Whether a program multiplies tiles in a loop that loads them."""
        return bool(self._counted(config)[0].streamed)

    def has_few_small_programs(self, config: Config) -> bool:
        """Whether programs work on little and have few neighbours that work while they wait."""
        counts, programs = self._counted(config)
        largest = max((product.rows * product.columns for product in counts.products), default=0)
        return programs < _FEW * self._limits.multiprocessors and largest <= _SMALL

    def is_pipelined(self, config: Config) -> bool:
        """Whether the number of stages makes a difference."""
        counts, _ = self._counted(config)
        is_described = ("descriptors", 1) in config.options
        return is_described or self._is_copied_ahead(counts)

    def facts(self, config: Config) -> Facts:
        """What the configuration does."""
        counts, programs = self._counted(config)
        threads = config.num_warps * self._limits.warp_size
        stages = config.num_stages if self._is_copied_ahead(counts) else 1
        facts = Facts(
            self._limits,
            programs=programs,
            bytes_moved=counts.bytes_moved,
            distinct_bytes=self._distinct(counts),
            accesses=self._accesses(counts, threads, stages),
            copies=self._copies(counts, stages),
            flops=counts.flops,
            special=counts.special,
            # With products a row lies in one warp; without, a tile lies in all of them.
            reductions=0.0 if counts.products else counts.reductions * _across(config.num_warps),
            products=tuple(counts.products),
            iterations=max(counts.rounds, 1.0),
            stages=stages,
            is_waiting=counts.rounds > 1 and (not counts.products or counts.waited_for > 0),
            threads=threads,
            registers=_registers(counts, threads, counts.waited_for),
            shared_bytes=_shared_bytes(counts, threads, stages),
        )
        for name, value in config.options:
            if name in EFFECTS:
                facts = EFFECTS[name](facts, value, config, counts)
        return facts

    def _counted(self, config: Config) -> tuple[Counts, int]:
        if config.values not in self._counts:
            environment = environment_of(self._kernel, self._call, config)
            if self._vectors is None:
                self._vectors = _vectors(self._kernel, self._call, environment)
            grid = tuple(
                max(int(as_symbol(size).evaluate(environment)), 0) for size in self._kernel.grid
            )
            counts = count(self._kernel, self._call, environment)
            counts.waited_for = sum(
                size
                for name, size in counts.streamed.items()
                if self._bytes_at_once(name) < divisors.LEAST_COPY
            )
            counts.masked = {
                name
                for name in counts.streamed
                if is_masked(
                    self._kernel.program.parameter(name),
                    self._kernel.arrangement.accesses[name],
                    environment,
                    grid,
                )
            }
            self._counts[config.values] = counts, math.prod(grid)
        return self._counts[config.values]

    def _distinct(self, counts: Counts) -> float:
        """The bytes that all programs touch, those that are loaded and stored twice."""
        return float(
            sum(
                math.prod(n for n, stride in zip(argument.shape, argument.strides) if stride)
                * argument.dtype.itemsize
                * ((name in counts.loaded) + (name in counts.stored))
                for name, argument in self._call.arguments.items()
            )
        )

    def _bytes_at_once(self, parameter: str) -> int:
        return (self._vectors or {}).get(parameter, divisors.LEAST_COPY)

    def _accesses(self, counts: Counts, threads: int, stages: int) -> float:
        """The loads and stores of all threads of one program, copies to shared memory apart."""
        total = 0.0
        for moved in (counts.loaded, counts.stored):
            for name, amount in moved.items():
                if moved is counts.loaded and self._is_copied(counts, name, stages):
                    continue
                itemsize = self._call.arguments[name].dtype.itemsize
                held = max(counts.largest // threads, 1) * itemsize
                size = max(min(self._bytes_at_once(name), held), itemsize)
                total += amount / size * (_GATHERED if self._is_gathered(name, size) else 1.0)
        return total

    def _is_copied_ahead(self, counts: Counts) -> bool:
        return any(self._bytes_at_once(name) >= divisors.LEAST_COPY for name in counts.streamed)

    def _is_gathered(self, name: str, size: int) -> bool:
        """Whether single elements are loaded from places that are no multiple of anything."""
        return name in self._divided and size == self._call.arguments[name].dtype.itemsize

    def _copies(self, counts: Counts, stages: int) -> float:
        """The copies to shared memory that are begun rounds ahead."""
        return sum(
            amount / self._bytes_at_once(name) * (_MASKED if name in counts.masked else 1.0)
            for name, amount in counts.loaded.items()
            if self._is_copied(counts, name, stages)
        )

    def _is_copied(self, counts: Counts, name: str, stages: int) -> bool:
        return (
            stages > 1
            and name in counts.streamed
            and self._bytes_at_once(name) >= divisors.LEAST_COPY
        )


def _across(warps: int) -> float:
    """Of a reduction's cost, what it is within one warp and what over several."""
    return 1.0 if warps > 1 else 0.9


def _registers(counts: Counts, threads: int, waited_for: int) -> float:
    """Of one thread. The sums of a product are float32; those of a product that feeds another are
    there once more as its operand.

    Args:
        waited_for: bytes of a round that pass through registers, not to shared memory directly.
    """
    if not counts.products:
        return counts.largest * 1.25 / threads + _OTHER_REGISTERS_WITHOUT_PRODUCTS
    sizes = [product.rows * product.columns for product in counts.products]
    held = (1.5 * sum(sizes[:-1]) + sizes[-1]) / threads + _OTHER_REGISTERS
    return held + waited_for / 3 / threads


def _shared_bytes(counts: Counts, threads: int, stages: int) -> int:
    """Of one program: each stage's operands, and those that stay."""
    streamed = sum(counts.streamed.values())
    uses_groups = threads % 128 == 0 and all(p.rows >= 64 for p in counts.products)
    # A warp's own product holds its operands in registers, one stage early.
    buffers = stages if uses_groups or stages == 1 else stages - 1
    return sum(counts.held.values()) + buffers * streamed


def _vectors(kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> dict[str, int]:
    """For each parameter the bytes that one thread can load or store with one instruction."""
    strides = offsets.adjacent(kernel, environment)
    inner = {name for name, _ in full_tile_versioning.conditions(kernel, call, environment)}
    return {
        parameter.name: bytes_at_once(
            kernel, parameter, call, environment, strides, is_masked=parameter.name not in inner
        )
        for parameter in kernel.tensor_parameters
    }


def bytes_at_once(
    kernel: Definition,
    parameter: Parameter,
    call: Call,
    environment: Mapping[Symbol, int],
    adjacent: frozenset[Symbol],
    is_masked: bool = True,
) -> int:
    """The bytes of a parameter's tile that one thread can load or store with one instruction.

    Args:
        adjacent: what `offsets.adjacent` gives for this environment.
        is_masked: whether a mask says where the tensor ends.
    """
    argument, source = call.arguments[parameter.name], parameter.source
    itemsize = argument.dtype.itemsize
    access = kernel.arrangement.accesses[parameter.name]
    offset = offsets.joined(source, access.offset, adjacent & frozenset(source.strides))
    most = max(argument.alignment // itemsize, 1)
    # What the compiler knows of a row's beginning and of a mask's end is what it is told, unless it
    # knows the number itself.
    for leaf in divisors.deciding(source, offset, environment, is_masked):
        number = int(environment[leaf])
        if number > 1 and not _is_constant(leaf):
            most = min(most, divisors.divisor(number))
    run = max(
        (_run(parameter, access, environment, lane, most) for lane in range(len(access.lanes))),
        default=1,
    )
    return itemsize * run


def _is_constant(leaf: Symbol) -> bool:
    return leaf.constexpr or leaf.meta


def _is_divided(offset: Symbol, lane: Symbol) -> bool:
    """Whether a lane's position is taken apart by a division."""
    return any(node.op in ("//", "%") and lane in set(node.leaves()) for node in offset.walk())


def _run(
    parameter: Parameter, access: Access, environment: Mapping[Symbol, int], lane: int, most: int
) -> int:
    """How many neighbouring lanes of a dimension hold neighbouring elements, at most ``most``."""
    size = int(as_symbol(parameter.tile_shape[lane]).evaluate(environment))
    base = access.first(environment)
    first = access.offset.evaluate(base)
    count = 1
    while count < min(size, most):
        offset = access.offset.evaluate({**base, access.lanes[lane]: count})
        if offset != first + count:
            break
        count += 1
    run = 1 << (count.bit_length() - 1)
    if run > 1 and _is_divided(access.offset, access.lanes[lane]):
        import numpy

        # The first of a window's line are neighbours; its last one and the next line's first are not.
        places = numpy.arange(min(size, _MOST_PLACES))
        found = access.offset.evaluate({**base, access.lanes[lane]: places})
        while numpy.any(found - found[places - places % run] != places % run):
            run //= 2
    # Nor may a step of anything else lead between two runs.
    leaves = (*access.programs, *access.selections, *access.lanes)
    others = [leaf for leaf in leaves if leaf is not access.lanes[lane]]
    steps = [access.offset.evaluate({**base, leaf: 1}) - first for leaf in others]
    while any(step % run for step in steps):
        run //= 2
    return run
