"""Functions that reductions, scans and maps call: what they compute, and what they may not be."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import NineToothedError

X = torch.tensor([2.0, 0.0, 3.0, -0.5, 4.0])


def run(application, x):
    def arrangement(x, y):
        return x.tile((8,)), y.tile((8,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    out = torch.full((len(x),), -77, dtype=x.dtype)
    device = torch.get_default_device()
    x, out = x.to(device), out.to(device)
    kernel(x, out)
    return out.cpu().tolist()


def in_ways(a, b):
    if a > b:
        return a * 2 - b
    elif a == b:
        return a + b
    return b - a


def of_variables(a, b):
    kept = a
    if b > 0:
        kept += b
        if kept > 4:
            kept = kept - 4
    elif b == 0:
        kept = kept * 0.5
    return kept


def chosen(a, b):
    return a * b if b != 0 else a + 1


def by_a_number(a, b):
    return a + b if b else a


def chosen_twice(a, b):
    return ntl.maximum(a, b) if a > 0 else (ntl.abs(b) if b < 0 else b)


def either(a, b):
    return a or b


def both(a, b):
    return a and b


FUNCTIONS = [in_ways, of_variables, chosen, by_a_number, chosen_twice, either, both]


def plain(function, values):
    """The function of Python's numbers, with what it calls of the language."""
    known = {"ntl": type("ntl", (), {"maximum": max, "abs": abs})}
    made = type(function)(function.__code__, known)
    return list(itertools.accumulate(values, made))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_has_ways(function, dtype):
    if dtype is torch.int32 and function is of_variables:
        pytest.skip("halves are no integers")

    def scanned(x, y):
        y = ntl.associative_scan(x, 0, function)  # noqa: F841

    # Two elements: any function is associative.
    for values in itertools.permutations([2, 0, 3, -1, 4], 2):
        x = torch.tensor(values, dtype=dtype)
        assert run(scanned, x) == plain(function, list(values)), values


def best(a, i, b, j):
    if a > b:
        return a, i
    elif a == b:
        return a, i if i < j else j
    else:
        return b, j


def summed_by_flags(v, f, w, g):
    return w if g else v + w, f | g


def test_several_values_have_ways():
    def best_place(x, y):
        value, place = ntl.reduce((x, ntl.arange(0, 8)), 0, best)
        y = value * 10 + place + 0 * x  # noqa: F841

    def by_flags(x, y):
        flags = (x == 0).to(ntl.int32)
        y = ntl.associative_scan((x, flags), 0, summed_by_flags)[0]  # noqa: F841

    assert run(best_place, torch.tensor([1.0, 5.0, 3.0, 5.0, 2.0])) == [51.0] * 5
    assert run(by_flags, X) == [2.0, 0.0, 3.0, 2.5, 6.5]


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.float32], ids=str)
def test_and_and_or_give_an_operand(dtype):
    def any_of_them(x, y):
        y = ntl.reduce(x, 0, lambda a, b: a or b) + 0 * x  # noqa: F841

    def all_of_them(x, y):
        y = ntl.associative_scan(x, 0, lambda a, b: a and b)  # noqa: F841

    # A reduction takes elements in any order, so that `or` says which one it found where all are equal.
    x = torch.tensor([2, 0, 2, 0, 0], dtype=dtype)
    assert run(any_of_them, x) == [2] * 5
    x = torch.tensor([2, 5, 3, 0, 1], dtype=dtype)
    assert run(all_of_them, x) == functools.reduce(
        lambda found, each: [*found, found[-1] and each], [5, 3, 0, 1], [2]
    )


def with_a_loop(a, b):
    for _ in range(3):
        a = ntl.maximum(a, b)
    return a


def test_a_loop_of_the_running_kernel_is_refused():
    def reduced(x, y):
        y = ntl.reduce(x, 0, with_a_loop) + 0 * x  # noqa: F841

    with pytest.raises(
        NineToothedError, match=r"one block of instructions .*ntl\.static_range"
    ) as e:
        run(reduced, X)
    assert "for _ in range(3)" in str(e.value)


@pytest.mark.parametrize(
    "function",
    [lambda a, b: ntl.sum(a) + b, lambda a, b: a.shape[0] + b, lambda a, b: a[0] + b],
    ids=["a sum", "a size", "an element"],
)
def test_a_function_of_elements_is_given_no_tile(function):
    def reduced(x, y):
        y = ntl.reduce(x, 0, function) + 0 * x  # noqa: F841

    with pytest.raises(NineToothedError):
        run(reduced, X)


def whole_or_not(a):
    if a > 0:
        return a
    return 0


def halves(a):
    return a if a > 0 else 0


@pytest.mark.parametrize("function", [whole_or_not, halves], ids=lambda f: f.__name__)
def test_a_function_maps_to_one_element_type(function):
    def mapped(x, y):
        y = ntl.map_elementwise(function, x)  # noqa: F841

    with pytest.raises(NineToothedError, match="element type"):
        run(mapped, X)


def test_what_function_maps_stays_a_fraction():
    def mapped(x, y):
        y = ntl.map_elementwise(lambda a: a if a > 0 else 0.0, x)  # noqa: F841

    assert run(mapped, X) == np.maximum(X.numpy(), 0).tolist()


def two_for_one(x):
    return ntl.reduce(x, 0, lambda a, b: (a, b))


def a_tuple_of_one(x):
    return ntl.reduce(x, 0, lambda a, b: (a + b,))


def one_for_two(x):
    return ntl.reduce((x, x), 0, lambda a, b, c, d: a + c)[0]


def along_no_dimension(x):
    return ntl.associative_scan(x, None, lambda a, b: a + b)


def beside_a_number(x):
    return ntl.map_elementwise(lambda a, b: a + b, x, 2)


def beside_a_size(x):
    return ntl.map_elementwise(lambda a, b: a + b, x, x.shape[0])


def of_one_number(x):
    return ntl.map_elementwise(lambda a: a + 1, ntl.sum(x))


REFUSED = {
    two_for_one: "returns one value, and this one a tuple of 2",
    a_tuple_of_one: "returns one value, and this one a tuple of 1",
    one_for_two: "returns a tuple of 2 values, and this one one value",
    along_no_dimension: "goes along one dimension",
    beside_a_number: "write it into the function",
    beside_a_size: "write it into the function",
    of_one_number: "needs a tile. Call the function itself",
}


@pytest.mark.parametrize("made", REFUSED, ids=lambda made: made.__name__)
def test_what_a_function_is_not_called_with_or_gives(made):
    def application(x, y):
        y = made(x) + 0 * x  # noqa: F841

    with pytest.raises(NineToothedError, match=REFUSED[made]):
        run(application, X)
