"""LANGUAGE.md, "Numbers": what no backend computes is an error with its place on each; the rest is one thing on all."""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError


def called(application, *inputs, output=torch.float32):
    def arrangement(*tensors):
        return tuple(tensor.tile((-1,)) for tensor in tensors)

    y = torch.zeros_like(inputs[0], dtype=output)
    tensors = tuple(Tensor(1) for _ in (*inputs, y))
    ninetoothed.make(arrangement, application, tensors)(*inputs, y)
    return y


def along_a_constant(x, axis, count, y):
    best = ntl.topk(x, count)
    y = ntl.sum(best, axis, keep_dims=axis == 0 and not count > 2) + ntl.sum(
        ntl.histogram(x.to(ntl.int32), y.shape[0])
    )


@pytest.mark.parametrize("count", [2, 4])
def test_a_constant_of_a_call_decides_an_axis_and_a_count(count):
    """`Tensor(0, constexpr=True)`, and sizes, are known where the compiler needs them."""
    constants = (Tensor(0, constexpr=True), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(
        lambda x, axis, count, y: (x.tile((4,)), axis, count, y.tile((2,))),
        along_a_constant,
        (Tensor(1), *constants, Tensor(1)),
    )
    x, y = torch.tensor([3.0, 0.0, 1.0, 2.0]), torch.zeros(2)
    kernel(x, 0, count, y)
    assert y.tolist() == [{2: 5, 4: 6}[count] + 2] * 2


def greatest_in_8_bits(x, y):
    narrow = x.to(ntl.float8e5)
    y = ntl.where(x > 1, narrow, narrow) + ntl.max(narrow) + (narrow + x)


def test_eight_bits_are_moved_and_become_as_wide_as_what_they_meet():
    assert called(greatest_in_8_bits, torch.tensor([1.0, 2.0])).tolist() == [5, 8]


def divided(x, z, y):
    y = x // z


def test_truth_values_are_divided_as_integers():
    x = torch.tensor([True, False, True])
    assert called(divided, x, torch.ones_like(x), output=torch.int32).tolist() == [1, 0, 1]


def test_a_quotient_by_infinity_is_rounded_down_and_one_by_zero_is_no_number():
    x = torch.tensor([6.0, -7.0, 0.0, 6.0, -7.0])
    z = torch.tensor([math.inf, math.inf, -math.inf, 0.0, 0.0])
    found = called(divided, x, z)

    assert found[:3].tolist() == [0, -1, 0]
    assert found[3:].isnan().all()


def divided_and_rounded_up(x, z, y):
    y = ntl.cdiv(x, z) + ntl.cdiv(5, z)


def test_truth_values_are_divided_and_rounded_up_as_integers():
    x = torch.tensor([True, False, True])
    found = called(divided_and_rounded_up, x, torch.ones_like(x), output=torch.int32)
    assert found.tolist() == [6, 5, 6]


def added(one, other):
    return one + other


def either(one, other):
    return one | other


def added_beside_others(one, is_one, other, is_other):
    return one + other, is_one + is_other


def reduced(x, y):
    y = x + ntl.reduce(x, 0, added)


def scanned(x, y):
    y = ntl.associative_scan(x, 0, added)


def reduced_beside_others(x, y):
    y = ntl.reduce((x.to(ntl.float32), x), 0, added_beside_others)[1]


def mapped(x, y):
    y = ntl.map_elementwise(added, x, x)


@pytest.mark.parametrize("application", [reduced, scanned, reduced_beside_others, mapped])
def test_truth_values_that_a_function_makes_numbers_of_are_to_be_cast_first(application):
    with pytest.raises(ApplicationError, match=r"given truth values.*`.to\(ntl.int32\)`") as caught:
        called(application, torch.tensor([True, True]), output=torch.int32)
    assert caught.value.location.line == application.__code__.co_firstlineno + 1


def halved(one, other):
    return (one + other) / 2


def greater(one, other):
    return ntl.maximum(one, other)


def both_of_two(one, also_one, other, also_other):
    return one * other, also_one / also_other


def reduced_by_halves(x, y):
    y = x + ntl.reduce(x, 0, halved)


def scanned_by_halves(x, y):
    y = ntl.associative_scan(x, 0, halved)


def scanned_for_the_greatest(x, y):
    y = ntl.associative_scan(x, 0, greater)


def of_two_reduced(x, y):
    y = x + ntl.reduce((x, x), axis=0, combine_fn=both_of_two)[0]


@pytest.mark.parametrize(
    ("application", "dtype"),
    [
        (reduced_by_halves, torch.int32),
        (scanned_by_halves, torch.int64),
        (scanned_by_halves, torch.float16),
        (scanned_for_the_greatest, torch.bfloat16),
        (of_two_reduced, torch.int8),
    ],
)
def test_what_a_function_returns_is_what_it_is_given(application, dtype):
    """Elements were rounded after each pair here, and no device compiled it."""
    given = str(dtype).removeprefix("torch.")
    with pytest.raises(ApplicationError, match=f"is given {given}, .* returns float") as caught:
        called(application, torch.tensor([3, 4, 9]).to(dtype))
    assert caught.value.location.line == application.__code__.co_firstlineno + 1


def scanned_in_float32(x, y):
    y = ntl.associative_scan(x.to(ntl.float32), 0, greater)


def reduced_and_cast_back(x, y):
    y = x + ntl.reduce(x, 0, lambda one, other: (one * other).to(ntl.float32))


def test_a_tile_that_is_cast_first_is_what_its_function_returns():
    x = torch.tensor([3.0, 9.0, 4.0])
    assert called(scanned_in_float32, x.to(torch.int32)).tolist() == [3, 9, 9]
    assert called(reduced_and_cast_back, torch.tensor([8.0, 2.0])).tolist() == [24, 18]


def compared_and_reduced(x, y):
    y = ntl.reduce(x > 1, 0, added)


def test_they_are_refused_before_any_call_where_they_are_made():
    with pytest.raises(ApplicationError, match=r"given truth values"):
        ninetoothed.make(
            lambda *t: tuple(x.tile((4,)) for x in t), compared_and_reduced, (Tensor(1),) * 2
        )


def counted_and_combined(x, y):
    count = ntl.reduce(x.to(ntl.int32), 0, added)
    y = count + ntl.where(ntl.reduce(x, 0, either), 10, 0)


def test_truth_values_are_counted_once_cast_and_combined_as_they_are():
    x = torch.tensor([True, False, True])
    assert called(counted_and_combined, x, output=torch.int32).tolist() == [12, 12, 12]


def among(x, z, y):
    y = (x in (1, z, 4)) + (x not in (2,)) * 2


def test_a_tile_is_looked_for_in_a_tuple_element_by_element():
    x, z = torch.arange(5), torch.tensor([7, 1, 2, 3, 4])
    assert called(among, x, z, output=torch.int32).tolist() == [2, 3, 1, 3, 3]


def negated_or_either(one, other):
    return -(one.to(ntl.int32)) + (one | other)


def mapped_once_cast(x, y):
    y = ntl.map_elementwise(negated_or_either, x, x == 0)


def test_a_function_maps_truth_values_that_it_casts():
    x = torch.tensor([True, False, True])
    assert called(mapped_once_cast, x, output=torch.int32).tolist() == [0, 1, 0]


def multiplied(x, y):
    y = ntl.dot(x, x)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool], ids=str)
