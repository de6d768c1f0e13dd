"""Python's own functions mean the same of tiles by whatever name they are called; of NaN they are the language's."""

from __future__ import annotations

import enum
import math
import operator
import typing

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.kernels import vectors
from tests.contract.numbers.test_objects import X, result

NAN = math.nan


def in_a_variable(x, y):
    largest, smallest, size = max, min, abs
    y = largest(x, 0.5) + smallest(x, 2 * x, 0.5) + size(x)  # noqa: F841


def in_a_comprehension(x, y):
    y = sum([function(x, 0.5) for function in (max, min)])  # noqa: F841


def in_a_helper(x, y):
    def of_both(function, value):
        return function(value, 0.5)

    y = of_both(max, x)  # noqa: F841


def of_a_chain(x, y):
    y = max([max(value, 0.5) for value in (x, 2 * x)]) + max(v for v in (x, 2 * x))  # noqa: F841


def of_a_tuple(x, y):
    y = min((x, 2 * x)) + max((1, 2))  # noqa: F841


def of_operators(x, y):
    quotient, rest = divmod(x, 2)
    sizes = operator.floordiv(x.shape[0], 3) + divmod(9, x.source.shape[0])[1]
    y = operator.add(quotient * 10, rest) + pow(x, 2) + sizes  # noqa: F841


def of_an_operator_in_a_variable(x, y):
    f = operator.mul if x.ndim == 1 else operator.add
    y = f(f(x, 2), operator.truediv(2.0, x.source.shape[0]))  # noqa: F841


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


