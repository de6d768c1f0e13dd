"""How long a kernel should take: an estimate from what a program moves and computes.

It ranks configurations before any is compiled. A multiprocessor's tensor cores, shared memory,
instruction issue and second-level cache each bound what it gets done; the latency of one program's
steps bounds it where few programs are resident; the programs come in waves; memory bounds them all.
The constants were fitted to some five thousand measurements on an H200, a third of which are in
`tests/tuning/rankings.json`. What is ranked right is ranked right on average; the last few per cent
between two configurations are the search's to find.
"""

from __future__ import annotations

import math

from ninetoothed.records import dataclass

#: Tensor-core operations of 16-bit operands, per multiprocessor and clock, by compute capability.
_DOT_RATES = {80: 2048, 86: 1024, 89: 1024, 90: 4096, 100: 8192, 103: 8192, 120: 2048}
_UNKNOWN_DOT_RATE = 2048

#: The compute capabilities whose products are done by groups of four warps. Only Hopper's was measured.
_IN_GROUPS = (90, 100, 103)

#: Those whose products' sums have a memory of their own.
_IN_TENSOR_MEMORY = (100, 103)

#: Of a device whose driver does not tell its clock or its memory's rate.
_ASSUMED_CLOCK = 1.5e9
_ASSUMED_BANDWIDTH = 2.0e12

#: Of the memory's rate, what a copy gets on an H200: 4.34 of 4.9 TB/s.
_ACHIEVED_BANDWIDTH = 0.886

_MOST_PROGRAMS = 32
_MOST_REGISTERS = 255


@dataclass(frozen=True)
class Constants:
    """What the model takes from measurements. Times are in clocks of a multiprocessor.

    Attributes:
        launch: seconds from one kernel's end to the next one's first instruction.
        clock: of the highest clock, what is kept up under load.
        start: beginning and ending a program, its first and last access included.
        program: the least time between two programs' beginnings.
        latency: from asking memory to having it.
        step: what one round of a loop costs besides its work: barriers and waiting.
        reduction: combining a value over all threads of a program.
        access: issuing one access of a warp, its address and its mask included.
        copy: the same of a copy to shared memory that is begun rounds ahead.
        cache_bytes: what the second-level cache gives in a clock.
        shared_bytes: what shared memory gives in a clock.
        row: what a row costs the memory besides its own bytes, in bytes: it begins elsewhere than the last one ended.
        dot: of the tensor cores' rate, what is reached.
        warp_dot: the same where each warp multiplies on its own, without Hopper's warp groups.
        overlap: how well different units work at once: 1 adds their times, a large number takes the
            longest.
        memory: the same for the memory and all else.
        hiding: the same for a program's latency and the work of its neighbours.
        waiting: the same for the work of a step and what it waits for, where a program is alone.
        exposed: of a step's instructions, what the tensor cores wait for with eight warps; with
            fewer it is more, for there is less to do in the meantime.
        spill: how much longer everything takes where as many registers again are kept in memory.
        spilled_sums: the same factor where a product's sums alone are more than a thread's registers:
            they go to memory and back in each round.
    """

    launch: float = 3.2e-6
    clock: float = 0.927
    start: float = 1460.0
    program: float = 130.0
    latency: float = 1350.0
    step: float = 1.0
    reduction: float = 960.0
    access: float = 17.5
    copy: float = 2.3
    cache_bytes: float = 55.0
    shared_bytes: float = 116.5
    row: float = 5.0
    dot: float = 0.8
    warp_dot: float = 0.268
    overlap: float = 4.0
    memory: float = 6.0
    hiding: float = 5.3
    waiting: float = 8.0
    exposed: float = 0.427
    spill: float = 1.2
    spilled_sums: float = 4.0


CONSTANTS = Constants()


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

    def described(self) -> str:
        """A line for people."""
        return (
            f"{self.name}, architecture {self.arch}, {self.multiprocessors} multiprocessors, "
            f"{self.shared_memory_per_block} bytes of shared memory a program"
        )


@dataclass(frozen=True)
class Product:
    """A product of two tiles, (rows, inner) and (inner, columns).

    Attributes:
        times: how often one program multiplies such tiles.
        bits: the width of an operand's element.
        in_registers: whether the left operand was computed rather than loaded.
    """

    rows: int
    columns: int
    inner: int
    times: float = 1.0
    bits: int = 16
    in_registers: bool = False

    @property
    def flops(self) -> float:
        """The operations of one program."""
        return 2.0 * self.rows * self.columns * self.inner * self.times


