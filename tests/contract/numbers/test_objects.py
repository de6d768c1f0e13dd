"""Dictionaries, identity, attributes and methods in variables are Python's."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.numbers.test_literals import tiles

X = torch.tensor([-3.0, 0.5, 5.0, 0.75])
ENTRIES = {"a": 2, "b": 3}


def result(application):
    y = torch.zeros_like(X)
    ninetoothed.make(tiles, application, (Tensor(1), Tensor(1)))(X, y)
    return y.tolist()


def contained(x, y):
    d = {"a": x, "b": 2}
    y = x * (("a" in d) + 2 * ("z" in d) + 4 * (2 not in d) + 8 * ("a" in ENTRIES))  # noqa: F841


def of_keys(x, y):
    d = {4: 7, 2: 8}
    y = x * (sum(d) + 10 * max(d) + 100 * min(d) + 1000 * sorted(d)[0] + 10000 * any({0: 7}))  # noqa: F841


def equal(x, y):
    d = {1: 7, 2: 8}
    y = x * ((d == {2: 8, 1: 7}) + 2 * (d == (7, 8)) + 4 * (d != {1: 7}) + 8 * (d == {1: 7, 3: 8}))  # noqa: F841


def kind(x, y):
    d = {1: 7}
    y = x * (isinstance(d, dict) + 2 * isinstance(d, tuple))  # noqa: F841


def gone_through(x, y):
    d, total = {1: x, 2: 2.0}, 0
    for key, (name, value) in zip(d, d.items()):  # noqa: B905
        total += key * name * value
    for value in d.values():
        total += value
    for key in d.keys():  # noqa: SIM118
        total += key
    y = total + len(d) + d.get(1) + d.get(5, 3.0)  # noqa: F841


def identity(x, y):
    t, d = (x, 1), {1: x}
    y = x * ((t is t) + 2 * (t is not t) + 4 * (d is d) + 8 * (t is None))  # noqa: F841, PLR0124


def attributes(x, y):
    v = x * 2
    a = getattr(x, "nonexist", 3) + getattr(v, "nonexist", 4) + getattr(ntl, "nonexist", 5)
    b = hasattr(x, "nonexist") + 2 * hasattr(x, "shape") + 4 * hasattr(v, "dtype")
    y = v * a + b + 8 * hasattr(v, "sum")  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (contained, X * 13),
        (of_keys, X * (6 + 40 + 200 + 2000)),
        (equal, X * 5),
        (kind, X),
        (gone_through, X + 8 + X + 2 + 3 + 2 + X + 3),
        (identity, X * 5),
        (attributes, X * 24 + 14),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_object_is_what_it_is_in_python(application, expected):
    assert result(application) == expected.tolist()


def test_whether_two_tuples_are_one_is_not_known():
    def application(x, y):
        t = (x, 1)
        u = t
        y = x * (2 if u is t else 3)  # noqa: F841

    with pytest.raises(ApplicationError, match="compare with `==`"):
        result(application)


def blocks(x, y):
    return x.tile((2,)).tile((-1,)), y.tile((2,)).tile((-1,))


def test_a_method_in_a_variable_is_of_the_tile_that_it_was_taken_of():
    def application(x, y):
        i = 0
        for k in range(2):
            offsets = x[i].offsets
            both = (x[i].offsets, 1)
            i = i + 1
            y[k] = offsets() * 10 + both[0](0)

    y = torch.zeros_like(X)
    ninetoothed.make(blocks, application, (Tensor(1), Tensor(1)))(X, y)
    assert y.tolist() == [0.0, 11.0, 22.0, 33.0]
