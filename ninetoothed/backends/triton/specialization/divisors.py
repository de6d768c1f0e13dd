"""What sizes, strides and addresses are multiples of: how many elements one access may move.

Of its own accord Triton asks whether an argument is a multiple of 16. Rows of 1000 elements of 16 bits
begin at multiples of 16 bytes too, and it takes them by vectors where it is told that 1000 is a multiple
of 8. Smaller divisors than 16 are told of those numbers alone that say where contiguous elements begin
and end: for each further class of a number there may be a compiled kernel more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ninetoothed.backends.base import Argument
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.tensor import Tensor

#: The widest access has so many bytes, and at most as many elements.
MOST = 16

#: The least that an asynchronous copy to shared memory takes, in bytes.
LEAST_COPY = 4


def divisor(number: int) -> int:
    """The largest power of two up to 16 that a number is a multiple of."""
    return math.gcd(number, MOST)


def deciding(
    source: Tensor, offset: Symbol, environment: Mapping[Symbol, int], is_masked: bool = True
) -> frozenset[Symbol]:
    """The numbers that say where a tensor's contiguous elements begin and end.

    These are what its offsets are computed from, and the size of what is contiguous: a mask's end.

    Args:
        is_masked: whether there is a mask.
    """
    found = {leaf for leaf in offset.leaves() if leaf in environment}
    if not is_masked:
        return frozenset(found)
    for size, stride in zip(source.shape, source.strides, strict=True):
        if environment[as_symbol(stride)] == 1:
            found |= {leaf for leaf in as_symbol(size).leaves() if leaf in environment}
    return frozenset(found)


def of_parameters(kernel: Definition, environment: Mapping[Symbol, int]) -> frozenset[Symbol]:
    """The numbers that are deciding for some tensor of a kernel."""
    accesses = kernel.arrangement.accesses
    return frozenset().union(
        *(
            deciding(p.source, accesses[p.name].offset, environment)
            for p in kernel.tensor_parameters
        )
    )


def width_of(argument: Argument) -> int:
    """The bytes that one access to contiguous elements may move, as far as it makes a difference.

    16, or 4 where it is less and may be copied in the background, or 1.
    """
    steps = [
        size if stride == 1 else stride for size, stride in zip(argument.shape, argument.strides)
    ]
    bytes_each = [step * argument.dtype.itemsize for step in steps]
    width = math.gcd(argument.alignment, *bytes_each) if 1 in argument.strides else 1
    return next(least for least in (MOST, LEAST_COPY, 1) if width >= least)
