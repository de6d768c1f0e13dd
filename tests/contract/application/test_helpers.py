"""LANGUAGE.md, "Application": helper functions, inlined where they are called."""

from __future__ import annotations

import functools

import pytest
import torch

import ninetoothed.language as ntl
from tests.contract.kernels import arange, blocks_of_rows, empty, run

# "a helper function written in Python is inlined where it is called"


def scaled(value, factor=2, *, offset=0):
    return value * factor + offset


def test_a_helper_takes_positional_and_keyword_arguments_and_defaults():
    """with positional and keyword arguments, defaults"""

    def application(x, y):
        y = scaled(x) + scaled(x, 3) + scaled(offset=1, value=x, factor=4)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) * 9 + 1)


def absolute(value, is_plain):
    if is_plain:
        return value
    negative = -value
    return ntl.maximum(value, negative)


def test_a_helpers_early_returns_and_structure_are_kept():
    """early structure kept"""

    def application(x, y):
        y = absolute(x, False) + absolute(x, True)  # noqa: F841

    x = arange(5) - 3
    assert torch.equal(run(application, x, empty(5)), x.abs() + x)


def test_a_helper_may_loop_in_the_middle_of_an_expression():
    """in the middle of an expression too"""

    def power(value, count):
        result = value * 0 + 1
        for _ in range(count):
            result *= value
        return result

    def application(x, y):
        y = 1 + power(x, 2) * power(x + power(x, 1), 1)  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), 1 + x**2 * (2 * x))


def test_statements_before_a_helper_in_an_expression_are_kept_in_order():
    def store(tile, value):
        tile = value  # noqa: F841

    def stored(tile, value):
        store(tile, value)
        return value + 1

    def application(x, y):
        y = x
        y = stored(y, y * 2) + y * 10  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), x * 2 + 1 + x * 2 * 10)


def test_assigning_a_parameter_tile_in_a_helper_stores():
    """A parameter tile handed to a helper stays that tile: assigning it in the helper stores"""

    def store(destination, value):
        destination = value  # noqa: F841

    def application(x, y):
        store(y, x + 1)

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 1)


def test_a_helper_that_returns_a_value_rebinds_its_own_name():
    """In a helper that returns a value, assigning a parameter rebinds the helper's own name"""

    def halved(value, times):
        for _ in range(times):
            value = value / 2
        return value

    def application(x, n, y):
        v = x + 0
        y = halved(x, n) + halved(v, n) + x + v  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, 2, empty(5)), x / 2 + x * 2)
    assert torch.equal(x, arange(5))


def test_an_element_handed_to_a_helper_stays_that_element():
    def add(destination, value):
        destination += value

    def application(x, y):
        for k in range(x.shape[0]):
            add(y[k], x[k])

    y = arange(7)
    run(application, arange(7), y, arrangement=blocks_of_rows)
    assert torch.equal(y, arange(7) * 2)


def test_assigning_a_local_variable_in_a_helper_rebinds_the_callers():
    """handing a local variable and assigning it rebinds the caller's variable."""

    def accumulate(total, value):
        total += value

    def reset(total):
        total = total * 0  # noqa: F841

    def application(x, y):
        total = ntl.zeros(x.shape, dtype=ntl.float32)
        accumulate(total, x)
        accumulate(total, x)
        other = total
        reset(other)
        y = total + other  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) * 2)


def test_helpers_may_call_helpers_and_share_names():
    def inner(value):
        x = value + 1
        return x

    def outer(value):
        x = inner(value) * 2
        return x + inner(value)

    def application(x, y):
        total = outer(x)
        y = total + x  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), (x + 1) * 3 + x)


def test_functions_decorated_with_triton_jit_may_be_called():
    """Functions decorated with `triton.jit` may be called."""
    pytest.importorskip("triton")
    from tests.contract.application.triton_functions import plus_product

    def application(x, y):
        y = plus_product(x, x, 2)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + arange(5) * 2)


