"""Numbers that helpers change in a loop: from its first round on they are the running kernel's, as others that change.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def counted(k):
    k = k + 1


def counted_by_another(k):
    counted(k=k)


def in_a_while(x, n, y):
    v, k = x + 0, 0
    while k < n:
        v *= (k + 1.0).to(ntl.float32)
        counted(k)
    y = v  # noqa: F841


def in_a_loop_within_a_helper(x, n, y):
    def product(v, of):
        k = 0
        for _ in range(of):
            for _ in range(1):
                v *= (k + 1.0).to(ntl.float32)
                counted_by_another(k)

    v = x + 0
    product(v, n)
    product(v, 1)
    y = v  # noqa: F841


@pytest.mark.parametrize("application", [in_a_while, in_a_loop_within_a_helper])
def test_what_a_helper_counts_later_in_a_loop_is_a_number_of_the_kernel_before(application):
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)), n, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(1.0, 5), torch.full((4,), float("nan"))
    kernel(x, 3, y)
    torch.testing.assert_close(y, x * 6)


def no_function_of_numbers(x, n, y):
    k = 0
    while k < n:
        y = x * (k + 1.0).cube()  # noqa: F841
        counted(k)


def no_name(x, n, y):
    k = 0
    while k < n:
        y = x * (k + scale)  # noqa: F821, F841
        counted(k)


def nothing_of_the_loop(x, n, y):
    k = 0
    while k < n:
        y = x * (k + 1.0).to(ntl.float32)  # noqa: F841
        counted(k)
    y = x.cube()  # noqa: F841


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (no_function_of_numbers, r"has no 'cube'.*\n.*\n.*k \+ 1\.0"),
        (no_name, "The name 'scale' in 'no_name' is not defined"),
        (nothing_of_the_loop, r"y = x\.cube\(\)"),
    ],
)
def test_what_is_wrong_with_such_a_loop_or_behind_it_is_told_as_it_is(application, message):
    with pytest.raises(ApplicationError, match=message):
        ninetoothed.make(
            lambda x, n, y: (x.tile((4,)), n, y.tile((4,))),
            application,
            (Tensor(1), Tensor(0), Tensor(1)),
        )


# A constant index that is negative counts from the end; the running kernel's is beyond the level.


def by_a_function(x, y):
    k = 0
    while k < y.shape[0]:
        y[k] = x[k - 1]
        counted(k)


def by_one_within(x, y):
    k = 0
    while k < y.shape[0]:

        def stored(k):
            y[k] = x[k - 1]
            k += 1

        stored(k)


def by_one_that_another_calls(x, y):
    def first(step, k):
        second(k=k, by=step)

    def second(k, by):
        counted_by_another(k)

    k = 0
    for _ in range(y.shape[0]):
        y[k] = x[k - 1]
        first(1, k=k)


def by_one_that_calls_itself(x, y):
    def deep(k, times):
        if times > 0:
            deep(k, times - 1)
        else:
            k += 1

    k = 0
    while k < y.shape[0]:
        y[k] = x[k - 1]
        deep(k, 2)


def and_another_that_is_not(x, y):
    def of_both(k, last):
        k += 1
        x[last] + k

    k, last = 0, -1
    while k < y.shape[0]:
        y[k] = x[k - 1] + x[last] - x[-1]
        of_both(k, last)


def and_one_for_itself(x, y):
    def next_of(number):
        number += 1
        return number

    def of_both(k, last):
        def never(last):
            last += 1

        next_of(last)
        k += 1

    k, last = 0, -1
    while k < y.shape[0]:
        y[k] = x[k - 1] + x[last] - x[-1]
        of_both(k, last)


def tiles_before(application):
    def arrangement(x, y):
        return x.tile((2,)).tile((-1,)), y.tile((2,)).tile((-1,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    around = torch.full((16,), 99.0)
    x, y = around[4:10], torch.full((6,), float("nan"))
    x.copy_(torch.arange(1.0, 7))
    kernel(x, y)
    return y.tolist()


@pytest.mark.parametrize(
    "application",
    [by_a_function, by_one_within, by_one_that_another_calls, by_one_that_calls_itself],
)
def test_what_is_before_the_first_tile_does_not_exist(application):
    assert tiles_before(application) == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("application", [and_another_that_is_not, and_one_for_itself])
def test_a_number_that_no_helper_changes_is_a_constant(application):
    assert tiles_before(application) == [0, 0, 1, 2, 3, 4]


def of_few_bits(x, y):
    k = 0
    while k < 3:
        y = x * k * k  # noqa: F841
        counted(k)


def test_it_has_the_type_that_it_has_in_later_rounds():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), of_few_bits, (Tensor(1), Tensor(1))
    )
    x, y = torch.full((4,), 100, dtype=torch.int8), torch.zeros(4, dtype=torch.int32)
    kernel(x, y)
    assert y.tolist() == [400] * 4


def of_both(k, last):
    k = k + last


def before_the_level(x, y):
    last = -9
    for k in range(y.shape[0]):
        y[k] = x[last]
        of_both(k + 0, last)


def before_the_level_beside_what_changes(x, y):
    count, last = 0, -9
    while count < y.shape[0]:
        y[count] = x[last] * (count + 1.0).to(ntl.float32)
        of_both(count, last)


@pytest.mark.parametrize("application", [before_the_level, before_the_level_beside_what_changes])
def test_what_is_given_to_a_helper_that_does_not_change_it_is_refused_as_the_constant_it_is(
    application,
):
    def arrangement(x, y):
        return x.tile((2,)).tile((3,)), y.tile((2,)).tile((3,))

    with pytest.raises(
        ApplicationError, match="'x' is indexed with -9, and that dimension has size 3"
    ):
        ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
