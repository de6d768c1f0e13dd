"""LANGUAGE.md, "Padding": the place of a greatest or a least element is that of one that exists.

What stands in the padding is no greater than any element, and may be as great: then the element is told.
NaN is left out too: of NaN alone the first is told, of nothing 0.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError

#: Of each type the least number and the greatest.
LIMITS = [
    (torch.bool, 0, 1),
    (torch.uint8, 0, 255),
    (torch.int8, -128, 127),
    (torch.int32, -(2**31), 2**31 - 1),
    (torch.int64, -(2**63), 2**63 - 1),
    (torch.float16, float("-inf"), float("inf")),
    (torch.bfloat16, float("-inf"), float("inf")),
    (torch.float32, float("-inf"), float("inf")),
]


def filled(count, value, dtype):
    return torch.full((count,), value, dtype=dtype)


@pytest.mark.parametrize(("dtype", "least", "greatest"), LIMITS)
def test_an_element_like_the_identity_is_told_before_the_padding(dtype, least, greatest):
    def application(x, z, y):
        first = x[ntl.arange(0, 8) - 3]
        second = z[ntl.arange(0, 8) - 3]
        y[0] = ntl.argmax(first, axis=0)
        y[1] = ntl.argmin(second, axis=0)
        y[2] = ntl.max(first, axis=0, return_indices=True)[1]
        y[3] = ntl.min(second, 0, return_indices=True)[1]
        y[4] = second.argmax(0)
        y[5] = first.argmin(0)

    def arrangement(x, z, y):
        return x.tile((5,)), z.tile((5,)), y.tile((6,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    y = torch.full((6,), float("nan"))
    kernel(filled(2, least, dtype), filled(2, greatest, dtype), y)
    assert y.tolist() == [3] * 6


def test_of_several_the_first_is_told():
    def application(x, y):
        value, place = ntl.max(x[ntl.arange(0, 8) - 2], axis=0, return_indices=True)
        y[0] = value
        y[1] = place
        y[2] = ntl.argmin(x[5 - ntl.arange(0, 8)], axis=0)

    def arrangement(x, y):
        return x.tile((5,)), y.tile((3,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((3,), float("nan"))
    kernel(torch.tensor([1, 7, 7, 1], dtype=torch.int32), y)
    assert y.tolist() == [7, 3, 2]


@pytest.mark.parametrize("keep_dims", [False, True])
def test_along_one_of_two_dimensions(keep_dims):
    def application(x, y):
        part = x[ntl.arange(0, 4)[:, None] - 1, ntl.arange(0, 8)[None, :] - 2]
        rows = ntl.argmax(part, axis=1, keep_dims=keep_dims)
        columns = ntl.argmax(part, axis=0, keep_dims=keep_dims)
        y[0] = ntl.max(rows)
        y[1] = ntl.sum(columns)

    def arrangement(x, y):
        return x.tile((3, 5)), y.tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(2, 3, dtype=torch.uint8), y)
    # Three columns exist, the first element of each in the second row.
    assert y.tolist() == [2, 3]


def test_of_a_tile_whose_arrangement_reverses_it():
    """Its elements are the last ones."""

    def arrangement(x, y):
        x = x.tile((5,))
        x.dtype = x.dtype[::-1]
        return x, y.tile((1,))

    def application(x, y):
        y = ntl.argmax(x, axis=0)  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(7, dtype=torch.uint8), y)
    assert y.tolist() == [0, 3]


def test_in_a_loops_condition():
    def application(x, y):
        count = 0
        while ntl.argmax(x[ntl.arange(0, 8) - 3], axis=0) + count < 5:
            count += 1
        y[0] = count

    def arrangement(x, y):
        return x.tile((5,)), y.tile((1,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((1,), float("nan"))
    kernel(torch.zeros(2, dtype=torch.uint8), y)
    assert y.tolist() == [2]


def greater_real(a, b):
    return a * 0 + b * 0 + 7


def test_a_function_of_the_users_is_not_taken_for_the_one_that_finds_places():
    def application(x, y):
        y[0] = ntl.reduce(x, 0, greater_real)
        y[1] = ntl.argmax(x[ntl.arange(0, 8) - 3], axis=0)

    def arrangement(x, y):
        return x.tile((5,)), y.tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(2, dtype=torch.uint8), y)
    assert y.tolist() == [7, 3]


def test_what_was_joined_is_sorted_between_both():
    def application(x, z, y):
        beside = ntl.join(x, z)
        beside -= ntl.sort(beside, descending=False)
        y = ntl.sum(ntl.abs(beside), axis=1)  # noqa: F841

    def arrangement(x, z, y):
        return x.tile((5,)), z.tile((5,)), y.tile((5,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    y = torch.full((3,), float("nan"))
    kernel(torch.tensor([1.0, 5, 2]), torch.tensor([4.0, 3, 2]), y)
    assert y.tolist() == [0, 4, 0]


@pytest.mark.parametrize(
    "place", [lambda x: ntl.argmin(x, None), lambda x: ntl.max(x, return_indices=True)[1]]
)
def test_of_all_elements_no_dimension_is_named(place):
    """Said where it stands, whatever runs it."""

    def application(x, y):
        y = place(x)  # noqa: F841

    def arrangement(x, y):
        return x.tile((2, -1)), y.tile((1,))

    with pytest.raises(ApplicationError, match="gives positions along one dimension: name it"):
        ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("extremum", [ntl.max, ntl.min])
def test_the_greatest_and_the_least_of_negated_integers(extremum, dtype):
    """One thread has several of them, as an assembler may put together (`compiler/negations.py`)."""

    def application(x, y):
        y = extremum(extremum(-x, axis=0), axis=0)  # noqa: F841

    def arrangement(x, y):
        return x.tile((-1, -1)), y.tile((1, 1))

    x, y = torch.randint(1, 100, (6, 11)).to(dtype), torch.zeros(1, 1)
    tensors = Tensor(2), Tensor(2)
    ninetoothed.make(arrangement, application, tensors, num_warps=1)(x, y)
    assert y.item() == ((-x).max() if extremum is ntl.max else (-x).min())


NAN, INF = float("nan"), float("inf")

#: Elements, and the places of the greatest and of the least.
WITH_NAN = [
    ([1.0, NAN, 3.0, 2.0], 2, 0),
    ([NAN, 1.0, 3.0], 2, 1),
    ([NAN, -INF, NAN], 1, 1),
    ([INF, NAN, INF, NAN, INF], 0, 0),
    ([NAN, -INF, INF, NAN, -INF], 2, 1),
    ([NAN, NAN, NAN], 0, 0),
    ([NAN, NAN, NAN, NAN], 0, 0),
]


def found_in(x, places, values):
    """By each way to ask."""
    places[0] = ntl.argmax(x, axis=0)
    places[1] = x.argmin(0, tie_break_left=False)
    value, place = ntl.max(x, 0, return_indices=True)
    places[2], values[0] = place, value
    value, place = ntl.min(x, 0, True, return_indices_tie_break_left=False)
    places[3], values[1] = place, value


def run(application, x, places=4, values=2, tile=None):
    def arrangement(x, *others):
        return x.tile((tile or -1,)), *(each.tile((-1,)) for each in others)

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    results = torch.full((places,), 99, dtype=torch.int32), torch.full((values,), 99.0)
    kernel(x, *results)
    return tuple(each.tolist() for each in results)


def same(one, other):
    return torch.equal(torch.tensor(one).nan_to_num(77), torch.tensor(other).nan_to_num(77))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize(("elements", "greatest", "least"), WITH_NAN)
def test_beside_nan_a_number_is_told(elements, greatest, least, dtype):
    places, values = run(found_in, torch.tensor(elements, dtype=dtype))
    assert places == [greatest, least, greatest, least]
    assert same(values, [elements[greatest], elements[least]])


@pytest.mark.parametrize(("elements", "greatest", "least"), WITH_NAN)
def test_beside_nan_a_number_is_told_where_padding_comes_first(elements, greatest, least):
    def application(x, places, values):
        found_in(x[ntl.arange(0, 8) - 3], places, values)

    places, values = run(application, torch.tensor(elements))
    assert places == [greatest + 3, least + 3, greatest + 3, least + 3]
    assert same(values, [elements[greatest], elements[least]])


def test_beside_nan_in_bfloat16():
    """The value is in 32 bits, whether the type was declared or not."""

    def application(x, places, values):
        value, place = ntl.max(x, 0, return_indices=True)
        places[0], values[0] = place, value + 0.001

    x = torch.tensor([2.0, NAN, 3.0], dtype=torch.bfloat16)
    places, values = run(application, x, 1, 1)
    assert places == [2]
    assert values == [pytest.approx(3.001, abs=1e-6)]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(3, 5), (4, 8), (1, 4), (5, 1)])
def test_beside_nan_along_one_of_two_dimensions(shape, axis):
    def application(x, greatest, least):
        greatest = ntl.argmax(x, axis, keep_dims=True)  # noqa: F841
        least = ntl.min(x, axis, return_indices=True, keep_dims=True)[1]  # noqa: F841

    def arrangement(*tensors):
        return tuple(each.tile((-1, -1)) for each in tensors)

    generator = torch.Generator(torch.get_default_device()).manual_seed(0)
    choices = torch.tensor([NAN, -INF, INF, 0.0, 1.0])
    x = choices[torch.randint(0, len(choices), shape, generator=generator)]
    x[0] = NAN
    size = [1 if dim == axis % 2 else n for dim, n in enumerate(shape)]
    results = [torch.full(size, 99) for _ in range(2)]
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2), Tensor(2)))(x, *results)
    for result, sign in zip(results, (1, -1)):
        best = (sign * x).nan_to_num(-INF, INF, -INF).amax(axis, keepdim=True)
        is_best = (sign * x == best).int()
        assert torch.equal(result, is_best.argmax(axis, keepdim=True))


def test_of_nothing_the_place_is_0():
    def application(x, places, values):
        found_in(x[ntl.arange(0, 8) + 50], places, values)

    assert run(application, torch.ones(5)) == ([0, 0, 0, 0], [-INF, INF])
    assert run(application, torch.ones(5, dtype=torch.int32))[0] == [0, 0, 0, 0]


def test_of_equal_integers_none_in_the_padding_is_told():
    """Whichever of them is asked for."""

    def application(x, places, values):
        places[0] = ntl.argmax(ntl.cast(x, ntl.int32), 0, tie_break_left=False)
        places[1] = ntl.max(ntl.cast(x, ntl.int32), 0, True, False)[1]

    assert run(application, filled(1, -(2**31), torch.int32), 2, tile=4)[0] == [0, 0]


def test_beside_nan_in_a_loops_condition():
    """It is asked of what each round leaves."""

    def application(x, places, values):
        rest = x + 0
        count = 0
        while (ntl.argmax(rest, axis=0) > 0) & (count < 9):
            rest = ntl.where(rest == ntl.max(rest), float("nan"), rest)
            count += 1
        places[0] = count

    assert run(application, torch.tensor([2.0, 5, NAN, 7, 3]), 1)[0] == [3]


def test_several_values_are_combined_in_a_loops_condition():
    def sums(a, b, c, d):
        return a + c, b + d

    def application(x, places, values):
        rest = x + 0
        count = 0
        while (ntl.reduce((rest, rest), 0, sums)[1] > 20) & (count < 9):
            rest -= 1
            count += 1
        places[0] = count

    assert run(application, torch.tensor([9.0, 9, 9, 9, 9]), 1)[0] == [5]


@pytest.mark.parametrize(("count", "expected"), [(3, [-INF, INF]), (4, [NAN, NAN])])
def test_of_nan_alone_an_extremum_is_that_of_nothing_where_there_is_padding(count, expected):
    def application(x, places, values):
        values[0] = ntl.max(x)
        values[1] = ntl.min(x)

    assert same(run(application, filled(count, NAN, torch.float32))[1], expected)
