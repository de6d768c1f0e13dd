"""Functions that an application calls, run: helpers, methods, functions defined inside."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.execution.rewrite_calls import CallRewriter
from ninetoothed.backends.numpy.values.tile import SeveralElementsError
from ninetoothed.parsing import source as sources
from tests.numpy.execution.running import floats, run


def double(value):
    return value + value


def store_doubled(place, value, factor=1):
    place = double(value) * factor


def accumulate(total, value):
    total = total + value


def accumulate_deeper(total, value):
    accumulate(total, value=value)


def test_a_helper_returns_a_value_in_the_middle_of_an_expression():
    def application(x, out):
        out = 1 + double(x) * 2

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, 1 + floats(4) * 4)


def test_a_tile_stays_that_tile_in_a_helper():
    def application(x, out):
        store_doubled(out, x, factor=5)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 10)


def test_a_selected_tile_stays_that_tile_in_a_helper():
    def application(x, out):
        for k in range(2):
            store_doubled(value=x[k], place=out[k])

    out = np.zeros(8, np.float32)
    run(application, floats(8), out, middle=(2,))
    np.testing.assert_array_equal(out, floats(8) * 2)


@pytest.mark.parametrize("helper", [accumulate, accumulate_deeper])
def test_a_local_variable_assigned_in_a_helper_is_rebound_at_the_caller(helper):
    def application(x, out):
        total = x * 0
        for _ in range(3):
            helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 3)


def test_a_helper_chosen_at_run_time_rebinds_too():
    def application(x, out):
        helper = (accumulate, double)[0]
        total = x * 0
        helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4))


def test_a_nested_function_and_a_lambda_see_the_tiles_of_the_function_around():
    def application(x, out):
        def shifted(by):
            return x + by

        scaled = lambda by: x * by  # noqa: E731
        out = shifted(2) + scaled(3)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 4 + 2)


def test_early_return_in_a_helper():
    def clipped(x, is_clipped):
        if is_clipped:
            return x * 0
        return x

    def application(x, out):
        out = clipped(x, False) + clipped(x, is_clipped=True)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4))


def mask(x, out):
    out = x * 0 + 7


def marking(x, out):
    mask(x, out)
    return ntl.sum(x) > 0


def is_positive(x):
    return ntl.sum(x) > 0


def is_marking(x, out):
    return marking(x, out)


@pytest.mark.parametrize("helper", [marking, is_marking])
@pytest.mark.parametrize("limit", [100.0, 5.0])
def test_a_helper_with_statements_is_called_where_python_would_call_it(helper, limit):
    """As on a device, where it stands in a branch."""

    def both(x, limit, seen, out):
        if ntl.sum(x) > limit and helper(x, seen):
            out = x

    def either(x, limit, seen, out):
        if ntl.sum(x) > limit or helper(x, seen):
            out = x

    for application in (both, either):
        seen, out = np.zeros(4, np.float32), np.zeros(4, np.float32)
        run(application, floats(4), limit, seen, out)
        is_greater = floats(4).sum() > limit
        is_called = is_greater if application is both else not is_greater
        np.testing.assert_array_equal(seen, np.full(4, 7 * is_called))
        holds = is_greater if application is both else True
        np.testing.assert_array_equal(out, floats(4) * holds)


def test_what_only_gives_a_value_is_taken_element_by_element():
    def application(x, out):
        found = ntl.sum(x) > 100.0 or (x > 1 and is_positive(x))
        out = ntl.where(found, x, 0.0)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * (floats(4) > 1))


def test_a_helper_with_statements_needs_one_number_before_it():
    def application(x, seen, out):
        if x > 1 and marking(x, seen):
            out = x

    with pytest.raises(SeveralElementsError, match="One number is needed"):
        run(application, floats(4), np.zeros(4, np.float32), np.zeros(4, np.float32))


def test_comprehensions_run_as_pythons():
    def application(x, out):
        parts = [double(x) * k for k in range(3) if k > 0 and k < 3]
        out = parts[0] + parts[1]

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 6)


class Scaling:
    """A helper that is a method."""

    def __init__(self, factor):
        self.factor = factor

    def apply(self, total, x):
        total = total + x * self.factor

    def __call__(self, x):
        return x * self.factor


@pytest.mark.parametrize(
    "helper",
    [Scaling(3).apply, functools.partial(Scaling.apply, Scaling(3))],
    ids=["method", "partial"],
)
def test_a_method_and_a_partial_function_are_helpers(helper):
    def application(x, out):
        total = x * 0
        helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 3)


def test_a_function_defined_inside_is_rewritten_once(monkeypatch):
    read = []
    monkeypatch.setattr(
        sources, "read", lambda f, read=read, of=sources.read: (read.append(f), of(f))[1]
    )

    def application(x, out):
        def doubled(value):
            return value * 2

        out = doubled(x)

    out = np.zeros(64, np.float32)
    run(application, floats(64), out)
    np.testing.assert_array_equal(out, floats(64) * 2)
    assert [function.__name__ for function in read].count("doubled") == 1


def larger(a, b):
    return max(a, b) if b is not None and a is not None else a


def test_a_function_that_the_language_calls_back_is_rewritten_too():
    def application(x, out):
        def smaller(a, b):
            return min(a, b)

        highest = ntl.reduce(x, 0, larger)
        lowest = ntl.reduce(x, 0, smaller)
        out = x * 0 + highest * 10 + lowest + ntl.reduce(x, 0, lambda a, b: max(a, b))

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, [45, 45, 45, 45])


@pytest.mark.parametrize(("activation", "expected"), [(ntl.abs, 3), (double, -6)])
def test_a_function_in_an_object_of_the_closure(activation, expected):
    settings = types.SimpleNamespace(activation=activation)

    def application(x, out):
        out = settings.activation(x)

    out = np.zeros(4, np.float32)
    run(application, np.full(4, -3, np.float32), out)
    np.testing.assert_array_equal(out, [expected] * 4)


def test_keyword_only_parameters_and_defaults_of_helpers():
    def scaled(x, *, by=2, shift=0):
        return x * by + shift

    def application(x, out):
        out = scaled(x) + scaled(x, by=3, shift=x)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 6)


def test_starred_arguments_and_parameters():
    def total(*values, **named):
        result = named["start"]
        for value in values:
            result = result + value
        return result

    def application(x, y, out):
        pair = (x, y)
        out = total(*pair, x, start=y)

    out = np.zeros(4, np.float32)
    run(application, floats(4), floats(4) * 10, out)
    np.testing.assert_array_equal(out, floats(4) * 22)


def calling_twice(helper):
    """A function that calls another one at two places, in an expression and with a variable to assign."""

    def calls(total, value):
        helper(total, value)
        helper(total, value * 2)

    return calls


def both_of(helper):
    return lambda value: helper(value) > 0 or helper(value * 2) > 0


@pytest.mark.parametrize("is_expression", [False, True])
def test_a_function_is_looked_at_as_often_however_many_ways_lead_to_it(monkeypatch, is_expression):
    looked_at = []
    made = CallRewriter.__init__
    monkeypatch.setattr(
        CallRewriter, "__init__", lambda self, *a: (looked_at.append(a[0].name), made(self, *a))[1]
    )
    depth = 4
    helper = double if is_expression else accumulate
    for _ in range(depth):
        helper = both_of(helper) if is_expression else calling_twice(helper)

    def assigning(x, out):
        total = x * 0
        helper(total, x)
        out = total

    def giving(x, out):
        out = ntl.where(ntl.sum(x) > 100.0 or helper(x), x, 0.0)

    out = np.zeros(4, np.float32)
    run(giving if is_expression else assigning, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * (1 if is_expression else 3**depth))
    # Rewritten once, and looked at for what it assigns, whether it does more, and whether it reaches memory.
    assert len(looked_at) <= 4 * (depth + 2)


def leave(total, value):
    double(value)


def through(helper):
    def calls(total, value):
        helper(total, value)

    return calls


@pytest.mark.parametrize(
    "helper, expected",
    [(accumulate, 1), (leave, 0), (accumulate, 1)],
    ids=["adds", "gives", "adds again"],
)
def test_what_a_function_assigns_depends_on_what_its_closure_holds(helper, expected):
    called = through(through(helper))

    def application(x, out):
        total = x * 0
        called(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * expected)


def pass_on(one, two, three, count):
    if count > 0:
        turn(two, three, one, count - 1)


def turn(one, two, three, count):
    one = one + 1
    pass_on(one, two, three, count)


@pytest.mark.parametrize("count, expected", [(1, (0, 1, 0)), (2, (0, 1, 1)), (3, (1, 1, 1))])
def test_functions_that_call_each_other_assign_what_either_does(count, expected):
    def application(x, out):
        one, two, three = x * 0, x * 0, x * 0
        pass_on(one, two, three, count)
        out = one + two * 10 + three * 100

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, np.full(4, np.dot(expected, (1, 10, 100))))
