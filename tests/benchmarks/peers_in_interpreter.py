"""Runs the hand-written Triton kernels in Triton's interpreter, on the examples' own cases.

A program of its own, since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import dataclasses
import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton

_autotune = triton.autotune
# The interpreter has no times to compare: every kernel takes its first configuration.
triton.autotune = lambda configs, **options: _autotune(configs[:1], **options)

from benchmarks import triton_kernels  # noqa: E402
from tests.examples.cases import BY_NAME, Maker  # noqa: E402
from tests.examples.checking import check  # noqa: E402

PEERS = {
    "add": triton_kernels.add,
    "silu": triton_kernels.silu,
    "softmax": triton_kernels.softmax,
    "rms_norm": triton_kernels.rms_norm,
    "rope": triton_kernels.rope,
    "rope of halves": triton_kernels.rope,
    "mm": triton_kernels.mm,
    "addmm": triton_kernels.addmm,
    "bmm": triton_kernels.bmm,
    "conv2d": triton_kernels.conv2d,
    "sdpa": triton_kernels.sdpa,
    "causal sdpa": triton_kernels.sdpa,
}


def failures() -> dict[str, str]:
    """What is wrong, by the name of the case."""
    found = {}

    for name, function in PEERS.items():
        BY_NAME[name] = dataclasses.replace(BY_NAME[name], function=function)
        for dtype in (torch.float32, torch.float16):
            try:
                check(name, BY_NAME[name].small["odd"], Maker(dtype))
            except Exception as error:
                found[f"{name}, {dtype}"] = f"{type(error).__name__}: {error}"

    return found


if __name__ == "__main__":
    print(json.dumps(failures()))
