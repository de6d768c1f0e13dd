"""Arithmetic on sizes and positions that 32 bits do not hold, at least on the way.

A size is an int32 wherever one holds it, and so is a position; what is computed of them may be more, as
``(n + 1) // 2`` is on the way where ``n`` is ``2**31 - 1``. Where that is so in a call, its numbers are
among the facts, and an operation that needs 64 bits is emitted with them. Elsewhere nothing is asked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Set

from ninetoothed.backends.triton.specialization import offsets
from ninetoothed.backends.triton.specialization.selections import all_accesses
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.symbols.simplify import product
from ninetoothed.tensors.access import reads_sequences
from ninetoothed.tensors.arrange import Parameter

#: Leaves, with the least and the greatest value of each.
Magnitudes = frozenset[tuple[Symbol, Interval]]


#: What is right in 32 bits wherever its result fits, though a part of it may not.
RING = ("+", "-", "*", "neg")

#: What gives truth values.
_COMPARISONS = ("<", "<=", ">", ">=")


def magnitudes(
    kernel: Definition, adjacent: frozenset[Symbol], ranges: Mapping[Symbol, Interval]
) -> Magnitudes:
    """These ranges, where some arithmetic on them does not fit 32 bits; none where all does.

    Args:
        adjacent: the strides that are written as products (`offsets`).
        ranges: the values of all sizes, strides, compile-time constants and positions.
    """
    known = dict(ranges)
    for operation in operations(kernel, adjacent):
        found = known[operation] = interval(operation, known)
        if not _is_narrow(found):
            return frozenset(ranges.items())
    return frozenset()


def within(
    found: Mapping[Symbol, Interval],
    parameter: Parameter,
    kernel: Definition,
    environment: Mapping[Symbol, int],
) -> Iterator[tuple[Symbol, Interval]]:
    """The values of the positions in a parameter's tiles, and in the parts of them that the program names.

    Args:
        found: what is known of them. A selection of which it is nothing is asked to be in its level.
    """
    for access in all_accesses(kernel)[parameter.name]:
        for leaf in (*access.programs, *access.selections, *access.coordinates):
            bounds = found.get(leaf)
            if bounds is None or math.inf in (-bounds[0], bounds[1]):
                extent = leaf.leaf.extent
                if extent is None:
                    continue
                bounds = 0, max(evaluated(extent, environment) - 1, 0)
            yield leaf, bounds


@analysis
def operations(kernel: Definition, adjacent: frozenset[Symbol] = frozenset()) -> tuple[Symbol, ...]:
    """The operations that the running kernel does to find elements, those on others' results after them."""
    found: dict[Symbol, None] = {}

    def add(node: Symbol) -> None:
        if node in found or node.op in ("leaf", "const") or is_constant_symbol(node):
            return
        for operand in node.operands:
            if isinstance(operand, Symbol):
                add(operand)
        # Of the packed values of jagged tensors all is computed in 64 bits anyway.
        if node.op not in _COMPARISONS and not reads_sequences(node):
            found[node] = None

    for dim in range(1, len(kernel.grid)):
        add(as_symbol(kernel.grid[dim]))
        add(as_symbol(product(kernel.grid[dim:])))
    for parameter in kernel.tensor_parameters:
        for access in all_accesses(kernel).get(parameter.name, ()):
            offset = offsets.collapsed(parameter.source, access.offset, adjacent)
            for root in itertools.chain(access.indices, access.conditions, (offset,)):
                add(root)
    return tuple(found)


class Widths:
    """Which operations need 64 bits that their operands do not have.

    Args:
        known: the values of leaves; none where all arithmetic fits.
        is_wide: whether the program's position has 64 bits, and selections that are no numbers.
    """

    def __init__(self, kernel: Definition, known: Magnitudes, is_wide: bool) -> None:
        self._known = dict(known)
        self._wide: Set[Symbol] = frozenset()
        if known and is_wide:
            accesses = kernel.arrangement.accesses.values()
            selections = {each for access in accesses for each in access.selections}
            self._wide = {*kernel.arrangement.programs} | selections

    def must_widen(self, operation: Symbol, chosen: Mapping[Symbol, int]) -> bool:
        """Whether an operand is to be made one of 64 bits.

        Args:
            chosen: the selections that are numbers.
        """
        if not self._known or operation.op in _COMPARISONS:
            return False
        known = self._known | {leaf: (value, value) for leaf, value in chosen.items()}
        return self._overflows(operation, known, self._wide - chosen.keys())

    def is_large(self, expression: Symbol) -> bool:
        """Whether a value may be one that no int32 holds."""
        return bool(self._known) and not _is_narrow(interval(expression, self._known))

    def _overflows(
        self, operation: Symbol, known: Mapping[Symbol, Interval], wide: Set[Symbol]
    ) -> bool:
        if _is_narrow(interval(operation, known)):
            return False
        operands = (operand for operand in operation.operands if isinstance(operand, Symbol))
        return not any(self._is_wide(operand, known, wide) for operand in operands)

    def _is_wide(self, node: Symbol, known: Mapping[Symbol, Interval], wide: Set[Symbol]) -> bool:
        """Whether what is emitted for a node has 64 bits."""
        if reads_sequences(node) or not _is_narrow(interval(node, known)):
            return True
        if node.op in ("leaf", "const"):
            return node in wide
        operands = (operand for operand in node.operands if isinstance(operand, Symbol))
        return node.op != "padded" and any(self._is_wide(each, known, wide) for each in operands)


def _is_narrow(bounds: Interval) -> bool:
    return bounds[0] >= -LARGEST_INT32 and bounds[1] <= LARGEST_INT32
