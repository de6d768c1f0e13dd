"""Padding left out of reductions by functions of the user's own."""

import pytest

import ninetoothed.language as ntl
from tests.passes.masked import masked

# Functions of the user's own.


def add(a, b):
    return a + b


def larger(a, b):
    return ntl.maximum(a, b)


def special(a, b):
    return a + b * 2


def pairs(a, i, b, j):
    is_first = a > b
    return ntl.where(is_first, a, b), ntl.where(is_first, i, j)


@pytest.mark.parametrize(("function", "identity"), [(add, "zero"), (larger, "lowest")])
def test_a_combine_function_with_a_known_identity(function, identity):
    def application(x, y):
        y = ntl.reduce(x + 1, 1, function)[:, None]

    assert f"masked(x + 1, mask(x, (0, 1)), '{identity}')" in masked(application)


def test_a_combine_function_without_one_sees_real_elements_only():
    def application(x, y):
        y = ntl.reduce(x, 1, special)[:, None]

    text = masked(application)

    real = "masked(ntl.cast(ntl.zeros_like(x), int32) + 1, mask(x, (0, 1)), 'zero')"
    assert text.endswith(f"store y = ntl.reduce((x, {real}), 1, special_real)[0][:, None]")
    assert "def special_real(left_0, left_is_real, right_0, right_is_real):" in text


def test_a_scan_without_a_known_identity():
    def application(x, y):
        y = ntl.associative_scan(x, 1, combine_fn=special)

    assert "1, combine_fn=special_real)[0]" in masked(application)


def test_several_tiles_at_once():
    def application(x, y, z):
        value, place = ntl.reduce((x, x.offsets()), 1, pairs)
        y = ntl.max(value)[None, None]
        z = place[:, None]

    text = masked(application)

    assert "'zero')), 1, pairs_real)" in text
    assert "value, place = (results[0], results[1])" in text
    assert "ntl.max(masked(value, mask(x, (0,)), 'lowest'))" in text


def test_unmarked_values_are_reduced_as_they_are():
    def application(x, y):
        y = ntl.reduce(ntl.arange(0, 8), 0, special)

    assert masked(application).endswith("store y = ntl.reduce(ntl.arange(0, 8), 0, special)")