def test_a_product_of_integers_says_which_it_takes(dtype):
    x, y = torch.ones(16, 16).to(dtype), torch.zeros(16, 16)
    kernel = ninetoothed.make(
        lambda *t: tuple(x.tile((-1, -1)) for x in t), multiplied, (Tensor(2),) * 2
    )
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(ApplicationError, match=f"needs int8, but got {name}") as caught:
        kernel(x, y)
    assert caught.value.location.line == multiplied.__code__.co_firstlineno + 1


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_size_of_constants_is_a_count(count):
    def greatest(x, y):
        y = ntl.topk(x, y.shape[0]) + ntl.topk(x, x.shape[0] * y.shape[0] // x.shape[0])

    def arrangement(x, y, K=Symbol("K", constexpr=True)):  # noqa: B008
        return x.tile((-1,)), y.tile((K,))

    x, y = torch.tensor([3.0, 0.0, 7.0, 1.0, 2.0]), torch.zeros(count)
    ninetoothed.make(arrangement, greatest, (Tensor(1), Tensor(1)))(x, y, K=count)
    assert y.tolist() == [14.0, 6.0, 4.0, 2.0][:count]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32], ids=str)
def test_a_number_is_a_condition_where_it_is_not_0(dtype):
    def chosen(x, y):
        y = ntl.where(x, ntl.where(2, 5, x), ntl.where(x.shape[0] - 4, 6, 7))

    assert called(chosen, torch.tensor([2, 0, 3, 0]).to(dtype)).tolist() == [5, 7, 5, 7]
