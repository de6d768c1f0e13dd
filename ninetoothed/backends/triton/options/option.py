"""What an option is: what the generator may do beyond the plain translation of a kernel.

An option is a file of this folder. It says where it applies and which values are worth trying, what it
decides (`apply`, from a `Lowered` to another), and what it changes in the estimate (`cost`). What is
applicable joins the space that is searched, so that an option is on where it was measured to pay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, Union

from ninetoothed import threads
from ninetoothed.backends.triton.specialization.call_facts import CallFacts
from ninetoothed.backends.triton.specialization.size_classes import facts_for
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, evaluated

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.backends.triton.ir.products import Needs
    from ninetoothed.backends.triton.specialization.target import Target
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.estimate import CostFeatures, DeviceLimits
    from ninetoothed.tuning.space import Config

#: What a kernel's values are known to be in one call under one configuration's meta symbols.
Environment = Mapping[Symbol, int]

#: What a kernel will run on; None where that is not known.
Device = Union["DeviceLimits", "Target", None]

_Answer = TypeVar("_Answer")


class Chosen(Mapping[str, int]):
    """The values of the options of one configuration by name; what is not chosen has its default.

    Args:
        values: what is chosen.
        defaults: of all options.
    """

    def __init__(self, values: Mapping[str, int], defaults: Mapping[str, int]) -> None:
        self._values = {**defaults, **values}
        self._differing = {n for n, v in values.items() if v != defaults[n]}

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def differs_only_in(self, *names: str) -> bool:
        """Whether all options but these have their defaults."""
        return self._differing <= set(names)

    @property
    def has_plain_loop(self) -> bool:
        """Whether nothing that is chosen changes a loop or where its loads stand."""
        return not any(
            self._values[name]
            for name in ("loop_splitting", "partial_reduction_sinking", "descriptors")
        )


@dataclass(frozen=True)
class Case:
    """What options are asked about; what several of them want to know is found out once.

    Attributes:
        lower: the kernel with options chosen, where they are only being chosen.
        needs_of: what a call must fulfil for programs in Gluon; the reason where there can be none.
        has_gluon: whether the installed compiler takes programs in Gluon; by default none is asked.
    """

    kernel: Definition
    call: Call
    environment: Environment
    device: Device = None
    lower: Callable[[Mapping[str, int]], Lowered] | None = None
    needs_of: Callable[[Definition, Lowered], Needs | str] | None = None
    has_gluon: Callable[[], bool] = bool

    @threads.cached_property
    def grid(self) -> tuple[int, ...]:
        return tuple(evaluated(size, self.environment) for size in self.kernel.grid)

    @threads.cached_property
    def facts(self) -> CallFacts:
        return facts_for(self.kernel, self.environment, self.grid, self.call.is_general)

    @property
    def multiprocessors(self) -> int:
        """Of the device; 0 where that is not known."""
        return getattr(self.device, "multiprocessors", 0)

    @threads.cached_property
    def _known(self) -> dict[Callable[..., object], object]:
        return {}

    def known(self, question: Callable[[Definition, Call, Environment], _Answer]) -> _Answer:
        """The answer to a question about the kernel in this call, which is asked once."""
        if question not in self._known:
            self._known[question] = question(self.kernel, self.call, self.environment)
        return self._known[question]  # type: ignore[return-value]


class Option:
    """Something that may be done beyond the plain translation, or always where it applies.

    Attributes:
        name: as a configuration and ``$NINETOOTHED_OPTIONS`` have it.
        default: its value where nothing is chosen.
        off: the value at which nothing is done.
        is_offered: whether there is a choice; else it is done wherever it applies.
        is_generic: whether it is done too where nothing is known of a call.
        is_always_on: whether it paid wherever it was measured: where it applies it is on, unless it is
            fixed, or its default is itself among the values to try.
        phase: when it is applied: 0 where it makes another kernel of it, 1 in the list's order, 2 where
            it marks what the others have left.
        num_warps: the warps that a program has with it; None where that is open.
        first_capability: the compute capability of CUDA from which on devices have what it needs, 0 for
            all of CUDA's; None for devices of every kind.
    """

    name: str
    default = 0
    off = 0
    is_offered = True
    is_generic = False
    is_always_on = False
    phase = 1
    num_warps: int | None = None
    first_capability: int | None = None

    def serves(self, device: Device) -> bool:
        """Whether a device has what it needs."""
        return self.first_capability is None or is_capable(device, self.first_capability)

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        """The values worth trying besides the default, the most promising first.

        Args:
            chosen: what was chosen of the options before it.
        """
        return ()

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        """Whether a value is right too, though it is not worth trying: a person may fix it, and what
        was found for another call may be used."""
        return False

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        """The kernel with it."""
        return lowered

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """What a configuration does with it, from what it does without; by default nothing that the
        model sees: it is ranked beside the same configuration without it, and the search finds out."""
        return features


def is_capable(device: Device, capability: int) -> bool:
    """Whether a device is of CUDA, and of this compute capability or a later one."""
    if device is None or device.backend != "cuda":
        return False
    return isinstance(device.arch, int) and device.arch >= capability
