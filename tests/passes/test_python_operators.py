"""What is emitted for Python's operators: the backend's own wherever it is right."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def source_of(application, **options):
    def arrangement(x, y, n):
        return x.tile((4,)).tile((-1,)), y.tile((4,)).tile((-1,)), n

    tensors = (Tensor(1, **options), Tensor(1), Tensor(0))
    return ninetoothed.make(arrangement, application, tensors).source


def of_sizes(x, y, n):
    y[0] = x[0] + x.shape[0] // 2 % 3


def of_a_loops_variable(x, y, n):
    for k in range(x.shape[0]):
        y[k // 2] = x[k] + k % 3


def of_positions(x, y, n):
    y[0] = x[0] + x[0].offsets(0) // 2 + ntl.arange(0, 4) // 2 + ntl.program_id(0) % 3


def of_what_was_bounded(x, y, n):
    y[0] = x[0] + ntl.maximum(n, 0) // 2 + (ntl.program_id(0) - 2 & 3) % 3


def of_a_variable_that_stays_natural(x, y, n):
    count = 5
    for k in range(x.shape[0]):
        count = ntl.maximum(count // 2, k)
    y[0] = x[0] + count


@pytest.mark.parametrize(
    "application",
    [
        of_sizes,
        of_a_loops_variable,
        of_positions,
        of_what_was_bounded,
        of_a_variable_that_stays_natural,
    ],
)
def test_nothing_is_paid_where_operands_are_known_not_to_be_negative(application):
    source = source_of(application)
    # What may be a float, as a scalar may, goes through the library for that alone.
    assert "//" in source or "natural_quotient" in source
    assert "floor_" not in source


def of_a_scalar(x, y, n):
    y[0] = x[0] + n // 2


def of_a_tile(x, y, n):
    y[0] = x[0] % 3


def of_a_loop_that_counts_down(x, y, n):
    for k in range(3, -3, -1):
        y[k // 2 + 2] = x[0]


def of_a_variable_that_a_loop_makes_negative(x, y, n):
    count = 5
    for _ in range(x.shape[0]):
        count = count // 2 - 3
    y[0] = x[0] + count


def of_a_sum_that_may_wrap_around(x, y, n):
    y[0] = x[0] + (ntl.arange(0, 4) + ntl.program_id(0)) % 3


def of_a_product_that_may_wrap_around(x, y, n):
    y[0] = x[0] + x[0].offsets(0) * 3 // 2


def of_an_absolute_value(x, y, n):
    y[0] = x[0] + ntl.abs(n.to(ntl.int32)) % 3


def of_positions_before_the_source(x, y, n):
    y[0] = x[0] + (x[0].offsets(0) - 1) // 2


@pytest.mark.parametrize(
    "application",
    [
        of_a_scalar,
        of_a_tile,
        of_a_loop_that_counts_down,
        of_a_variable_that_a_loop_makes_negative,
        of_a_sum_that_may_wrap_around,
        of_a_product_that_may_wrap_around,
        of_an_absolute_value,
        of_positions_before_the_source,
    ],
)
def test_what_may_be_negative_is_rounded_down(application):
    assert "floor_" in source_of(application)


def test_padded_positions_may_lie_before_the_source():
    def application(x, y):
        y = x.offsets(0) // 2  # noqa: F841

    def arrangement(x, y):
        return x.pad(((1, 1),)).tile((4,)), y.tile((4,))

    assert "floor_quotient" in ninetoothed.make(arrangement, application, (Tensor(1),) * 2).source


def test_a_declared_type_that_has_no_sign_needs_nothing():
    assert "floor_" not in source_of(of_a_tile, dtype=ninetoothed.uint32)


def test_conditions_on_numbers_stay_pythons():
    def application(x, y, n):
        if n > 0 and not n > 5 or n == -3:
            y[0] = x[0]

    assert "if n > 0 and (not n > 5) or n == -3:" in source_of(application)


def test_truth_of_tiles_is_never_asked_with_pythons_words():
    def application(x, y, n):
        y[0] = ntl.where(x[0] > 0 and not x[0] > 5 or n > 0, 1, 0)

    source = source_of(application)
    assert "either(both(" in source
    assert "not " not in source.partition("def ")[2]


@pytest.mark.parametrize(("bits", "rounds_down"), [("int8", True), ("int16", False)])
def test_what_a_cast_may_make_negative_is_rounded_down(bits, rounds_down):
    def application(x, y, n):
        y[0] = x[0].to(getattr(ntl, bits)) // 3

    assert ("floor_quotient" in source_of(application, dtype=ninetoothed.uint8)) is rounds_down


def test_what_a_choice_is_made_by_is_a_truth_value():
    def application(x, y, n):
        total = ntl.zeros((4,), ntl.float32)
        for j in range(x.shape[0]):
            total = total + (x[j] if j % 2 else 1) + (x[j] if j > 2 else n)
        y[0] = total

    source = source_of(application)
    assert "where(j % 2 != 0, " in source
    assert "where(j > 2, " in source
