"""What is computed while an application is parsed has a size that somebody can wait for."""

from __future__ import annotations

import math

import pytest

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ArrangementError


def made(application):
    return ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((4,)) for tensor in tensors),
        application,
        (Tensor(1), Tensor(1)),
    )


def a_power(x, y):
    nine = 9
    y = x + nine**nine**nine  # noqa: F841


def a_power_by_name(x, y):
    y = x + pow(9, 10**9)  # noqa: F841


def a_shift(x, y):
    far = 10**9
    y = x + (1 << far)  # noqa: F841


def squares(x, y):
    n = 3
    for _ in (0,) * 40:
        n *= n
    y = x + n  # noqa: F841


def a_factorial(x, y):
    y = x + math.factorial(10**7)  # noqa: F841


def a_choice(x, y):
    y = x + math.comb(10**6, 10**5 * 5)  # noqa: F841


def a_string(x, y):
    many = 10**9
    name = "a" * many  # noqa: F841
    y = x  # noqa: F841


def strings(x, y):
    name = "ab"
    for _ in (0,) * 40:
        name = name + name
    y = x  # noqa: F841


def a_format(x, y):
    name = "%1000000000d" % 3  # noqa: F841, UP031
    y = x  # noqa: F841


def an_f_string(x, y):
    width = 10**9
    name = f"{3:{width}}"  # noqa: F841
    y = x  # noqa: F841


def a_tuple(x, y):
    many = 10**9
    zeros = (0,) * many  # noqa: F841
    y = x  # noqa: F841


def tuples(x, y):
    pair = (1, 2)
    for _ in (0,) * 40:
        pair = pair + pair
    y = x  # noqa: F841


def a_list(x, y):
    numbers = [n for n in range(10**7)]  # noqa: F841
    y = x  # noqa: F841


def an_f_string_of_a_size(x, y):
    y = x + len(f"{x.shape!r:>1000000000}")  # noqa: F841


@pytest.mark.parametrize(
    "application, words",
    [
        (a_power, "more than 1024 bits"),
        (a_power_by_name, "more than 1024 bits"),
        (a_shift, "more than 1024 bits"),
        (squares, "more than 1024 bits"),
        (a_factorial, "more than 1024 bits"),
        (a_choice, "more than 1024 bits"),
        (a_string, "1000000000 items, more than the 65536"),
        (strings, "131072 items"),
        (a_format, "1000000000 items"),
        (an_f_string, "1000000000 items"),
        (an_f_string_of_a_size, "1000000000 items"),
        (a_tuple, "1000000000 items"),
        (tuples, "131072 items"),
        (a_list, "one by one"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_would_be_too_large_is_refused_at_once(application, words):
    """Without a limit each takes minutes, or all memory."""
    with pytest.raises(ApplicationError) as caught:
        made(application)

    assert words in caught.value.message
    assert caught.value.location.file == __file__
    assert caught.value.location.line > application.__code__.co_firstlineno


def ordinary(x, y):
    seed = 0xD2511F53 * 2**64 >> 33
    names = "%-12s|" % "x" * 3 + f"{seed:>30}"  # noqa: UP031
    table = (1, 2) * 500
    y = x + seed % 7 + len(names) + sum(table) + math.factorial(20) % 11 + pow(3, 10**6, 13)


def test_what_has_an_ordinary_size_is_computed():
    # The same in Python.
    seed = 0xD2511F53 * 2**64 >> 33
    expected = seed % 7 + len("%-12s|" % "x" * 3 + f"{seed:>30}") + 1500  # noqa: UP031
    expected += math.factorial(20) % 11 + pow(3, 10**6, 13)
    text = str(made(ordinary).program)
    assert sum(map(int, text.rpartition("y = x + ")[2].split(" + "))) == expected


@pytest.mark.parametrize("size", [10**400, -(10**400)])
def test_a_number_of_an_arrangement_is_no_wider_than_any_size(size):
    with pytest.raises(ArrangementError, match="more than 512 bits"):
        Tensor(1, name="x").shape[0] + size
    with pytest.raises(ArrangementError, match="62 bits at most"):
        Tensor(1).tile((abs(size),))
