"""Functions that a call gives as constants, and names beside constants: later changes of them change nothing.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import functools

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

FACTOR = {"by": 2}
factor = 2


def scaled(value):
    return value * factor


def scaled_by_an_item(value):
    return value * FACTOR["by"]


def scaled_by_a_default(value, by=factor):
    return value * by


def scaled_by_another(value):
    return scaled(value)


class Scale:
    def of(self, value):
        return value * factor


def _made(application):
    return ninetoothed.make(
        lambda x, given, y: (x.tile((4,)), given, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0, constexpr=True), Tensor(1)),
    )


@pytest.fixture
def changing(monkeypatch):
    """Changes all that the functions here name."""

    def change():
        monkeypatch.setitem(globals(), "factor", 5)
        monkeypatch.setitem(FACTOR, "by", 5)
        monkeypatch.setattr(scaled_by_a_default, "__defaults__", (5,))

    return change


def called(x, given, y):
    y = given(x)


def called_from_a_tuple(x, given, y):
    y = given[0](x)


@pytest.mark.parametrize(
    ("application", "given"),
    [
        (called, scaled),
        (called, scaled_by_an_item),
        (called, scaled_by_a_default),
        (called, scaled_by_another),
        (called, functools.partial(scaled)),
        (called, Scale().of),
        (called, lambda value: value * factor),
        (called_from_a_tuple, (scaled,)),
    ],
)
def test_a_function_given_is_what_it_was_when_it_was_first_given(application, given, changing):
    kernel, x = _made(application), torch.arange(5.0)
    for change in (changing, lambda: None):
        y = torch.empty(5)
        kernel(x, given, y)
        assert torch.equal(y, x * 2)
        change()


def beside_a_number(x, given, y):
    y = x * given * factor


def by_an_entry(x, given, y):
    y = {"scaled": scaled}["scaled"](x) * given


def by_a_list_outside(x, given, y):
    y = FUNCTIONS[0](x) * given


FUNCTIONS = [scaled]


@pytest.mark.parametrize("application", [beside_a_number, by_an_entry, by_a_list_outside])
def test_names_mean_what_they_did_when_the_kernel_was_made_beside_a_constant(application, changing):
    kernel, x, y = _made(application), torch.arange(5.0), torch.empty(5)
    changing()
    kernel(x, 3, y)
    assert torch.equal(y, x * 6)


def asks_which(x, given, y):
    y = given(x) * (10 if given is scaled else 1) + (100 if given in FUNCTIONS else 0)


def test_a_function_given_is_the_one_that_the_application_names():
    kernel, x = _made(asks_which), torch.arange(5.0)
    for given, expected in ((scaled, x * 20 + 100), (scaled_by_an_item, x * 2)):
        y = torch.empty(5)
        kernel(x, given, y)
        assert torch.equal(y, expected)


def asks_which_was_arranged(x, given, y):
    y = given(x) * (10 if given is scaled else 1)


def test_a_function_that_the_arrangement_gives_is_what_it_was(changing):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), scaled, y.tile((4,))),
        asks_which_was_arranged,
        (Tensor(1), Tensor(1)),
    )
    x, y = torch.arange(5.0), torch.empty(5)
    changing()
    kernel(x, y)
    assert torch.equal(y, x * 20)


def small(value):
    return value < 2


def by_a_parameter(x, y):
    def either(function, value):
        return ntl.where(value > 2 or function(value), 1.0, 0.0)

    y = either(small, x) + either(function=lambda v: v * 0 > 1, value=x)


def by_a_variable(x, y):
    function = small
    y = ntl.where(x > 2 or function(x), 1.0, 0.0) + ntl.where(not function(x) and x > 2, 1.0, 0.0)


@pytest.mark.parametrize("application", [by_a_parameter, by_a_variable])
def test_what_a_function_gives_that_a_name_stands_for_is_asked_element_by_element(application):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.arange(4.0), torch.full((4,), float("nan"))
    kernel(x, y)
    assert y.tolist() == [1, 1, 0, 2]
