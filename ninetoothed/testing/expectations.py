"""What is asked of a frontend by its subclass of the kit, and how a failure is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy
import pytest

from ninetoothed import threads
from ninetoothed.backends.base import Device
from ninetoothed.language import dtypes
from ninetoothed.testing.kernels import Kernels

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend


Skipped = pytest.skip.Exception


class ConformanceError(AssertionError):
    """A frontend does not do what the contract says; the message says what and what to do."""


def expect(condition: bool, message: str) -> None:
    """`ConformanceError` with this message unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


class Expectations:
    """What a subclass of the kit says of its framework.

    Attributes:
        frontend_name: the name of the frontend under test; its plugin is registered or installed.
        device: where the constructors put tensors.
        dtype_names: the names of the element types to test; by default all that the frontend lists.
        block_size: the block size of the kernels; 1024 suits a GPU and a CPU.
        stream_work: (elements, launches) that keep one stream busy for some 50 ms or more.
    """

    frontend_name: str
    device: Device = Device("cpu", 0)
    dtype_names: Sequence[str] | None = None
    block_size: int = 1024
    stream_work: tuple[int, int] = (1 << 24, 1500)

    def from_numpy(self, array: numpy.ndarray) -> Any:
        """A new contiguous tensor on `device` with these elements, in memory of its own.

        The element type is the array's; bfloat16 and float8 are those of `ml_dtypes`.
        """
        raise NotImplementedError("`from_numpy` must make a tensor of the framework")

    def to_numpy(self, tensor: Any) -> numpy.ndarray:
        """The tensor's elements, once the current stream (and no other) has done its work.

        The element type is the tensor's, or one of the same width with the same bits.
        """
        raise NotImplementedError("`to_numpy` must bring a tensor to the host")

    def transposed(self, tensor: Any) -> Any:
        """A view with the last two dimensions swapped; None where the framework has no views."""
        return None

    def sliced(self, tensor: Any, slices: tuple[slice, ...]) -> Any:
        """The view ``tensor[slices]``; None where the framework has no views."""
        return None

    def streams(self) -> Iterable[AbstractContextManager[Any]]:
        """Two contexts, each of which makes a new stream current; none where there are no streams."""
        return ()

    # What the checks are written with.

    @threads.cached_property
    def frontend(self) -> Frontend:
        """The frontend under test."""
        from ninetoothed.plugins import frontend_named

        return frontend_named(self.frontend_name)

    @property
    def kernels(self) -> Kernels:
        """The kernels of this kit, which no other frontend has launched."""
        kit = type(self)
        if "_kernels" not in kit.__dict__:
            kit._kernels = Kernels()  # type: ignore[attr-defined]
        return kit._kernels  # type: ignore[attr-defined]

    @property
    def element_types(self) -> tuple[dtypes.DType, ...]:
        """The element types under test."""
        if self.dtype_names is not None:
            return tuple(dtypes.by_name(name) for name in self.dtype_names)
        listed = set(self.frontend.dtypes().values())
        return tuple(
            dtypes.by_name(name) for name in dtypes.NAMES if dtypes.by_name(name) in listed
        )

    @property
    def takes_over_launches(self) -> bool:
        """Whether the frontend launches kernels itself, so that no address is read."""
        return self.frontend.launch is not None

    def read(self, field: str, tensor: Any) -> Any:
        """What the frontend's expression says of a tensor; `ConformanceError` where it raises."""
        try:
            return self.frontend.evaluate(field, tensor)
        except Exception as error:
            raise ConformanceError(
                f"`{field}`, {getattr(self.frontend, field)!r}, raises {type(error).__name__} for a "
                f"tensor: {error}"
            ) from error

    def values(self, shape: Sequence[int], dtype: dtypes.DType = dtypes.float32) -> numpy.ndarray:
        """Elements that differ from place to place, small enough for every element type."""
        count = int(numpy.prod(shape, dtype=numpy.int64))
        numbers = (numpy.arange(count) * 7 + 3) % (2 if dtype.kind == "bool" else 11)
        return numbers.reshape(tuple(shape)).astype(dtype.numpy)

    def tensor(self, shape: Sequence[int], dtype: dtypes.DType = dtypes.float32) -> Any:
        """A contiguous tensor of `values`."""
        return self.made(self.values(shape, dtype))

    def made(self, array: numpy.ndarray) -> Any:
        """`from_numpy`, on elements that are contiguous."""
        return self.from_numpy(numpy.array(array, order="C", copy=True))

    def found(self, tensor: Any, dtype: dtypes.DType = dtypes.float32) -> numpy.ndarray:
        """`to_numpy`, as an array of the element type."""
        array = numpy.asarray(self.to_numpy(tensor))
        expect(
            array.dtype.itemsize == dtype.itemsize,
            f"`to_numpy` of a tensor of {dtype} gave an array of {array.dtype}, whose elements "
            "have another width",
        )
        return array if array.dtype == dtype.numpy else array.view(dtype.numpy)

    def before_launching(self) -> None:
        """`ConformanceError` where addresses are read wrongly: a launch would leave the memory."""

    def launched(self, kernel: Any, *arguments: Any, **constants: Any) -> Any:
        """Runs a kernel whose output comes last; what holds the output afterwards."""
        self.before_launching()
        result = kernel(*arguments, **constants)
        if not self.takes_over_launches:
            expect(result is None, f"a kernel call returned {result!r}; it writes in place")
            return arguments[-1]
        result = result[0] if isinstance(result, (tuple, list)) and len(result) == 1 else result
        expect(
            result is not None,
            "the frontend takes over the launch, and the call returned None; it must return the "
            "outputs",
        )
        return result

    def skip(self, reason: str) -> NoReturn:
        """Skips a check that the framework has nothing for."""
        pytest.skip(f"{self.frontend_name}: {reason}")

    def needs_addresses(self) -> None:
        """Skips a check of strides and pointers where the frontend reads none."""
        if self.takes_over_launches:
            self.skip("the frontend takes over the launch and reads no address")
