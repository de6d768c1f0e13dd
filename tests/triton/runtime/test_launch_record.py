"""Numbers as a kernel is handed them, by its parameter's type."""

from __future__ import annotations

import math
import struct

import pytest

from ninetoothed.backends.triton.runtime.launch_record import Described, Given, LaunchRecord, packed


@pytest.mark.parametrize(
    "type_, value, expected",
    [
        ("*fp16", 0xFFFF_0000_1234_5670, "7056341200 00ffff"),
        ("i1", True, "01"),
        ("i8", -2, "fe"),
        ("i16", -2, "feff"),
        ("i32", -5, "fbffffff"),
        ("i64", 1 << 40, "000000000001 0000"),
        ("u64", 2**64 - 1, "ff" * 8),
        ("fp16", 1.5, "003e"),
        ("fp32", 0.5, "0000003f"),
        ("fp64", 0.5, "000000000000e03f"),
    ],
)
def test_a_number_is_packed_as_its_type(type_, value, expected):
    assert packed(type_, value) == bytes.fromhex(expected)


def test_a_bfloat16_is_cut_off_as_triton_cuts_it():
    # 1 + 2^-7 + 2^-8 would round up.
    assert packed("bf16", 1 + 2**-7 + 2**-8) == packed("fp32", 1 + 2**-7)[2:]


def test_what_is_too_large_for_a_float_is_infinite():
    assert struct.unpack("<f", packed("fp32", 1e300)) == (math.inf,)


@pytest.mark.parametrize(
    "parameters, expected",
    [((Given(0, "*fp16"), bytes(4)), False), ((Described(0, lambda address: bytes(128)),), True)],
)
def test_a_record_with_a_descriptor_is_of_addresses(parameters, expected):
    assert LaunchRecord("name", 1, 1, 128, 0, False, parameters).is_of_addresses is expected
