"""Looking at arrangements and checking kernels, with no device.

`simulate_arrangement` shows which program touches which elements; `check` has kernels on CPU tensors
report what a GPU would do silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.arrange import arranged_by
from ninetoothed.tensors.evaluate import eval
from ninetoothed.tensors.tensor import Tensor

if TYPE_CHECKING:
    from ninetoothed.backends.base import Backend

__all__ = ["Simulation", "check", "simulate_arrangement"]


class Simulation(NamedTuple):
    """What an arrangement makes of known sizes, in NumPy arrays, in the order it returned them.

    Attributes:
        sources: for each tensor its elements' numbers, 0, 1, …, in the source's own shape.
        targets: for each tensor the same numbers as arranged, -1 where out of bounds, shaped
            (outermost…, next level…, …): ``targets[i][program]`` is what that program is given.
    """

    sources: tuple[Any, ...]
    targets: tuple[Any, ...]


def simulate_arrangement(
    arrangement: Callable[..., Any], tensors: Sequence[Any], subs: Mapping[Any, Any] | None = None
) -> Simulation:
    """Shows which elements of each tensor an arrangement gives to which program.

    Args:
        arrangement: as for `ninetoothed.make`.
        tensors: symbolic tensors of known shapes, as ``Tensor(shape=(4, 6))``; a framework's tensor
            stands for one of its shape; anything else is handed through.
        subs: sizes and symbols that are not known yet, as for `ninetoothed.eval`.

    Returns:
        The numbered elements of each source, and the same as arranged; see `Simulation`. What the
        arrangement returned without being a tensor is in both as it is.

    Raises:
        ArrangementError: a size is not known, or the sizes do not fit the arrangement. That the
            outermost shapes are the same is not checked: look at them.
    """
    if not isinstance(tensors, Sequence):
        raise ArgumentError(f"`simulate_arrangement` takes the tensors as a tuple, not {tensors!r}")
    values = arranged_by(arrangement, [_symbolic(tensor) for tensor in tensors])
    return Simulation(
        tuple(eval(v.source, subs or {}) if isinstance(v, Tensor) else v for v in values),
        tuple(eval(v, subs) if isinstance(v, Tensor) else v for v in values),
    )


def _symbolic(value: Any) -> Any:
    """A framework's tensor as a symbolic one of its shape."""
    if isinstance(value, (Tensor, Symbol)) or not hasattr(value, "shape"):
        return value
    return Tensor(shape=tuple(int(size) for size in value.shape))


def check(
    against: str | Backend | None = None, *, rtol: float | None = None, atol: float | None = None
) -> AbstractContextManager[None]:
    """Within it, kernels on the NumPy backend are checked as they run.

    Args:
        against: a second backend, which runs each kernel once more, on copies of its arguments, and what
            the two stored is compared: a kind of device, as ``"cuda"``, or a `Backend`.
        rtol, atol: how far floats may be apart, relatively and absolutely; by default what suits their
            type. Integers are equal.

    Raises:
        OutOfBoundsError: an access leaves its tensor, or is between the elements of a strided one, or a position
            is beyond its tile.
        ConflictingStoreError: two programs, or two lanes of one, store to one element, or a program loads what
            another one stores, by whichever tensors; this not where programs wait for each other by atomic
            operations.
        UnwrittenOutputError: elements of a tensor that the kernel is to store to are never stored to; not of one
            that it loads too, where data choose what it changes.
        OutOfRangeError: a float becomes an integer of a type that does not hold it.
        DifferingStoreError: the second backend stored something else.
        DeviceError: no backend serves this kind of device, there is none here, or it is the NumPy backend's.
    """
    from ninetoothed.plugins import backend_for, backend_named

    checking, second = backend_named("numpy"), None
    if isinstance(against, str):
        second = backend_for(against), against
    elif against is not None:
        second = against, against.device_kinds[0]
    if second is not None and second[0] is checking:
        raise DeviceError(
            f"On {second[1]!r} kernels run on the backend {checking.name!r}, which is what is checked; "
            "compare with another one, as against='cuda'."
        )
    return checking.check(second, rtol, atol)