def of_a_member(x, y):
    known = (
        isinstance(Mode.FAST, Mode) + 2 * isinstance(Mode.FAST, int) + 4 * (type(Mode.FAST) is Mode)
    )
    known += 8 * (str(Mode.FAST) == "Mode.FAST") + 16 * hasattr(Mode.FAST, "name")
    y = x * known  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (in_a_variable, X.clamp(min=0.5) + torch.minimum(X, 2 * X).clamp(max=0.5) + X.abs()),
        (in_a_comprehension, X + 0.5),
        (in_a_helper, X.clamp(min=0.5)),
        (of_a_chain, torch.maximum(X, 2 * X).clamp(min=0.5) + torch.maximum(X, 2 * X)),
        (of_a_member, X * 29),
        (of_operators, X // 2 * 10 + X % 2 + X**2 + 3),
        (of_an_operator_in_a_variable, X),
        (of_a_tuple, torch.minimum(X, 2 * X) + 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_of_pythons(application, expected):
    assert result(application) == expected.tolist()


@pytest.mark.parametrize("n", [7, -7, 0])
@pytest.mark.parametrize("by", [2, -2])
def test_a_quotient_and_its_rest(n, by):
    def application(x, n, y):
        quotient, rest = divmod(n, by)
        y = quotient * 10 + rest + 0 * x  # noqa: F841

    assert of_a_number(application, n) == [n // by * 10 + n % by] * 4


@pytest.mark.parametrize(
    ("application", "advice"),
    [
        (lambda x, y: put(y, round(x)), "ntl.libdevice.rint"),
        (lambda x, y: put(y, any(x > 0)), "ntl.max"),
        (lambda x, y: put(y, sum(map(lambda k: k * x, (1, 2)))), "Write a comprehension"),
        (lambda x, y: put(y, Pair(x, 2).one), "A tuple, a list or a dictionary holds values"),
    ],
)
def test_what_is_not_of_a_running_kernel_says_what_is(application, advice):
    with pytest.raises(ApplicationError, match=f"Python's own: .*compile time. .*{advice}"):
        result(application)


def put(y, value):
    y = value  # noqa: F841


class Pair(typing.NamedTuple):
    one: object
    other: object


def numbers_of_the_call(x, n, y):
    v = x * 0
    for i in reversed(range(n)):
        v = v * 10 + i
    for i in reversed(range(1, n + 1)):
        v = v * 10 + i
    for i in reversed(range(n, 0, -1)):
        v = v * 10 + i
    y = v


def every_other_number_of_the_call(x, n, y):
    v = x * 0
    for i in reversed(range(1, n, 2)):
        v = v * 10 + i
    for i in reversed(range(n, -1, -3)):
        v = v * 10 + i
    y = v


def numbers_of_blocks(x, n, y):
    count = ntl.cdiv(x.shape[0], 2)
    v = x * 0
    for i in reversed(range(count)):
        v = v * 10 + i
    y = v


@pytest.mark.parametrize("n", [2, 1, 0, -3])
def test_a_range_is_gone_through_from_its_end(n):
    ranges = range(n), range(1, n + 1), range(n, 0, -1)
    expected = int("".join(str(i) for each in ranges for i in reversed(each)) or "0")
    assert of_a_number(numbers_of_the_call, n) == [expected] * 4
    assert of_a_number(numbers_of_blocks, n) == [10] * 4


@pytest.mark.parametrize("n", [7, 6, 5, 2, 1, 0, -1, -4])
def test_a_range_with_steps_is_gone_through_from_its_last_number(n):
    ranges = range(1, n, 2), range(n, -1, -3)
    expected = int("".join(str(i) for each in ranges for i in reversed(each)) or "0")
    assert of_a_number(every_other_number_of_the_call, n) == [expected] * 4


def shown(x, n, y):
    print("shape", x.shape, (n, 2))
    y = x  # noqa: F841


def test_the_items_of_a_tuple_are_printed():
    assert of_a_number(shown, 3) == X.tolist()


def of_a_number(application, n):
    y = torch.full_like(X, NAN)
    ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (*vectors(1), Tensor(0), *vectors(1)),
    )(X, n, y)
    return y.tolist()


# A greatest and a least leave NaN out, and it is no other where a lane does not exist: `q` has none in the
# first, where it reads as 0 and a quotient of it by itself is NaN.


def by_pythons_name(q, x, y):
    y = max(q / q, x)  # noqa: F841


def by_the_languages(q, x, y):
    y = ntl.minimum(x, ntl.maximum(q / q, x))  # noqa: F841


def between_two(q, x, y):
    y = ntl.clamp(q / q, 0.5, 2.0)  # noqa: F841


def that_propagates(q, x, y):
    y = ntl.maximum(q / q, x, propagate_nan=ntl.PropagateNan.ALL)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (by_pythons_name, [NAN, 1, 2, 1]),
        (by_the_languages, [NAN, 1, 2, -3]),
        (between_two, [0.5, 1, 1, 1]),
        (that_propagates, [NAN, NAN, 2, 1]),
    ],
)
def test_nan_is_left_out_where_nothing_is_as_elsewhere(application, expected):
    def arrangement(q, x, y):
        return q.pad(((1, 0),)).tile((4,)), x.tile((4,)), y.tile((4,))

    q, x, y = torch.tensor([1.0, 2, 3]), torch.tensor([NAN, NAN, 2, -3]), torch.zeros(4)
    ninetoothed.make(arrangement, application, vectors(3))(q, x, y)
    torch.testing.assert_close(y, torch.tensor(expected), equal_nan=True)


def summed(x, z, y):
    y = sum([x > 2, z]) * 2  # noqa: F841


def summed_from_a_start(x, z, y):
    y = (sum((x > 2, z), 0) + sum([x > 2]) + sum((x > 2,), 0.0).to(ntl.int32)) * 2  # noqa: F841


def multiplied(x, z, y):
    y = math.prod([x > 2, z]) * 2 + math.prod([x > 2]) * 300  # noqa: F841


def test_a_sum_begins_with_0_and_a_product_with_1():
    """Which makes a number of a truth value, and adds to -0.0."""

    def arrangement(*tensors):
        return tuple(tensor.tile((4,)) for tensor in tensors)

    x, y = torch.tensor([1, 3, 1, 3]), torch.zeros(4, dtype=torch.int64)
    z = torch.tensor([100, 100, 127, 127], dtype=torch.int8)
    for application, expected in (
        (summed, [200, 202, 254, 256]),
        (summed_from_a_start, [200, 206, 254, 260]),
        (multiplied, [0, 500, 0, 554]),
    ):
        ninetoothed.make(arrangement, application, vectors(3))(x, z, y)
        assert y.tolist() == expected, application.__name__

    def of_no_sign(x, y):
        y = 1 / sum([x, x])  # noqa: F841

    x, y = torch.tensor([-0.0, 0.0, -2.0]), torch.zeros(3)
    ninetoothed.make(arrangement, of_no_sign, vectors(2))(x, y)
    assert y.tolist() == [math.inf, math.inf, -0.25]
