"""LANGUAGE.md, "The rule of meeting": what meets under conditions that a call's numbers or data decide."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError
from tests.contract.kernels import blocks_of_rows
from tests.contract.test_meeting_in_flow import blocks, called, given, made, whole


def in_one_branch(x, w, y, flag):
    if flag > 0:
        y = x + w
    else:
        y = x  # noqa: F841


def one_of_two(x, w, y, flag):
    y = w if flag / 2 > 0 else x  # noqa: F841


def one_of_two_branches(x, w, y, flag):
    if flag > 0:
        y = w
    else:
        y = x  # noqa: F841


def one_of_two_in_a_variable(x, w, y, flag):
    value = x * 2
    if flag:
        value = w * 2
    y = value + ntl.exp(x)  # noqa: F841


def beside_the_value_before(x, w, y, flag):
    y = x
    if flag:
        y = y + w


def not_at_all(x, w, y, flag):
    is_left_out = not flag
    y = x if is_left_out else x + w  # noqa: F841


def so_many_times(x, w, y, flag):
    value = x
    for _ in range(flag):
        value += w
    y = value  # noqa: F841


def while_it_lasts(x, w, y, flag):
    y = x
    left = flag
    while left > 0:
        y = x + w  # noqa: F841
        left -= 1


def by_an_absolute_value(x, w, y, flag):
    y = x + w if abs(flag) > 0 else x  # noqa: F841


def by_the_least_and_the_greatest(x, w, y, flag):
    if min(flag, 2) + ntl.maximum(flag, 0) > 1:
        y = x + w
    else:
        y = x  # noqa: F841


def by_shifts(x, w, y, flag):
    y = x + w if (flag << 3) >> 2 == 2 else x  # noqa: F841


def by_what_is_left_over(x, w, y, flag):
    y = x + w if (flag + 6) // 2 * 2 % 3 == (flag ^ 1) else x  # noqa: F841


def by_a_choice(x, w, y, flag):
    chosen = 3 if flag > 0 else -3
    y = x + w if bool(flag) and float(chosen) > 0.0 else x  # noqa: F841


def in_a_branch_of_a_branch(x, w, y, flag):
    value = x
    if flag * 2 > 1:
        for _ in range(flag):
            value = value + w if flag == 1 else value
    y = value  # noqa: F841


def in_a_variable_that_the_rounds_leave(x, w, y, flag):
    value = w
    for k in range(1 - flag):
        value = x + k
    y = value  # noqa: F841


#: With a flag that is set, the twelve elements of `x` and `y` meet those of `w`, or are to be them.
DECIDED = [
    in_one_branch,
    one_of_two,
    one_of_two_branches,
    one_of_two_in_a_variable,
    beside_the_value_before,
    not_at_all,
    so_many_times,
    while_it_lasts,
    by_an_absolute_value,
    by_the_least_and_the_greatest,
    by_shifts,
    by_what_is_left_over,
    by_a_choice,
    in_a_branch_of_a_branch,
    in_a_variable_that_the_rounds_leave,
]


@pytest.mark.parametrize("arrangement", [blocks, whole])
@pytest.mark.parametrize("application", DECIDED, ids=lambda a: a.__name__)
def test_what_a_number_decides_is_refused_where_it_says_so(application, arrangement):
    """Such a tensor may be any where the number leaves it out, in calls with one plan too."""
    kernel = made(application, arrangement, (12,), (11,), (12,), numbers=(0,))
    plain = made(application, arrangement, (12,), (12,), (12,), numbers=(0,))
    for flag in (0, 1, 0, 1):
        expected = given(arrangement, (12,), (12,), (12,), numbers=(flag,))
        plain(*expected.pop("arguments"), **expected)
        arguments = given(arrangement, (12,), (11,), (12,), numbers=(flag,))
        if flag:
            with pytest.raises(ArgumentError, match="11 in dimension 0 of `w`") as caught:
                kernel(*arguments.pop("arguments"), **arguments)
            assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    "application, arrangement, size",
    [(application, blocks, size) for application in DECIDED for size in (1, 3, 15)]
    # A whole one of another size has another shape, which a sum alone spreads.
    + [
        (application, whole, size)
        for application in (in_one_branch, beside_the_value_before, not_at_all, so_many_times)
        for size in (0, 1)
    ],
)
def test_a_tensor_that_a_number_leaves_out_may_be_of_any_size(application, arrangement, size):
    *_, y = called(application, arrangement, (12,), (size,), (12,), numbers=(0,))
    expected = {one_of_two_in_a_variable: 4.0 + 2.718281828459045**2}.get(application, 2.0)
    assert y.tolist() == pytest.approx([expected] * 12)


@pytest.mark.parametrize("application", DECIDED, ids=lambda a: a.__name__)
def test_where_tiles_are_held_in_shapes_that_do_not_meet_no_number_leaves_one_out(application):
    """Both ways are compiled, whatever the numbers are."""
    kernel = made(application, whole, (12,), (5,), (12,), numbers=(0,))
    for flag in (0, 1):
        with pytest.raises(ArgumentError, match="5 in dimension 0 of `w`.*constexpr=True"):
            kernel(*given(whole, (12,), (5,), (12,), numbers=(flag,))["arguments"])


def by_a_size_too(x, w, y, flag):
    if flag > 0 and w.source.shape[0] == x.source.shape[0]:
        y = x + w
    else:
        y = x  # noqa: F841


def test_a_size_that_leaves_one_out_for_all_numbers_does():
    for flag in (0, 1):
        *_, y = called(by_a_size_too, whole, (12,), (5,), (12,), numbers=(flag,))
        assert y.tolist() == [2.0] * 12


@pytest.mark.parametrize("application", DECIDED, ids=lambda a: a.__name__)
def test_what_data_decide_may_be_and_is_refused(application):
    flag = torch.zeros(1, dtype=torch.int32)
    kernel = made(application, whole, (12,), (11,), (12,), (1,))
    with pytest.raises(ArgumentError, match="11 in dimension 0 of `w`"):
        kernel(*given(whole, (12,), (11,), (12,))["arguments"], flag)
    kernel(*given(whole, (12,), (12,), (12,))["arguments"], flag)


def by_an_unknown_function(x, w, y, flag):
    y = x + w if ntl.exp(ntl.cast(flag, ntl.float32)) > 1.5 else x  # noqa: F841


def test_what_numbers_decide_by_another_function_may_be_and_is_refused():
    kernel = made(by_an_unknown_function, whole, (12,), (11,), (12,), numbers=(0,))
    for flag in (0, 1):
        with pytest.raises(ArgumentError, match="11 in dimension 0 of `w`"):
            kernel(*given(whole, (12,), (11,), (12,), numbers=(flag,))["arguments"])
        kernel(*given(whole, (12,), (12,), (12,), numbers=(flag,))["arguments"])


def test_a_shift_that_no_device_has_decides_nothing():
    kernel = made(by_shifts_of_a_number, whole, (12,), (11,), (12,), numbers=(0,))
    for flag in (-1, 40, 0):
        kernel(*given(whole, (12,), (11,), (12,), numbers=(flag,))["arguments"])
    with pytest.raises(ArgumentError, match="11 in dimension 0 of `w`"):
        kernel(*given(whole, (12,), (11,), (12,), numbers=(1,))["arguments"])


def by_shifts_of_a_number(x, w, y, flag):
    y = x + w if 1 << flag == 2 else x  # noqa: F841


def tiles_up_to_a_number(x, w, y, count):
    for k in range(y.shape[0]):
        if k < count:
            y[k] = x[k]
        else:
            y[k] = w[k]


def test_what_a_position_decides_is_left_alone():
    """It may ask how far a tensor goes."""
    *_, y = called(tiles_up_to_a_number, blocks_of_rows, (32,), (48,), (48,), numbers=(2,))
    assert y.tolist() == [2.0] * 48


def sums_of_either(x, w, y, flag):
    y = y * ntl.sum(w if flag > 0 else x)


def loaded_again_by_a_position(x, w, y, flag):
    value = w + 0
    if ntl.program_id(0) > 1:
        value = value * 2
    else:
        value = w  # noqa: F841
    y = value


def in_one_of_two_places_of_a_way(x, w, y, flag):
    if ntl.program_id(0) > 1:
        y = x + w
    else:
        y = w + x
        if flag > 5:
            y = x + w  # noqa: F841


@pytest.mark.parametrize("application", [loaded_again_by_a_position, in_one_of_two_places_of_a_way])
def test_what_is_so_whatever_a_position_decides_is_refused(application):
    with pytest.raises(ArgumentError, match="8 in dimension 0 of `w`"):
        called(application, blocks, (9,), (8,), (9,), numbers=(1,))


def turned_by_a_number(x, y, flag):
    value = x + 0
    y = value if flag > 0 else ntl.trans(value)  # noqa: F841


@pytest.mark.parametrize("flag", [0, 1])
def test_a_tile_in_either_of_two_layouts_has_that_which_a_number_chooses(flag):
    def arrangement(x, y, flag):
        return x.tile((8, 8)), y.tile((8, 8)), flag

    shapes = (5, 7), (5, 7) if flag else (7, 5)
    _, y = called(turned_by_a_number, arrangement, *shapes, numbers=(flag,))
    assert (y == 2).all()
    with pytest.raises(ArgumentError, match="5 in dimension 0 of `x` and 7 in dim"):
        called(turned_by_a_number, arrangement, *shapes[:1], shapes[1][::-1], numbers=(flag,))


def test_a_value_of_its_own_meets_nothing():
    for flag in (1, 0):
        *_, y = called(sums_of_either, whole, (12,), (11,), (5,), numbers=(flag,))
        assert y.tolist() == [2.0 * 2 * (11 if flag else 12)] * 5


def under_a_condition_and_without(x, w, y, flag):
    one, other = x * 2, w * 3
    if flag:
        y = one + other
    y = ntl.exp(one + other)  # noqa: F841


def test_what_meets_without_the_condition_too_is_refused():
    with pytest.raises(
        ArgumentError, match="12 in dimension 0 of `x` and 11 in dimension 0 of `w`"
    ):
        called(under_a_condition_and_without, whole, (12,), (11,), (12,), numbers=(0,))


def under_a_size_and_without(x, w, y):
    one, other = x * 2, w * 3
    if x.source.shape[0] > 100:
        y = one + other
    y = ntl.exp(one + other)  # noqa: F841


def test_what_meets_without_a_size_too_is_refused():
    with pytest.raises(
        ArgumentError, match="12 in dimension 0 of `x` and 11 in dimension 0 of `w`"
    ):
        called(under_a_size_and_without, whole, (12,), (11,), (12,))


def greater_than_a_tenth(x, w, y, scale):
    y = x + w if scale > 0.1 else x  # noqa: F841


def test_a_number_that_is_rounded_on_a_device_is_given_its_way():
    """In 32 bits it is not greater than the other."""
    kernel = made(greater_than_a_tenth, whole, (12,), (11,), (12,), numbers=(0.0,))
    for scale in (0.1, 0.1 + 1e-12, 0.0, float("nan")):
        kernel(*given(whole, (12,), (11,), (12,), numbers=(scale,))["arguments"])
    with pytest.raises(ArgumentError, match="11 in dimension 0 of `w`"):
        kernel(*given(whole, (12,), (11,), (12,), numbers=(0.2,))["arguments"])


# What is changed in one step.


def added(x, y):
    ntl.atomic_add(y, x)


def greatest_by_name(x, y):
    ntl.atomic_max(y, val=x * 1.0)


def added_and_stored(x, y):
    before = ntl.atomic_add(y, x)
    y = before  # noqa: F841


def added_where_there_is_a_mask(x, y):
    ntl.atomic_add(y, x, mask=ntl.arange(0, 16) < 11)


@pytest.mark.parametrize("arrangement", [blocks, whole])
@pytest.mark.parametrize("application", [added, greatest_by_name, added_and_stored])
def test_what_an_atomic_operation_changes_is_compared_as_what_is_stored_to(
    application, arrangement
):
    with pytest.raises(ArgumentError, match="what is made of `x` of shape .11,. is stored to `y`"):
        called(application, arrangement, (11,), (12,))
    called(application, arrangement, (12,), (12,))
    if arrangement is blocks:
        # What there is more of is dropped.
        called(application, arrangement, (12,), (11,))


def test_the_mask_of_an_atomic_operation_says_what_is_changed():
    _, y = called(added_where_there_is_a_mask, blocks, (11,), (12,))
    assert y.tolist() == [4.0] * 11 + [2.0]


def so_many_times_by_a_constant(x, w, y, count):
    value = x
    for _ in range(count):
        value = value + w
    y = value  # noqa: F841


def test_a_constant_leaves_out_the_rounds_of_a_loop():
    tensors = Tensor(1), Tensor(1), Tensor(1), Tensor(0, constexpr=True)
    kernel = ninetoothed.make(whole, so_many_times_by_a_constant, tensors)
    x, w, y = given(whole, (12,), (5,), (12,))["arguments"]
    kernel(x, w, y, 0)
    assert y.tolist() == [2.0] * 12
