"""What the driver is given for a tensor descriptor. No device: its function is one of ours."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.runtime.descriptors import descriptor_maker
from ninetoothed.backends.triton.runtime.device_api import Runtime
from ninetoothed.errors import DeviceError
from ninetoothed.kernels.ahead import TensorMap


class Library:
    """A driver that writes a descriptor's address into it, and refuses address 8."""

    def __init__(self) -> None:
        self.given: list[tuple] = []

    def cuTensorMapEncodeTiled(self, made, dtype, rank, address, *rest):
        if address.value == 8:
            return 1
        ctypes.c_uint64.from_address(made.value).value = address.value
        tables, numbers = rest[:4], rest[4:]
        self.given.append((made.value, dtype, rank, *map(list, tables), *numbers))
        return 0

    def cuGetErrorString(self, status, text):
        return 0


@pytest.fixture
def runtime() -> Runtime:
    made = object.__new__(Runtime)
    made.backend, made._library = "cuda", Library()
    made._names = {"encode_descriptor": "cuTensorMapEncodeTiled"}
    return made


def test_the_driver_is_given_sizes_and_strides(runtime) -> None:
    describe = descriptor_maker(runtime, TensorMap(6, 2, 3, (64, 32)))
    made = [describe(16, (100, 32), (40, 1)), describe(1 << 40, (7, 32), (64, 1))]

    assert [len(each) for each in made] == [128, 128]
    assert [int.from_bytes(each[:8], "little") for each in made] == [16, 1 << 40]
    (place, *first), (_, *second) = runtime._library.given
    assert place % 64 == 0
    # The driver counts from the contiguous dimension on, and in bytes.
    dtype, rank, sizes, strides, box, steps, interleave, swizzle, promotion, fill = first
    assert (dtype, rank, sizes, strides[:1]) == (6, 2, [32, 100], [80])
    assert (box, steps, interleave, swizzle, promotion, fill) == ([32, 64], [1, 1], 0, 3, 2, 0)
    assert second[2] == [32, 7] and second[3][:1] == [128]


def test_of_one_dimension_there_is_no_stride(runtime) -> None:
    descriptor_maker(runtime, TensorMap(7, 4, 0, (64,)))(32, (100,), (1,))
    (_, _, rank, sizes, _, box, *_) = runtime._library.given[0]
    assert (rank, sizes, box) == (1, [100], [64])


def test_what_the_driver_refuses_is_told_with_a_way_out(runtime) -> None:
    describe = descriptor_maker(runtime, TensorMap(6, 2, 3, (64,)))
    with pytest.raises(DeviceError, match=r"sizes \(5,\).*strides \(1,\).*0x8.*descriptors=0"):
        describe(8, (5,), (1,))


def test_a_driver_that_knows_none_is_told_of_with_a_way_out(runtime) -> None:
    runtime._library = SimpleNamespace()
    with pytest.raises(DeviceError, match=r"too old: it has no cuTensorMapEncode.*descriptors=0"):
        descriptor_maker(runtime, TensorMap(6, 2, 3, (64,)))(16, (5,), (1,))


def test_element_types_have_the_drivers_numbers() -> None:
    known = versions.driver_module("cuda").TMA_DTYPE_DEVICE_TO_HOST
    kept = {"elem_size": 2, "swizzle": 3, "block_size": [64, 32]}
    metadata = SimpleNamespace(tensordesc_meta=[{"elem_type": number, **kept} for number in known])
    found = versions.tensor_maps(metadata)
    assert [each.dtype for each in found] == list(known.values())
    assert {(each.itemsize, each.swizzle, each.extents) for each in found} == {(2, 3, (64, 32))}
