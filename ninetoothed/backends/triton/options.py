"""What the generator may do beyond the plain translation of a kernel: the options of a configuration.

Each option is an integer, or 0 and 1 for off and on. It says where it applies; what is applicable
joins the space that is searched, so that an option is on where it was measured to pay.
`$NINETOOTHED_OPTIONS` fixes some of them, as in ``NINETOOTHED_OPTIONS=group=1``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninetoothed.backends.triton import order, programs
from ninetoothed.errors import NineToothedError, near
from ninetoothed.expr import Symbol

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compile import Target
    from ninetoothed.costs import DeviceLimits
    from ninetoothed.kernel import Kernel
    from ninetoothed.tuning import Config

_VARIABLE = "NINETOOTHED_OPTIONS"


@dataclass(frozen=True)
class Options:
    """The options of one configuration; each default is the plain translation.

    Attributes:
        group: rows of tiles in a group of programs, where programs are grouped (`order`).
        programs: elements of the grid that one program handles (`programs`).
    """

    group: int = order.GROUP
    programs: int = 1

    @classmethod
    def of(cls, config: Config | None) -> Options:
        """The options of a configuration."""
        return cls(**dict(config.options)) if config is not None else cls()


#: What a kernel's values are known to be in one call under one configuration's meta symbols.
Environment = Mapping[Symbol, int]


def _group(
    kernel: Kernel, call: Call, environment: Environment, chosen: Options
) -> tuple[int, ...]:
    return (1,) if order.is_grouped(kernel.arrangement) else ()


def _programs(
    kernel: Kernel, call: Call, environment: Environment, chosen: Options
) -> tuple[int, ...]:
    # Other options do not know a program that is several.
    is_plain = chosen == Options(programs=chosen.programs)
    return programs.choices(kernel, call, environment) if is_plain else ()


#: For each option, the values worth trying besides its default, the most promising first. They are
#: asked in this order, each with the options that were chosen before it.
_VALUES: dict[str, Callable[[Kernel, Call, Environment, Options], Sequence[int]]] = {
    "group": _group,
    "programs": _programs,
}

#: Values that are right too, though they are not worth trying: a person may fix them.
_ALSO_RIGHT: dict[str, Callable[[Kernel, Environment, int], bool]] = {
    "programs": programs.is_possible,
}

#: The options that only some devices have, and which those are.
_SERVED_BY: dict[str, Callable[[DeviceLimits | Target | None], bool]] = {}


def choices(
    kernel: Kernel,
    call: Call,
    environment: Environment,
    device: DeviceLimits | Target | None = None,
) -> list[tuple[tuple[str, int], ...]]:
    """The options to try, as `Config.options`: what differs from the defaults.

    Args:
        device: what the kernel will run on; where it is not known, no option that only some devices
            have is tried.
    """
    fixed = _fixed()
    found: list[dict[str, int]] = [{}]
    for name, values in _VALUES.items():
        default = getattr(Options, name)
        is_served = name not in _SERVED_BY or _SERVED_BY[name](device)
        extended = []
        for chosen in found:
            possible = [default]
            if is_served:
                possible += values(kernel, call, environment, Options(**chosen))
            if name in fixed:
                # What does not apply to this kernel stays as it is.
                is_right = fixed[name] in possible or (
                    name in _ALSO_RIGHT and _ALSO_RIGHT[name](kernel, environment, fixed[name])
                )
                possible = [fixed[name] if is_right else default]
            extended += [{**chosen, name: value} for value in dict.fromkeys(possible)]
        found = extended
    return [
        tuple(sorted((n, v) for n, v in chosen.items() if v != getattr(Options, n)))
        for chosen in found
    ]


def _fixed() -> dict[str, int]:
    """What ``$NINETOOTHED_OPTIONS`` fixes."""
    fixed = {}
    for entry in filter(None, os.environ.get(_VARIABLE, "").replace(" ", "").split(",")):
        name, _, value = entry.partition("=")
        if name not in _VALUES or not value.isdigit():
            raise NineToothedError(
                f"{_VARIABLE}: {entry!r} is no option. Give NAME=NUMBER, separated by commas, of "
                f"{', '.join(_VALUES)}.{near(name, list(_VALUES))}"
            )
        fixed[name] = int(value)
    return fixed
