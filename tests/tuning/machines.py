"""Limits of devices that the tests estimate for."""

from __future__ import annotations

from dataclasses import replace

from ninetoothed.tuning.estimate import DeviceLimits

H200 = DeviceLimits(
    name="NVIDIA H200",
    backend="cuda",
    arch=90,
    warp_size=32,
    multiprocessors=132,
    shared_memory_per_block=232448,
    shared_memory_per_multiprocessor=233472,
    l2_bytes=62914560,
    memory_bandwidth=4.9e12,
    clock_hz=1.98e9,
)

H100 = replace(H200, name="NVIDIA H100 80GB HBM3", l2_bytes=52428800, memory_bandwidth=3.352e12)
