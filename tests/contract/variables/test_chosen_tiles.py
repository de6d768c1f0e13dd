"""A tile that is chosen and given to a helper that assigns it: by a constant it is that tile, which is stored to,
and which one it is only the running kernel knows is refused. What constants decide of `and` and `or` is Python's.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def put(destination, value):
    destination = value


def put_through(destination, value):
    put(destination, value)


def by_a_choice(y, z, b, x):
    put(y if b else z, x)


def by_a_helper_of_two_ways(y, z, b, x):
    def chosen():
        if b:
            return y
        return z

    put(chosen(), x)


def by_a_helper_of_tuples(y, z, b, x):
    def chosen():
        if b:
            return y, z
        return z, y

    put(chosen()[0], x)


def by_a_choice_of_what_a_helper_gives(y, z, b, x):
    def chosen(first):
        if first:
            return y
        return z

    put(chosen(b) if b > -3 else z, x)


def by_a_loop_over_a_choice(y, z, b, x):
    for each in (y, y) if b else (z, z):
        put(each, x)


def by_a_comprehension(y, z, b, x):
    [put(each, x) for each in ((y,) if b else (z,))]


def by_a_helper_that_hands_on(y, z, b, x):
    put_through(y if b else z, x)


def by_a_name_within_a_helper(y, z, b, x):
    def chosen():
        if b:
            return y
        return z

    def hand_on(each):
        for _ in range(2):
            put(each, x)

    hand_on(chosen())


CHOICES = [
    by_a_choice,
    by_a_helper_of_two_ways,
    by_a_helper_of_tuples,
    by_a_choice_of_what_a_helper_gives,
    by_a_loop_over_a_choice,
    by_a_comprehension,
    by_a_helper_that_hands_on,
    by_a_name_within_a_helper,
]


def by_a_position(y, z, b, x):
    put((z, y)[b], x)


def by_and_and_or(y, z, b, x):
    if b:
        put(b and y, x)
    else:
        put(b or z, x)


def arranged(y, z, b, x):
    return y.tile((-1,)), z.tile((-1,)), b, x.tile((-1,))


def tensors(**constant):
    return Tensor(1), Tensor(1), Tensor(0, **constant), Tensor(1)


@pytest.mark.parametrize("b", [1, 0])
@pytest.mark.parametrize("application", [*CHOICES, by_a_position, by_and_and_or])
def test_what_a_constant_chooses_is_stored_to(application, b):
    y, z, x = torch.zeros(5), torch.zeros(5), torch.arange(1.0, 6)
    ninetoothed.make(arranged, application, tensors(constexpr=True))(y, z, b, x)
    assert (y.tolist(), z.tolist()) == ((x * b).tolist(), (x * (1 - b)).tolist())


def test_an_output_that_may_be_left_out_has_another_in_its_place():
    z, x = torch.zeros(5), torch.arange(1.0, 6)

    def application(y, z, b, x):
        put(None or z, x)

    ninetoothed.make(arranged, application, tensors())(z.clone(), z, 0, x)
    assert z.tolist() == x.tolist()


@pytest.mark.parametrize("application", [*CHOICES, by_and_and_or])
def test_what_the_running_kernel_chooses_is_refused(application):
    with pytest.raises(
        ApplicationError, match="only the running kernel knows which tile"
    ) as raised:
        ninetoothed.make(arranged, application, tensors())
    assert __file__ in str(raised.value)


def plus_one(value):
    value = value + 1
    return value


def returned_by_a_helper(y, z, b, x):
    y = plus_one(x if b else z)


def an_operand(y, z, b, x):
    y = (b and x) + (b or z)


def the_last_of_three(y, z, b, x):
    chosen = b and 2 and x
    y = chosen + 1  # noqa: F841


@pytest.mark.parametrize(
    ("application", "constant", "number"),
    [
        (returned_by_a_helper, lambda x, z, b: (x if b else z) + 1, None),
        (an_operand, lambda x, z, b: (b and x) + (b or z), lambda x, z, b: b * 1.0 + (b or z != 0)),
        (
            the_last_of_three,
            lambda x, z, b: (b and 2 and x) + 1,
            lambda x, z, b: (x != 0) * (b != 0) + 1.0,
        ),
    ],
)
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("b", [1, 0])
def test_constants_decide_as_in_python(application, constant, number, is_constant, b):
    """Of a number that the call gives and a tile `and` and `or` make truth values, element by element."""
    y, z, x = torch.zeros(5), torch.arange(5.0) - 7, torch.arange(1.0, 6)
    given = {"constexpr": True} if is_constant else {}
    ninetoothed.make(arranged, application, tensors(**given))(y, z, b, x)
    expected = (constant if is_constant or number is None else number)(x, z, b)
    assert y.tolist() == (torch.zeros(5) + expected).tolist()


def an_element_at_a_position(y, z, b, x):
    i = 1
    while i < b:
        i += 1
    y = x[i] * x[0] if b > 0 else z[0:5]


def an_element_of_a_helpers_position(y, z, b, x):
    def position(i):
        return i + 1

    y = z if b < 0 else x[position(b)] * 2  # noqa: F841


@pytest.mark.parametrize("b", [2, -1])
@pytest.mark.parametrize(
    ("application", "element"),
    [(an_element_at_a_position, 3), (an_element_of_a_helpers_position, 8)],
)
def test_an_element_is_a_number_beside_a_tile(application, element, b):
    y, z, x = torch.zeros(5), torch.arange(5.0) - 7, torch.arange(1.0, 6)
    ninetoothed.make(arranged, application, tensors())(y, z, b, x)
    assert y.tolist() == ([element] * 5 if b > 0 else z.tolist())