def doubled(function):
    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        return function(*arguments, **keywords) * 2

    return wrapper


def logged(function):
    @functools.wraps(function)
    def wrapper(*arguments, **keywords):
        return function(*arguments, **keywords)

    return wrapper


@doubled
def shifted(value, by=1):
    return value + by


@logged
def put(destination, value):
    destination = value  # noqa: F841


@logged
def tripled(x, y):
    y = x * 3  # noqa: F841


@torch.no_grad()
def without_gradients(x, y):
    y = x * 5  # noqa: F841


def test_what_a_decorator_puts_around_a_helper_or_an_application_is_done():
    def application(x, y):
        put(y, shifted(x, by=2) + shifted(x))

    x = arange(5)
    assert run(application, x, empty(5)).tolist() == ((x + 2) * 2 + (x + 1) * 2).tolist()
    assert run(tripled, x, empty(5)).tolist() == (x * 3).tolist()
    assert run(without_gradients, x, empty(5)).tolist() == (x * 5).tolist()


def test_a_starred_tile_stays_that_tile():
    def forwarded(*tiles):
        put(*tiles)

    def application(x, y):
        forwarded(y, x + 1)

    assert run(application, arange(5), empty(5)).tolist() == (arange(5) + 1).tolist()


def test_a_dictionary_whose_keys_are_known_holds_values():
    constants = {"k": 5.0}

    def application(x, y):
        values = {"a": x * 2, "b": 3.0, **constants}
        count = 0.0
        for key in values:
            count += len(key)
        y = values["a"] + values["b"] + values["k"] + len(values) + count

    x = arange(5)
    assert run(application, x, empty(5)).tolist() == (x * 2 + 3 + 5 + 3 + 3).tolist()


WEIGHTS = (0.25, 0.5, 0.25)
place = 5


def test_a_comprehension_over_what_is_known_is_a_tuple_of_values():
    def arrangement(x, y):
        return x.tile((6,), strides=(4,)), y.tile((4,))

    def application(x, y):
        terms = [x[place : place + 4] * WEIGHTS[place] for place in range(3)]
        y = sum(terms) + sum(x[1:5] * w for w in WEIGHTS if w > 0.3) + place

    x = arange(14)
    smooth = (x[:-2] + 2 * x[1:-1] + x[2:]) / 4
    y = run(application, x, empty(12), arrangement=arrangement)
    assert y.tolist() == (smooth + x[1:-1] / 2 + 5).tolist()


def test_tiles_in_a_comprehension_are_loaded_there():
    def application(x, y):
        tiles = [x[k] for k in range(2)]
        x[0] = tiles[1]
        x[1] = tiles[0]
        y[0] = tiles[0]
        y[1] = x[0]

    x = arange(8)
    y = run(application, x, empty(8), arrangement=blocks_of_rows)
    assert x.tolist() == [5, 6, 7, 8, 1, 2, 3, 4]
    assert y.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_helper_calls_itself_while_a_constant_says_so():
    def power(value, count):
        if count == 0:
            return 1.0
        return value * power(value, count - 1)

    def tree(values):
        half = len(values) // 2
        return tree(values[:half]) + tree(values[half:]) if half else values[0]

    def application(x, y):
        y = power(x, 3) + tree([x * i for i in range(5)])  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), x**3 + x * 10)


def power_of(value, count):
    return power_of(value, count - 1) * value if count else 1.0


def test_a_helper_of_a_module_calls_itself_too():
    def application(x, y):
        y = power_of(x, 3)  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), x**3)


def test_a_lambda_is_a_helper():
    def application(x, shift, y):
        scaled = lambda value, by=3: value * by + shift  # noqa: E731
        y = scaled(x)
        for function in (lambda value: value + 1, scaled):
            y = function(y)

    x = arange(5)
    assert run(application, x, 2, empty(5)).tolist() == ((x * 3 + 2 + 1) * 3 + 2).tolist()
