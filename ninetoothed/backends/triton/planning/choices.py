"""Which options are tried for a call, and what a person has fixed of them.

`$NINETOOTHED_OPTIONS` fixes some of them, as in ``NINETOOTHED_OPTIONS=swizzle=1``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping

from ninetoothed.backends.base import Call
from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Device, Environment, Option
from ninetoothed.backends.triton.printers.gluon.translation import needs_of
from ninetoothed.backends.triton.translation import decided
from ninetoothed.errors import NineToothedError, near
from ninetoothed.kernels.definition import Definition

_VARIABLE = "NINETOOTHED_OPTIONS"


def _offered() -> list[Option]:
    return [option for option in options.OPTIONS if option.is_offered]


def defaults() -> dict[str, int]:
    """Each option's value where nothing is chosen."""
    return {option.name: option.default for option in _offered()}


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
    known = defaults()
    plain = functools.cache(functools.partial(Lowered.of, kernel, call, environment))

    def lower(chosen: Mapping[str, int]) -> Lowered:
        return decided(plain(), case, chosen)

    case = Case(kernel, call, environment, device, lower, needs_of, lambda: versions.has_gluon())
    found: list[dict[str, int]] = [{}]
    for option in _offered():
        name, extended = option.name, []
        for values in found:
            chosen = Chosen(values, known)
            possible = [option.default]
            if option.serves(device):
                possible += option.values(case, chosen)
            if option.is_always_on and name not in given:
                possible = possible[1:] or possible
            if name in given:
                # What does not apply to this kernel stays as it is.
                value = given[name]
                is_right = value in possible or option.is_right(case, chosen, value)
                possible = [value if is_right else option.default]
            extended += [{**values, name: value} for value in dict.fromkeys(possible)]
        found = extended
    for name, value in given.items():
        # Where another choice stood in the way, that one is not tried.
        found = [values for values in found if values.get(name) == value] or found
    return [tuple(sorted((n, v) for n, v in values.items() if v != known[n])) for values in found]


def are_right(
    kernel: Definition,
    call: Call,
    environment: Environment,
    device: Device,
    chosen: tuple[tuple[str, int], ...],
) -> bool:
    """Whether options that were chosen for another call may be chosen for this one."""
    known = defaults()
    given = {**known, **dict(chosen)}
    if given.keys() != known.keys():
        # Another version's.
        return False
    return choices(kernel, call, environment, device, given) == [chosen]


def fixed() -> dict[str, int]:
    """What ``$NINETOOTHED_OPTIONS`` fixes."""
    found, names = {}, [option.name for option in _offered()]
    for entry in filter(None, os.environ.get(_VARIABLE, "").replace(" ", "").split(",")):
        name, _, value = entry.partition("=")
        if name not in names or not value.isdigit():
            raise NineToothedError(
                f"{_VARIABLE}: {entry!r} is no option. Give NAME=NUMBER, separated by commas, of "
                f"{', '.join(names)}.{near(name, names)}"
            )
        found[name] = int(value)
    return found
