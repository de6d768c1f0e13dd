"""Philox 4x32-10 in PyTorch, written from the paper: the oracle of the dropout tests.

Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.3. The words are 32
bits of 64-bit integers: a product of two keeps its lower 64 bits, whatever its sign.
"""

from __future__ import annotations

import torch

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF


def random_bits(seed: int, counters: torch.Tensor) -> torch.Tensor:
    """The first of the four 32-bit words for each counter, an int64."""
    words = [counters & _MASK, _high(counters)]
    words += [torch.zeros_like(counters)] * 2
    keys = [seed & _MASK, (seed >> 32) & _MASK]

    for _ in range(10):
        first = words[0] * _MULTIPLIERS[0]
        third = words[2] * _MULTIPLIERS[1]
        words = [
            _high(third) ^ words[1] ^ keys[0],
            third & _MASK,
            _high(first) ^ words[3] ^ keys[1],
            first & _MASK,
        ]
        keys = [(key + step) & _MASK for key, step in zip(keys, _WEYL, strict=True)]

    return words[0]


def _high(values: torch.Tensor) -> torch.Tensor:
    """The upper 32 bits, which a shift alone would fill with the sign."""
    return (values >> 32) & _MASK


def uniform(seed: int, counters: torch.Tensor) -> torch.Tensor:
    """A float32 in [0, 1) for each counter, by Triton's conversion."""
    bits = random_bits(seed, counters)
    # As a signed number of 32 bits; a negative one is inverted.
    magnitudes = torch.where(bits < 2**31, bits, _MASK - bits)

    return magnitudes.to(torch.float32) * 4.6566127342e-10
