"""What the driver is given for a tensor descriptor. No device: its function is one of ours."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.triton.compiler import versions
from ninetoothed.errors import DeviceError


@pytest.fixture
def given(monkeypatch):
    """What the driver was given, address by address; it refuses address 8."""
    found = []

    def fill(*arguments):
        if arguments[0] == 8:
            raise RuntimeError("misaligned")
        found.append(arguments)
        return f"descriptor of {arguments[0]}"

    tools = SimpleNamespace(fill_tma_descriptor_tiled=fill)
    monkeypatch.setattr(versions, "utilities", lambda backend: tools)
    return found


def test_the_driver_is_given_sizes_and_strides(given):
    wanted = {"elem_type": 0, "elem_size": 2, "swizzle": 3, "block_size": (64, 32)}
    describe = versions.descriptor_maker(SimpleNamespace(tensordesc_meta=[None, wanted]), 1)

    assert describe(16, (100, 32), (32, 1)) == "descriptor of 16"
    assert describe(32, (7, 32), (64, 1)) == "descriptor of 32"
    (*first, dtype, box, sizes, steps, padding), second = given
    assert first == [16, 3, 2] and box == (64, 32) and padding == 0 and isinstance(dtype, int)
    assert sizes == (100, 32) and steps == (32, 1) and second[5:7] == ((7, 32), (64, 1))


def test_what_the_driver_refuses_is_told_with_a_way_out(given):
    wanted = {"elem_type": 0, "elem_size": 2, "swizzle": 3, "block_size": (64,)}
    describe = versions.descriptor_maker(SimpleNamespace(tensordesc_meta=[wanted]), 0)
    with pytest.raises(DeviceError, match=r"sizes \(5,\).*strides \(1,\).*0x8.*descriptors=0"):
        describe(8, (5,), (1,))