@dataclass(frozen=True)
class CostFeatures:
    """What one configuration of a kernel does. An option changes what it changes of these.

    Attributes:
        limits: the device's.
        programs: how many there are.
        bytes_moved: global memory that one program loads and stores, over its whole life.
        distinct_bytes: global memory that all programs together touch, each byte once; 0 if not
            known, then every program's bytes count as distinct.
        rows: of the distinct bytes, how many rows of tiles a loop loads for products: each lies elsewhere.
        flops: operations of one program outside of products.
        special: of those, the ones that take a special unit: exponentials, roots.
        reductions: how often one program combines a value over all its threads.
        ending: what it does when all is loaded, as many times what a reduction takes.
        products: the products of tiles.
        iterations: rounds of the loop that one program spends its life in; 1 without one.
        stages: of the loop's pipeline; 1 where no load is begun ahead of its round.
        is_waiting: whether some loads are waited for in each round.
        accesses: loads and stores, by single threads, of one program over its whole life.
        copies: of the loads, those to shared memory that a pipeline begins ahead; they are not
            among the accesses.
        threads: of one program.
        registers: of one thread.
        shared_bytes: of one program.
        launches: how many kernels run one after the other.
        is_persistent: whether each program does the work of several, the next one's loads begun
            before the last one's stores are done.
        share: of the time that this would take a multiprocessor, what it does take for what is not told here.
    """

    limits: DeviceLimits
    programs: int
    bytes_moved: float
    distinct_bytes: float = 0.0
    rows: float = 0.0
    flops: float = 0.0
    special: float = 0.0
    reductions: float = 0.0
    ending: float = 0.0
    products: tuple[Product, ...] = ()
    iterations: float = 1.0
    stages: int = 1
    is_waiting: bool = False
    accesses: float = 0.0
    copies: float = 0.0
    threads: int = 128
    registers: float = 32.0
    shared_bytes: int = 0
    launches: int = 1
    is_persistent: bool = False
    share: float = 1.0


def resident_programs(features: CostFeatures) -> int:
    """How many programs one multiprocessor holds at a time; 0 where not even one fits."""
    limits = features.limits
    if features.shared_bytes > limits.shared_memory_per_block:
        return 0
    if features.threads > limits.threads_per_block:
        return 0
    registers = min(features.registers, _most_registers(features)) * features.threads
    return int(
        min(
            _MOST_PROGRAMS,
            limits.threads_per_multiprocessor // features.threads,
            limits.registers_per_multiprocessor // max(registers, 1),
            # The driver keeps a kilobyte of each program's shared memory for itself.
            limits.shared_memory_per_multiprocessor // max(features.shared_bytes + 1024, 1),
        )
    )


def estimate(features: CostFeatures, constants: Constants = CONSTANTS) -> float:
    """The seconds that a launch should take; infinity where a program does not fit the device."""
    limits = features.limits
    resident = resident_programs(features)
    if resident == 0:
        return math.inf
    if features.programs == 0:
        return 0.0
    clock = constants.clock * (limits.clock_hz or _ASSUMED_CLOCK)
    bandwidth = _ACHIEVED_BANDWIDTH * (limits.memory_bandwidth or _ASSUMED_BANDWIDTH)
    busy, life = _program(features, constants)
    ending = features.ending * constants.reduction

    def wave(count: int, life: float) -> float:
        return _together(constants.hiding, life, count * busy)

    waves, rest = divmod(features.programs, resident * limits.multiprocessors)
    last = math.ceil(rest / limits.multiprocessors) or resident
    # While the programs of one wave end, others load; not while the last ones do.
    clocks = (waves - (not rest)) * wave(resident, life + ending) + wave(last, life)
    if features.is_persistent:
        # One begins while the one before it ends; the multiprocessors' shares differ by one.
        share = math.ceil(features.programs / limits.multiprocessors)
        alone = life - constants.start
        clocks = constants.start + share * _together(constants.hiding, alone, busy)
    moved = features.distinct_bytes or features.programs * features.bytes_moved
    loading = (moved + constants.row * features.rows) / bandwidth
    if features.iterations > 1:
        # The last round is computed when all is loaded.
        together = min(features.programs / limits.multiprocessors, resident)
        loading += math.ceil(together) * busy / features.iterations / clock
    work = _together(constants.memory, features.share * clocks / clock, loading)
    launches = features.launches * constants.launch
    return launches + work * _spilling(features, constants) + ending / clock


