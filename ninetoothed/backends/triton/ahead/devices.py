"""What devices have, for choices that are made with none at hand: one of each architecture, by its data sheet."""

from __future__ import annotations

from dataclasses import replace

from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.errors import DeviceError, near
from ninetoothed.tuning.estimate import DeviceLimits

_KIB, _MIB = 1 << 10, 1 << 20


def _cuda(
    name: str, arch: int, count: int, shared: int, l2: float, bandwidth: float, clock: float
) -> DeviceLimits:
    """Shared memory in KiB, the second-level cache in MiB, bandwidth in TB/s, the clock in GHz."""
    return DeviceLimits(
        name,
        "cuda",
        arch,
        32,
        count,
        (shared - 1) * _KIB,
        shared * _KIB,
        threads_per_multiprocessor=2048 if arch in (80, 90, 100) else 1536,
        l2_bytes=int(l2 * _MIB),
        memory_bandwidth=bandwidth * 1e12,
        clock_hz=clock * 1e9,
    )


def _hip(
    name: str, arch: str, count: int, l2: float, bandwidth: float, clock: float
) -> DeviceLimits:
    return replace(
        _cuda(name, 0, count, 65, l2, bandwidth, clock),
        backend="hip",
        arch=arch,
        warp_size=64,
        shared_memory_per_multiprocessor=64 * _KIB,
        registers_per_multiprocessor=131072,
        threads_per_multiprocessor=2048,
    )


#: By target. NVIDIA's tuning guides and white papers of each architecture; AMD's CDNA white papers.
DEVICES = {
    "sm_80": _cuda("NVIDIA A100", 80, 108, 164, 40, 1.555, 1.41),
    "sm_86": _cuda("NVIDIA A40", 86, 84, 100, 6, 0.696, 1.74),
    "sm_89": _cuda("NVIDIA L40S", 89, 142, 100, 96, 0.864, 2.52),
    "sm_90": _cuda("NVIDIA H100", 90, 132, 228, 50, 3.35, 1.98),
    "sm_100": _cuda("NVIDIA B200", 100, 148, 228, 126, 8.0, 1.97),
    "sm_120": _cuda("NVIDIA RTX 5090", 120, 170, 100, 96, 1.792, 2.41),
    "gfx90a": _hip("AMD Instinct MI250X", "gfx90a", 110, 8, 1.6, 1.7),
    "gfx942": _hip("AMD Instinct MI300X", "gfx942", 304, 32, 5.3, 2.1),
}


#: Further devices, where one of an architecture is much unlike another.
FURTHER = (_cuda("NVIDIA H200", 90, 132, 228, 50, 4.8, 1.98),)


def limits_of(target: str, device: str | None = None) -> DeviceLimits:
    """What a device of a target has: the one that is named, if it is one of the target's, else the usual one.

    Raises:
        DeviceError: there is no such target, or no device of that name.
    """
    try:
        usual = DEVICES[target]
    except KeyError:
        raise DeviceError(
            f"{target!r} is no target to build for. There are {', '.join(DEVICES)}."
            f"{near(target, list(DEVICES))}"
        ) from None
    if device is None:
        return usual
    named = device_named(device)
    if named is None:
        known = [each.name for each in (*DEVICES.values(), *FURTHER)]
        raise DeviceError(
            f"of {device!r} nothing is known here. There are {', '.join(known)}.{near(device, known)}"
        )
    return named if named.arch == usual.arch and named.backend == usual.backend else usual


def device_named(name: str) -> DeviceLimits | None:
    """The device with whose name another begins, as ``"NVIDIA H100 80GB HBM3"`` with ``"NVIDIA H100"``,
    or ends, as ``"NVIDIA H100"`` with ``"H100"``; None where it is not known."""
    return next(
        (
            each
            for each in (*DEVICES.values(), *FURTHER)
            if f"{name} ".startswith(f"{each.name} ") or each.name.endswith(f" {name}")
        ),
        None,
    )


def target_of(target: str) -> Target:
    """What Triton's compiler is told of a target; `DeviceError` where there is none of that name."""
    limits = limits_of(target)
    return Target(limits.backend, limits.arch, limits.warp_size)
