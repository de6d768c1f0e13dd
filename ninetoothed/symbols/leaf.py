"""What a name in an expression stands for: its bounds, whose size it is, who chooses its value."""

from __future__ import annotations

import itertools
from dataclasses import field

from ninetoothed.errors import ArgumentError, ArrangementError, Location, caller_location, shown
from ninetoothed.records import dataclass
from ninetoothed.symbols.operators import next_power_of_2

#: Between which values the tuner chooses where nothing is said.
META_BOUNDS = (32, 1024)

#: For `Leaf.serial`.
serials = itertools.count(1)


@dataclass(frozen=True)
class Leaf:
    """What a name in an expression stands for.

    Attributes:
        name: how it prints.
        role: ``"symbol"`` (a user's), ``"size"`` or ``"stride"`` (of a tensor), ``"index"`` (a
            position that the compiler introduces).
        owner: for a size or stride, the identity of the source tensor; for a fresh symbol, a token.
        dim: for a size or stride, the dimension.
        extent: for an index, the expression that it stays below; it is never negative.
        lower_bound, upper_bound, power_of_two: what its value was declared to be. A promise, for the
            tuner: nothing is proved by it.
        serial: tells names that read the same apart where an order is needed, and nothing else.
        location: where the user declared it; of equal ones, the first.
    """

    name: str
    role: str = "symbol"
    owner: object = None
    dim: int | None = None
    constexpr: bool = False
    meta: bool = False
    lower_bound: int | None = None
    upper_bound: int | None = None
    power_of_two: bool = False
    extent: object = None
    serial: int = 0
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        """How it prints once its owner has a name in a kernel."""
        owner = getattr(self.owner, "label", None)
        if owner is None:
            return self.name
        return owner if self.dim is None else f"{owner}_{self.role}_{self.dim}"


class Fresh:
    """The identity of a name that is equal to no other, whatever it is called.

    Attributes:
        label: how it prints once a kernel has given it a name.
    """

    __slots__ = ("label",)

    def __init__(self) -> None:
        self.label: str | None = None


def declared(
    name: str,
    constexpr: bool | None = None,
    meta: bool | None = None,
    lower_bound: int | None = None,
    upper_bound: int | None = None,
    power_of_two: bool | None = None,
) -> Leaf:
    """A user's name with the keywords of `Symbol`, what is left out filled in.

    Raises:
        ArgumentError, ArrangementError: a bound is no int, or the keywords contradict each other.
    """
    for bound in (lower_bound, upper_bound):
        if not (bound is None or (isinstance(bound, int) and bound.bit_length() < 64)):
            raise ArgumentError(f"a bound of `{name}` is an int of 64 bits, not {shown(bound)}")
    if constexpr and meta:
        raise ArrangementError(
            f"`{name}` is either given at the call (constexpr) or tuned (meta), not both"
        )
    power_of_two = bool(meta if power_of_two is None else power_of_two)
    if meta:
        # A bound that is left out leaves room for a power of two on its side of the other.
        if lower_bound is None:
            least, most = META_BOUNDS[0], META_BOUNDS[1] if upper_bound is None else upper_bound
            fits = 1 << (most.bit_length() - 1) if power_of_two and most > 0 else most
            lower_bound = min(least, fits)
        if upper_bound is None:
            fits = next_power_of_2(lower_bound) if power_of_two else lower_bound
            upper_bound = max(META_BOUNDS[1], fits)
    if lower_bound is not None and upper_bound is not None and lower_bound > upper_bound:
        raise ArrangementError(
            f"`{name}` has no value: its bounds are {lower_bound} to {upper_bound}"
        )
    if meta and upper_bound is not None and upper_bound < 1:
        raise ArrangementError(
            f"`{name}` has no value: the tuner chooses among numbers of at least 1, and its bounds are "
            f"{lower_bound} to {upper_bound}"
        )
    if meta and power_of_two and next_power_of_2(lower_bound or 1) > (upper_bound or 1):
        raise ArrangementError(
            f"`{name}` has no value: the tuner chooses among powers of two, and none lies between its "
            f"bounds, {lower_bound} and {upper_bound}. Move a bound, or pass power_of_two=False"
        )
    return Leaf(
        name,
        constexpr=bool(constexpr),
        meta=bool(meta),
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        power_of_two=power_of_two,
        location=caller_location(),
    )
