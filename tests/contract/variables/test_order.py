"""What is read is what it was when Python read it, whatever is evaluated after it and beside it.

A case is an application of ``x``, which is 1, 2 and 3 in one tile, a number ``n`` and ``y``, and what comes out of
it for each number. Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.variables.cases import check, table

#: What an application gives is a function of the elements and the number.
CASES, case = table()


# Several targets.


@case(lambda x, n: x * 10201)
def chained_targets(x, n, y):
    b, c = x, x * 10
    b, c = d, e = c, b
    y = b * 1000 + c * 100 + d * 10 + e


@case(lambda x, n: x * (n + 1) * 11)
def a_target_before_one_that_it_changes(x, n, y):
    a = n * 1
    a = b = [a + 1, a][0]
    y = x * (a * 10 + b)


@case(lambda x, n: x * 0 + n + 1)
def an_augmented_name_that_its_value_assigns(x, n, y):
    a, b = n * 1, 1
    b += [a, (b := 5)][0]
    y = x * 0 + b


# Arguments and items.


def both(p, q):
    return p * 10 + q


@case(lambda x, n: x * 0 + 17)
def an_argument_that_a_later_one_assigns(x, n, y):
    a = 1
    y = x * 0 + both(a, (a := 7))


def counted(rounds, q):
    s = 0
    for _ in rounds:
        s += 1
    return s * 10 + q


@case(lambda x, n: x * 0 + n * 10 + n + 2)
def a_range_of_what_a_later_argument_assigns(x, n, y):
    a = n * 1
    y = x * 0 + counted(range(a), (a := a + 2))


@case(lambda x, n: x * 0 + n * 100 + 24)
def items_that_a_later_item_assigns(x, n, y):
    a = n * 1
    t = (a, 2, (a := 4))
    u = t[0:2] + (a,)
    y = x * 0 + u[0] * 100 + u[1] * 10 + u[2]


# Defaults, which the function around computes.


def given_by_its_default(p):
    given = lambda q=(p := p): q  # noqa: E731
    return given() + p


@case(lambda x, n: 2 * x)
def a_default_that_assigns_a_parameter_of_its_own(x, n, y):
    y = given_by_its_default(x)


def changed_by_a_default(p):
    def unused(q, *, r=(p := p + 1)):
        return q


def changed_by_each_default(p):
    unused = lambda q=[lambda r=(p := p + 1): r for _ in (1, 2)]: q  # noqa: E731


@case(lambda x, n: x + 2 * n + 2)
def a_default_that_assigns_a_callers_variable(x, n, y):
    a = x
    for _ in range(n):
        changed_by_a_default(a)
        changed_by_a_default(a)
    changed_by_each_default(a)
    y = a


# Ways.


@case(lambda x, n: x * 0 + (n * 10 + 5 if n > 0 else 0))
def a_choice_of_what_its_way_assigns(x, n, y):
    a = n * 1
    b = [a, (a := 5)][0] if n > 0 else 0
    y = x * 0 + b * 10 + a


def before_five(a, n):
    if n > 0:
        return [a, (a := 5)][0]
    return a


@case(lambda x, n: x * 0 + n * 11)
def what_is_returned_before_it_changes(x, n, y):
    a = n * 1
    y = x * 0 + before_five(a, n) * 10 + a


@case(lambda x, n: x * 0 + (n * 100 + 5 if n > 0 else 0))
def what_stands_behind_and_assigns(x, n, y):
    a = n * 1
    c = n and [a, (a := 5)][0]
    y = x * 0 + c * 100 + a


@case(lambda x, n: x * 0 + (108 if n > 0 else 5))
def what_stands_before_and_is_assigned_behind(x, n, y):
    a = n * 1
    c = [a, (a := 5)][0] > 0 and (a := 8) > 2
    y = x * 0 + c * 100 + a


# Loops.


@case(lambda x, n: x * 0 + sum(range(6, 6 + n)) * 100 + 5 + n)
def a_range_of_what_the_loop_changes(x, n, y):
    a = n * 1
    s = x * 0
    for _ in range([a, (a := 5)][0]):
        a = a + 1
        s += a
    y = s * 100 + a


def decremented(a):
    a = a - 1


@case(lambda x, n: x * 0 + max(n - 1, 0) * 100 + min(n - 1, 0))
def a_condition_that_a_helper_changes(x, n, y):
    a = n * 1
    s = x * 0
    while decremented(a) or a > 0:
        s += 1
    y = s * 100 + a


# Comprehensions.


@case(lambda x, n: x * 0 + 4 * n + 2)
def what_is_gone_through_is_asked_for_outside(x, n, y):
    k = n * 1
    t = [k * 2 for k in (k, k + 1)]
    y = x * 0 + t[0] + t[1]


@case(lambda x, n: x * 0 + 2 * n)
def a_range_of_what_each_element_names_anew(x, n, y):
    t = [(v := n * k, range(v)) for k in (2, 3)]
    s = 0
    for _ in t[0][1]:
        s += 1
    y = x * 0 + s


# What stands behind names something.


@case(lambda x, n: x * (2 * n if n > 1 else 1))
def a_name_given_behind_and(x, n, y):
    y = x
    if n > 0 and (v := n * 2) > 2:
        y = x * v


@case(lambda x, n: x * (2 * n if n > 1 else 3))
def a_name_given_behind_and_is_read_behind_it(x, n, y):
    if n > 0 and (v := n * 2) > 2 and v < 100:
        y = x * v
    else:
        y = x * 3


@case(lambda x, n: x * (2 * n if n > 1 else 1))
def a_name_given_behind_or(x, n, y):
    if n <= 0 or (v := n * 2) <= 2:
        y = x
    else:
        y = x * v


@case(lambda x, n: x * (2 * n if n > 1 else 1))
def a_name_given_in_a_choice(x, n, y):
    y = x * (v if n > 0 and (v := n * 2) > 2 else 1)


@case(lambda x, n: x * (4 if n > 1 else 1))
def a_name_given_in_the_condition_of_a_loop(x, n, y):
    a = n * 1
    y = x
    while a > 0 and (v := a * 2) > 2:
        y = x * v
        a -= 1


def doubled_or_one(n):
    if n > 0 and (v := n * 2) > 2:
        return v
    return 1


@case(lambda x, n: x * (2 * n if n > 1 else 1))
def a_name_given_before_a_return(x, n, y):
    y = x * doubled_or_one(n)


@case(lambda x, n: x * (0 < n < 2) + (5 if n > 0 else n))
def what_stands_behind_a_part_of_a_comparison(x, n, y):
    a = n * 1
    y = x * (0 < n < (a := 5) < 7 - n * 2 + n % 2) + a


@case(lambda x, n: x * (4 if 0 < n < 2 else 1))
def what_is_given_in_a_condition_by_a_comparison(x, n, y):
    a = 1
    if 0 < n < (a := 2) and n < 3:
        a = 4
    y = x * (a if 0 < n < 2 else 1)


# Choices of tuples, and what is true of them.


@case(lambda x, n: x * 1012 if n > 1 else x * 20 + 1000 * n)
def tuples_that_a_condition_chooses(x, n, y):
    pair = (x, x * 12) if n > 1 else (n, x * 20)
    y = pair[0] * 1000 + pair[1]


@case(lambda x, n: x * (12, 21, 0, 21)[n] if n > 1 else x * (34, 43)[n])
def tuples_that_a_condition_chooses_and_rounds_change(x, n, y):
    pair = (1, 2) if n > 1 else (3, 4)
    for _ in range(n):
        pair = (pair[1], pair[0])
    y = x * (pair[0] * 10 + pair[1])


@case(lambda x, n: x * (2 if n > 1 else 3))
def a_list_that_is_asked_whether_it_is_empty(x, n, y):
    values = [x]
    if n > 1 and values:
        y = x * 2
    elif n > 1 or not (n or None or values):
        y = x * 5
    else:
        y = x * 3


@case(lambda x, n: x * 3)
def what_was_none_before_a_loop(x, n, y):
    last = None
    y = x * 0
    for _ in range(3):
        last = x * 1
        y = y + last


@case(lambda x, n: x * (1 if n == 3 else 0) + 12)
def whether_a_number_is_none(x, n, y):
    a = n * 2
    y = x * (n in (None, 3)) + (a is not None) * 2 + (n != None) * 10  # noqa: E711
    if x is None or a == None or (n, 1) == (None, 1):  # noqa: E711
        y = x * 1000


@case(lambda x, n: x + n * 2 + 11)
def counted_from_one(x, n, y):
    y = x
    for k, value in enumerate((1, n), 1):
        y += value * k
    y += 10 * ("%d-%s" % (1, "a") == "1-a")  # noqa: UP031


@case(lambda x, n: x * 0 + sum(k * 2 + 1 for k in range(6, -n, 2 * n - 5)))
def a_step_that_only_the_running_kernel_knows(x, n, y):
    step, end = 2 * n - 5, -n
    y = x * 0
    k = n * 7
    for k in range(6, end, step):
        step = step + 1
        end = end - k
        y += k * 2
        k = k * 0
        y += 1 + k


def looped(value, total):
    for value in [value]:  # noqa: B020
        total = value * 2


@case(lambda x, n: x * 2)
def a_parameter_that_loops(x, n, y):
    looped(x, y)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_it_is_what_it_was_when_python_read_it(name, n):
    check(*CASES[name], n)


def read_after_it_was_given_behind_and(x, n, y):
    y = x
    if n > 0 and (v := n * 2) > 2:
        y = x
    y = y * v


def compared_where_python_may_not_come_to(x, n, y):
    y = x * (0 < n < ntl.atomic_add(y[0], 1))


def a_number_or_nothing(x, n, y):
    y = x * (1 if (n and None) is None else 2)


def a_tuple_or_a_number(x, n, y):
    chosen = n and (1, 2)
    y = x * chosen[0]


def a_tuple_repeated(x, n, y):
    y = x * ((1, 2) * n)[0]


def tuples_of_other_lengths(x, n, y):
    chosen = (1, 2) if n > 1 else (3,)
    y = x * chosen[0]


def nothing_before_a_loop(x, n, y):
    last = None
    for k in range(n):
        last = x * k
    y = x if last is None else last


def a_tuple_that_is_another(x, n, y):
    t, u = (1, n), (1, n)
    y = x * (t is u)


def read_where_it_was_not_given(x, n, y):
    y = x
    if n > 0 or (v := n * 2) > 2:
        y = x * v


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (read_after_it_was_given_behind_and, "read before it is assigned"),
        (read_where_it_was_not_given, "read before it is assigned"),
        (compared_where_python_may_not_come_to, "write two comparisons with `and`"),
        (a_tuple_that_is_another, "compare with `==`"),
        (a_number_or_nothing, "Which value this is only the running kernel knows"),
        (a_tuple_or_a_number, "Which value this is only the running kernel knows"),
        (a_tuple_repeated, "repeated a number of times that is known"),
        (tuples_of_other_lengths, "Which value this is only the running kernel knows"),
        (nothing_before_a_loop, "it is None before a loop that assigns it"),
    ],
)
def test_what_is_not_known_is_refused(application, message):
    with pytest.raises(ApplicationError, match=message) as raised:
        ninetoothed.make(
            lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
            application,
            (Tensor(1), Tensor(0), Tensor(1)),
        )
    assert __file__ in str(raised.value)
