"""Tensor descriptors, by which an NVIDIA device of capability 9.0 or more copies boxes of a tensor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from ninetoothed.backends.triton.runtime.device_api import Runtime
from ninetoothed.errors import DeviceError
from ninetoothed.kernels.ahead import TensorMap

#: Gives the descriptor of an address, sizes and strides, as the launcher takes it. Sizes and strides are in
#: elements, the contiguous dimension last.
Describe = Callable[[int, tuple[int, ...], tuple[int, ...]], bytes]

#: The size of cuda.h's CUtensorMap, and what its address is a multiple of.
_BYTES, _ALIGNMENT = 128, 64

#: How elements lie in memory, how much the second-level cache fetches, and that what is beyond reads as 0:
#: numbers of cuda.h.
_NOT_INTERLEAVED, _PROMOTE_128_BYTES, _FILL_ZERO = 0, 2, 0


def descriptor_maker(runtime: Runtime, wanted: TensorMap) -> Describe:
    """What makes a descriptor for a compiled kernel; it raises `DeviceError` where the driver refuses.

    Args:
        wanted: how the kernel takes it.
    """

    def describe(address: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> bytes:
        try:
            return _encoded(runtime, wanted, address, sizes, strides)
        except DeviceError as error:
            raise DeviceError(
                f"The driver makes no tensor descriptor of sizes {sizes} and strides {strides} "
                f"at address {address:#x}: {error.message} "
                "NINETOOTHED_OPTIONS=descriptors=0 does without."
            ) from error

    return describe


def _encoded(
    runtime: Runtime, wanted: TensorMap, address: int, sizes: Sequence[int], strides: Sequence[int]
) -> bytes:
    if not runtime.has("encode_descriptor"):
        raise DeviceError("The cuda driver is too old: it has no cuTensorMapEncodeTiled.")
    room = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
    begin = -(-ctypes.addressof(room) // _ALIGNMENT) * _ALIGNMENT
    rank = len(wanted.extents)
    # The driver begins with the contiguous dimension, whose stride it does not ask for.
    bytes_apart = [stride * wanted.itemsize for stride in reversed(strides[:-1])]
    runtime.call(
        "encode_descriptor",
        ctypes.c_void_p(begin),
        wanted.dtype,
        rank,
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*reversed(sizes)),
        (ctypes.c_uint64 * rank)(*bytes_apart),
        (ctypes.c_uint32 * rank)(*reversed(wanted.extents)),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        _NOT_INTERLEAVED,
        wanted.swizzle,
        _PROMOTE_128_BYTES,
        _FILL_ZERO,
    )
    return ctypes.string_at(begin, _BYTES)
