"""docs/language.md, "A constant decides": the value of a constexpr symbol is known where it is needed."""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError, UnresolvedNameError
from tests.contract.kernels import arange, empty

W = Symbol("W", constexpr=True)
TAPS = {2: 10.0, 4: 20.0}


def blocks(x, y):
    return x.tile((W,)), y.tile((W,))


def windows(x, y):
    return x.tile((4 + W - 1,), strides=(4,), floor_mode=True), y.tile((4,))


def result_of(application, given, arrangement=blocks):
    """The first eight results of a kernel of 1, 2, 3, …"""
    x, y = arange(8 + given - 1 if arrangement is windows else 8), empty(8)
    kernel_of(application, arrangement)(x, y, W=given)
    return y.cpu()


def kernel_of(application, arrangement=blocks):
    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))


def without_a_round(x, y):
    v = x * 3
    for _ in range(W - 4):
        v = undefined_thing(v)  # noqa: F821
    y = v  # noqa: F841


def without_a_round_of_this_type(x, y):
    v = x * 3
    for k in range(W - 4):
        v = ntl.sum(v, axis=k) + ntl.zeros((64, 64), dtype=ntl.int8)
    y = v  # noqa: F841


def list_of_products(x, y):
    y = sum([x * j for j in range(W)]) / (W - 1)  # noqa: F841


def counted(x, y):
    v = x * 0
    for one, other in enumerate(reversed(range(W))):
        v += (one + other) * x
    y = v / W  # noqa: F841


def key(x, y):
    y = x * {2: 1.0, 4: 3.0}[W]  # noqa: F841


def key_from_outside(x, y):
    y = x * (TAPS[W] / 10)  # noqa: F841


def logarithm(x, y):
    y = x * math.log2(W)  # noqa: F841


def logarithm_of_a_quotient(x, y):
    y = x * (math.log2(W / 2) + 1)  # noqa: F841


def power(x, y):
    y = (x * 0 + 1) ** W * x  # noqa: F841


def repeated(x, y):
    y = x * len([1] * W)  # noqa: F841


def sliced(x, y):
    v = x * 0
    for factor in [1, 2, 3, 4, 5][1:W]:
        v += x * factor
    y = v / (W - 1) * "ab"[: W - 2].count("b")  # noqa: F841


def counted_from(x, y):
    v = x * 0
    for number, each in enumerate((x, x), W):
        v += each * number
    y = v  # noqa: F841


def chosen_function(x, y):
    y = (doubled, None, ntl.abs)[W - 2](x)  # noqa: F841


def doubled(value):
    return 2 * value


def compared_with_a_negative_number(x, y):
    if W > -1:
        y = x * 1
    else:
        y = undefined_thing  # noqa: F821, F841


@pytest.mark.parametrize(
    ("application", "factors"),
    [
        (without_a_round, {2: 3, 4: 3}),
        (without_a_round_of_this_type, {2: 3, 4: 3}),
        (list_of_products, {2: 1, 4: 2}),
        (counted, {2: 1, 4: 3}),
        (key, {2: 1, 4: 3}),
        (key_from_outside, {2: 1, 4: 2}),
        (logarithm, {2: 1, 4: 2}),
        (logarithm_of_a_quotient, {2: 1, 4: 2}),
        (power, {2: 1, 4: 1}),
        (repeated, {2: 2, 4: 4}),
        (sliced, {4: 3}),
        (counted_from, {2: 5, 4: 9}),
        (chosen_function, {2: 2, 4: 1}),
        (compared_with_a_negative_number, {2: 1, 4: 1}),
    ],
)
def test_a_symbol_is_a_number_where_that_is_needed(application, factors):
    for given, factor in factors.items():
        torch.testing.assert_close(result_of(application, given), arange(8).cpu() * factor)


def taps(x, y):
    total = ntl.zeros((4,), dtype=ntl.float32)
    for j in ntl.static_range(W):
        total += x[j : j + 4]
    y = total  # noqa: F841


def taps_by_a_variable(x, y):
    total = ntl.zeros((4,), dtype=ntl.float32)
    for j in ntl.static_range(W):
        start = 1 * j
        total += x[start : start + 4]
    y = total  # noqa: F841


@pytest.mark.parametrize("application", [taps, taps_by_a_variable])
@pytest.mark.parametrize("given", [1, 2, 3, 5])
def test_a_window_of_as_many_taps_as_a_symbol_says(application, given):
    expected = torch.arange(1.0, 8.0 + given).unfold(0, given, 1).sum(1)
    torch.testing.assert_close(result_of(application, given, windows), expected.cpu())


def test_a_loop_over_the_size_of_a_tile_of_a_symbol():
    def application(x, y):
        total = ntl.zeros((1,), dtype=ntl.float32)
        for j in ntl.static_range(x.shape[0]):
            total += x[j : j + 1]
        y = total  # noqa: F841

    x, y = arange(8), empty(4)
    kernel = kernel_of(application, lambda x, y: (x.tile((W,)), y.tile((1,))))
    kernel(x, y, W=2)
    assert y.tolist() == [3, 7, 11, 15]


def test_a_symbol_that_is_a_number_in_the_application_alone():
    kernel = kernel_of(key, lambda x, y: (x.tile((4,)), y.tile((4,))))
    x, y = arange(8), empty(8)
    kernel(x, y, W=4)
    assert y.tolist() == (x * 3).tolist()


def test_a_slice_of_a_tile_steps_as_far_as_a_symbol_says():
    def application(x, y):
        y = x[::W]  # noqa: F841

    kernel = kernel_of(application, lambda x, y: (x.tile((8,)), y.tile((4,))))
    x, y = arange(8), empty(4)
    kernel(x, y, W=2)
    assert y.tolist() == [1, 3, 5, 7]


def test_a_loop_that_has_rounds_has_to_make_sense():
    with pytest.raises(UnresolvedNameError, match="undefined_thing"):
        result_of(without_a_round, 8)


def test_a_key_that_is_not_there_is_told_with_its_place():
    with pytest.raises(ApplicationError, match="one of 2, 4"):
        result_of(key, 8)


def test_what_no_number_of_rounds_makes_good_is_told_by_make():
    def application(x, y):
        v = x * 3
        for _ in range(W - 4):
            v = v + 1
        y = undefined_thing(v)  # noqa: F821, F841

    with pytest.raises(UnresolvedNameError, match="undefined_thing"):
        kernel_of(application)


def test_what_needs_no_value_has_one_program_for_all():
    def application(x, y):
        v = x * W
        for j in range(W):
            v += j
        for j in ntl.static_range(W):
            v += j
        y = v  # noqa: F841

    kernel = kernel_of(application)
    assert not kernel.specializations.undecided
    assert kernel.specializations.of({"W": 2}) is kernel.specializations.of({"W": 4})


def test_a_symbol_that_the_tuner_chooses_is_no_number():
    block = ninetoothed.block_size()

    def application(x, y):
        y = sum([x * j for j in range(block)])  # noqa: F841

    with pytest.raises(ApplicationError, match="known at compile time"):
        kernel_of(application, lambda x, y: (x.tile((block,)), y.tile((block,))))
