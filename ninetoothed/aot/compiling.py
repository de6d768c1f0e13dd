"""Units of kernels, their variants compiled for every target: many at once, and what is equal once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from ninetoothed import plugins
from ninetoothed.aot.unit import Binaries, Unit, fixed_of
from ninetoothed.backends.base import Backend
from ninetoothed.errors import ArgumentError, DeviceError, near
from ninetoothed.kernels.ahead import Condition, Edition, Fixed, Image, Variant
from ninetoothed.kernels.definition import Definition, Specializations
from ninetoothed.records import dataclass
from ninetoothed.tuning.results import Entry

#: What is built for where nobody says: devices of these and all later ones of CUDA run it.
TARGETS = ("sm_80", "sm_90")


#: The name of a kernel's functions, the kernel, values of its constants.
Named = tuple[str, Specializations, dict[str, Any]]


@dataclass(frozen=True)
class _Plan:
    """A unit before anything is compiled.

    Attributes:
        by_target: what was chosen.
    """

    name: str
    kernel: Definition
    fixed: Fixed
    by_target: dict[str, tuple[Edition, ...]]


#: A variant's images, or why there are none.
_Compiled = Sequence[Image] | DeviceError


@dataclass(frozen=True)
class Guidance:
    """What configurations are chosen by, besides the estimate for a target.

    Attributes:
        found: what the tuner found on devices.
        device: the name of one, where a target has several.
    """

    found: Sequence[Entry] = ()
    device: str | None = None


UNGUIDED = Guidance()


def backend() -> Backend:
    """What compiles kernels ahead of time."""
    return plugins.backend_named("triton")


def checked_targets(targets: Sequence[str] | None) -> tuple[str, ...]:
    """The targets to build for, in the backend's order.

    Raises:
        ArgumentError: there is none of such a name.
    """
    known = backend().targets()
    if targets is None:
        variable = os.environ.get("NINETOOTHED_TARGETS", "")
        targets = [t.strip() for t in variable.split(",") if t.strip()] or TARGETS
    if not targets:
        raise ArgumentError(f"`build` needs at least one target. There are {', '.join(known)}.")
    for target in targets:
        if target not in known:
            raise ArgumentError(
                f"{target!r} is no target to build for. There are {', '.join(known)}."
                f"{near(target, known)}"
            )
    return tuple(target for target in known if target in targets)


def units(
    kernels: Sequence[Named],
    targets: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
    guidance: Guidance = UNGUIDED,
) -> list[Unit]:
    """Each kernel compiled for each target.

    Args:
        guidance: what configurations are chosen by.
        progress: called with how much is compiled, and of how much.

    Raises:
        DeviceError: the variant that assumes most, or the one that assumes nothing, needs more than a
            target has. Any other is left out there, and its calls take one that assumes less.
    """
    plans = [_planned(*named, targets, guidance) for named in kernels]
    first = _first_of_cuda(targets)
    wanted: dict[tuple[Any, str], Variant] = {}
    for plan in plans:
        for target, editions in plan.by_target.items():
            for variant in (v for edition in editions for v in edition.variants):
                wanted.setdefault((variant.work, target), variant)
    done = 0
    compiled: dict[tuple[Any, str], _Compiled] = {}

    def compile_one(key: tuple[Any, str]) -> tuple[tuple[Any, str], _Compiled]:
        _, target = key
        try:
            return key, backend().images(wanted[key], target, target == first)
        except DeviceError as error:
            return key, error

    # Triton's passes and LLVM work outside of Python's lock, and the assembler in a process of its own: an eighth
    # to a sixth of the work holds the lock, so that threads serve as processes would, which each import Triton.
    with ThreadPoolExecutor(_workers()) as pool:
        for key, images in pool.map(compile_one, wanted):
            compiled[key] = images
            done += 1
            if progress is not None:
                progress(done, len(wanted))
    return [_unit(plan, compiled) for plan in plans]


def fastest(kernels: Sequence[Named], target: str) -> Named:
    """The kernel that a target runs fastest by the estimate; of equals the first."""
    if len(kernels) == 1:
        return kernels[0]

    def seconds(given: Named) -> float:
        _, specializations, constants = given
        *_, edition = backend().editions(*fixed_of(specializations, constants), target)
        return edition.seconds

    return min(kernels, key=seconds)


def _workers() -> int:
    return max(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 1)


def _first_of_cuda(targets: Sequence[str]) -> str | None:
    return next((target for target in targets if target.startswith("sm_")), None)


def _planned(
    name: str,
    specializations: Specializations,
    given: dict[str, Any],
    targets: Sequence[str],
    guidance: Guidance,
) -> _Plan:
    kernel, fixed = fixed_of(specializations, given)
    by_target = {
        target: tuple(backend().editions(kernel, fixed, target, guidance.found, guidance.device))
        for target in targets
    }
    return _Plan(name, kernel, fixed, by_target)


def _unit(plan: _Plan, compiled: dict[tuple[Any, str], _Compiled]) -> Unit:
    editions: list[Edition] = []
    interfaces: list[Any] = []
    binaries: list[Binaries] = []
    for target, chosen in plan.by_target.items():
        for number, wanted in enumerate(chosen):
            edition, images = _fitting(wanted, [compiled[v.work, target] for v in wanted.variants])
            if edition.interface not in interfaces:
                editions.append(edition)
                interfaces.append(edition.interface)
            place = interfaces.index(edition.interface)
            # Each gives its binary, and text where it is asked for.
            for of_variants in zip(*images, strict=True):
                called, options = of_variants[0].target, (edition.num_warps, edition.num_stages)
                own = Binaries(called, place, *options, of_variants, number, edition.sizes)
                binaries.append(own)
    return Unit(plan.name, plan.kernel, plan.fixed, tuple(editions), tuple(binaries))


def _fitting(
    edition: Edition, compiled: Sequence[_Compiled]
) -> tuple[Edition, list[Sequence[Image]]]:
    """The edition with those variants that a target has room for, and their images."""
    kept: list[Variant] = []
    images: list[Sequence[Image]] = []
    added: tuple[Condition, ...] = ()
    for variant, found in zip(reversed(edition.variants), reversed(compiled), strict=True):
        added += variant.added
        if isinstance(found, DeviceError):
            if variant in (edition.variants[0], edition.variants[-1]):
                raise found
            continue
        kept.append(replace(variant, added=added))
        images.append(found)
        added = ()
    return replace(edition, variants=tuple(reversed(kept))), images[::-1]
