"""What one configuration of a kernel moves and computes, for the estimate that ranks it.

An option tells its effect in `EFFECTS`: a function from the facts without it, its value and the call
to the facts with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.access import Access
from ninetoothed.backends.triton import offsets
from ninetoothed.backends.triton.counting import Counts, count
from ninetoothed.backends.triton.specialize import environment_of
from ninetoothed.costs import DeviceLimits, Facts, estimate
from ninetoothed.expr import Symbol, as_symbol

if TYPE_CHECKING:
    from ninetoothed.arrange import Parameter
    from ninetoothed.backends.base import Call
    from ninetoothed.kernel import Kernel
    from ninetoothed.tuning import Config

#: The most that one thread loads with one instruction.
_WIDEST_ACCESS = 16

#: The least that an asynchronous copy to shared memory takes, in bytes.
_LEAST_COPY = 4

#: What Triton asks of an integer argument: whether it is a multiple of this.
_DIVISOR = 16

#: Registers of a thread besides those for tiles: addresses, counters, what is being computed.
_OTHER_REGISTERS = 40
_OTHER_REGISTERS_WITHOUT_PRODUCTS = 24

#: An option's effect: the facts without it, its value, the counts -> the facts with it.
Effect = Callable[[Facts, int, Counts], Facts]


def _group(facts: Facts, value: int, counts: Counts) -> Facts:
    """Plain order reads a little more from memory; only much larger tensors show it."""
    return replace(facts, distinct_bytes=facts.distinct_bytes * (2.0 if value == 1 else 1.0))


def _programs(facts: Facts, value: int, counts: Counts) -> Facts:
    """The work of several, begun once; with enough rows, each is a warp's own to combine."""
    warps = facts.threads // facts.limits.warp_size
    return replace(
        facts,
        programs=-(-facts.programs // value),
        bytes_moved=facts.bytes_moved * value,
        accesses=facts.accesses * value,
        flops=facts.flops * value,
        special=facts.special * value,
        reductions=0.0 if value >= warps else facts.reductions,
        registers=facts.registers + (value - 1) * 2 * counts.largest / facts.threads,
    )


def _split(facts: Facts, value: int, counts: Counts) -> Facts:
    """A part of the rounds; its sums are stored, and loaded again by the last to arrive."""
    kept = sum(4 * product.rows * product.columns for product in counts.products)
    kept = kept or 4 * counts.largest
    return replace(
        facts,
        programs=facts.programs * value,
        bytes_moved=facts.bytes_moved / value + 2 * kept,
        distinct_bytes=facts.distinct_bytes + 2 * kept * facts.programs * value,
        flops=facts.flops / value,
        special=facts.special / value,
        products=tuple(replace(p, times=p.times / value) for p in facts.products),
        iterations=max(facts.iterations / value, 1.0),
        accesses=facts.accesses / value + kept / 8,
        copies=facts.copies / value,
        # Waiting for what was stored to be seen, counting, loading what the others stored.
        reductions=facts.reductions + 4,
    )


def _ahead(facts: Facts, value: int, counts: Counts) -> Facts:
    """One round's tiles are held in registers while they come."""
    held = sum(counts.streamed.values()) / 4 / facts.threads
    return replace(facts, stages=max(facts.stages, 2), registers=facts.registers + held)


#: What the options do, by name. One that is not here does nothing that the model sees: it is
#: ranked beside the same configuration without it, and the search finds out.
EFFECTS: dict[str, Effect] = {
    "group": _group,
    "programs": _programs,
    "split": _split,
    "ahead": _ahead,
}


def facts_of(kernel: Kernel, call: Call, config: Config, limits: DeviceLimits) -> Facts:
    """The facts of one configuration."""
    return Estimator(kernel, call, limits).facts(config)


class Estimator:
    """Estimates the configurations of one call; what they share is counted once."""

    def __init__(self, kernel: Kernel, call: Call, limits: DeviceLimits) -> None:
        self._kernel = kernel
        self._call = call
        self._limits = limits
        self._counts: dict[tuple[tuple[str, int], ...], tuple[Counts, int]] = {}
        self._vectors: dict[str, int] | None = None

    def seconds(self, config: Config) -> float:
        """How long a launch should take; infinity where it does not fit."""
        return estimate(self.facts(config))

    def has_products(self, config: Config) -> bool:
        """Whether a program multiplies tiles."""
        return bool(self._counted(config)[0].products)

    def is_pipelined(self, config: Config) -> bool:
        """Whether the number of stages makes a difference."""
        counts, _ = self._counted(config)
        return any(self._bytes_at_once(name) >= _LEAST_COPY for name in counts.streamed)

    def facts(self, config: Config) -> Facts:
        """What the configuration does."""
        counts, programs = self._counted(config)
        threads = config.num_warps * self._limits.warp_size
        stages = config.num_stages if self.is_pipelined(config) else 1
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
            threads=threads,
            registers=_registers(counts, threads, stages),
            shared_bytes=_shared_bytes(counts, threads, stages),
        )
        for name, value in config.options:
            if name in EFFECTS:
                facts = EFFECTS[name](facts, value, counts)
        return facts

    def _counted(self, config: Config) -> tuple[Counts, int]:
        if config.values not in self._counts:
            environment = environment_of(self._kernel, self._call, config)
            if self._vectors is None:
                self._vectors = _vectors(self._kernel, self._call, environment)
            programs = math.prod(
                max(int(as_symbol(size).evaluate(environment)), 0) for size in self._kernel.grid
            )
            counts = count(self._kernel, self._call, environment)
            self._counts[config.values] = counts, programs
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
        return (self._vectors or {}).get(parameter, _LEAST_COPY)

    def _accesses(self, counts: Counts, threads: int, stages: int) -> float:
        """The loads and stores of all threads of one program, copies to shared memory apart."""
        total = 0.0
        for moved in (counts.loaded, counts.stored):
            for name, amount in moved.items():
                if stages > 1 and moved is counts.loaded and name in counts.streamed:
                    continue
                itemsize = self._call.arguments[name].dtype.itemsize
                held = max(counts.largest // threads, 1) * itemsize
                total += amount / max(min(self._bytes_at_once(name), held), itemsize)
        return total

    def _copies(self, counts: Counts, stages: int) -> float:
        """The copies to shared memory that are begun rounds ahead."""
        if stages == 1:
            return 0.0
        return sum(
            counts.loaded.get(name, 0.0) / self._bytes_at_once(name) for name in counts.streamed
        )


def _across(warps: int) -> float:
    """Of a reduction's cost, what it is within one warp and what over several."""
    return 1.0 if warps > 1 else 0.6


def _registers(counts: Counts, threads: int, stages: int) -> float:
    """Of one thread. The sums of a product are float32; those of a product that feeds another are
    there once more as its operand."""
    if not counts.products:
        return counts.largest * 1.25 / threads + _OTHER_REGISTERS_WITHOUT_PRODUCTS
    sizes = [product.rows * product.columns for product in counts.products]
    held = (1.5 * sum(sizes[:-1]) + sizes[-1]) / threads + _OTHER_REGISTERS
    if stages == 1:
        # What is not copied to shared memory directly passes through registers.
        held += sum(counts.streamed.values()) / 3 / threads
    return held


def _shared_bytes(counts: Counts, threads: int, stages: int) -> int:
    """Of one program: each stage's operands, and those that stay."""
    streamed = sum(counts.streamed.values())
    uses_groups = threads % 128 == 0 and all(p.rows >= 64 for p in counts.products)
    # A warp's own product holds its operands in registers, one stage early.
    buffers = stages if uses_groups or stages == 1 else stages - 1
    return sum(counts.held.values()) + buffers * streamed


def _vectors(kernel: Kernel, call: Call, environment: Mapping[Symbol, int]) -> dict[str, int]:
    """For each parameter the bytes that one thread can load or store with one instruction."""
    strides = offsets.adjacent(kernel, environment)
    return {
        parameter.name: bytes_at_once(kernel, parameter, call, environment, strides)
        for parameter in kernel.tensor_parameters
    }


def bytes_at_once(
    kernel: Kernel,
    parameter: Parameter,
    call: Call,
    environment: Mapping[Symbol, int],
    adjacent: frozenset[Symbol],
) -> int:
    """The bytes of a parameter's tile that one thread can load or store with one instruction.

    Args:
        adjacent: what `offsets.adjacent` gives for this environment.
    """
    argument, source = call.arguments[parameter.name], parameter.source
    itemsize = argument.dtype.itemsize
    if not argument.aligned:
        return itemsize
    access = kernel.arrangement.accesses[parameter.name]
    offset = offsets.joined(source, access.offset, adjacent & frozenset(source.strides))
    # What the compiler knows of a row's beginning and of a mask's end is whether it is a multiple
    # of 16, unless it knows the number itself.
    numbers = {leaf: int(environment[leaf]) for leaf in offset.leaves() if leaf in environment}
    for size, stride in zip(source.shape, source.strides):
        if environment[as_symbol(stride)] == 1:
            numbers |= {leaf: int(environment[leaf]) for leaf in as_symbol(size).leaves()}
    if any(n > 1 and n % _DIVISOR and not _is_constant(leaf) for leaf, n in numbers.items()):
        return itemsize
    most = _WIDEST_ACCESS // itemsize
    run = max(
        (_run(parameter, access, environment, lane, most) for lane in range(len(access.lanes))),
        default=1,
    )
    return itemsize * run


def _is_constant(leaf: Symbol) -> bool:
    return leaf.constexpr or leaf.meta


def _run(
    parameter: Parameter, access: Access, environment: Mapping[Symbol, int], lane: int, most: int
) -> int:
    """How many neighbouring lanes of a dimension hold neighbouring elements, at most ``most``."""
    size = int(as_symbol(parameter.tile_shape[lane]).evaluate(environment))
    leaves = (*access.programs, *access.selections, *access.lanes)
    base = {**environment, **dict.fromkeys(leaves, 0)}
    first = access.offset.evaluate(base)
    count = 1
    while count < min(size, most):
        offset = access.offset.evaluate({**base, access.lanes[lane]: count})
        if offset != first + count:
            break
        count += 1
    run = 1 << (count.bit_length() - 1)
    # Nor may a step of anything else lead between two runs.
    others = [leaf for leaf in leaves if leaf is not access.lanes[lane]]
    steps = [access.offset.evaluate({**base, leaf: 1}) - first for leaf in others]
    while any(step % run for step in steps):
        run //= 2
    return run
