"""Tuples are tuples and lists are lists, as Python tells them apart.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.variables.cases import table

CASES, case = table()

#: Lists and tuples from outside.
LIST, TUPLE = [1, 2], (1, 2)


@case(11)
def what_is_written(x, n, y):
    y = (
        x * 0
        + isinstance([1, n], list)
        + isinstance((1, n), tuple) * 10
        + isinstance([1], tuple) * 100
    )


@case(1111)
def what_is_made(x, n, y):
    made = ([i for i in (1, n)], list((1, n)), [1, n] * 2, [1, n][:1])
    y = x * 0
    for item in made:
        y = y * 10 + isinstance(item, list)


@case(1111)
def what_else_is_made(x, n, y):
    first, *rest = (1, n)
    made = (rest, [*(1, n)], sorted((2, 1)), [1] + [n])
    y = x * 0
    for item in made:
        y = y * 10 + isinstance(item, list)


@case(21)
def an_entry_of_a_chosen_dictionary(x, n, y):
    entries = {"a": n, "b": x} if n > 100 else {"a": 1, "b": x * 0 + 2}
    y = x * 0 + entries["a"] + entries["b"] * 10


@case(1111)
def tuples_that_are_made(x, n, y):
    made = (tuple([1, n]), (1, n)[::-1], (1,) * 2, x.shape + (n,))  # noqa: RUF005
    y = x * 0
    for item in made:
        y = y * 10 + isinstance(item, tuple)


@case(1011)
def whether_they_are_equal(x, n, y):
    y = (
        x * 0
        + ([1, n] == [1, n])
        + ((1, n) != [1, n]) * 10
        + ([1, 2] == (1, 2)) * 100
        + ([1] * 2 == [1, 1]) * 1000
    )


@case(1011)
def what_comes_from_outside(x, n, y):
    y = (
        x * 0
        + (LIST == [1, 2])
        + (LIST != TUPLE) * 10
        + isinstance(LIST, tuple) * 100
        + isinstance(TUPLE, tuple) * 1000
    )


def arguments(*positional, **named):
    return (
        isinstance(positional, tuple)
        + isinstance(positional, list) * 10
        + isinstance(named, dict) * 100
    )


@case(101)
def what_a_helper_is_given(x, n, y):
    y = x * 0 + arguments(1, n, a=2)


@case(6)
def a_list_that_grows(x, n, y):
    values = []
    for k in (1, 2, 3):
        values += [k]
    y = x * 0 + sum(values)


def grown(values):
    values += [5]


@case(6)
def a_list_that_a_helper_makes_longer(x, n, y):
    values = [1]
    grown(values)
    y = x * 0 + sum(values)


@pytest.mark.parametrize("name", CASES)
def test_tuples_and_lists_are_told_apart(name):
    application, expected = CASES[name]
    kernel = ninetoothed.make(_arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
    kernel(x, 3, y)
    assert y.tolist() == [expected] * 3


def added(x, n, y):
    y = x * ([1] + (n,))[0]


def ordered(x, n, y):
    y = x * ([1, 2] < [1, n])


def of_two_kinds(x, n, y):
    y = x * ([1, 2] < (1, 3))


def under_two_names(x, n, y):
    values = [1]
    others = values
    values += [2]
    y = x * sum(others)


def within_a_tuple(x, n, y):
    values = [1]
    pair = (values, n)
    values *= 2
    y = x * sum(pair[0])


def total_of_longer(values):
    values += [5]
    return sum(values)


def of_the_caller(x, n, y):
    values = [1]
    y = x * total_of_longer(values) + sum(values)


def as_a_default(x, n, y):
    values = [1]

    def total(given=values):
        return sum(given)

    values += [2]
    y = x * total()


def from_outside(x, n, y):
    values = LIST
    values += [2]
    y = x * sum(values)


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (added, "A list and a tuple are not added"),
        (ordered, "compared with `==` and `!=`"),
        (of_two_kinds, "'<' not supported between instances of 'list' and 'tuple'"),
        (under_two_names, r"for all its names.*`values = values \+ \.\.\.` makes another one"),
        (within_a_tuple, r"`values = values \* \.\.\.`"),
        (of_the_caller, "for all its names"),
        (as_a_default, "for all its names"),
        (from_outside, "for all its names"),
    ],
)
def test_what_python_refuses_or_another_name_would_see_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        ninetoothed.make(_arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    assert __file__ in str(raised.value)


def _arrangement(x, n, y):
    return x.tile((-1,)), n, y.tile((-1,))