def _program(features: CostFeatures, constants: Constants) -> tuple[float, float]:
    """The clocks that one program keeps a multiprocessor busy, and those from its start to its end
    where it is alone."""
    tensor, shared, alone = 0.0, 0.0, 0.0
    for product in features.products:
        clocks, read = _product(features, product, constants)
        tensor += clocks
        shared += read / constants.shared_bytes
        # Fewer than four warps reach fewer than four of the multiprocessor's tensor cores.
        alone += clocks * max(1.0, 128 / features.threads)
    issued = (
        features.flops + features.accesses * constants.access + features.copies * constants.copy
    )
    issue = issued / 128 + features.special / 16
    cache = features.bytes_moved / constants.cache_bytes
    busy = _together(constants.overlap, tensor, shared, issue, cache) + constants.program
    work = _together(constants.overlap, max(alone, shared), cache)
    work += constants.exposed * issue * max(1.0, 256 / features.threads)
    step = work / features.iterations + constants.step * (features.iterations > 1)
    if features.stages > 1:
        # A round's loads take their time after the latency; so many rounds ahead they are begun.
        ahead = (constants.latency + cache / features.iterations) / (features.stages - 1)
        if features.programs <= features.limits.multiprocessors:
            # No other program works while this one waits.
            step = _together(constants.waiting, step, ahead)
        else:
            step = max(step, ahead)
    if features.is_waiting:
        step += constants.latency
    life = constants.start + features.iterations * step + features.reductions * constants.reduction
    return busy, life


def _product(features: CostFeatures, product: Product, constants: Constants) -> tuple[float, float]:
    """The clocks of the tensor cores, and the bytes read from shared memory."""
    arch = features.limits.arch
    rate: float = _DOT_RATES.get(arch, _UNKNOWN_DOT_RATE) if isinstance(arch, int) else 2048
    rows, columns, inner = product.rows, product.columns, product.inner
    warps = max(features.threads // features.limits.warp_size, 1)
    width = product.bits / 8
    if product.bits >= 32:
        # float32 operands in IEEE precision run on the ordinary lanes.
        return product.flops / 256, 0.0
    if arch in _IN_GROUPS and warps % 4 == 0 and rows >= 64:
        # A group of four warps multiplies 64 rows at a time, both operands in shared memory.
        groups = warps // 4
        down = min(groups, rows // 64)
        across = max(columns // (groups // down), 1)
        strips = rows / 64 * columns / across
        read = strips * (0 if product.in_registers else 64 * inner) + strips * across * inner
        rate *= constants.dot
    else:
        # Each warp has a tile of its own, near square, and reads its operands for itself.
        down = min(max(1 << (round(math.log2(max(warps * rows / columns, 1))) // 2), 1), warps)
        read = rows * inner * (warps / down) + columns * inner * down
        rate *= constants.warp_dot
    written = (rows * (not product.in_registers) + columns) * inner
    clocks = product.flops / (rate * 16 / product.bits)
    return clocks, product.times * (read + written) * width


def _together(power: float, *clocks: float) -> float:
    """The time of things done at once: between the longest of them and their sum."""
    longest = max(clocks)
    if not longest:
        return 0.0
    return float(longest * sum((each / longest) ** power for each in clocks) ** (1 / power))


def _most_registers(features: CostFeatures) -> float:
    return min(_MOST_REGISTERS, features.limits.registers_per_block / features.threads)


def _spilling(features: CostFeatures, constants: Constants) -> float:
    """How much longer everything takes because registers are kept in memory."""
    most = _most_registers(features)
    spilling = 1 + constants.spill * max(features.registers / most - 1, 0)
    sums = max((p.rows * p.columns / features.threads for p in features.products), default=0)
    if sums > most and features.limits.arch not in _IN_TENSOR_MEMORY:
        spilling *= constants.spilled_sums
    return spilling
