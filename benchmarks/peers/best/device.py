"""What the kernels need of sizes, and of the device."""

from __future__ import annotations

import functools

import torch


def need(condition, what):
    if not condition:
        raise NotImplementedError(f"this kernel needs {what}")


@functools.cache
def num_processors():
    return torch.cuda.get_device_properties("cuda").multi_processor_count
