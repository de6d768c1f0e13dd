"""What helpers change: variables that are handed over, indices, tiles; and what could mean two things.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def put(destination, value):
    destination = value


def doubled(v):
    v = v * 2


def _rows(x, n, y):
    return x.tile((2,)).tile((2,)).tile((-1,)), n, y.tile((2,)).tile((2,)).tile((-1,))


def next_of(i):
    i = i + 1


def put_after(destination, i, value):
    i = i + 1
    destination = value


def a_selection_before_its_index_changes(x, n, y):
    i = n * 1
    row = x[i]
    next_of(i)
    y[0][0] = row[1]


def a_destination_before_its_index_changes(x, n, y):
    i = n * 1
    put_after(y[i][0], i, x[0][1])  # noqa: F841


def rows_before_their_index_changes(x, n, y):
    i = n * 1
    for row in (x[i], x[i]):
        next_of(i)
        y[0][0] = row[1]  # noqa: F841


@pytest.mark.parametrize(
    "application",
    [
        a_selection_before_its_index_changes,
        a_destination_before_its_index_changes,
        rows_before_their_index_changes,
    ],
)
def test_what_was_selected_stays_where_a_helper_changes_the_index(application):
    kernel = ninetoothed.make(_rows, application, (Tensor(1), Tensor(0), Tensor(1)))
    x, y = torch.arange(8.0), torch.zeros(8)
    kernel(x, 0, y)
    assert y.tolist() == [2, 3, 0, 0, 0, 0, 0, 0]


def no_change(v):
    w = v * 2  # noqa: F841


def through(inner):
    def helper(v):
        inner(v)

    return helper


@pytest.mark.parametrize("order", [(no_change, doubled), (doubled, no_change)])
def test_a_helper_is_what_its_own_helpers_make_of_it(order):
    for inner in order:
        helper = through(inner)

        def application(x, n, y):
            a = x * 1
            helper(a)  # noqa: B023
            y = a  # noqa: F841

        kernel = ninetoothed.make(
            lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
            application,
            (Tensor(1), Tensor(0), Tensor(1)),
        )
        x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
        kernel(x, 0, y)
        torch.testing.assert_close(y, x * 2 if inner is doubled else x)


def one_helper_or_another(x, n, y):
    y = x
    put(y, y * 2) or put(y, y + 1)


def a_helper_after_what_a_number_asks(x, n, y):
    y = x
    (n > 9 and put(y, y * 5)) or put(y, y * 2) or put(y, y + 1)


def a_value_behind_helpers(x, n, y):
    y = x
    y = put(y, y * 2) or put(y, y + 1) or y * 1


def a_helper_that_a_loop_asks(x, n, y):
    y = x * 2
    while put(y, y + 1):
        y = x * 100


def two_helpers_that_a_loop_asks(x, n, y):
    y = x
    while put(y, y * 2) or put(y, y + 1):
        y = x * 100


def a_variable_that_a_loops_helper_changes(x, n, y):
    v = x * 1
    while doubled(v):
        v = v * 100
    y = v + 1


@pytest.mark.parametrize(
    "application",
    [
        one_helper_or_another,
        a_helper_after_what_a_number_asks,
        a_value_behind_helpers,
        a_helper_that_a_loop_asks,
        two_helpers_that_a_loop_asks,
        a_variable_that_a_loops_helper_changes,
    ],
)
def test_a_helper_that_returns_nothing_does_what_it_does_where_it_is_a_condition(application):
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
    kernel(x, 2, y)
    torch.testing.assert_close(y, x * 2 + 1)


def greatest_in_a_dictionary(x, y):
    state = {"greatest": ntl.full((4,), -100.0, ntl.float32)}
    for k in range(x.shape[0]):
        state = {"greatest": ntl.maximum(state["greatest"], x[k])}
    y = state["greatest"]  # noqa: F841


def test_what_a_dictionary_holds_stays_where_a_round_has_no_element():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)).tile((-1,)), y.tile((4,))),
        greatest_in_a_dictionary,
        (Tensor(1), Tensor(1)),
    )
    x, y = torch.arange(5.0) - 50, torch.full((4,), float("nan"))
    kernel(x, y)
    assert y.tolist() == [-46, -49, -48, -47]


def both(p, q):
    p = p + 1
    q = q * 2


def one_variable_twice(x, n, y):
    a = x * 1
    both(a, a)
    y = a


def a_tile_that_the_call_chooses(x, n, y):
    put(x if n > 0 else y, x * 2)


def a_generator_that_waits(x, n, y):
    waiting = (n + k for k in range(2))
    n = n + 5
    a, b = waiting
    y = x * 0 + a + b  # noqa: F841


def an_item_of_a_list(x, n, y):
    places = [y, x]
    put(places[0], x)


def an_entry_of_a_dictionary(x, n, y):
    places = {"y": y}
    put(places["y"], x)


def a_value(x, n, y):
    put(y * 2, x)


def items_of_a_tuple(x, n, y):
    places = (y, x)
    for place in places:
        put(place, x)


def counted_items_in_a_variable(x, n, y):
    places = enumerate((y, x))
    for _, place in places:
        put(place, x)


def items_of_a_comprehension(x, n, y):
    for place in [each for each in (y, x)]:  # noqa: C416
        doubled(place)


def the_rest_of_a_tuple(x, n, y):
    _first, *rest = (x, y)
    for place in rest:
        put(place, x)


def what_a_helper_gives(x, n, y):
    def both_places():
        return y, x

    place, value = both_places()
    put(place, value)


def items_given_with_a_star(x, n, y):
    def put_each(*places):
        for place in places:
            put(place, 3)

    places = (y, x)
    put_each(*places)


def a_loops_variable(x, n, y):
    for place in (y, x):
        place = x * 2  # noqa: B020, F841, PLW2901


def a_loops_variable_added_to(x, n, y):
    for place in (y, x):
        if n > 0:
            place += x  # noqa: PLW2901


def items_that_are_read(x, n, y):
    values, total = (x, x), x * 0
    for value in values:
        doubled(value)
        total += value
    for value in (x, x):
        value = value * 2  # noqa: PLW2901
        total += value
    y = total * 1


def a_variable_that_the_next_round_reads(x, n, y):
    value, total = x, x * 0
    for _ in range(n):
        total += value
        doubled(value)
    y = total - x + x * 6


@pytest.mark.parametrize("application", [items_that_are_read, a_variable_that_the_next_round_reads])
def test_a_variable_that_holds_what_a_tile_is_may_be_changed_where_it_is_read(application):
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)), n, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(4.0), torch.zeros(4)
    kernel(x, 2, y)
    assert torch.equal(y, x * 8)


def scaled_into(v, destination):
    v = v * 2
    destination = v


def test_a_value_may_be_what_a_helper_goes_on_with():
    def application(x, n, y):
        pair = (x, n)
        scaled_into(pair[0] + pair[1], (y, x)[0])

    x, y = torch.arange(4.0), torch.zeros(4)
    tensors = (Tensor(1), Tensor(0), Tensor(1))
    ninetoothed.make(lambda x, n, y: (x.tile((4,)), n, y.tile((4,))), application, tensors)(x, 1, y)
    assert y.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (
            an_item_of_a_list,
            "assigns 'destination' and does not read it afterwards.*is lost. Give it the tile",
        ),
        (an_entry_of_a_dictionary, "what is assigned is lost"),
        (a_value, "what is assigned is lost"),
        (items_of_a_tuple, "'destination' is assigned here is not read.*so it is lost"),
        (counted_items_in_a_variable, "'destination' is assigned here is not read"),
        (items_of_a_comprehension, "'v' is assigned here is not read"),
        (the_rest_of_a_tuple, "'destination' is assigned here is not read"),
        (what_a_helper_gives, "'destination' is assigned here is not read"),
        (items_given_with_a_star, "'destination' is assigned here is not read"),
        (a_loops_variable, "'place' is assigned here is not read"),
        (a_loops_variable_added_to, "'place' is assigned here is not read"),
        (one_variable_twice, "gets one variable as 'p' and as 'q'"),
        (a_tile_that_the_call_chooses, "only the running kernel knows which tile"),
        (a_generator_that_waits, "Make a list"),
    ],
)
def test_what_could_mean_two_things_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        ninetoothed.make(
            lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
            application,
            (Tensor(1), Tensor(0), Tensor(1)),
        )
    assert __file__ in str(raised.value)
