"""Padding through loops, branches and choices."""

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import expected
from tests.passes.masked import masked


def test_a_lane_without_an_element_in_a_round_keeps_what_it_had():
    def application(many, y):
        total = many[0] + 1
        kept = many[0] + 2
        for k in range(many.shape[0]):
            best = ntl.max(many[k])
            total = ntl.max(total) + many[k]
            y = ntl.max(total) + best + ntl.max(kept)
        y = ntl.max(total)

    exists = "masked(ntl.cast(ntl.zeros_like(total), int32) + 1, mask({}, (0, 1)), 'zero')"
    assert masked(application).splitlines()[2:] == [
        f"total_exists = {exists.format('many[0]')}",
        "for k in range(((N + many_size_1 - 1) // N)):",
        "    total_before = total",
        "    best = ntl.max(masked(many[k], mask(many[k], (0, 1)), 'lowest'))",
        "    total = ntl.max(masked(total, holds(total_exists, (0, 1)), 'lowest')) + many[k]",
        "    store y = ntl.max(masked(total, mask(many[k], (0, 1)), 'lowest')) + best + "
        "ntl.max(masked(kept, mask(many[0], (0, 1)), 'lowest'))",
        "    total = kept(total, total_before, mask(many[k], (0, 1)))",
        f"    total_exists = total_exists | {exists.format('many[k]')}",
        "store y = ntl.max(masked(total, holds(total_exists, (0, 1)), 'lowest'))",
    ]


def test_a_run_time_if_leaves_the_marks_of_both_branches():
    def application(x, z, y, n):
        v = x + 1
        w = x + 2
        if n > 0:
            v = v * 2
            w = z + 1
        y = ntl.max(v) + w

    assert masked(application).splitlines()[2:] == [
        "if n > 0:",
        "    v = v * 2",
        "    w = z + 1",
        "store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest')) + w",
    ]


def test_a_run_time_if_with_other_marks_goes_on_by_itself_where_they_matter():
    def application(x, z, y, n):
        v = x + 1
        if n > 0:
            v = z + 1
        y = ntl.max(v)

    assert masked(application).splitlines()[1:] == [
        "if n > 0:",
        "    v = z + 1",
        "    store y = ntl.max(masked(v, mask(z, (0, 1)), 'lowest'))",
        "else:",
        "    store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest'))",
    ]


def test_a_run_time_choice_with_other_marks_is_a_branch():
    def application(x, z, y, n):
        v = x + 1 if n > 0 else z
        w = x + 1 if n > 0 else x
        y = ntl.max(v) + ntl.max(w)

    text = masked(application)

    assert text.count("if n > 0:") == 1
    assert text.count("w = x + 1 if n > 0 else x") == 2
    assert "store y = ntl.max(masked(v, mask(z, (0, 1)), 'lowest'))" in text


def test_tiles_chosen_by_an_index_that_a_branch_assigns_are_not_the_same():
    def application(many, y, n):
        i = n
        if n > 0:
            v = many[i] + 1
        else:
            i = n + 1
            v = many[i] + 2
        y = ntl.max(v)

    assert masked(application) == expected("""
        i = n
        if n > 0:
            many_index = i
            v = many[many_index] + 1
            store y = ntl.max(masked(v, mask(many[many_index], (0, 1)), 'lowest'))
        else:
            i = n + 1
            many_index_1 = i
            v = many[many_index_1] + 2
            store y = ntl.max(masked(v, mask(many[many_index_1], (0, 1)), 'lowest'))
    """)


def test_a_tile_from_before_an_if_is_the_same_after_it_whatever_its_index_is_then():
    def application(many, y, n):
        i = n
        v = many[i]
        if n > 0:
            v = v * 2
            i = i + 1
        y = ntl.max(v) + i

    assert masked(application) == expected("""
        i = n
        many_index = i
        v = many[many_index]
        if n > 0:
            v = v * 2
            i = i + 1
        store y = ntl.max(masked(v, mask(many[many_index], (0, 1)), 'lowest')) + i
    """)


@pytest.mark.parametrize("kind", ["if", "else", "loop", "while", "constant"])
def test_a_zero_that_may_be_another_number_makes_no_zeros(kind):
    def branch(x, y, n):
        v = 0.0
        if n > 0:
            v = 1.0
        y = ntl.sum(x + v)

    def other_branch(x, y, n):
        if n > 0:
            v = 1.0
        else:
            v = 0.0
        y = ntl.sum(x + v)

    def loop(x, y, n):
        v = 0.0
        for _ in range(n):
            y = ntl.sum(x + v)
            v += 1.0

    def while_loop(x, y, n):
        v = 0.0
        while v < n:
            y = ntl.sum(x + v)
            v += 1.0

    def constant_branch(x, y, FLAG):
        v = 0.0
        if FLAG:
            v = 1.0
        y = ntl.sum(x + v)

    kinds = [branch, other_branch, loop, while_loop, constant_branch]
    application = dict(zip(["if", "else", "loop", "while", "constant"], kinds))[kind]

    text = masked(application).replace("v_value", "v")
    assert "store y = ntl.sum(masked(x + v, mask(x, (0, 1)), 'zero'))" in text


def test_a_loop_keeps_the_marks_that_each_round_keeps():
    def application(x, y, n):
        v = x + 1
        w = x + 2
        for _ in range(n):
            for _ in range(n):
                v = v / ntl.sum(v)
            v, w = w, v
        y = ntl.max(v)

    text = masked(application)

    assert "v / ntl.sum(masked(v, mask(x, (0, 1)), 'zero'))" in text
    assert text.splitlines()[-1] == "store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest'))"


def test_a_compile_time_if_keeps_the_marks_of_the_branch_taken():
    def application(x, y, FLAG):
        v = ntl.zeros(x.shape, dtype=ntl.float32)
        if FLAG:
            v = x + 1
        y = ntl.max(v)

    assert masked(application).splitlines()[1:] == [
        "if FLAG:",
        "    v = x + 1",
        "    store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest'))",
        "else:",
        "    store y = ntl.max(masked(v, within(M, (0, None)), within(N, (None, 0)), 'lowest'))",
    ]


def test_a_compile_time_if_with_equal_marks_is_left_alone():
    def application(x, y, FLAG):
        v = x + 1
        if FLAG:
            v = v * 2
        y = ntl.max(v)

    assert masked(application).splitlines()[1:] == [
        "if FLAG:",
        "    v = v * 2",
        "store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest'))",
    ]


def test_a_compile_time_choice_keeps_the_marks_of_what_is_chosen():
    def application(x, y, FLAG):
        v = x + 1 if FLAG else ntl.zeros(x.shape, x.dtype)
        y = ntl.max(v)

    assert masked(application).splitlines() == [
        "if FLAG:",
        "    v = x + 1",
        "    store y = ntl.max(masked(v, mask(x, (0, 1)), 'lowest'))",
        "else:",
        "    v = ntl.zeros((padded(M), padded(N)), x.dtype)",
        "    store y = ntl.max(masked(v, within(M, (0, None)), within(N, (None, 0)), 'lowest'))",
    ]
