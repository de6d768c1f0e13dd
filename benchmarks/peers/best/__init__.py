"""The ten tasks in the best hand-written Triton we know: what our generated code is to stand beside.

No masks (every launcher takes sizes that its blocks divide, and raises `NotImplementedError` for
others), tensor descriptors, persistent grids, a split reduction for the convolution, several heads
a program for the rotary embedding, hints to the caches. Where several ways exist, the quickest is
taken for the arguments at hand.
"""

import triton

from benchmarks.peers.best.attention import sdpa
from benchmarks.peers.best.convolution import conv2d
from benchmarks.peers.best.elements import add, add_kernel, silu, silu_kernel
from benchmarks.peers.best.hints import MARKS
from benchmarks.peers.best.products import addmm, bmm, mm
from benchmarks.peers.best.rope import rope, rope_, rope_kernel
from benchmarks.peers.best.rows import rms_norm, rms_norm_kernel, softmax, softmax_kernel


def mark_results() -> None:
    """From now on kernels may mark results to stay in the second-level cache."""
    for kernel in (add_kernel, silu_kernel, softmax_kernel, rms_norm_kernel, rope_kernel):
        kernel.configs = kernel.configs + [
            triton.Config({**each.kwargs, "KEEP": mark}, num_warps=each.num_warps)
            for each in kernel.configs
            if each.kwargs["KEEP"] == ""
            for mark in MARKS
        ]


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
    "mark_results",
]
