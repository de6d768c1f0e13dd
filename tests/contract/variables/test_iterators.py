"""What gives its items once, as `zip`, `enumerate`, `reversed` and generators do, is gone over once, or refused.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.variables.cases import table

CASES, case = table()


def _made(application):
    return ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )


def weighed(items, others):
    return sum(items) * 10 + sum(others)


def put_sum(destination, items):
    destination = 5
    destination = destination + sum(items)


def add_sum(value, items):
    value = value + 1
    value = value + sum(items)


# What is gone over once.


@case(lambda x, n: x + 1 * 3 + 2 * n)
def pairs_in_a_variable(x, n, y):
    pairs = zip((1, 2), (3, n))
    y = x
    for one, other in pairs:
        y += one * other


@case(lambda x, n: x + 11 if n > 0 else x - 11)
def pairs_in_either_way(x, n, y):
    pairs = zip((1, 2), (3, 4))
    y = x
    if n > 0:
        y += sum(p * q for p, q in pairs)
    else:
        y -= sum(p * q for p, q in pairs)


@case(lambda x, n: x + (5 if n > 0 else 9))
def absolute_values_in_either_way(x, n, y):
    values = map(abs, (2, -3))
    y = x
    if n > 0:
        y += sum(values)
    else:
        y += sum(values) + 4


@case(lambda x, n: x + 11 * n if n > 0 else x)
def pairs_of_each_round(x, n, y):
    y = x
    for _ in range(n):
        pairs = zip((1, 2), (3, 4))
        y += sum(p * q for p, q in pairs)


@case(lambda x, n: x + (11 if n > 0 else 83))
def chosen_pairs(x, n, y):
    pairs = zip((1, 2), (3, 4)) if n > 0 else zip((5, 6), (7, 8))
    y = x + sum(p * q for p, q in pairs)


@case(lambda x, n: 30 * n + 7 * x)
def generators_for_a_helper(x, n, y):
    y = weighed((v * n for v in (1, 2)), (v * x for v in (3, 4)))


@case(lambda x, n: 3 * x + 5)
def a_generator_beside_what_is_stored(x, n, y):
    put_sum(y, (x * k for k in (1, 2)))  # noqa: F841


@case(lambda x, n: 5 * x)
def items_from_before_a_variable_changed(x, n, y):
    k = x * 1
    counted = enumerate([k, k * 2])
    k = k * 100
    y = sum(v * (place + 1) for place, v in counted)


@case(lambda x, n: x + 93)
def the_first_and_the_rest(x, n, y):
    items = iter((3, 4, 5))
    y = x + next(items)
    for item in items:
        y += item * 10


@case(lambda x, n: x + 2 + 7)
def the_first_that_there_is(x, n, y):
    y = x + next(v for v in (1, 2, 3) if v > 1) + next(iter(()), 7)


@case(lambda x, n: x + 4)
def what_is_true_though_it_is_empty(x, n, y):
    y = x + (1 if zip() else 2) + (2 if not reversed(()) else 3)


NUMBERS = np.array([[1, 2], [3, 4]])


@case(lambda x, n: x + 20 + 21)
def numbers_from_outside(x, n, y):
    y = x + sum(NUMBERS.flat) + sum(NUMBERS.flat)
    for p, q in itertools.product((1, 2), (3, 4)):
        y += p * q


@pytest.mark.parametrize("n", [2, -1])
@pytest.mark.parametrize("name", CASES)
def test_once(name, n):
    application, expected = CASES[name]
    x, y = torch.arange(1.0, 5), torch.full((4,), float("nan"))
    _made(application)(x, n, y)
    torch.testing.assert_close(y, expected(x, n) + torch.zeros(4))


# What is refused.

COUNTED = reversed([1, 2, 3])
HELD = (iter([1, 2]), map(abs, (1, 2)))
GENERATED = (k for k in (1, 2))


def pairs_twice(x, n, y):
    pairs = zip((1, 2), (3, 4))
    y = x + sum(p * q for p, q in pairs)
    y += sum(p * q for p, q in pairs)


def in_a_list_and_by_another_name(x, n, y):
    held = [enumerate((1, 2))]
    other = held
    y = x + sum(v for _, v in held[0]) + sum(v for _, v in other[0])


def given_twice(x, n, y):
    items = reversed((1, 2))
    y = x + weighed(items, items)


def a_generator_given_once_and_gone_over_twice(x, n, y):
    def twice(items):
        return sum(items) * 10 + sum(items)

    y = twice(x * k for k in (1, 2))


def in_each_round(x, n, y):
    pairs = zip((1, 2), (3, 4))
    y = x
    for _ in range(n):
        y += sum(p * q for p, q in pairs)


def in_each_condition(x, n, y):
    items = reversed((1, 2))
    i = n * 1
    while i < sum(items):
        i += 20
    y = x + i


def after_unpacking(x, n, y):
    items = reversed((1, 2))
    one, other = items
    y = x + one + other + sum(items)


def behind_a_condition(x, n, y):
    items = filter(None, (1, 2))
    y = x
    if n > 0:
        y += sum(items)
    y += sum(items)


def a_range_backwards(x, n, y):
    numbers = reversed(range(n))
    y = x
    for i in numbers:
        y += i
    for i in numbers:
        y += i


def by_an_inner_function(x, n, y):
    items = reversed((1, 2))

    def total():
        return sum(items)

    y = x + total() + total()


def as_a_default(x, n, y):
    def total(value, items=reversed((1, 2))):  # noqa: B008
        return value + sum(items)

    y = total(x) + total(x)


def by_what_counts_it(x, n, y):
    items = reversed((1, 2))
    counted = enumerate(items)
    y = x + sum(items) + sum(v for _, v in counted)


def chosen_and_by_itself(x, n, y):
    one, other = zip((1,), (2,)), zip((3,), (4,))
    chosen = one if n > 0 else other
    y = x + sum(p * q for p, q in chosen) + sum(p * q for p, q in other)


def the_next_of_each_round(x, n, y):
    items = iter((3, 4, 5))
    y = x
    for _ in range(n):
        y += next(items)


def a_counted_generator_of_what_changes(x, n, y):
    k = 1
    counted = enumerate(x * k for _ in (1, 2))
    k = 10
    y = sum(v for _, v in counted)


def a_zipped_generator_whose_function_sees_what_changes(x, n, y):
    def scaled(v):
        return v * k

    k = x * 1
    pairs = zip((scaled(i) for i in (1, 2)), (3, 4))
    k = k + 1
    y = sum(p * q for p, q in pairs)


def a_generator_of_what_is_stored(x, n, y):
    y = x
    put_sum(y, (y * k for k in (1, 2)))


def a_generator_of_what_a_helper_changes(x, n, y):
    k = x * 1
    add_sum(k, (k * i for i in (1, 2)))
    y = k


def from_outside(x, n, y):
    y = x * sum(COUNTED)


def the_next_from_outside(x, n, y):
    y = x * next(HELD[0])


def within_what_is_from_outside(x, n, y):
    y = x * (1 if 2 in HELD[1] else 0)


def by_a_method_from_outside(x, n, y):
    y = x * GENERATED.__next__()


def unpacked_from_outside(x, n, y):
    one, other = GENERATED
    y = x * one + other


def its_length(x, n, y):
    y = x + len(zip((1, 2), (3, 4)))


def an_item_of_it(x, n, y):
    y = x + list(reversed((1, 2)))[0] + reversed((1, 2))[0]


def equal_ones(x, n, y):
    y = x + (1 if zip((1,)) == zip((1,)) else 2)


def added_ones(x, n, y):
    y = x + sum(reversed((1, 2)) + (3,))


def twice_backwards(x, n, y):
    total = x * 0
    for k in reversed(reversed(range(x.shape[0]))):
        total += k
    y = total


@pytest.mark.parametrize(
    ("application", "message"),
    [
        *(
            (application, "is gone over once, and this was.*make a list")
            for application in (
                pairs_twice,
                in_a_list_and_by_another_name,
                given_twice,
                a_generator_given_once_and_gone_over_twice,
                in_each_round,
                in_each_condition,
                after_unpacking,
                behind_a_condition,
                a_range_backwards,
                by_an_inner_function,
                as_a_default,
                by_what_counts_it,
                chosen_and_by_itself,
                the_next_of_each_round,
            )
        ),
        *(
            (application, "what it is made of was changed.*make a list")
            for application in (
                a_counted_generator_of_what_changes,
                a_zipped_generator_whose_function_sees_what_changes,
                a_generator_of_what_is_stored,
                a_generator_of_what_a_helper_changes,
            )
        ),
        *(
            (application, "from outside of the application.*make a list or a tuple")
            for application in (
                from_outside,
                the_next_from_outside,
                within_what_is_from_outside,
                by_a_method_from_outside,
                unpacked_from_outside,
            )
        ),
        *(
            (application, "is no tuple")
            for application in (its_length, equal_ones, added_ones, twice_backwards)
        ),
        (an_item_of_it, "cannot be indexed"),
    ],
)
def test_what_python_would_find_nothing_in_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        _made(application)
    assert __file__ in str(raised.value)
