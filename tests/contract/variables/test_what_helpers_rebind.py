"""A helper that returns nothing rebinds the variables that it is given, by whichever way it gets them.

A case is an application of ``x``, which is 1, 2 and 3 in one tile, a number ``n`` and ``y``, and what comes out of
it for each number. Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import functools

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.variables.cases import check, table

#: What an application gives is a function of the elements and the number, or of these alone.
CASES, case = table()


def bump(p):
    p = p + 1


# Helpers that call themselves.


def doubled(p, times):
    if times > 0:
        p = p * 2
        doubled(p, times - 1)


@case(lambda x, n: x * 8)
def a_helper_that_calls_itself(x, n, y):
    v = x + 0
    doubled(v, 3)
    y = v


@case(lambda x, n: x * 16)
def one_that_does_in_a_loop(x, n, y):
    v = x + 0
    for _ in range(2):
        doubled(v, 2)
    y = v


@case(lambda x, n: x + 12)
def one_that_does_in_an_unrolled_loop_within_two_that_are_not(x, n, y):
    v = x + 0
    for _ in range(2):
        for _ in range(3):
            for _ in ntl.static_range(2):
                bump(v)
    y = v


@case(lambda x, n: x + 2 * n)
def one_that_does_in_a_loop_by_steps_of_the_kernel_within_two_others(x, n, y):
    v = x + 0
    for _ in range(2):
        for _ in range(n):
            for _ in range(0, n, n):
                bump(v)
    y = v


@case(lambda x, n: x * 8)
def one_that_is_given_a_tile(x, n, y):
    y = x
    doubled(y, 3)


@case(lambda x, n: x * 8)
def one_that_is_defined_within(x, n, y):
    def own(p, times):
        if times > 0:
            p = p * 2
            own(p, times - 1)

    v = x + 0
    own(v, 3)
    y = v


def in_turns(p, q, times):
    if times > 0:
        p = p * 2
        in_turns(q, p, times - 1)


@case(lambda x, n: 400 * x + 2 * (x + 1))
def variables_in_turns(x, n, y):
    v = x + 0
    w = x + 1
    in_turns(v, w, 3)
    y = v * 100 + w


def first(p, q, times):
    if times > 0:
        second(q, p, times - 1)


def second(p, q, times):
    if times > 0:
        q = q + 10
        first(q, p, times - 1)


@case(lambda x, n: (x + 30) * 100 + x * 2)
def two_that_call_each_other(x, n, y):
    v = x + 0
    w = x * 2
    first(v, w, 6)
    y = v * 100 + w


# Helpers of which only the running program knows which they are.


class Maker:
    def bump(self, p):
        p = p + 1


MAKER, PART, SEVERAL = Maker(), functools.partial(bump), (bump, bump)


def applied(helper, p):
    helper(p)


def through_its_own(p):
    def own(q):
        q = q + 1

    own(p)


def through_a_method(p):
    MAKER.bump(p)


def through_a_part(p):
    PART(p)


def through_an_item(p):
    SEVERAL[0](p)


def through_a_choice(p):
    (bump if SEVERAL else doubled)(p)


@case(lambda x, n: x + 6)
def through_others(x, n, y):
    v = x + 0
    applied(bump, v)
    through_its_own(v)
    through_a_method(v)
    through_a_part(v)
    through_an_item(v)
    through_a_choice(v)
    y = v


@case(lambda x, n: x + 3)
def through_one_in_a_loop(x, n, y):
    v = x + 0
    for _ in range(3):
        applied(bump, v)
    y = v


@case(lambda x, n: x + 6 + (n > 0))
def what_is_constant_stays_so(x, n, y):
    v = x + 0
    size = 3
    for _ in range(2):
        applied_with(added, v, size)
    if n > 0:
        applied_with(added, v, size // 3)
        applied_with(added, v, size * 0)
        applied_with(added, v, size - 3)
    pair = (ntl.zeros((size + 1,), ntl.float32), size)
    y = v + ntl.sum(pair[0])


def added(p, amount):
    p = p + amount


def applied_with(helper, p, amount):
    helper(p, amount)


def last_of(p, *rest, k):
    k = k + 1
    p = p * 10 + k


@case(lambda x, n: x * 10 + 3 + 100 * (x + 1) + 1000 * (x + 2))
def what_is_given_to_a_star_stays(x, n, y):
    v, w, u = x + 0, x + 1, x + 2
    last_of(v, w, u, k=2)
    y = v + 100 * w + 1000 * u


def by_place_alone(p, /, **rest):
    p = p + rest["p"]


@case(lambda x, n: 3 * x + 200 * x)
def what_a_keyword_of_the_same_name_gives_stays(x, n, y):
    v, w = x + 0, x * 2
    by_place_alone(v, p=w)
    y = v + 100 * w


class Times:
    def __init__(self, factor):
        self.factor = factor

    def times(self, p):
        p = p * self.factor

    def through(self, p):
        self.times(p)


def scaled(factor, p):
    p = p * factor


TIMES, THREE_TIMES = Times(5), functools.partial(scaled, 3)


@case(lambda x, n: 25 * x + 900 * x)
def through_bound_ones(x, n, y):
    v, w = x + 0, x * 1
    TIMES.through(v)
    TIMES.times(v)
    THREE_TIMES(w)
    applied(THREE_TIMES, w)
    y = v + 100 * w


# In comprehensions.


@case(lambda x, n: x + 9)
def for_each_element(x, n, y):
    v = x + 0
    [bump(v) for _ in range(3)]
    for _ in range(2):
        [bump(v) for _ in range(3)]
    y = v


@case(lambda x, n: x + 3 + 100 * (3 * x + 6))
def for_each_of_a_generator(x, n, y):
    v = x + 0
    total = sum((bump(v), v)[1] for _ in range(3))
    y = v + 100 * total


@case(lambda x, n: (x + 3) * 100 + (x + 3) * 2)
def in_a_condition(x, n, y):
    v = x + 0
    items = [v * k for k in range(3) if (bump(v), k != 1)[1]]
    y = v * 100 + sum(items)


@case(lambda x, n: x + 1)
def in_what_is_gone_over(x, n, y):
    v = x + 0
    [0 for _ in (bump(v),)]
    y = v


@case(lambda x, n: x + 3)
def in_a_comprehension_that_is_gone_over(x, n, y):
    v = x + 0
    items = [k for k in [(bump(v), j)[1] for j in range(3)]]  # noqa: C416
    y = v + sum(items) - 3


@case(lambda x, n: x + 4 + 10 * (x + 4) + 100 * (x + 1))
def in_a_comprehension_of_another(x, n, y):
    v = x + 0
    items = [[(bump(v), v)[1] for _ in range(2)] for _ in range(2)]
    y = v + 10 * items[1][1] + 100 * items[0][0]


def _gone_over(x, n):
    total = 0
    for a in (1, 2):
        x = x + 1
        for b in (x, 5):
            x = x + 1
            total = total + x * a + b
    return x * 1000 + total


@case(_gone_over)
def in_what_is_gone_over_within(x, n, y):
    v = x + 0
    items = [(bump(v), v * a + b)[1] for a in (1, 2) for b in ((bump(v), v)[1], 5)]
    y = v * 1000 + sum(items)


@case(lambda x, n: (x > 1) * 1 + 10 * ((1 < 2 * x) & (2 * x < 5)) + 100 * ((x > 1) & (x < 3)))
def tiles_are_compared_in_them(x, n, y):
    one, other = [ntl.where(1 < v < 5, 1, 0) for v in (x * 1, x * 2)]
    either = [v > 1 and v < 3 for v in (x, x * 2)]
    y = one + 10 * other + 100 * either[0]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1])
def test_it_means_what_python_says(name, n):
    check(*CASES[name], n)


# In a loop whose last round has no element for some lanes.


def raised(p, value):
    p = ntl.maximum(p, value)


def applied_to(helper, p, value):
    helper(p, value)


def by_a_function(x, y):
    greatest = ntl.full((4,), -100.0, ntl.float32)
    for k in range(x.shape[0]):
        applied_to(raised, greatest, x[k])
    y = greatest  # noqa: F841


def by_its_own(x, y):
    def own(p, value):
        p = ntl.maximum(p, value)

    greatest = ntl.full((4,), -100.0, ntl.float32)
    for k in range(x.shape[0]):
        own(greatest, x[k])
    y = greatest  # noqa: F841


def by_an_item(x, y):
    greatest = ntl.full((4,), -100.0, ntl.float32)
    k = 0
    while k < x.shape[0]:
        for each in (raised,):
            each(greatest, x[k])
        k = k + 1
    y = greatest  # noqa: F841


def in_an_unrolled_loop(x, y):
    greatest = ntl.full((4,), -100.0, ntl.float32)
    for k in ntl.static_range(2):
        applied_to(raised, greatest, x[k])
    y = greatest  # noqa: F841


def in_one_within_another(x, y):
    greatest = ntl.full((4,), -100.0, ntl.float32)
    for _ in range(2):
        for first in (0, 1):
            for k in (first, 1 - first):
                if ntl.program_id(0) == 0:
                    raised(greatest, x[k])
    y = greatest  # noqa: F841


def in_one_of_the_helper(x, y):
    def of_all(p):
        for k in (1, 0):
            raised(p, x[k])

    greatest = ntl.full((4,), -100.0, ntl.float32)
    of_all(greatest)
    y = greatest  # noqa: F841


def in_one_of_a_helper_with_a_name_of_its_own(x, y):
    def of_all(p):
        for k in (1, 0):
            raised(p, x[k])
        return p

    greatest = ntl.full((4,), -100.0, ntl.float32)
    y = of_all(greatest)  # noqa: F841


def in_one_that_returns(x, y):
    def of_all(p):
        for k in (1, 0):
            raised(p, x[k])
            if ntl.program_id(0) > k:
                return p * 0
        return p

    y = of_all(ntl.full((4,), -100.0, ntl.float32))  # noqa: F841


@pytest.mark.parametrize(
    "application",
    [
        by_a_function,
        by_its_own,
        by_an_item,
        in_an_unrolled_loop,
        in_one_within_another,
        in_one_of_the_helper,
        in_one_of_a_helper_with_a_name_of_its_own,
        in_one_that_returns,
    ],
)
def test_a_lane_without_an_element_keeps_what_it_had(application):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)).tile((-1,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.arange(6.0) - 50, torch.full((4,), float("nan"))
    kernel(x, y)
    assert y.tolist() == [-46, -45, -48, -47]
