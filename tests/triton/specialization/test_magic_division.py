"""Quotients of small numbers: a multiplication and a shift that give the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from examples import conv2d  # noqa: E402
from ninetoothed.backends.triton.specialization.magic_division import multiplier  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402

DIVISORS = [*range(1, 70), 121, 127, 128, 129, 147, 1000, 4095, 4096, 65537]


@pytest.mark.parametrize("bits", [0, 1, 4, 9, 13, 16])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_it_is_the_quotient_of_every_number_of_so_many_bits(divisor: int, bits: int) -> None:
    found = multiplier(divisor, bits)
    if found is None:
        # Only where the product would have too many bits.
        assert bits + divisor.bit_length() > 15
        return
    factor, shift = found
    values = range(2**bits)

    assert all(value * factor >> shift == value // divisor for value in values)
    assert values[-1] * factor < 2**31


@pytest.mark.parametrize("shift", range(1, 20))
def test_a_power_of_two_is_a_shift(shift: int) -> None:
    assert multiplier(2**shift, 25) == (1, shift)


@pytest.mark.parametrize("divisor", [0, -3])
def test_there_is_none_for_what_is_no_size(divisor: int) -> None:
    assert multiplier(divisor, 4) is None


def source(channels: int, kernel=TEN["conv2d"], rows: int = 12) -> str:
    shapes = [(4, channels, 14, 14), (512, channels, 3, 3), (4, 512, rows, rows)]
    call = kernel.call_of(*(torch.empty(shape, dtype=torch.float16) for shape in shapes))
    blocks = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
    return specialize(kernel.definition, call, Config(tuple(blocks.items()), 4, 3)).emitted.text


def test_a_window_s_terms_are_found_so() -> None:
    lines = [line.strip() for line in source(512).splitlines()]

    # 4608 terms have 13 bits. No remainder is needed: each quotient has its own step.
    assert "input_index_1 = quotient(input_position_4, other_size_2 * other_size_3, 13)" in lines
    assert "input_position_5 = quotient(input_position_4, other_size_3, 13)" in lines
    assert (
        "input_offset_1 = input_index_1 * (input_stride_1 - other_size_2 * input_stride_2) + "
        "input_position_5 * (input_stride_2 - other_size_3) + input_position_4"
    ) in lines


def test_where_padding_is_asked_for_its_remainders_are_what_triton_makes_them() -> None:
    text = source(512, conv2d.kernel_for((1, 1), (1, 1), (1, 1)), 14)

    assert "quotient(" not in text and "remainder(" not in text


def test_what_is_found_once_a_program_is_divided_as_it_is() -> None:
    (line,) = [line for line in source(512).splitlines() if " input_index_0 = " in line]

    assert "//" in line


def test_many_terms_are_divided_as_they_are() -> None:
    assert "quotient(" not in source(1 << 16)
