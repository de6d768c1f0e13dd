"""What a backend is: how a kernel is run on a kind of device.

A backend sees a kernel and a `Call`, one exact key of arguments in the core's own terms, and gives
a `Plan` that runs every call of that key. No framework is known here.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import DeviceError
from ninetoothed.kernels.call import Argument, Call, Device

if TYPE_CHECKING:
    from ninetoothed.kernels.ahead import Edition, Fixed, Image, Variant
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.language.dtypes import DType
    from ninetoothed.tuning.results import Entry
    from ninetoothed.tuning.space import Effort, Tuned

__all__ = ["Argument", "Backend", "Call", "Device", "Plan", "run_nothing"]


@dataclass(frozen=True)
class Plan:
    """What runs the calls of one key.

    Attributes:
        run: ``run(stream, *values)``; for each tensor parameter its address as an int (for a jagged
            one those of its values and its offsets), for each scalar its value, in order.
        details: what the backend wants to tell of it: source, configuration, compiled code.
        family: what gives the ``run`` of calls that differ from this one in sizes and strides alone, from
            the shape and the strides of each tensor parameter, or None where one must be planned; it
            looks for nothing, compiles nothing and reads no file. None where there is no such thing.
    """

    run: Callable[..., None]
    details: Mapping[str, Any] = field(default_factory=dict)
    family: Callable[[Any], Callable[..., None] | None] | None = None


def run_nothing(*values: object) -> None:
    """The `Plan.run` of an empty grid."""


#: Where each content is, from a multiple of 256 bytes on, and what reads them back.
Lent = tuple[Sequence[int], Callable[[], list[bytes]]]


@contextmanager
def _on_host(contents: Sequence[bytes]) -> Iterator[Lent]:
    import ctypes

    buffers = [ctypes.create_string_buffer(256 + len(content)) for content in contents]
    starts = [-(-ctypes.addressof(buffer) // 256) * 256 for buffer in buffers]
    for start, content in zip(starts, contents):
        ctypes.memmove(start, content, len(content))
    sizes = [len(content) for content in contents]
    yield starts, lambda: [ctypes.string_at(*each) for each in zip(starts, sizes)]
    del buffers


class Backend(abc.ABC):
    """How kernels are run on some kinds of devices.

    Attributes:
        name: how it is called in messages.
        device_kinds: the kinds of `Device` that it serves.
    """

    name: str
    device_kinds: tuple[str, ...]

    @abc.abstractmethod
    def plan(self, kernel: Definition, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
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

    def element_type(self, item: object) -> DType | None:
        """The element type that an object of the backend's own compiler is, or None. Imports nothing."""
        return None

    def tune(
        self, kernel: Definition, call: Call, values: tuple[Any, ...], effort: Effort
    ) -> Tuned:
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

    def source(self, kernel: Definition) -> str:
        """The text that it generates of a kernel, with nothing known of the arguments.

        Raises:
            DeviceError: this backend generates none.
        """
        raise DeviceError(f"The {self.name} backend generates no source of kernel `{kernel.name}`.")

    def compile(
        self,
        kernel: Definition,
        call: Call,
        target: Any,
        configuration: Mapping[str, int] | None,
        num_warps: int | None,
        num_stages: int | None,
    ) -> Any:
        """Compiles a kernel for a device that need not be there; see `Kernel.compile`.

        Raises:
            DeviceError: this backend compiles for no such target.
        """
        raise DeviceError(f"The {self.name} backend compiles nothing for the target {target!r}.")

    def targets(self) -> tuple[str, ...]:
        """What it compiles kernels for ahead of time, as ``"sm_90"``; nothing by default."""
        return ()

    def editions(
        self,
        kernel: Definition,
        fixed: Fixed,
        target: str,
        found: Sequence[Entry] = (),
        device: str | None = None,
    ) -> Sequence[Edition]:
        """The kernel with configurations that suit a target, which need not be here.

        Args:
            found: what the tuner found on devices.
            device: the name of one of the target's, where there are several.

        Returns:
            Editions for calls of some sizes, the first that fits is launched; the last for any.

        Raises:
            ArgumentError: something must be known of the calls that is not fixed.
            DeviceError: this backend, or this kernel, is not compiled ahead.
        """
        raise DeviceError(f"The {self.name} backend compiles nothing ahead of time.")

    def images(self, variant: Variant, target: str, with_text: bool) -> Sequence[Image]:
        """A variant, compiled for a target.

        Args:
            with_text: whether the driver is to have text too, for devices that come later.

        Raises:
            CompilationError, DeviceError: it does not compile, or does not fit the target.
        """
        raise DeviceError(f"The {self.name} backend compiles nothing ahead of time.")

    def devices(self, kind: str) -> list[str]:
        """A line about each device of a kind that is here.

        Raises:
            DeviceError: the kind's driver is not here.
        """
        return []

    def on_device(self, index: int, addresses: Sequence[int]) -> Callable[..., bool] | None:
        """What says whether as many addresses as these are all on a device; None if nothing can.

        For a frontend that asks at each call, where its own objects for devices are slow.
        """
        return None

    def check(
        self,
        against: tuple[Backend, str] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> AbstractContextManager[None]:
        """Within it, kernels are checked as they run; see `ninetoothed.debugging.check`.

        Args:
            against: a second backend and the kind of device that it is to run on.

        Raises:
            DeviceError: this backend checks nothing.
        """
        raise DeviceError(f"The {self.name} backend does not check kernels as they run.")

    def lent(self, kind: str, contents: Sequence[bytes]) -> AbstractContextManager[Lent]:
        """Memory of a kind of device that holds these bytes, while a comparison runs there.

        By default the host's, for a backend whose kernels can reach it.

        Raises:
            DeviceError: there is no such device.
        """
        return _on_host(contents)
