"""How long a kernel should take: an estimate from what a program moves and computes.

It ranks configurations before any is compiled. The model is a roofline with waves, occupancy and
bytes in flight; a few per cent between two configurations are beyond it, and the search's to find.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Tensor-core operations of 16-bit operands, per multiprocessor and clock, by compute capability.
_DOT_RATES = {80: 2048, 86: 1024, 89: 1024, 90: 4096, 100: 8192, 103: 8192, 120: 2048}
_UNKNOWN_DOT_RATE = 2048

#: Of a device whose driver does not tell its clock or its memory's rate.
_ASSUMED_CLOCK = 1.5e9
_ASSUMED_BANDWIDTH = 2.0e12

#: Of the memory's rate, what a copy gets on an H200: 4.3 of 4.9 TB/s.
_ACHIEVED_BANDWIDTH = 0.88

#: Bytes that the second-level cache gives to one multiprocessor in a clock, as seen on an H200.
_L2_BYTES_PER_CLOCK = 40

#: From asking for memory to having it, and a program's start and end, in seconds.
_LATENCY = 0.7e-6
_PROGRAM_LATENCY = 1.0e-6

#: Operations of a multiprocessor in a clock; few of a kernel's are a fused two.
_LANES = 128

_MOST_PROGRAMS = 32
_MOST_REGISTERS = 255


@dataclass(frozen=True)
class DeviceLimits:
    """What a device has. Sizes are in bytes, registers have 32 bits, rates are per second.

    ``shared_memory_per_block`` is the most one program may ask for; ``memory_bandwidth`` and
    ``clock_hz`` are 0 where the driver does not tell.
    """

    name: str
    backend: str
    arch: int | str
    warp_size: int
    multiprocessors: int
    shared_memory_per_block: int
    shared_memory_per_multiprocessor: int
    registers_per_block: int = 65536
    registers_per_multiprocessor: int = 65536
    threads_per_block: int = 1024
    threads_per_multiprocessor: int = 2048
    l2_bytes: int = 0
    memory_bandwidth: float = 0.0
    clock_hz: float = 0.0

    @property
    def capability(self) -> tuple[int, int]:
        """CUDA's compute capability, ``(9, 0)``; ``(0, 0)`` of another kind of device."""
        return divmod(self.arch, 10) if isinstance(self.arch, int) else (0, 0)


@dataclass(frozen=True)
class Facts:
    """What one configuration of a kernel does.

    Attributes:
        limits: the device's.
        programs: how many there are.
        bytes_moved: global memory that one program loads and stores, over its whole life.
        flops: operations of one program outside of products.
        dot_flops: operations of one program in products.
        dot_bits: the width of the products' operands.
        distinct_bytes: global memory that all programs together touch, each byte once; 0 if not
            known, then every program's bytes count as distinct.
        threads: of one program.
        registers: of one thread, for the tiles it holds.
        shared_bytes: of one program.
        bytes_in_flight: what one program has asked for and not yet received, at most.
    """

    limits: DeviceLimits
    programs: int
    bytes_moved: float
    flops: float = 0.0
    dot_flops: float = 0.0
    dot_bits: int = 16
    distinct_bytes: float = 0.0
    threads: int = 128
    registers: float = 32.0
    shared_bytes: int = 0
    bytes_in_flight: float = 0.0


def resident_programs(facts: Facts) -> int:
    """How many programs one multiprocessor holds at a time; 0 where not even one fits."""
    limits = facts.limits
    if facts.shared_bytes > limits.shared_memory_per_block:
        return 0
    if facts.threads > limits.threads_per_block:
        return 0
    registers = min(facts.registers, _MOST_REGISTERS) * facts.threads
    return int(
        min(
            _MOST_PROGRAMS,
            limits.threads_per_multiprocessor // facts.threads,
            limits.registers_per_multiprocessor // max(registers, 1),
            limits.shared_memory_per_multiprocessor // max(facts.shared_bytes, 1),
        )
    )


def estimate(facts: Facts) -> float:
    """The seconds that a launch should take; infinity where a program does not fit the device."""
    limits = facts.limits
    resident = resident_programs(facts)
    if resident == 0:
        return math.inf
    if facts.programs == 0:
        return 0.0
    clock = limits.clock_hz or _ASSUMED_CLOCK
    bandwidth = _ACHIEVED_BANDWIDTH * (limits.memory_bandwidth or _ASSUMED_BANDWIDTH)
    at_once = resident * limits.multiprocessors
    waves = math.ceil(facts.programs / at_once)
    # A multiprocessor is shared by its programs: what counts is the one that has most of them.
    busiest = math.ceil(facts.programs / limits.multiprocessors) / clock
    moved = facts.programs * facts.bytes_moved
    starved = _starvation(facts, resident, bandwidth)
    seconds = max(
        starved * (facts.distinct_bytes or moved) / bandwidth,
        starved * busiest * facts.bytes_moved / _L2_BYTES_PER_CLOCK,
        busiest * facts.flops / _LANES,
        busiest * facts.dot_flops / _dot_flops_per_clock(facts),
        waves * _PROGRAM_LATENCY,
    )
    return seconds * _spilling(facts)


def dot_registers(rows: int, columns: int, threads: int) -> float:
    """Registers of one thread for a float32 accumulator of a product, and for the rest of it."""
    return rows * columns / threads + 40


def _starvation(facts: Facts, resident: int, bandwidth: float) -> float:
    """How much longer memory takes because too little of it is asked for at a time."""
    if not facts.bytes_in_flight:
        return 1.0
    active = min(resident, math.ceil(facts.programs / facts.limits.multiprocessors))
    needed = bandwidth * _LATENCY / facts.limits.multiprocessors
    return max(1.0, needed / (active * facts.bytes_in_flight))


def _spilling(facts: Facts) -> float:
    """How much longer everything takes because registers are kept in memory."""
    return 1.0 if facts.registers <= _MOST_REGISTERS else 4.0 * facts.registers / _MOST_REGISTERS


def _dot_flops_per_clock(facts: Facts) -> float:
    arch = facts.limits.arch
    rate = _DOT_RATES.get(arch, _UNKNOWN_DOT_RATE) if isinstance(arch, int) else _UNKNOWN_DOT_RATE
    if facts.dot_bits >= 32:
        # float32 operands in IEEE precision run on the ordinary lanes.
        return 256.0
    # Hopper's and later units are fed by groups of four warps.
    starving = isinstance(arch, int) and arch >= 90 and facts.threads < 128
    return rate * (16 / facts.dot_bits) * (0.5 if starving else 1.0)
