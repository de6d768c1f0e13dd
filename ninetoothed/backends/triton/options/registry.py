"""What the generator may do beyond the plain translation of a kernel: the options of a configuration.

Each option is an integer, or 0 and 1 for off and on. It says where it applies; what is applicable
joins the space that is searched, so that an option is on where it was measured to pay.
`$NINETOOTHED_OPTIONS` fixes some of them, as in ``NINETOOTHED_OPTIONS=group=1``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Union

from ninetoothed import threads
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.options import cooperative_reduction as shares
from ninetoothed.backends.triton.options import dependent_launch as overlap
from ninetoothed.backends.triton.options import (
    descriptors,
    partial_reduction_sinking,
    persistent,
    swizzle,
    tma_pipeline,
)
from ninetoothed.backends.triton.options import loop_splitting as peel
from ninetoothed.backends.triton.options import program_coarsening as programs
from ninetoothed.backends.triton.options import register_prefetch as ahead
from ninetoothed.backends.triton.options import split_k as split
from ninetoothed.backends.triton.specialization.call_facts import Variant, variant_of
from ninetoothed.errors import NineToothedError, near
from ninetoothed.symbols.expr import Symbol, as_symbol

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.compile import Target
    from ninetoothed.backends.triton.options.descriptors import Box
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.estimate import DeviceLimits
    from ninetoothed.tuning.space import Config

_VARIABLE = "NINETOOTHED_OPTIONS"


@dataclass(frozen=True)
class Options:
    """The options of one configuration; each default is the plain translation.

    Attributes:
        group: rows of tiles in a group of programs, where programs are grouped (`order`).
        programs: elements of the grid that one program handles (`programs`).
        peel: whether loops are split where masks and comparisons begin to matter (`peel`).
        descriptors: whether products' tiles are moved by descriptor (`descriptors`).
        persistent: whether programs stay and handle one element after another (`persistent`).
        defer: whether sums that a loop carries are completed after it (`deferred_sums`).
        hints: whether loads say what the second-level cache should keep (`hints`); on, unless fixed.
        split: how many programs share the reduction of one element of the grid (`split`).
        shares: whether the parts wait for one another and share what follows the loop, 1 + the
            dimension along which (`shares`).
        ahead: whether a loop's tiles that the compiler cannot load ahead are (`ahead`).
        overlap: whether programs wait for the kernel before, instead of the device (`overlap`).
        ring: buffers of each ring that programs load a loop's tiles to themselves (`rings`).
    """

    group: int = swizzle.GROUP
    programs: int = 1
    peel: int = 0
    descriptors: int = 0
    defer: int = 0
    hints: int = 1
    persistent: int = 0
    split: int = 1
    shares: int = 0
    ahead: int = 0
    overlap: int = 0
    ring: int = 0

    @classmethod
    def of(cls, config: Config | None) -> Options:
        """The options of a configuration."""
        return cls(**dict(config.options)) if config is not None else cls()


#: What a kernel's values are known to be in one call under one configuration's meta symbols.
Environment = Mapping[Symbol, int]

#: What a kernel will run on; None where that is not known.
Device = Union["DeviceLimits", "Target", None]


@dataclass(frozen=True)
class _Case:
    """What options are asked about; what several of them want to know is found out once."""

    kernel: Definition
    call: Call
    environment: Environment
    device: Device

    @threads.cached_property
    def grid(self) -> tuple[int, ...]:
        return tuple(int(as_symbol(size).evaluate(self.environment)) for size in self.kernel.grid)

    @threads.cached_property
    def variant(self) -> Variant:
        return variant_of(self.kernel, self.environment, self.grid)

    @threads.cached_property
    def boxes(self) -> dict[str, Box]:
        return dict(descriptors.boxes(self.kernel, self.call, self.environment))

    @threads.cached_property
    def is_waiting(self) -> bool:
        return ahead.is_worth_it(self.kernel, self.call, self.environment)


def _group(case: _Case, chosen: Options) -> tuple[int, ...]:
    if not swizzle.is_grouped(case.kernel.arrangement):
        return ()
    if chosen.persistent:
        return (4,)
    return (1,) if chosen == Options() else ()


def _peel(case: _Case, chosen: Options) -> tuple[int, ...]:
    if not peel.counted_loops(case.kernel):
        return ()
    is_worth_it = peel.is_worth_it(case.kernel, case.variant, case.call.constants)
    return (1,) if is_worth_it else ()


def _defer(case: _Case, chosen: Options) -> tuple[int, ...]:
    return (1,) if partial_reduction_sinking.applies(case.kernel) else ()


def _is_cuda(device: Device) -> bool:
    return device is not None and device.backend == "cuda"


def _descriptors(case: _Case, chosen: Options) -> tuple[int, ...]:
    loops = {name: getattr(chosen, name) for name in ("peel", "defer", "hints")}
    if chosen != Options(**loops):
        return ()
    # Loads by descriptor have no masks: what is left to split a loop for are comparisons.
    if chosen.peel and not peel.compares(case.kernel, case.variant, case.call.constants):
        return ()
    return (1,) if case.boxes else ()


def _persistent(case: _Case, chosen: Options) -> tuple[int, ...]:
    if chosen != Options(descriptors=1, hints=chosen.hints):
        return ()
    if math.prod(case.grid) <= getattr(case.device, "multiprocessors", 0):
        # Nobody has a second element to go on with.
        return ()
    return (1,) if persistent.is_possible(case.kernel, case.boxes) else ()


def _ring(case: _Case, chosen: Options) -> tuple[int, ...]:
    if not chosen.descriptors or chosen.persistent or not tma_pipeline.is_worth_it(case.kernel):
        return ()
    is_possible = tma_pipeline.is_possible(
        case.kernel, case.call, case.environment, case.variant, replace(chosen, ring=1)
    )
    # Asked last: to tell takes longer than all else here.
    return tma_pipeline.SIZES if is_possible and versions.has_gluon() else ()


def _has_plain_loop(chosen: Options) -> bool:
    """Whether no option chosen so far changes a loop or where its loads stand."""
    return not (chosen.peel or chosen.defer or chosen.descriptors)


def _split(case: _Case, chosen: Options) -> tuple[int, ...]:
    if not _has_plain_loop(chosen):
        return ()
    multiprocessors = getattr(case.device, "multiprocessors", 0)
    return split.choices(case.kernel, case.environment, multiprocessors)


def _shares(case: _Case, chosen: Options) -> tuple[int, ...]:
    if descriptors.serves(case.device) and shares.loaded(case.kernel) <= case.boxes.keys():
        # Where all tiles may come by descriptor, a loop need not be cut to be as quick.
        return ()
    multiprocessors = getattr(case.device, "multiprocessors", 0)
    return shares.choices(case.kernel, case.environment, chosen.split, multiprocessors)


def _ahead(case: _Case, chosen: Options) -> tuple[int, ...]:
    if not _has_plain_loop(chosen):
        return ()
    return (1,) if case.is_waiting else ()


def _programs(case: _Case, chosen: Options) -> tuple[int, ...]:
    # Other options do not know a program that is several.
    is_plain = chosen == Options(programs=chosen.programs)
    return programs.choices(case.kernel, case.call, case.environment) if is_plain else ()


def _overlap(case: _Case, chosen: Options) -> tuple[int, ...]:
    return (1,)


def _nothing(case: _Case, chosen: Options) -> tuple[int, ...]:
    return ()


#: For each option, the values worth trying besides its default, the most promising first. They are
#: asked in this order, each with the options that were chosen before it.
_VALUES: dict[str, Callable[[_Case, Options], Sequence[int]]] = {
    "peel": _peel,
    "defer": _defer,
    "hints": _nothing,
    "descriptors": _descriptors,
    "persistent": _persistent,
    "ring": _ring,
    "split": _split,
    "shares": _shares,
    "ahead": _ahead,
    "programs": _programs,
    "group": _group,
    "overlap": _overlap,
}


def _hints_are_right(case: _Case, chosen: Options, value: int) -> bool:
    return value in (0, 1)


def _programs_are_right(case: _Case, chosen: Options, value: int) -> bool:
    return programs.is_possible(case.kernel, case.environment, value)


def _split_is_right(case: _Case, chosen: Options, value: int) -> bool:
    return _has_plain_loop(chosen) and split.is_possible(case.kernel, case.environment, value)


def _shares_are_right(case: _Case, chosen: Options, value: int) -> bool:
    return shares.is_possible(case.kernel, case.environment, chosen.split, value)


def _ahead_is_right(case: _Case, chosen: Options, value: int) -> bool:
    return _has_plain_loop(chosen) and ahead.is_possible(case.kernel, case.environment, value)


#: Values that are right too with those options, though they are not worth trying: a person may fix
#: them, and what was found for another call may be used.
_ALSO_RIGHT: dict[str, Callable[[_Case, Options, int], bool]] = {
    "hints": _hints_are_right,
    "programs": _programs_are_right,
    "split": _split_is_right,
    "shares": _shares_are_right,
    "ahead": _ahead_is_right,
}


#: Options that paid wherever they were measured: where they apply they are on, unless fixed, or
#: their default is itself among the values to try.
_ALWAYS = frozenset({"defer", "overlap", "shares"})

#: The options that only some devices have, and which those are.
_SERVED_BY: dict[str, Callable[[Device], bool]] = {
    "defer": _is_cuda,
    "descriptors": descriptors.serves,
    "overlap": overlap.serves,
    "ring": tma_pipeline.serves,
    "shares": _is_cuda,
}


def choices(
    kernel: Definition,
    call: Call,
    environment: Environment,
    device: Device = None,
    given: Mapping[str, int] | None = None,
) -> list[tuple[tuple[str, int], ...]]:
    """The options to try, as `Config.options`: what differs from the defaults.

    Args:
        device: what the kernel will run on; where it is not known, no option that only some devices
            have is tried.
        given: options that are to have a value where that is right, and else their default; what
            ``$NINETOOTHED_OPTIONS`` fixes, where nothing is said.
    """
    given = fixed() if given is None else given
    case = _Case(kernel, call, environment, device)
    found: list[dict[str, int]] = [{}]
    for name, values in _VALUES.items():
        default = getattr(Options, name)
        is_served = name not in _SERVED_BY or _SERVED_BY[name](device)
        extended = []
        for chosen in found:
            possible = [default]
            if is_served:
                possible += values(case, Options(**chosen))
            if name in _ALWAYS and name not in given:
                possible = possible[1:] or possible
            if name in given:
                # What does not apply to this kernel stays as it is.
                is_right = given[name] in possible or (
                    name in _ALSO_RIGHT and _ALSO_RIGHT[name](case, Options(**chosen), given[name])
                )
                possible = [given[name] if is_right else default]
            extended += [{**chosen, name: value} for value in dict.fromkeys(possible)]
        found = extended
    for name, value in given.items():
        # Where another choice stood in the way, that one is not tried.
        found = [chosen for chosen in found if chosen.get(name) == value] or found
    return [
        tuple(sorted((n, v) for n, v in chosen.items() if v != getattr(Options, n)))
        for chosen in found
    ]


def are_right(
    kernel: Definition,
    call: Call,
    environment: Environment,
    device: Device,
    chosen: tuple[tuple[str, int], ...],
) -> bool:
    """Whether options that were chosen for another call may be chosen for this one."""
    given = {name: getattr(Options, name) for name in _VALUES} | dict(chosen)
    if given.keys() != _VALUES.keys():
        # Another version's.
        return False
    return choices(kernel, call, environment, device, given) == [chosen]


def fixed() -> dict[str, int]:
    """What ``$NINETOOTHED_OPTIONS`` fixes."""
    found = {}
    for entry in filter(None, os.environ.get(_VARIABLE, "").replace(" ", "").split(",")):
        name, _, value = entry.partition("=")
        if name not in _VALUES or not value.isdigit():
            raise NineToothedError(
                f"{_VARIABLE}: {entry!r} is no option. Give NAME=NUMBER, separated by commas, of "
                f"{', '.join(_VALUES)}.{near(name, list(_VALUES))}"
            )
        found[name] = int(value)
    return found
