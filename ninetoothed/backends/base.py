"""What a backend is: how a kernel is run on a kind of device.

A backend sees a kernel and a `Call`, one exact key of arguments in the core's own terms, and gives
a `Plan` that runs every call of that key. No framework is known here.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import DeviceError

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.language.dtypes import DType
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.launch.tune import Tuned
    from ninetoothed.tuning.space import Effort


@dataclass(frozen=True)
class Device:
    """A device: its kind (``"cpu"``, ``"cuda"``, ``"hip"``, …) and its index among those."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


@dataclass(frozen=True)
class Argument:
    """What is known of a tensor argument.

    Attributes:
        shape: the sizes; a jagged dimension has the longest sequence's.
        strides: in elements.
        dtype: the element type.
        alignment: of 1, 2, 4, 8 and 16 the largest that the address in bytes is a multiple of.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    alignment: int = 16


@dataclass(frozen=True)
class Call:
    """One exact key: all that a plan may depend on.

    Attributes:
        arguments: the tensors by parameter.
        scalars: the element types of the values passed by value, by parameter.
        constants: the constexpr parameters and symbols, by name.
        device: where the tensors are.
        frontend: whose tensors they are.
    """

    arguments: Mapping[str, Argument]
    scalars: Mapping[str, DType] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    device: Device = Device("cpu")
    frontend: Frontend | None = None


@dataclass(frozen=True)
class Plan:
    """What runs the calls of one key.

    Attributes:
        run: ``run(stream, *values)``; for each tensor parameter its address as an int (for a jagged
            one those of its values and its offsets), for each scalar its value, in order.
        details: what the backend wants to tell of it: source, configuration, compiled code.
    """

    run: Callable[..., None]
    details: Mapping[str, Any] = field(default_factory=dict)


def run_nothing(*values: object) -> None:
    """The `Plan.run` of an empty grid."""


class Backend(abc.ABC):
    """How kernels are run on some kinds of devices.

    Attributes:
        name: how it is called in messages.
        device_kinds: the kinds of `Device` that it serves.
    """

    name: str
    device_kinds: tuple[str, ...]

    @abc.abstractmethod
    def plan(self, kernel: Kernel, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        """What runs ``kernel`` for every call of this key.

        Args:
            values: what `Plan.run` will be given this time, stream first, for tuning on.

        Raises:
            ArgumentError, ArrangementError: the sizes do not fit the kernel.
            CompilationError, DeviceError: the kernel does not compile or does not fit the device.
        """

    def evaluator(self) -> Callable[[str], Callable[..., Any]] | None:
        """What gives the Python function for a name of the language, such as ``"exp"``.

        It is asked where an application runs as Python, and where ``ntl.exp`` is called outside of
        a kernel. None, the default, is for a backend that only compiles.
        """
        return None

    def tune(self, kernel: Kernel, call: Call, values: tuple[Any, ...], effort: Effort) -> Tuned:
        """Searches for the fastest configuration of a call; see `ninetoothed.tune`.

        Args:
            values: what `Plan.run` would be given, stream first.

        Raises:
            DeviceError: this backend chooses nothing.
        """
        raise DeviceError(
            f"kernel `{kernel.name}` cannot be tuned for {call.device.kind} tensors: the "
            f"{self.name} backend has nothing to choose. Tune with tensors on a GPU."
        )
