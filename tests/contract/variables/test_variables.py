"""A variable holds what it was assigned, whatever becomes afterwards of what that was made of.

A case is an application of ``x``, which is 1, 2 and 3 in one tile, a number ``n`` and ``y``, and what comes out of
it for each number. Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from tests.contract.variables.cases import check, table

#: What an application gives is a function of the elements and the number, or of these alone.
CASES, case = table()


# Tuples that are made of themselves.


@case(lambda x, n: x * 1001)
def swapped_items(x, n, y):
    pair = (x, x * 10)
    pair = (pair[1], pair[0])
    y = pair[0] * 100 + pair[1]


@case(lambda x, n: x * 1001)
def swapped_in_a_list(x, n, y):
    pair = [x, x * 10]
    pair = [pair[1], pair[0]]
    y = pair[0] * 100 + pair[1]


@case(lambda x, n: x * 1001)
def swapped_in_a_dictionary(x, n, y):
    pair = {"a": x, "b": x * 10}
    pair = {"a": pair["b"], "b": pair["a"]}
    y = pair["a"] * 100 + pair["b"]


@case(lambda x, n: x * 0 + 5)
def a_dictionary_that_a_list_holds(x, n, y):
    y = x * 0 + 5
    held = [{"a": y, "b": x}][0]
    y = x
    y = held["a"]


@case(lambda x, n: x * 1001)
def reversed_items(x, n, y):
    pair = (x, x * 10)
    pair = pair[::-1]
    y = pair[0] * 100 + pair[1]


@case(lambda x, n: x * (10 * 1000 + 200 + 1))
def a_transposed_tuple_of_tuples(x, n, y):
    rows = ((x, x * 2), (x * 10, x * 20))
    rows = tuple(zip(*rows))
    y = rows[0][1] * 1000 + rows[1][0] * 100 + rows[0][0]


@case(lambda x, n: x * (1001 if n % 2 else 110))
def swapped_each_round(x, n, y):
    pair = (x, x * 10)
    for _ in range(n):
        pair = (pair[1], pair[0])
    y = pair[0] * 100 + pair[1]


@case(lambda x, n: x * (1001 if n > 1 else 110))
def swapped_in_one_way(x, n, y):
    pair = (x, x * 10)
    if n > 1:
        pair = (pair[1], pair[0])
    y = pair[0] * 100 + pair[1]


@case(lambda x, n: x * 0 + sum(range(n + 1)))
def counted_down(x, n, y):
    state = (n, x * 0)
    while state[0] > 0:
        state = (state[0] - 1, state[1] + state[0])
    y = state[1]


def multiplied(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@case(lambda x, n: ((x + 1j) ** (n + 1)).real * 1000 + ((x + 1j) ** (n + 1)).imag)
def a_power_of_complex_numbers(x, n, y):
    z = (x, x * 0 + 1)
    w = z
    for _ in range(n):
        w = multiplied(w, z)
    y = w[0] * 1000 + w[1]


def updated(state, value):
    greatest = ntl.maximum(state[0], value)
    return greatest, state[1] * ntl.exp(state[0] - greatest) + ntl.exp(value - greatest)


@case(lambda x, n: torch.stack([x * k for k in range(n + 1)]).logsumexp(0))
def a_sum_of_powers_online(x, n, y):
    state = (x * 0, x * 0 + 1)
    for k in range(n):
        state = updated(state, x * (k + 1))
    y = state[0] + ntl.log(state[1])


@case(lambda x, n: x * 0 + 100 * n + max(n - 1, 0) * 10 + max(n - 2, 0))
def a_register_that_shifts(x, n, y):
    last = (x * 0, x * 0, x * 0)
    for k in range(n):
        last = (x * 0 + (k + 1), *last[:-1])
    y = last[0] * 100 + last[1] * 10 + last[2]


def swap(pair):
    pair = (pair[1], pair[0])


@case(lambda x, n: x * 1001)
def swapped_by_a_helper(x, n, y):
    pair = (x, x * 10)
    swap(pair)
    y = pair[0] * 100 + pair[1]


# Several targets.


@case(lambda x, n: x * 100101)
def a_group_before_what_it_assigns(x, n, y):
    a, b = x, x * 10
    (a, b), c = (b, a), a
    y = a * 10000 + b * 100 + c


@case(lambda x, n: (x + 1) * 100 + x)
def a_star_after_what_is_assigned(x, n, y):
    a = x
    a, *rest = a + 1, a, 0
    y = a * 100 + rest[0]


@case(lambda x, n: (x + 1) * 100 + x)
def a_tuple_after_what_is_assigned(x, n, y):
    a = x
    a, pair = a + 1, (a, 0)
    y = a * 100 + pair[0]


@case(lambda x, n: x * 2143)
def two_tuples_swapped(x, n, y):
    one, other = (x, x * 2), (x * 3, x * 4)
    one, other = other, one
    y = one[0] + one[1] * 10 + other[0] * 100 + other[1] * 1000


@case(lambda x, n: x * (2143 if n % 2 else 4321))
def two_tuples_swapped_each_round(x, n, y):
    one, other = (x, x * 2), (x * 3, x * 4)
    for _ in range(n):
        one, other = other, one
    y = one[0] + one[1] * 10 + other[0] * 100 + other[1] * 1000


# What is looped over, and what waits in a variable.


@case(lambda x, n: 2 * x + 1)
def items_before_the_first_round(x, n, y):
    a = x
    total = x * 0
    for value in (a, a + 1):
        a = a * 10
        total += value
    y = total


@case(lambda x, n: x + 0 + (x + 1) * 10)
def counted_items(x, n, y):
    a = x * 1
    total = x * 0
    for k, value in enumerate([a, a + 1]):
        a = a * 100
        total += value * (1 + 9 * k)
    y = total


@case(lambda x, n: x * (100 * 1 + 10 * 10 + 1))
def pairs_of_the_loops_own_variables(x, n, y):
    a, b = x * 10, x * 1
    found = x * 0
    for a, b in ((b, a), (a, b)):  # noqa: B020
        found = found * 1 + a * 10 + b
    y = found - x * 20 + x * 100


@case(lambda x, n: x * 12)
def items_of_a_list(x, n, y):
    items = [v for v in (x * 1, x * 2)]  # noqa: C416
    y = items[0] * 10 + items[1]


@case(lambda x, n: x * 102)
def items_of_a_tuple_that_changes(x, n, y):
    pair = (x, x * 2)
    total = x * 0
    for value in pair:
        pair = (pair[1] * 10, pair[0] * 10)
        total = total * 100 + value
    y = total


@case(lambda x, n: x)
def a_loop_that_never_runs(x, n, y):
    a = 1
    while False:
        a = 2
    y = x * a


@case(lambda x, n: x * 0 + n)
def a_range_in_a_variable(x, n, y):
    count = n
    rounds = range(count)
    count = count + 2
    total = x * 0
    for _ in rounds:
        total += 1
    y = total + count - count


@case(lambda x, n: (x + 1) * 100 + x)
def a_default_of_a_lambda(x, n, y):
    a = x * 1
    scaled = lambda v, k=a: v * 100 + k  # noqa: E731
    a = a + 1
    y = scaled(a)


@case(lambda x, n: (x + 1) * 100 + x + 5)
def a_default_of_a_local_function(x, n, y):
    a = x * 1

    def scaled(v, k=a + 5):
        return v * 100 + k

    a = a + 1
    y = scaled(a)


def times(k):
    return lambda v: v * k


@case(lambda x, n: x * x)
def a_function_that_a_helper_gives(x, n, y):
    a = x * 1
    scaled = times(a)
    a = a + 1
    y = scaled(x)


@case(lambda x, n: x * 12)
def two_functions_that_a_helper_gives(x, n, y):
    once, twice = [times(k) for k in (1, 2)]
    y = once(x) * 10 + twice(x)


# What one way changes.


@case(lambda x, n: x * (5 if n > 0 else 1) + (5 if n > 0 else 0))
def assigned_in_one_way_of_a_choice(x, n, y):
    a = 1
    b = (a := 5) if n > 0 else 0
    y = x * a + b


def to_seven(a):
    a = 7


@case(lambda x, n: x * (7 if n > 0 else 1))
def assigned_by_what_stands_after_and(x, n, y):
    a = 1
    n > 0 and to_seven(a)
    y = x * a


@case(lambda x, n: x * (1 if n > 0 else 7))
def assigned_by_what_stands_after_or(x, n, y):
    a = 1
    n > 0 or to_seven(a)
    y = x * a


@case(lambda x, n: x * (21 if n > 0 else 12))
def swapped_by_what_stands_after_and(x, n, y):
    pair = (x, x * 2)
    n > 0 and swap(pair)
    y = pair[0] * 10 + pair[1]


@case(lambda x, n: x * (7 if n > 0 else 1))
def assigned_by_a_helper_in_one_way(x, n, y):
    a = 1
    to_seven(a) if n > 0 else None
    y = x * a


# Helpers.


def doubled(v):
    v = v * 2


def doubled_within(v):
    doubled(v)
    return v + 1


@case(lambda x, n: x * 102 + 1)
def a_helper_that_returns_keeps_its_own(x, n, y):
    a = x * 1
    b = doubled_within(a)
    y = a * 100 + b


def doubled_each_round(v, n):
    for _ in range(n):
        doubled(v)
    return v


@case(lambda x, n: x * (100 + 2**n))
def a_helper_that_returns_keeps_its_own_in_a_loop(x, n, y):
    a = x * 1
    b = doubled_each_round(a, n)
    y = a * 100 + b


def put(destination, value):
    destination = value


@case(lambda x, n: x)
def a_tile_of_a_constant_choice_is_stored_to(x, n, y):
    put(y if True else x, x)


@case(lambda x, n: x)
def a_tile_of_a_tuple_is_stored_to(x, n, y):
    put((x, y)[1], x)


@case(lambda x, n: x)
def a_tile_that_is_spread_out_is_stored_to(x, n, y):
    put(*(y, x))


@case(lambda x, n: x)
def a_tile_in_a_dictionary_is_stored_to(x, n, y):
    put(**{"destination": y, "value": x})


@case(lambda x, n: x + n + 2)
def tiles_of_lists_that_are_added_are_stored_to(x, n, y):
    for destination in [y] + [y] * 2:  # noqa: RUF005
        put(destination, x + n)
    put(*((y,) + (y + 2,)))  # noqa: RUF005


def put_to_each(destinations, value):
    for destination in destinations.values():
        put(destination, value)


@case(lambda x, n: x + 1)
def tiles_of_a_dictionary_are_stored_to(x, n, y):
    for key, destination in {"a": y}.items():
        put(destination, x + len(key))


@case(lambda x, n: x * 4)
def tiles_of_a_dictionary_that_is_given_are_stored_to(x, n, y):
    put_to_each({"a": y}, x * 4)


def same(v):
    return v


@case(lambda x, n: x)
def a_tile_that_a_helper_gives_is_stored_to(x, n, y):
    put(same(y), x)


@case(lambda x, n: x + 1)
def a_tile_that_is_looped_over_is_stored_to(x, n, y):
    for destination in (y,):
        put(destination, x + 1)


@case(lambda x, n: x * 2)
def tiles_and_values_that_are_looped_over(x, n, y):
    for destination, value in ((y, x), (y, x * 2)):
        put(destination, value)


@case(lambda x, n: x * 3)
def a_size_by_getattr(x, n, y):
    y = x * getattr(x, "shape")[0]  # noqa: B009


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_it_means_what_python_says(name, n):
    check(*CASES[name], n)
