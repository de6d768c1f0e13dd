"""Philox 4x32-10 in NumPy, written from the paper: the oracle of the dropout tests.

Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3.
"""

from __future__ import annotations

import numpy

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = numpy.uint64(0xFFFFFFFF)


def random_bits(seed: int, counters: numpy.ndarray) -> numpy.ndarray:
    """The first of the four 32-bit words for each counter."""
    words = [
        counters.astype(numpy.uint64) & _MASK,
        counters.astype(numpy.uint64) >> numpy.uint64(32),
    ]
    words += [numpy.zeros_like(words[0])] * 2
    keys = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]

    for _ in range(10):
        first = words[0] * numpy.uint64(_MULTIPLIERS[0])
        third = words[2] * numpy.uint64(_MULTIPLIERS[1])
        words = [
            (third >> numpy.uint64(32)) ^ words[1] ^ numpy.uint64(keys[0]),
            third & _MASK,
            (first >> numpy.uint64(32)) ^ words[3] ^ numpy.uint64(keys[1]),
            first & _MASK,
        ]
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _WEYL, strict=True)]

    return words[0].astype(numpy.uint32)


def uniform(seed: int, counters: numpy.ndarray) -> numpy.ndarray:
    """A float32 in [0, 1) for each counter, by Triton's conversion."""
    bits = random_bits(seed, counters).view(numpy.int32)
    magnitudes = numpy.where(bits < 0, -bits - 1, bits)

    return magnitudes.astype(numpy.float32) * numpy.float32(4.6566127342e-10)
