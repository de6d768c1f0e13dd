"""Syntax that applications do not have: each error says where, and what to do."""

import pytest

from tests.parsing.failures import failure

scale_factor = 2.0

# Statements and expressions.


def with_try(x, y):
    try:  # HERE
        y = x
    except ValueError:
        pass


def with_with(x, y):
    with x:  # HERE
        y = x


def with_import(x, y):
    import math  # HERE

    y = x * math.pi


def with_import_from(x, y):
    from math import pi  # HERE

    y = x * pi


def with_class(x, y):
    class Inner:  # HERE
        pass


def with_break(x, y, n):
    for k in range(n):
        break  # HERE


def with_continue(x, y, n):
    for k in range(n):
        continue  # HERE


def with_global(x, y):
    global scale_factor  # HERE
    scale_factor = 3


def with_nonlocal(x, y):
    v = 1

    def inner():
        nonlocal v  # HERE
        v = 2

    inner()


def with_del(x, y):
    v = x
    del v  # HERE


def with_raise(x, y):
    raise ValueError("no")  # HERE


def with_comprehension(x, y):
    y = sum([x for k in range(3) if x > k])  # HERE


def with_generator(x, y):
    y = sum(k for k in x)  # HERE


def with_dict(x, y):
    y = {"a": x}  # HERE


def with_set(x, y):
    v = {1, 2}  # HERE


def with_lambda(x, y):
    y = lambda v: v + 1  # HERE  # noqa: E731


def with_fstring(x, y, n):
    print(f"{n}")  # HERE


def with_yield(x, y):
    yield x  # HERE


def with_matmul(x, y):
    y = x @ x  # HERE


def with_power(x, y):
    y = x**0.5  # HERE


def with_loop_else(x, y, n):
    for k in range(n):
        y = x
    else:
        y = x + 1  # HERE


def with_return_in_loop(x, y, n):
    for k in range(n):
        y = x
        return  # HERE


def with_attribute_target(x, y):
    x.shape = (1, 2)  # HERE


def with_decorator(x, y):
    @scale_factor
    def inner():  # HERE
        pass


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (with_try, "`try`"),
        (with_with, "`with`"),
        (with_import, "import at the top"),
        (with_import_from, "import at the top"),
        (with_class, "class"),
        (with_break, "`break`"),
        (with_continue, "`continue`"),
        (with_global, "`global`"),
        (with_nonlocal, "`nonlocal`"),
        (with_del, "`del`"),
        (with_raise, "use `assert`"),
        (with_comprehension, "needed at compile time"),
        (with_generator, "gone through one by one"),
        (with_dict, "dictionary"),
        (with_set, "set"),
        (with_lambda, "no value of a running kernel"),
        (with_fstring, "device_print"),
        (with_yield, "`yield`"),
        (with_matmul, "use `ntl.dot`"),
        (with_power, "whole number from 1 to 64"),
        (with_loop_else, "`else` after a loop"),
        (with_return_in_loop, "`return` inside of a loop"),
        (with_attribute_target, "not attributes"),
        (with_decorator, "decorated"),
    ],
)
def test_unsupported_syntax(application, words):
    assert words in failure(application)


def test_match_is_unsupported():
    def application(x, y, n):
        match n:  # HERE
            case 1:
                y = x

    assert "use `if`" in failure(application)
