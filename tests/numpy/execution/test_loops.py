"""Loops and branches, run: which elements exist before, within and after them."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.errors import CompilationError
from tests.numpy.execution.running import floats, run


def test_in_a_loop_a_lane_without_an_element_keeps_what_it_had():
    def application(x, out):
        value = ntl.zeros((4,), ntl.float32)
        for _ in range(1):
            value = value + x + 1
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value)

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, [0, 0, 0])


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_loop_keeps_the_marks_that_are_there_before_it_and_after_each_round(rounds):
    def application(x, rounds, out):
        value = x + 1
        pair = (value, 0)
        for _ in range(rounds):
            value = value + 1
            pair = (value, pair[1] + 1)
        count = 0
        while count < rounds:
            value = value + 1
            count += 1
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value) + ntl.max(0 - pair[0])

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, rounds, out)
    np.testing.assert_array_equal(out, [-4 - 3 * rounds] * 3)


def test_a_loop_that_is_unrolled_keeps_marks():
    def application(x, out):
        value = x
        for _ in ntl.static_range(1):
            value = value + 1
        for by in (1, 2):
            value = value + by
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value)

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, [-5, -5, -5])


def test_without_a_loop_the_padded_lanes_are_left_out_of_a_reduction():
    def application(x, out):
        value = x + 1
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value)

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, [-2, -2, -2])


def test_a_value_that_a_loop_only_reads_keeps_its_marks():
    def application(x, out):
        value = x + 1
        best = ntl.zeros(out.shape, ntl.float32)
        for _ in range(2):
            best = best + ntl.max(0 - value)
        out = best

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, [-4, -4, -4])


@pytest.mark.parametrize("condition", [True, False])
def test_a_run_time_if_keeps_marks(condition):
    def application(x, is_taken, out):
        value = x + 1
        if is_taken > 0:
            value = value + 0
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value)

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, float(condition), out)
    np.testing.assert_array_equal(out, [-2, -2, -2])


def test_a_compile_time_if_keeps_marks():
    def application(x, is_taken, out):
        value = x
        if is_taken:
            value = value + 1
        elif is_taken is None:
            value = value + 3
        else:
            value = value + 2
        out = ntl.zeros(out.shape, ntl.float32) + ntl.max(0 - value)

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, True, out)
    np.testing.assert_array_equal(out, [-2, -2, -2])


def test_while_and_break_and_continue():
    def application(x, out):
        total = ntl.zeros(out.shape, ntl.float32)
        k = 0
        while k < 10:
            k += 1
            if k == 2:
                continue
            if k > 4:
                break
            total = total + x * k
        out = total

    x, out = floats(3), np.zeros(3, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, floats(3) * 8)


def test_tiles_that_a_loop_goes_through_stay_tiles():
    def increase(place, by):
        place = place + by

    def application(x, y):
        for tile in (x, y):
            increase(tile, 1)
        for number, (tile, other) in enumerate(zip((x, y), (y, x))):
            increase(tile, number * other)
            tile = other

    x, y = floats(4), floats(4) * 10
    run(application, x, y)
    np.testing.assert_array_equal(x, floats(4) + 1)
    np.testing.assert_array_equal(y, floats(4) * 11 + 2)


def counted(k):
    k = k + 1


def by_a_variable(x, out):
    k, count = 0, counted
    while k < 2:
        out[k] = x[k - 1]
        count(k)


def by_a_parameter(x, out):
    def called(function, k):
        function(k)

    k = 0
    while k < 2:
        out[k] = x[k - 1]
        called(counted, k)


@pytest.mark.parametrize("application", [by_a_variable, by_a_parameter])
def test_a_number_that_a_helper_without_a_name_of_its_own_changes_is_refused(application):
    with pytest.raises(CompilationError, match="The number 'k' is changed in a loop by a helper"):
        run(application, floats(8), np.zeros(8, np.float32), block=2, middle=(2,))
