"""Which device addresses are on, as a driver tells it in one C call for several of them."""

from __future__ import annotations

import ctypes
import shutil
import types

import pytest

from ninetoothed.backends.triton.runtime import device_addresses
from ninetoothed.errors import DeviceError

pytest.importorskip("triton", reason="needs Triton, which compiles the C functions")
pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")), reason="needs a C compiler"
)

_MEMORY_TYPE, _DEVICE_ORDINAL, _RANGE_START, _RANGE_SIZE = 2, 9, 11, 12

#: Address -> its kind of memory (1 the host's, pinned; 2 a device's; 0 not CUDA's), its device, and
#: where what was allocated with it begins and how large it is.
KNOWN = {
    0x1000: (2, 0, 0x1000, 0x40),
    0x1040: (2, 0, 0x1040, 0x80),
    0x1060: (2, 0, 0x1040, 0x80),
    0x2000: (2, 1, 0x2000, 0x40),
    0x3000: (1, 0, 0x3000, 0x40),
    2**63 + 16: (2, 0, 0, 0),
}

_ASK = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_uint64,
)


asked: list[int] = []


def answer(count, attributes, answers, address):
    asked.append(address)
    if address == 0xBAD:
        return 1
    # The driver fails for no address of the host's, and tells of a device that there is not.
    type_, ordinal, start, size = KNOWN.get(address, (0, -2, 0, 0))
    found = {
        _MEMORY_TYPE: ctypes.c_int(type_),
        _DEVICE_ORDINAL: ctypes.c_int(ordinal),
        _RANGE_START: ctypes.c_uint64(start),
        _RANGE_SIZE: ctypes.c_size_t(size),
    }
    for place in range(count):
        value = found[attributes[place]]
        ctypes.memmove(answers[place], ctypes.byref(value), ctypes.sizeof(value))
    return 0


ask = _ASK(answer)


@pytest.fixture
def driver(monkeypatch):
    """A driver that knows the memory in `KNOWN`."""
    found = types.SimpleNamespace(
        address_of=lambda name: {"cuPointerGetAttributes": ctypes.cast(ask, ctypes.c_void_p).value}[
            name
        ]
    )
    monkeypatch.setattr(device_addresses, "runtime", lambda backend: found)
    device_addresses._connected.cache_clear()
    yield found
    device_addresses._connected.cache_clear()


def test_addresses_of_the_device_are_told_from_all_others(driver):
    are_on = device_addresses.on_device(0, [0x1000, 0x1040])
    assert are_on(0x1000, 0x1040, 0x1000)
    assert are_on(2**63 + 16)
    assert are_on()
    for other in (0, 0x2000, 0x3000, 0x4000, 0xBAD):
        assert not are_on(0x1000, other, 0x1040)
    assert device_addresses.on_device(1, [0x2000])(0x2000)


def test_of_what_was_allocated_at_once_one_address_is_asked_for(driver):
    are_on = device_addresses.on_device(0, [0x1000])
    asked.clear()
    assert are_on(0x1040, 0x10BF, 0x1060, 0x1040)
    assert asked == [0x1040]
    # What is known holds for one call: memory may be given back.
    assert are_on(0x1060)
    assert asked == [0x1040, 0x1060]
    asked.clear()
    assert not are_on(0x1040, 0x10C0)
    assert asked == [0x1040, 0x10C0]
    asked.clear()
    # A driver that tells no ranges is asked each time.
    assert are_on(2**63 + 16, 2**63 + 16)
    assert asked == [2**63 + 16] * 2


@pytest.mark.parametrize("address", [0, 0x2000, 0x3000, 0x4000, 0xBAD])
def test_of_addresses_elsewhere_nothing_is_told(driver, address):
    assert device_addresses.on_device(0, [0x1000, address]) is None


@pytest.mark.parametrize("wrong", ["text", None, -1, 2**64])
def test_what_is_no_address_is_an_error(driver, wrong):
    are_on = device_addresses.on_device(0, [0x1000])
    with pytest.raises((TypeError, OverflowError)):
        are_on(0x1000, wrong)


def test_without_a_driver_nothing_is_told(driver, monkeypatch):
    def none(backend):
        raise DeviceError("There is no cuda driver on this machine.")

    monkeypatch.setattr(device_addresses, "runtime", none)
    assert device_addresses.on_device(0, [0x1000]) is None


@pytest.mark.parametrize("error", [DeviceError, ImportError])
def test_without_a_compiler_nothing_is_told(driver, monkeypatch, error):
    def fails(source, name):
        raise error("Failed to find C compiler.")

    monkeypatch.setattr(device_addresses, "extension", fails)
    assert device_addresses.on_device(0, [0x1000]) is None
