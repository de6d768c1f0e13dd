"""What one configuration of a kernel moves and computes, for the estimate that ranks it.

What an option changes in it, the option tells (`Option.cost`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.analysis import full_tiles
from ninetoothed.backends.triton.analysis.held_tensors import multiplied_alone
from ninetoothed.backends.triton.analysis.operation_counts import Counts, count
from ninetoothed.backends.triton.analysis.resources import registers, shared_bytes
from ninetoothed.backends.triton.analysis.vector_width import bytes_at_once
from ninetoothed.backends.triton.specialization import divisors, offsets
from ninetoothed.backends.triton.specialization.call_facts import existing_share
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.symbols.expr import Symbol, evaluated
from ninetoothed.tuning.estimate import CostFeatures, DeviceLimits, estimate

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.space import Config

#: How many accesses in a row one of a single element is that lies anywhere, as in a window.
_GATHERED = 1.8

#: How many times what it takes a copy takes that a mask may leave out.
_MASKED = 8.0

#: The bytes of a cache line, and how much longer a product takes that loads halves of them.
_LINE = 128
_SHORT = 0.17

#: The elements of a small product's result, and how many programs are few for a multiprocessor.
_SMALL, _FEW = 64 * 128, 2


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
        return estimate(self.features(config))

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

    def features(self, config: Config) -> CostFeatures:
        """What the configuration does."""
        counts, programs = self._counted(config)
        threads = config.num_warps * self._limits.warp_size
        stages = config.num_stages if self._is_copied_ahead(counts) else 1
        features = CostFeatures(
            self._limits,
            programs=programs,
            bytes_moved=counts.bytes_moved,
            distinct_bytes=self._distinct(counts),
            rows=counts.rows,
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
            registers=registers(counts, threads, counts.waited_for),
            shared_bytes=shared_bytes(counts, threads, stages),
            share=1 + _SHORT * counts.short / max(sum(counts.streamed.values()), 1),
        )
        known = {option.name: option for option in options.OPTIONS}
        for name, value in config.options:
            features = known[name].cost(features, value, config, counts)
        return features

    def _counted(self, config: Config) -> tuple[Counts, int]:
        if config.values not in self._counts:
            environment = environment_of(self._kernel, self._call, config)
            if self._vectors is None:
                self._vectors = _vectors(self._kernel, self._call, environment)
            grid = tuple(max(evaluated(size, environment), 0) for size in self._kernel.grid)
            counts = count(self._kernel, self._call, environment)
            counts.waited_for = sum(
                size
                for name, size in counts.streamed.items()
                if self._bytes_at_once(name) < divisors.LEAST_COPY
            )
            rows = {name: self._row_bytes(name, environment) for name in counts.streamed}
            counts.rows = sum(self._bytes_of(name) / each for name, each in rows.items())
            counts.short = sum(
                size * max(_LINE / rows[name] - 1, 0) for name, size in counts.streamed.items()
            )
            counts.kept = sum(
                size
                for name, size in counts.held.items()
                if name not in multiplied_alone(self._kernel)
            )
            for parameter in self._kernel.tensor_parameters:
                access = self._kernel.arrangement.accesses[parameter.name]
                share = existing_share(parameter, access, environment, grid)
                counts.existing[parameter.name] = share
            self._counts[config.values] = counts, math.prod(grid)
        return self._counts[config.values]

    def _row_bytes(self, name: str, environment: Mapping[Symbol, int]) -> int:
        """The bytes that lie behind one another in a row of a parameter's tile; a line's where it has none,
        as in a window."""
        access = self._kernel.arrangement.accesses[name]
        tile = self._kernel.program.parameter(name).tile_shape
        base = access.first(environment)
        first = access.offset.evaluate(base)
        sizes = [
            evaluated(size, environment)
            for size, coordinate in zip(tile, access.coordinates)
            if access.offset.evaluate({**base, coordinate: 1}) == first + 1
        ]
        return min(sizes, default=_LINE) * self._call.arguments[name].dtype.itemsize

    def _distinct(self, counts: Counts) -> float:
        """The bytes that all programs touch, those that are loaded and stored twice."""
        return float(
            sum(
                self._bytes_of(name) * ((name in counts.loaded) + (name in counts.stored))
                for name in self._call.arguments
            )
        )

    def _bytes_of(self, name: str) -> int:
        """The bytes of a tensor that lie in different places."""
        argument = self._call.arguments[name]
        sizes = (n for n, stride in zip(argument.shape, argument.strides) if stride)
        return math.prod(sizes) * argument.dtype.itemsize

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
            amount / self._bytes_at_once(name) * (_MASKED if counts.existing[name] < 1 else 1.0)
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


def _vectors(kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> dict[str, int]:
    """For each parameter the bytes that one thread can load or store with one instruction."""
    strides = offsets.adjacent(kernel, environment)
    inner = {name for name, _ in full_tiles.conditions(kernel, call, environment)}
    return {
        parameter.name: bytes_at_once(
            kernel, parameter, call, environment, strides, is_masked=parameter.name not in inner
        )
        for parameter in kernel.tensor_parameters
    }
