"""Registers and shared memory that a program needs, as far as they can be told without compiling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ninetoothed.symbols.expr import Expression, Symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.tuning.estimate import Product

#: Registers of a thread besides those for tiles: addresses, counters, what is being computed.
_OTHER_REGISTERS = 40
OTHER_REGISTERS_WITHOUT_PRODUCTS = 24

#: Warps of a program whose products a group of warps does together.
GROUP_WARPS = 4

#: Registers of a multiprocessor; a thread has a multiple of so many; programs are at most so many.
_REGISTERS, _UNIT, _MOST_PROGRAMS = 65536, 8, 5

#: Of a thread, besides those for the sums of products.
_BESIDES_SUMS = 32


def registers(counts: Counts, threads: int, waited_for: int) -> float:
    """Of one thread. The sums of a product are float32; a left operand that was computed is there
    too, in its own width. Loops that follow one another need them in turn.

    Args:
        waited_for: bytes of a round that pass through registers, not to shared memory directly.
    """
    if not counts.products:
        return counts.largest * 1.25 / threads + OTHER_REGISTERS_WITHOUT_PRODUCTS
    in_loops = sum(map(len, counts.loops))
    groups = counts.loops if in_loops == len(counts.products) else [counts.products]
    held = max(sum(map(_registers, group)) for group in groups if group) / threads
    return held + _OTHER_REGISTERS + waited_for / 3 / threads


def _registers(product: Product) -> float:
    """Of all threads, for a product's sums and what it computes them of."""
    operand = product.rows * product.inner * product.bits / 32
    return product.rows * product.columns + product.in_registers * operand


def shared_bytes(counts: Counts, threads: int, stages: int) -> int:
    """Of one program: each stage's operands, and those that stay."""
    streamed = sum(counts.streamed.values())
    uses_groups = threads % 128 == 0 and all(p.rows >= 64 for p in counts.products)
    # A warp's own product holds its operands in registers, one stage early.
    buffers = stages if uses_groups or stages == 1 else stages - 1
    return sum(counts.held.values()) + buffers * streamed


def most_registers(sizes: Iterable[int], kept: int = 0) -> int | None:
    """The most registers that a thread is given for products of so many elements each: what it needs
    for sums and a little more, rounded up to what so many programs as then fit share. The compiler
    left alone takes one more now and then, and a whole program is lost.

    Args:
        kept: bytes of operands that are in registers throughout.
    """
    threads = 32 * GROUP_WARPS
    sums = sum(sizes) + kept // 4
    for programs in range(_MOST_PROGRAMS, 2, -1):
        each = _REGISTERS // (programs * threads) // _UNIT * _UNIT
        if sums // threads + _BESIDES_SUMS <= each:
            return each
    return None


def lanes(size: Expression, known: Mapping[Symbol, int]) -> int:
    """In how many lanes a dimension of a size is held."""
    return next_power_of_2(evaluated(size, known))
