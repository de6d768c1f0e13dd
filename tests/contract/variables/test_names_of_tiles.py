"""Names that stand for a tile: what they read once it was stored to under another name.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def _made(application):
    return ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )


def put(destination, value):
    destination = value


def read_after_storing(p, q):
    p = p + 1
    p = p + q * 10


def read_after_rounds(p, q, n):
    for _ in range(n):
        p = q + 1
    p = p + q


def in_place(p, a, b):
    p = a + b


def same(w):
    return w


def of_two_loops(outs, value):
    for each in outs:
        put(each, value)
    for each in outs:
        put(each, each * 2)


def then_read(d, e):
    put(d, e + 1)
    w = d * 2
    e = w


def loop_over_zip(x, n, y):
    for i, j in zip((y, x), (x, y)):
        y = i - 2 * j


def loop_over_enumerate(x, n, y):
    for k, (i, j) in enumerate([(y, x), (x, y)]):
        y = i + 2 * j + k


def stored_in_one_way(x, n, y):
    for i in (x, y):
        if n > 0:
            y = x * 3
        x = i + 1


def stored_in_rounds(x, n, y):
    for i in (y,):
        for _ in range(n):
            x = x + i
            y = y + 1


def parameter_given_twice(x, n, y):
    read_after_storing(y, y)


def parameter_given_twice_beside_rounds(x, n, y):
    read_after_rounds(y, y, n)


def parameter_in_place(x, n, y):
    in_place(y, y, x)


def default(x, n, y):
    def f(v, q=y):
        return v + q

    y = y * 10
    y = f(y)


def default_that_holds(x, n, y):
    f = lambda v, q=(y, x): v + q[0]  # noqa: E731
    y = y * 10
    y = f(y)


def stored_behind_a_parameter(x, n, y):
    def f(p):
        put(y, x)
        put(x, p)

    f(y)


def put_through_the_name(x, n, y):
    for each in (y, x):
        put(each, each * 2)
        put(each, each + 1)
    for each in (y, x):
        put(each, each * 3)


def put_in_two_loops(x, n, y):
    of_two_loops((y, x), y)


def put_then_read(x, n, y):
    then_read(y, x)


def put_to_what_is_given_back(x, n, y):
    put(same(y), x)


@pytest.mark.parametrize(
    ("application", "x", "y"),
    [
        (loop_over_zip, [1, 2], [1 - 20, 2 - 40]),
        (loop_over_enumerate, [1, 2], [22, 43]),
        (stored_in_one_way, [11, 21], [6, 9]),
        (stored_in_rounds, [21, 42], [12, 22]),
        (parameter_given_twice, [1, 2], [111, 221]),
        (parameter_given_twice_beside_rounds, [1, 2], [21, 41]),
        (parameter_in_place, [1, 2], [11, 22]),
        (default, [1, 2], [110, 220]),
        (default_that_holds, [1, 2], [110, 220]),
        (stored_behind_a_parameter, [10, 20], [1, 2]),
        (put_through_the_name, [9, 15], [63, 123]),
        (put_in_two_loops, [20, 40], [20, 40]),
        (put_then_read, [4, 6], [2, 3]),
        (put_to_what_is_given_back, [1, 2], [1, 2]),
    ],
)
def test_a_name_is_what_the_tile_was_unless_it_is_stored_to_itself(application, x, y):
    got_x, got_y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    _made(application)(got_x, 2, got_y)
    assert (got_x.tolist(), got_y.tolist()) == (x, y)


def change_both(p, q):
    p = p + 1
    q = q * 2


def given_twice_and_assigned_twice(x, n, y):
    change_both(y, y)


def read_and_put(x, n, y):
    for each in (y, x):
        y = x * 2
        put(each, each + 1)


def elements_of_what_was_stored(x, n, y):
    for each in (y, x):
        y = x * 2
        x = each[0] + x


def put_deeper(p, q):
    put(p, q)


def assigned_by_a_later_argument(x, n, y):
    a = y + 1
    put(a, (a := x))
    y = a


def assigned_by_a_later_argument_deeper(x, n, y):
    a = y + 1
    put_deeper(a, (a := x))
    y = a


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (assigned_by_a_later_argument, "that a later argument assigns: assign that before"),
        (assigned_by_a_later_argument_deeper, "that a later argument assigns: assign that before"),
        (given_twice_and_assigned_twice, "could mean two things: keep what it was"),
        (read_and_put, "could mean two things: keep what it was"),
        (elements_of_what_was_stored, "Elements of 'y' are read by a name that stands for this"),
    ],
)
def test_a_name_that_is_read_and_stored_to_beside_another_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        _made(application)
    assert __file__ in str(raised.value)


def increased(each):
    each = each + 1


def both_increased(p, q):
    p = p + 1
    q = q + 10


def both_read(p, q, seen):
    p = p + 1
    seen = q
    q = q + 10


def increased_in_a_loop(y, i, j, z):
    for each in (y[i], y[j]):
        increased(each)


def increased_beside_another(y, i, j, z):
    for each in (y[i], y[j]):
        y[0] = y[1] + 3
        put(each, each * 2)


def increased_by_one_helper(y, i, j, z):
    both_increased(y[i], y[j])


def seen_in_between(y, i, j, z):
    both_read(y[i], y[j], z)


def seen_after_each(y, i, j, z):
    for each in (y[i], y[j]):
        increased(each)
        z = each  # noqa: F841


def increased_in_a_comprehension(y, i, j, z):
    [increased(each) for each in (y[i], y[j])]


def _with_rows(application):
    return ninetoothed.make(
        lambda y, i, j, z: (y.tile((2,)).tile((-1,)), i, j, z.tile((2,))),
        application,
        (Tensor(1), Tensor(0), Tensor(0), Tensor(1)),
    )


@pytest.mark.parametrize(
    ("application", "equal", "different"),
    [
        (increased_in_a_loop, [2, 3, 10, 20, 0, 0], [1, 2, 11, 21, 0, 0]),
        (increased_beside_another, [26, 46, 10, 20, 0, 0], [13, 23, 20, 40, 0, 0]),
        (increased_by_one_helper, [11, 12, 10, 20, 0, 0], [1, 2, 20, 30, 0, 0]),
        (seen_in_between, [11, 12, 10, 20, 1, 2], [1, 2, 20, 30, 10, 20]),
        (seen_after_each, [2, 3, 10, 20, 2, 3], [1, 2, 11, 21, 11, 21]),
        (increased_in_a_comprehension, [2, 3, 10, 20, 0, 0], [1, 2, 11, 21, 0, 0]),
    ],
)
def test_names_of_what_may_be_one_tile_are_views_where_they_are_stored_to(
    application, equal, different
):
    for j, expected in ((0, equal), (1, different)):
        y, z = torch.tensor([0.0, 1.0, 10.0, 20.0]), torch.zeros(2)
        _with_rows(application)(y, 0, j, z)
        assert [*y.tolist(), *z.tolist()] == expected


def views_beside_what_a_tile_was(y, i, j, z):
    both_increased(y[i], y[j])
    for each in (y[0], y[1]):
        y[0] = z + 1
        z = each


def test_what_a_tile_was_is_not_known_beside_views():
    with pytest.raises(
        ApplicationError, match="only the running kernel knows whether they stand"
    ) as raised:
        _with_rows(views_beside_what_a_tile_was)
    assert "for each in (y[0], y[1])" in str(raised.value)
