"""The ten tasks in hand-written Triton, as its tutorials would have them: the peers of our kernels.

Masked pointers, a grouped order of the products' tiles, and a search over as many configurations
as a patient user would give `triton.autotune`. Each launcher takes contiguous tensors and returns a new one.
"""

from benchmarks.peers.idiomatic.attention import sdpa
from benchmarks.peers.idiomatic.elements import add, rms_norm, rope, rope_, silu, softmax
from benchmarks.peers.idiomatic.products import addmm, bmm, conv2d, mm

__all__ = [
    "add",
    "silu",
    "softmax",
    "rms_norm",
    "rope",
    "rope_",
    "mm",
    "addmm",
    "bmm",
    "conv2d",
    "sdpa",
]
