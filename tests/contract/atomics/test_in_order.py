"""LANGUAGE.md, "Application": an atomic operation within an expression is made where Python evaluates it.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from tests.contract.kernels import run

# Each is given x = [10, 11, 12, 13], y = [0, 0, 0, 0] and n = 1.


def then_loaded(x, y, n):
    y = ntl.atomic_add(x.source[0], 5) + x  # noqa: F841


def after_a_load(x, y, n):
    y = x + ntl.atomic_add(x.source[0], 5)  # noqa: F841


def twice(x, y, n):
    y = 100 * ntl.atomic_add(x.source[0], 5) + ntl.atomic_add(x.source[0], 7)  # noqa: F841


def as_an_argument(x, y, n):
    y = ntl.maximum(x, ntl.atomic_add(x.source[0], 5)) + ntl.minimum(  # noqa: F841
        ntl.atomic_add(x.source[0], 7), x
    )


def of_what_is_there(x, y, n):
    y = ntl.atomic_add(x.source[0], x.source[0] + x.source[1])  # noqa: F841


def of_another(x, y, n):
    ntl.atomic_add(x.source[0], ntl.atomic_add(x.source[0], 5))


def where_it_is(x, y, n):
    y = ntl.atomic_add(x, 5, mask=x > 11)  # noqa: F841


def at_another(x, y, n):
    ntl.atomic_add(x.source[ntl.atomic_add(x.source[1], 1) - 9], 5)


def in_a_choice(x, y, n):
    y = x + (ntl.atomic_add(x.source[0], 5) if x.source[0] > n else n) + x  # noqa: F841


def in_a_choice_not_made(x, y, n):
    y = x + (ntl.atomic_add(x.source[0], 5) if x.source[0] < n else x.source[1]) + x  # noqa: F841


def after_and(x, y, n):
    if n > 1 and ntl.atomic_add(x.source[0], 5) > 0:
        y = 1
    if n > 0 and ntl.atomic_add(x.source[1], 5) > 0 and x.source[1] == 16:
        y = 2  # noqa: F841


def after_or(x, y, n):
    if n > 0 or ntl.atomic_add(x.source[0], 5) > 0:
        y = 1
    if n > 1 or ntl.atomic_add(x.source[1], 5) > 20 or x.source[1] == 16:
        y += 2  # noqa: F841


def in_a_condition(x, y, n):
    while ntl.atomic_add(x.source[0], 1) < x.source[2]:
        y += x.source[0]  # noqa: F841


def in_a_range(x, y, n):
    for k in range(ntl.atomic_add(x.source[0], 1), x.source[0] + 3):
        y += k  # noqa: F841


def in_an_index(x, y, n):
    y.source[ntl.atomic_add(x.source[0], 1) - 9] = x.source[0]


def in_an_index_of_what_it_changes(x, y, n):
    x.source[x.source[0] - 10] = ntl.atomic_add(x.source[0], 1)


def in_an_augmented_index(x, y, n):
    x.source[ntl.atomic_add(x.source[0], 1) - 10] += x.source[0]


def augmenting(x, y, n):
    x += ntl.atomic_add(x, 5)  # noqa: F841


def in_a_comparison(x, y, n):
    y = 1 + ntl.cast(9 < ntl.atomic_add(x.source[0], 5) < x, ntl.int32)  # noqa: F841


def exchanged(x, y, n):
    x.source[0], x.source[1] = x.source[1], ntl.atomic_add(x.source[0], 5)


def _held(x):
    before = ntl.atomic_add(x.source[0], 5)
    before  # noqa: B018
    return before


def held(x, y, n):
    old = _held(x)
    y = old + ntl.atomic_add(x.source[0], 7) + old  # noqa: F841


@pytest.mark.parametrize(
    ("application", "x", "y"),
    [
        (then_loaded, [15, 11, 12, 13], [25, 21, 22, 23]),
        (after_a_load, [15, 11, 12, 13], [20, 21, 22, 23]),
        (twice, [22, 11, 12, 13], [1015] * 4),
        (as_an_argument, [22, 11, 12, 13], [25, 22, 24, 26]),
        (of_what_is_there, [31, 11, 12, 13], [10] * 4),
        (of_another, [25, 11, 12, 13], [0] * 4),
        (where_it_is, [10, 11, 17, 18], [0, 0, 12, 13]),
        (at_another, [10, 12, 17, 13], [0] * 4),
        (in_a_choice, [15, 11, 12, 13], [35, 32, 34, 36]),
        (in_a_choice_not_made, [10, 11, 12, 13], [31, 33, 35, 37]),
        (after_and, [10, 16, 12, 13], [2] * 4),
        (after_or, [10, 16, 12, 13], [3] * 4),
        (in_a_condition, [13, 11, 12, 13], [23] * 4),
        (in_a_range, [11, 11, 12, 13], [10 + 11 + 12 + 13] * 4),
        (in_an_index, [11, 11, 12, 13], [0, 10, 0, 0]),
        (in_an_index_of_what_it_changes, [11, 10, 12, 13], [0] * 4),
        (in_an_augmented_index, [22, 11, 12, 13], [0] * 4),
        (augmenting, [20, 22, 24, 26], [0] * 4),
        (in_a_comparison, [15, 11, 12, 13], [2] * 4),
        (exchanged, [11, 10, 12, 13], [0] * 4),
        (held, [22, 11, 12, 13], [35] * 4),
    ],
)
def test_an_atomic_operation_is_made_where_python_evaluates_it(application, x, y):
    given, made = torch.arange(10, 14, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    run(application, given, made, 1)
    assert (given.tolist(), made.tolist()) == (x, y)
