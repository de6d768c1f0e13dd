"""Programs in the published package's style, arithmetic on sizes and padding, on a device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from tests.contract import test_made_sizes, test_padding, test_programs  # noqa: E402
from tests.contract.application import test_numbers  # noqa: E402
from tests.contract.numbers import test_literals  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_device")

_CHOSEN = {
    test_programs: ("test_a_program",),
    test_numbers: (
        "test_arithmetic_on_shapes_cannot_overflow",
        "test_a_size_beside_elements_is_an_integer_of_32_bits",
        "test_a_constant_size_beside_elements_takes_their_type",
        "test_what_is_made_of_a_size_and_a_float_is_a_float32",
        "test_unsigned_elements_are_not_divided_by_a_size",
        "test_unsigned_elements_are_divided_by_a_size_that_was_cast",
    ),
    test_literals: tuple(name for name in vars(test_literals) if name.startswith("test_")),
    test_padding: (
        "test_arange_exists_within_the_size_that_is_asked_for",
        "test_rows_are_found_by_as_many_positions_as_a_tile_has",
        "test_positions_that_pad_adds_exist_where_other_is_set",
    ),
    test_made_sizes: (
        "test_of_what_is_made_in_a_size_a_wider_tile_is_stored_no_more",
        "test_rows_of_what_is_made_in_a_size_are_stored_to_a_wider_tile",
        "test_of_what_is_made_in_a_size_truth_values_are_stored",
    ),
}

for module, names in _CHOSEN.items():
    globals().update({name: getattr(module, name) for name in names})
