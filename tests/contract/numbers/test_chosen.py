"""A number that only the running kernel chooses is one of the kernel's: of 32 bits, where a literal takes a tile's type."""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from tests.contract.numbers.test_literals import result

CASES = {}


def case(expected):
    """What a case adds to int8 elements, for a number of 0 and one of 1."""

    def register(application):
        CASES[application.__name__] = application, expected
        return application

    return register


@case((101, 100))
def by_a_choice(x, n, y):
    y = x + (100 if n > 0 else 101)  # noqa: F841


@case((100, 101))
def by_a_statement(x, n, y):
    v = 100
    if n > 0:
        v = 101
    y = x + v  # noqa: F841


@case((103, 100))
def by_several(x, n, y):
    if n > 1:
        v = 1
    elif n > 0:
        v = 100
    else:
        v = 103
    y = x + v  # noqa: F841


@case((50, 100))
def in_a_tuple(x, n, y):
    v = (0, 50)
    if n > 0:
        v = (0, 100)
    y = x + v[1]  # noqa: F841


def picked(n):
    if n > 0:
        return 100
    return 101


@case((102, 101))
def by_a_helper(x, n, y):
    y = x + (picked(n) + 1)  # noqa: F841


@case((99, 100))
def at_the_end_of_a_way(x, n, y):
    v = 100
    if n < 1:
        v = 99
    else:
        if n > 1:
            v = 101
    y = x + v  # noqa: F841


@case((100, 101))
def in_rounds_that_are_unrolled(x, n, y):
    v = 100
    for _ in ntl.static_range(2):
        y = x + v
        if n > 0:
            v = 101
    y = x + v  # noqa: F841


@case((100, 101))
def in_rounds(x, n, y):
    v = 100
    for _ in range(2):
        if n > 0:
            v = 101
    y = x + v  # noqa: F841


@pytest.mark.parametrize("name", CASES)
def test_beside_narrower_integers_it_has_32_bits(name):
    application, expected = CASES[name]
    x = torch.tensor([100, -3, 0, 4, 127], dtype=torch.int8)
    for n, added in enumerate(expected):
        found = result(application, x, n, out=torch.zeros(5, dtype=torch.int32))
        assert found.tolist() == (x.int() + added).tolist()


def a_float_or_an_integer(x, n, y):
    y = x + (0.1 if n > 0 else 1)  # noqa: F841


def a_float_in_a_variable(x, n, y):
    v = 1.0
    if n > 0:
        v = 0.1
    y = x + v  # noqa: F841


@pytest.mark.parametrize("application", [a_float_or_an_integer, a_float_in_a_variable])
def test_beside_narrower_floats_it_is_float32_or_float64_where_the_call_has_such(application):
    x = torch.tensor([1.3, -2.7, 0.0, 900.0], dtype=torch.float16)
    for wide in (torch.float32, torch.float64):
        for n, added in ((0, 1.0), (1, 0.1)):
            expected = x.to(wide) + torch.tensor(added, dtype=wide)
            found = result(application, x, n, out=torch.zeros(4, dtype=wide))
            assert found.tolist() == expected.tolist()
