"""Applications whose meaning is that of plain Python over NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

INTEGERS = np.array([-7, -1, 0, 1, 2, 5, 7, -8], np.int32)
DIVISORS = np.array([2, 3, -3, -2, 5, -5, 7, 3], np.int32)
FLOATS = np.array([-2.5, -0.5, 0.0, 1.5, 2.25, -7.75, 3.0, 6.5], np.float32)
STEPS = np.array([2.0, -0.75, 1.0, -0.5, 0.25, 2.0, -2.0, 4.0], np.float32)


@dataclass(frozen=True)
class Case:
    """An application and what it computes.

    Attributes:
        arguments: all but the last one: arrays are tensors, numbers scalar arguments.
        expected: the last argument afterwards, a function of the arguments; its type is the output's.
    """

    application: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Callable[..., Any]


CASES: dict[str, Case] = {}


def case(*arguments: Any, expected: Callable[..., Any]) -> Callable[..., Any]:
    def register(application: Callable[..., Any]) -> Callable[..., Any]:
        CASES[application.__name__] = Case(application, arguments, expected)
        return application

    return register


def whole(*tensors):
    """Each vector as one tile; scalars as they are."""
    return tuple(t.tile((-1,)) if t.ndim else t for t in tensors)


def made(chosen):
    """The kernel of a case, its arguments, and what the last one is to hold.

    The output begins as a number that nothing here computes.
    """
    with np.errstate(all="ignore"):
        expected = np.asarray(chosen.expected(*chosen.arguments))
    arguments = [
        torch.tensor(a) if isinstance(a, np.ndarray) else a for a in (*chosen.arguments, expected)
    ]
    arguments[-1].fill_(77)
    symbolic = tuple(
        Tensor(a.ndim) if isinstance(a, torch.Tensor) else Tensor(0) for a in arguments
    )
    return ninetoothed.make(whole, chosen.application, symbolic), arguments, expected


# Quotients and remainders.


@case(INTEGERS, DIVISORS, expected=lambda x, y: x // y)
def quotient_of_tiles(x, y, out):
    out = x // y


@case(INTEGERS, DIVISORS, expected=lambda x, y: x % y)
def remainder_of_tiles(x, y, out):
    out = x % y


@case(INTEGERS, expected=lambda x: (x // 3) * 100 + x % 3)
def quotient_by_a_literal(x, out):
    out = (x // 3) * 100 + x % 3


@case(INTEGERS, expected=lambda x: (x // -3) * 100 + x % -3)
def quotient_by_a_negative_literal(x, out):
    out = (x // -3) * 100 + x % -3


@case(DIVISORS, expected=lambda x: (17 // x) * 100 + -17 % x)
def literal_by_a_tile(x, out):
    out = (17 // x) * 100 + -17 % x


@case(INTEGERS, -7, 2, expected=lambda x, n, m: x * 0 + (n // m) * 100 + n % m)
def quotient_of_scalars(x, n, m, out):
    out = x * 0 + (n // m) * 100 + n % m


@case(INTEGERS, 3, expected=lambda x, n: (x // n) * 100 + x % n)
def quotient_by_a_scalar(x, n, out):
    v = x
    v //= n
    w = x
    w %= n
    out = v * 100 + w


@case(INTEGERS.astype(np.int64), expected=lambda x: ((x - 2**40) // 3) % 1000)
def quotient_of_wide_integers(x, out):
    out = ((x - 1099511627776) // 3) % 1000


@case(FLOATS, STEPS, expected=lambda x, y: x // y)
def quotient_of_floats(x, y, out):
    out = x // y


@case(FLOATS, STEPS, expected=lambda x, y: x % y)
def remainder_of_floats(x, y, out):
    out = x % y


@case(FLOATS, -2.5, 2.0, expected=lambda x, n, m: x + (-2.5 // 2.0) * 10 + -2.5 % 2.0)
def quotient_of_float_scalars(x, n, m, out):
    out = x + (n // m) * 10 + n % m


@case(INTEGERS, expected=lambda x: sum((k - 3) // 2 * 10 + (k - 3) % 2 for k in range(5)) + x)
def quotient_of_a_loops_variable(x, out):
    total = 0
    for k in range(5):
        total += (k - 3) // 2 * 10 + (k - 3) % 2
    out = x + total


# Truth.


@case(INTEGERS, expected=lambda x: ((x > 0) & (x < 6)).astype(np.int32))
def and_of_tiles(x, out):
    out = ntl.where(x > 0 and x < 6, 1, 0)


@case(INTEGERS, expected=lambda x: ((x < 0) | (x > 4)).astype(np.int32))
def or_of_tiles(x, out):
    out = ntl.where(x < 0 or x > 4, 1, 0)


@case(INTEGERS, expected=lambda x: (~(x > 0)).astype(np.int32))
def not_of_a_tile(x, out):
    out = ntl.where(not (x > 0), 1, 0)


@case(INTEGERS, expected=lambda x: (x == 0).astype(np.int32))
def not_of_integers(x, out):
    out = ntl.where(not x, 1, 0)


@case(INTEGERS, expected=lambda x: ((x > -2) & (x < 6)).astype(np.int32))
def chained_comparison_of_tiles(x, out):
    out = ntl.where(-2 < x < 6, 1, 0)


@case(INTEGERS, expected=lambda x: (x > 2).astype(np.int32))
def chained_comparison_of_tiles_of_which_none_holds(x, out):
    out = ntl.where((x < 6 <= -2).logical_or(x > 2), 1, 0)


@case(INTEGERS, 3, expected=lambda x, n: x + 10)
def and_of_scalars(x, n, out):
    if n > 0 and 10 // n == 3:
        out = x + 10
    else:
        out = x


@case(INTEGERS, 0, expected=lambda x, n: x)
def and_stops_where_python_does(x, n, out):
    # The tensor has no element there; Python does not ask.
    if n > 0 and x.source[n + 1000000000] > 0:
        out = x + 10
    else:
        out = x


@case(FLOATS, 1, expected=lambda x, n: x + 3)
def nothing_is_loaded_through_a_pointer_where_python_stops(x, n, out):
    # There is no memory there.
    v = 0
    if n > 1 and ntl.load(x.data_ptr() + n * 1000000000) > 0:
        v += 10
    if n == 1 or ntl.load(x.data_ptr() + n * 1000000000) > 0:
        v += 2
    far = ntl.load(x.data_ptr() + n * 1000000000) if n > 1 else 1
    out = x + v + far


@case(INTEGERS, 4, 7, expected=lambda x, n, m: x + 4 * 10 + 7)
def and_gives_an_operand(x, n, m, out):
    out = x + (n or m) * 10 + (n and m)


@case(INTEGERS, 0, 7, expected=lambda x, n, m: x + 7 * 10 + 0)
def or_gives_an_operand(x, n, m, out):
    out = x + (n or m) * 10 + (n and m)


@case(INTEGERS, 3, expected=lambda x, n: x * 2)
def conditional_expression(x, n, out):
    out = x * 2 if n > 2 else x - 1


@case(INTEGERS, 3, expected=lambda x, n: x + 1)
def chained_comparison_of_scalars(x, n, out):
    out = x + 1 if 1 < n <= 3 else x


@case(INTEGERS, 3, expected=lambda x, n: x)
def not_of_a_scalar(x, n, out):
    out = x + 1 if not n else x


# Types.


@case(INTEGERS, expected=lambda x: (x > 0).astype(np.int32) + (x > 1).astype(np.int32) + (x > 4))
def booleans_count(x, out):
    out = (x > 0) + (x > 1) + (x > 4)


@case(INTEGERS, expected=lambda x: (x > 0) * 1 - (x > 4) * 1)
def booleans_subtract(x, out):
    out = (x > 0) - (x > 4)


@case(INTEGERS, expected=lambda x: (x > 0).astype(np.int32) * (x < 4) + -(x > 1).astype(np.int32))
def booleans_multiply_and_negate(x, out):
    out = (x > 0) * (x < 4) + -(x > 1)


@case(INTEGERS, expected=lambda x: 1 * (x > 0) + (x > 1) + 10 * ((x > 0) * 1 - (x > 4)))
def booleans_count_in_functions(x, out):
    out = ntl.add(x > 0, y=x > 1) + 10 * ntl.sub(x > 0, x > 4)


@case(INTEGERS, 1, expected=lambda x, n: (1 << (x > 1)) + (x > 1) * (x < 4) + (1 - (x > 1)) * 10)
def booleans_count_where_they_are_shifted(x, n, out):
    one = x == x
    out = (one << (x > 1)) + ntl.mul(x > 1, x < 4) + ((n > 0) >> (x > 1)) * 10


@case(INTEGERS, expected=lambda x: x + (x > 1))
def nothing_before_a_plus(x, out):
    out = +x + ntl.cdiv(+(x > 1), True)


@case(INTEGERS, 1, expected=lambda x, n: x + 2)
def booleans_of_scalars_count(x, n, out):
    out = x + ((n > 0) + (n < 5))


@case(FLOATS, expected=lambda x: x != 0)
def floats_to_bool(x, out):
    out = x


@case(INTEGERS * 256, expected=lambda x: x != 0)
def integers_to_bool(x, out):
    out = x


@case(FLOATS, expected=lambda x: np.where(x.astype(bool), 1, 0).astype(np.int32))
def cast_to_bool(x, out):
    out = ntl.where(x.to(ntl.int1), 1, 0)


@case(FLOATS, expected=lambda x: np.trunc(x).astype(np.int32))
def floats_to_integers_truncate(x, out):
    out = x


@case(FLOATS.astype(np.float64), 0.1, expected=lambda x, n: x + 0.1)
def a_float_meets_float64(x, n, out):
    out = x + n


@case(FLOATS.astype(np.float64), expected=lambda x: x * 0.1 + 1 / 3)
def a_literal_meets_float64(x, out):
    out = x * 0.1 + 1 / 3


@case(FLOATS.astype(np.float64), expected=lambda x: np.where(x > 0, 0.1, x + 0.3))
def a_chosen_literal_meets_float64(x, out):
    out = ntl.where(x > 0, 0.1, x + 0.3)


@case(np.array([1, 5, np.nan, 2], np.float32), expected=lambda x: np.array([5, 1], np.float32))
def nan_is_left_out_of_max_and_min(x, out):
    out = ntl.where(ntl.arange(0, 2) == 0, ntl.max(x), ntl.min(x))


# Helpers and names.


def rebinds(v):
    v = v + 1
    v = v * 2
    return v


@case(FLOATS, expected=lambda x: x * 10 + (x + 1) * 2)
def a_helper_that_returns_rebinds_for_itself(x, out):
    v = x
    w = rebinds(v)
    out = v * 10 + w


@case(FLOATS, expected=lambda x: (x + 1) * 2)
def a_helper_that_returns_stores_nothing(x, out):
    w = rebinds(x)
    out = w
    # Had it stored, `x` would be another.
    x = x


def stores_into(tile, value):
    tile = value * 3


@case(FLOATS, expected=lambda x: x * 3)
def a_helper_that_returns_nothing_stores(x, out):
    stores_into(out, x)


@case(FLOATS, 1, expected=lambda x, n: np.zeros(8))
def a_chain_that_ends_early_has_the_shape_of_all_of_it(x, n, out):
    out = ntl.sum((n < 1 <= x).to(ntl.float32)[None, :], axis=1)


@case(FLOATS.astype(np.float16), expected=lambda x: np.minimum(x, 1.0).astype(np.float32) * 2)
def the_lesser_of_half_precision_and_a_number(x, out):
    least = ntl.minimum(x, 1.0)
    for _ in range(1):
        least += least.to(ntl.float32)
    out = least


@case(INTEGERS.astype(np.int8), 2, expected=lambda x, n: np.minimum(x, 1) - 2 * x.min())
def the_lesser_of_a_byte_and_a_number(x, n, out):
    least = ntl.minimum(x, 1)
    for _ in range(n):
        least -= ntl.min(x)
    out = least


def second_of_two(value):
    """It only names values."""
    doubled = value * 2
    _, second = ntl.split(ntl.join(value, doubled))
    return second


@case(FLOATS, STEPS, expected=lambda x, z: (x > 0) & (x == -2 * z))
def a_helper_that_only_names_values_stands_behind_and(x, z, out):
    out = x > 0 and x == -second_of_two(z)


@case(FLOATS > 0, expected=lambda x: np.full(8, True))
def a_truth_value_that_was_stored_is_one(x, out):
    x = ntl.full(x.shape, 2.0, ntl.float32)
    out = x.logical_and(x) and ~x == 0


@case(FLOATS, 1, expected=lambda x, n: x * 2)
def a_choice_of_a_tile_and_a_number(x, n, out):
    out = x * 2 if n > 0 else 1


@case(FLOATS, 0, expected=lambda x, n: np.ones(8, np.float32))
def a_choice_of_the_number(x, n, out):
    out = x * 2 if n > 0 else 1


@case(FLOATS, 1, expected=lambda x, n: x * 2 + 3)
def a_choice_of_a_tile_or_a_number_is_kept_and_used(x, n, out):
    value = x * 2 if n > 0 else 1
    out = value + 3


@case(FLOATS, 0, expected=lambda x, n: (x + 1) * 2)
def a_tile_is_multiplied_by_a_tile_or_a_number(x, n, out):
    value = x + 1
    value *= x if n > 0 else 2
    out = value


@case(FLOATS, 1, expected=lambda x, n: x * 2 - (x * 2).max())
def the_greatest_of_a_tile_or_a_number(x, n, out):
    value = x * 2 if n > 0 else 1
    out = value - ntl.max(value)


@case(INTEGERS, expected=lambda x: ((x > 0) & ((x == 1) | (x == 2))).astype(np.int32))
def a_comparison_chained_to_a_tuple(x, out):
    out = 0 < x in (1, 2)


@case(FLOATS, -2.5, expected=lambda x, n: x - 2)
def a_scalars_quotient_rounds_down(x, n, out):
    out = x + n // 2


@case(INTEGERS, expected=lambda x: np.full(8, np.bitwise_xor.reduce(x)))
def the_exclusive_or_along_the_last_dimension(x, out):
    out = ntl.xor_sum(x, axis=-1)


def makes_with(factor):
    def application(x, out):
        out = x * factor

    return application


CASES["made_in_a_loop"] = Case(
    [makes_with(factor) for factor in (2.0, 3.0, 4.0)][1], (FLOATS,), lambda x: x * 3
)
