"""What a helper that returns nothing is given may be known by another name, or by none: what it assigns is then an
error wherever that could mean two things, or would be lost.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.variables.cases import table

#: What an application gives is a function of the elements and the number, or of these alone.
CASES, case = table()


def bump(p):
    p = p + 1


def put(destination, value):
    destination = value


def at_least_two(v):
    v = ntl.maximum(v, 2)


def sum_of(a, b, c):
    return a + b * 10 + c * 100


@case(lambda x, n: x + (x + 1) * 110)
def a_variable_before_and_after_it_is_assigned(x, n, y):
    v = x + 0
    y = sum_of(v, (v := v + 1), v)


@case(lambda x, n: x + 10 + (x + 1) * 100)
def a_variable_before_and_after_a_helper_assigns_it(x, n, y):
    v = x + 0
    y = sum_of(v, bump(v) is None, v)


def added_into(destination, a, b):
    destination = a + b


@case(lambda x, n: 2 * x)
def a_variable_twice_that_is_only_read(x, n, y):
    v = x + 0
    added_into(y, v, v)


def of_a_tuple(p, pair, destination):
    p = p + 1
    destination = p * 100 + pair[0]


@case(lambda x, n: (x + 1) * 100 + x)
def a_variable_and_a_tuple_of_it(x, n, y):
    v = x + 0
    of_a_tuple(v, (v, 1), y)


@case(lambda x, n: 2 * x + 1)
def a_variable_around_before_it_is_assigned(x, n, y):
    v = x + 0

    def own(p):
        p = p + v
        p = p + 1

    own(v)
    y = v


@case(lambda x, n: x + 1 if n else 2 * x)
def a_variable_around_on_another_way(x, n, y):
    v = x + 0

    def own(p):
        if n > 0:
            p = p + 1
        else:
            p = p + v

    own(v)
    y = v


@case(lambda x, n: x + 1)
def a_variable_around_after_the_helper_has_returned(x, n, y):
    v = x + 0

    def own():
        return v

    bump(v)
    y = own()


def of_its_own(p):
    def sum_with(value):
        return p + value

    p = sum_with(1)
    p = sum_with(p)


@case(lambda x, n: 2 * x + 2)
def a_parameter_that_is_seen_from_within(x, n, y):
    v = x + 0
    of_its_own(v)
    y = v


def doubled_into(v, destination):
    v = v * 2
    destination = v


def doubled_often_into(v, destination):
    for _ in range(3):
        v = v * 2
    destination = v


@case(lambda x, n: x[1] * 2 + x * 0)
def an_element_that_the_helper_goes_on_with(x, n, y):
    doubled_into(x[1], y)


@case(lambda x, n: x[1] * 8 + x * 0)
def an_element_that_a_loop_goes_on_with(x, n, y):
    doubled_often_into(x[1], y)


def counted_into(destination, start):
    for k in range(2):
        destination = destination + start
        start = start + k + 1


@case(lambda x, n: x + 2 * n + 3)
def a_number_that_is_counted_on(x, n, y):
    y = x
    counted_into(y, n + 1)


def through(helper, p, destination):
    helper(p)
    destination = p


@case(lambda x, n: x[0] + 1 + x * 0)
def an_element_through_a_helper_that_goes_on_with_it(x, n, y):
    through(bump, x[0], y)


@case(lambda x, n: x * 3)
def tiles_in_a_comprehension(x, n, y):
    [put(each, x * k) for each in (y,) for k in (2, 3)]


@case(lambda x, n: x * 2 if n else x)
def what_is_not_reached(x, n, y):
    def own(p, is_added: ntl.constexpr):
        if is_added:
            p = p + 1

    own(x[0], False)
    y = x * 2 if n > 0 else x


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1])
def test_it_means_what_python_says(name, n):
    application, expected = CASES[name]
    x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
    _made(application)(x, n, y)
    torch.testing.assert_close(y, expected(x, n).to(y), rtol=1e-5, atol=1e-5)


def _made(application):
    return ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )


# What is refused.


def pair(p, q):
    bump(p)
    put(q, q * 2)


def one_variable_twice(x, n, y):
    v = x + 0
    pair(v, v)
    y = v  # noqa: F841


def both_read(p, q, destination):
    bump(q)
    destination = p * 100 + q


def one_variable_twice_that_is_read(x, n, y):
    v = x + 0
    both_read(v, v, y)


def a_variable_that_is_around_as_well(x, n, y):
    v = x + 0

    def own(p):
        p = p + 1
        p = p + v

    own(v)
    y = v  # noqa: F841


def one_that_a_round_before_assigned(x, n, y):
    v = x + 0

    def own(p):
        total = p * 0
        for _ in range(2):
            total = total + v
            bump(p)
        p = total

    own(v)
    y = v  # noqa: F841


def bump_through(p):
    bump(p)


def a_variable_of_the_function_around(x, n, y):
    v = x + 0

    def own():
        bump_through(v)

    own()
    y = v  # noqa: F841


def a_variable_of_a_comprehension(x, n, y):
    one, other = [(bump(v), v)[1] for v in (x * 1, x * 2)]
    y = one + other  # noqa: F841


def a_variable_that_a_later_argument_assigns(x, n, y):
    v = x + 0
    through_both(v, (v := v + 1))
    y = v  # noqa: F841


def through_both(p, q):
    bump(p)


def an_element(x, n, y):
    y = x
    at_least_two(y[0])


def a_part(x, n, y):
    y = x
    at_least_two(y[:2])


def an_element_of_the_source(x, n, y):
    y = x
    at_least_two(y.source[0])


def an_entry(x, n, y):
    entries = {"y": y}
    at_least_two(entries["y"])


def swapped(a, b):
    before = a
    a = b
    b = before


def two_elements(x, n, y):
    y = x
    swapped(y[n], y[n + 1])


def put_through(destination, value):
    put(destination, value)


def an_element_through_a_helper(x, n, y):
    put_through(y[0], 7.0)


def doubled_in_a_loop(v):
    for _ in range(3):
        v = v * 2


def an_element_that_a_loop_assigns(x, n, y):
    y = x
    doubled_in_a_loop(y[0])


def spread(*items):
    bump(*items)


def a_variable_by_a_star(x, n, y):
    v = x + 0
    spread(v)
    y = v  # noqa: F841


def both(p, q):
    p = p + 1
    q = q + p


def variables_of_a_tuple(x, n, y):
    v, w = x + 0, x + 1
    both(*(v, w))
    y = v + w  # noqa: F841


def variables_of_a_dictionary(x, n, y):
    v, w = x + 0, x + 1
    both(**{"p": v, "q": w})
    y = v + w  # noqa: F841


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (one_variable_twice, "'pair' gets one variable as 'p' and as 'q', and assigns to it"),
        (one_variable_twice_that_is_read, "'both_read' gets one variable as 'p' and as 'q'"),
        (a_variable_that_is_around_as_well, "as 'p', assigns to it, and uses it as 'v', too"),
        (one_that_a_round_before_assigned, "as 'p', assigns to it, and uses it as 'v', too"),
        (a_variable_of_the_function_around, "'own' gives it a variable of the function around"),
        (a_variable_of_a_comprehension, "the variable of a comprehension as it: write a loop"),
        (a_variable_that_a_later_argument_assigns, "assign that before the call"),
        (an_element, "assigns 'v' and does not read it afterwards.* is lost"),
        (a_part, "what is assigned is lost"),
        (an_element_of_the_source, "what is assigned is lost"),
        (an_entry, "what is assigned is lost"),
        (two_elements, "assigns '[ab]' and does not read it afterwards.* is lost"),
        (an_element_through_a_helper, "'put_through' assigns 'destination'.* is lost"),
        (an_element_that_a_loop_assigns, "what is assigned is lost"),
        (a_variable_by_a_star, "'bump' assigns 'p'.* is lost"),
        (variables_of_a_tuple, "'both' assigns 'q'.* is lost"),
        (variables_of_a_dictionary, "'both' assigns 'q'.* is lost"),
    ],
)
def test_what_could_mean_two_things_or_is_lost_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        _made(application)
    assert __file__ in str(raised.value)
