"""Functions inside of applications: what they see around them, in loops and where ways meet.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def _whole(x, n, y):
    return x.tile((-1,)), n, y.tile((-1,))


def _run(application, n, arrangement=_whole, size=3):
    x, y = torch.arange(1.0, size + 1), torch.full((size,), -99.0)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))(x, n, y)
    return y


def _extremum(v, is_largest):
    def combine(a, b):
        return ntl.maximum(a, b) if is_largest else ntl.minimum(a, b)

    return ntl.reduce(v, 0, combine)


def a_combination_that_sees_another_value(x, n, y):
    y = x * 0 + _extremum(x, True) * 10 + _extremum(x, False)


def a_combination_in_rounds_that_are_unrolled(x, n, y):
    total = x * 0
    for factor in (1, 10):

        def combine(a, b):
            return ntl.maximum(a, b) if factor > 1 else ntl.minimum(a, b)  # noqa: B023

        total += ntl.reduce(x, 0, combine) * factor
    y = total


def a_combination_that_sees_a_function(x, n, y):
    is_sum = True

    def inner(a, b):
        return a + b if is_sum else ntl.maximum(a, b)

    def outer(a, b):
        return inner(a, b)

    total = ntl.reduce(x, 0, outer)
    is_sum = False
    y = x * 0 + total * 5 + ntl.reduce(x, 0, outer) - 2


def a_combination_with_defaults(x, n, y):
    total = x * 0
    for factor in (1, 10):
        total += ntl.reduce(x, 0, lambda a, b, k=factor: max(a, b) if k > 1 else min(a, b)) * factor
    y = total


def combine(a, b):
    return ntl.maximum(a, b)


def next_of(i):
    i = i + 1


def two_combinations_in_a_loop(x, n, y):
    total = x * 0
    count = n * 0
    for _ in range(n):
        # A helper assigns it: the loop's body is evaluated anew.
        next_of(count)
        total += ntl.reduce(x, 0, combine) * 10 + ntl.reduce(x, 0, lambda p, q: ntl.minimum(p, q))
    y = (total + count - n) / n


def _multiplied(n):
    factor = 1

    def function(v):
        return v * factor

    if n > 1:
        factor = 31
        return function
    factor = n * 0 + 4
    return function


def a_function_by_two_ways(x, n, y):
    y = x * 0 + _multiplied(n)(x * 0 + 1)


def _multiplied_in_a_tuple(n):
    factor = n

    def function(v):
        return v * factor

    if n > 1:
        factor = n + 28
        if n > 2:
            return function, 1
        return function, 1
    return function, 1


def a_function_in_a_tuple_by_two_ways(x, n, y):
    y = x * 0 + _multiplied_in_a_tuple(n)[0](x * 0 + 1)


def a_function_of_a_comprehension(x, n, y):
    k = 10  # noqa: F841
    functions = [lambda v: v * k + n for k in (1, 28)]  # noqa: B023
    y = functions[0](x * 0 + 1) + x * 0


def a_comprehension_over_the_name_of_its_variable(x, n, y):
    k = n * 1
    items = [k * 4 + 1 for k in (k, k + 1)]
    y = x * 0 + items[0] + items[1] + 1


def pythons_own_in_variables(x, n, y):
    size, most, cast = abs, max, int
    y = x * 0 + 21 + size(-n * x + n * x - 7) + most(n * x * 0, cast(n * 1.25))


def defaults_in_rounds_that_are_unrolled(x, n, y):
    functions = []
    for k in (0, 1):
        i = n + k
        functions = [*functions, lambda v, w=i: v * w]
    y = x * 0 + functions[0](9) + functions[1](1)


def defaults_that_are_computed(x, n, y):
    def function(p, q=abs(n), *, r=n * x):
        return p * q + r

    y = (lambda p, q=function(x) - 2 * n * x: p + q)(x * 0 + 31)


@pytest.mark.parametrize(
    ("application", "n", "expected"),
    [
        (a_combination_that_sees_another_value, 3, 31),
        (a_combination_in_rounds_that_are_unrolled, 3, 31),
        (a_combination_that_sees_a_function, 3, 31),
        (a_combination_with_defaults, 3, 31),
        (a_comprehension_over_the_name_of_its_variable, 3, 31),
        (two_combinations_in_a_loop, 3, 31),
        (a_function_by_two_ways, 3, 31),
        (a_function_by_two_ways, 1, 4),
        (a_function_in_a_tuple_by_two_ways, 3, 31),
        (a_function_in_a_tuple_by_two_ways, 2, 30),
        (a_function_in_a_tuple_by_two_ways, 1, 1),
        (a_function_of_a_comprehension, 3, 31),
        (defaults_in_rounds_that_are_unrolled, 3, 31),
        (pythons_own_in_variables, 3, 31),
        (defaults_that_are_computed, 3, 31),
    ],
)
def test_functions_see_what_they_do_in_python(application, n, expected):
    assert _run(application, n).tolist() == [expected] * 3


def _rows(x, n, y):
    return x.tile((2,)).tile((2,)).tile((-1,)), n, y.tile((2,)).tile((2,)).tile((-1,))


def rows_of_rounds_that_are_unrolled(x, n, y):
    rows = ()
    for i in (n, n + 1):
        rows = (*rows, x[i])
    y[0][0] = rows[0][0]  # noqa: F841


def a_method_of_a_tile_whose_index_changes(x, n, y):
    i = n * 1
    offsets = x[i][0].offsets
    i = i + 1
    y[0][0] = offsets(0) + 1.0  # noqa: F841


@pytest.mark.parametrize(
    "application", [rows_of_rounds_that_are_unrolled, a_method_of_a_tile_whose_index_changes]
)
def test_a_tile_is_the_one_that_was_selected(application):
    assert _run(application, 0, _rows, 8)[:2].tolist() == [1, 2]


def test_a_function_within_changes_no_variable_around_it():
    def application(x, n, y):
        count = n * 1

        def counted(v):
            next_of(count)
            return v

        y = x * 0 + counted(count)

    with pytest.raises(
        ApplicationError, match="'next_of' assigns 'i', and 'counted' gives it a .*around"
    ):
        _run(application, 1)


def test_a_default_of_a_combination_is_known_when_it_is_compiled():
    def application(x, n, y):
        y = x * 0 + ntl.reduce(x, 0, lambda a, b, k=n: a + b + k)

    with pytest.raises(ApplicationError, match="'k' is a value of the running kernel"):
        _run(application, 1)


def test_no_element_of_a_variable_is_picked_by_its_position():
    def application(x, n, y):
        value = x
        y = value[0] + x

    with pytest.raises(
        ApplicationError, match=r"its elements .* not picked by position.*`x\[1:\]`"
    ):
        _run(application, 1)


def of_a_function_within(x, n, y):
    def zero(p):
        return p * 0

    y = (x > 2) or (x < zero(x) + n)


def of_a_function_without_a_name(x, n, y):
    zero = lambda p: p * 0  # noqa: E731
    y = (x > 2) or (x < zero(x) + n)


def of_a_function_within_a_function(x, n, y):
    def one(p):
        def zero(p):
            nothing = p * 0
            return nothing

        p = zero(p) + 1
        return p

    y = (x > 2) or (x < one(x) + n - 1)


@pytest.mark.parametrize(
    "application",
    [of_a_function_within, of_a_function_without_a_name, of_a_function_within_a_function],
)
def test_of_two_tiles_either_may_be_what_a_function_within_returns(application):
    assert _run(application, 2).tolist() == [1, 0, 1]


def test_a_function_within_may_call_itself():
    def application(x, n, y):
        def less(p, k):
            return p if k == 0 else less(p - 1, k - 1)

        y = less(x, 2) + 0

    assert _run(application, 1).tolist() == [-1, 0, 1]
