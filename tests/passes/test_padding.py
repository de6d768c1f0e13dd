"""Padding left out of reductions: which masks, in which layout, and where none are needed."""

import pytest

import ninetoothed.language as ntl
from ninetoothed.passes import exclude_padding, forward_stores
from ninetoothed.program.verify import verify
from tests.parsing.applications import N, body_of, expected, program_of

FULL = "mask(x, (0, 1))"


def excluded(application, *before):
    """The text of a program after the pass, which leaves what it is given alone."""
    program = program_of(application)
    for each in before:
        program = each.run(program)
    text = str(program)
    result = exclude_padding.run(program)
    verify(result)
    assert str(program) == text
    return body_of(result)


@pytest.mark.parametrize(
    ("compute", "text"),
    [
        # Loaded values hold zeros in their padding.
        (lambda x: ntl.sum(x), "ntl.sum(x)"),
        (
            lambda x: ntl.sum(ntl.cast(x, ntl.float32), axis=1),
            "ntl.sum(ntl.cast(x, float32), axis=1)",
        ),
        (lambda x: ntl.sum(x.to(ntl.float32)), "ntl.sum(x.to(float32))"),
        (lambda x: ntl.sum(-x * x * 2.0 / 3), "ntl.sum(-x * x * 2.0 / 3)"),
        (lambda x: ntl.sum(ntl.abs(x) + x), "ntl.sum(ntl.abs(x) + x)"),
        (lambda x: ntl.sum(ntl.where(x > 1, x, 0.0)), "ntl.sum(ntl.where(x > 1, x, 0.0))"),
        (lambda x: ntl.cumsum(x, 1), "ntl.cumsum(x, 1)"),
        (lambda x: ntl.dot(x, ntl.trans(x)), "ntl.dot(x, ntl.trans(x))"),
        (lambda x: ntl.dot(x, x.T * 2), "ntl.dot(x, x.T * 2)"),
        # What is computed does not.
        (lambda x: ntl.sum(x + 1), f"ntl.sum(excluded(x + 1, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(ntl.exp(x)), f"ntl.sum(excluded(ntl.exp(x), {FULL}, 'zero'))"),
        (lambda x: x.exp().sum(), f"excluded(x.exp(), {FULL}, 'zero').sum()"),
        (
            lambda x: ntl.sum(x * float("inf")),
            f"ntl.sum(excluded(x * float('inf'), {FULL}, 'zero'))",
        ),
        (lambda x: ntl.sum(x / 0), f"ntl.sum(excluded(x / 0, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(1 - x), f"ntl.sum(excluded(1 - x, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(x < 1), f"ntl.sum(excluded(x < 1, {FULL}, 'zero'))"),
        (
            lambda x: ntl.sum(ntl.where(x > 1, x, 1.0)),
            f"ntl.sum(excluded(ntl.where(x > 1, x, 1.0), {FULL}, 'zero'))",
        ),
        (lambda x: ntl.sum(ntl.cast(x, ntl.int32, bitcast=True)), None),
        # Other identities.
        (lambda x: ntl.max(x), f"ntl.max(excluded(x, {FULL}, 'lowest'))"),
        (lambda x: ntl.min(x, axis=0), f"ntl.min(excluded(x, {FULL}, 'highest'), axis=0)"),
        (lambda x: ntl.argmax(x, 1), f"ntl.argmax(excluded(x, {FULL}, 'lowest'), 1)"),
        (lambda x: ntl.argmin(x, 1), f"ntl.argmin(excluded(x, {FULL}, 'highest'), 1)"),
        (lambda x: ntl.max(input=x), f"ntl.max(input=excluded(x, {FULL}, 'lowest'))"),
        (lambda x: ntl.cumprod(x, 1), f"ntl.cumprod(excluded(x, {FULL}, 'one'), 1)"),
        (lambda x: ntl.softmax(x, 1), f"ntl.softmax(excluded(x, {FULL}, 'lowest'), 1)"),
        (lambda x: ntl.xor_sum(x, 0), "ntl.xor_sum(x, 0)"),
        (lambda x: ntl.sort(x), f"ntl.sort(excluded(x, {FULL}, 'highest'))"),
        (lambda x: ntl.sort(x, 1, True), f"ntl.sort(excluded(x, {FULL}, 'lowest'), 1, True)"),
        (lambda x: ntl.topk(x, 2), f"ntl.topk(excluded(x, {FULL}, 'lowest'), 2)"),
        (
            lambda x: ntl.max(ntl.libdevice.fast_expf(x)),
            f"ntl.max(excluded(ntl.libdevice.fast_expf(x), {FULL}, 'lowest'))",
        ),
        # Nothing to exclude.
        (
            lambda x: ntl.max(ntl.zeros(x.shape, ntl.int32)),
            "ntl.max(excluded(ntl.zeros((widened(M), widened(N)), int32), within(M, (0, None)), "
            "within(N, (None, 0)), 'lowest'))",
        ),
        (lambda x: ntl.max(x.offsets()), "ntl.max(x.offsets())"),
        (lambda x: ntl.exp(x) + 1, "ntl.exp(x) + 1"),
        (
            lambda x: ntl.max(ntl.flip(x)),
            "ntl.max(excluded(flipped(x, 1, mask(x, (0, 1))), mask(x, (0, 1)), 'lowest'))",
        ),
        (
            lambda x: ntl.max(ntl.dot(x, x.T)),
            "ntl.max(excluded(ntl.dot(x, x.T), mask(x, (0, None)), mask(x, (None, 0)), 'lowest'))",
        ),
    ],
)
def test_one_reduction(compute, text):
    def application(x, y):
        y = compute(x)

    result = excluded(application)

    if text is None:
        assert ("excluded" in result) == ("bitcast" in result)
    else:
        assert result == f"store y = {text}"


@pytest.mark.parametrize(
    ("compute", "mask"),
    [
        (lambda x: ntl.max(x.T), "(1, 0)"),
        (lambda x: ntl.max(ntl.trans(x)), "(1, 0)"),
        (lambda x: ntl.max(ntl.permute(x, 1, 0)), "(1, 0)"),
        (lambda x: ntl.max(ntl.permute(x, (1, 0))), "(1, 0)"),
        (lambda x: ntl.max(ntl.trans(x, 0, 1)), "(0, 1)"),
        (lambda x: ntl.max(ntl.expand_dims(x, 1)), "(0, None, 1)"),
        (lambda x: ntl.max(ntl.expand_dims(x, -1)), "(0, 1, None)"),
        (lambda x: ntl.max(x[None, :, :]), "(None, 0, 1)"),
        (lambda x: ntl.max(x[:, None, :]), "(0, None, 1)"),
        (lambda x: ntl.max(x[:, :, None] + ntl.arange(0, 4)), "(0, 1, None)"),
        (lambda x: ntl.max(ntl.broadcast_to(x[None, :, :], (4, *x.shape))), "(None, 0, 1)"),
        (lambda x: ntl.max(ntl.reshape(x, (1, *x.shape))), "(None, 0, 1)"),
        (lambda x: ntl.max(ntl.reshape(x, x.shape)), "(0, 1)"),
        (lambda x: ntl.max(ntl.sum(x, axis=1)), "(0,)"),
        (lambda x: ntl.max(ntl.sum(x, axis=0)), "(1,)"),
        (lambda x: ntl.max(ntl.sum(x, axis=-1)), "(0,)"),
        (lambda x: ntl.max(ntl.sum(x, 1, keep_dims=True)), "(0, None)"),
        (lambda x: ntl.max(ntl.sum(x, 0, True)), "(None, 1)"),
        (lambda x: ntl.max(x.sum(0)), "(1,)"),
        (lambda x: ntl.max(x - ntl.max(x, 1)[:, None]), "(0, 1)"),
        (lambda x: ntl.max(ntl.max(x, 1, return_indices=True)[1]), "(0,)"),
        (lambda x: ntl.max(ntl.cumsum(x, 1)), "(0, 1)"),
        (lambda x: ntl.max(x.source[0, ntl.sum(x, 1).to(ntl.int32)]), "(0,)"),
    ],
)
def test_layouts(compute, mask):
    def application(x, y):
        y = compute(x)

    outermost = excluded(application).removeprefix("store y = ntl.max(excluded(")

    assert f"mask(x, {mask})" in outermost[: outermost.rindex("'lowest'")]


@pytest.mark.parametrize(
    ("compute", "moved"),
    [
        (
            lambda x: ntl.ravel(x),
            "ntl.reshape(exists(moved, mask(x, (0, 1))), (widened(M) * widened(N),))",
        ),
        (
            lambda x: ntl.gather(x, ntl.zeros((8, 8), ntl.int32), 0),
            "ntl.gather(exists(moved, mask(x, (0, 1))), moved_1, 0)",
        ),
        (
            lambda x: ntl.interleave(x, x),
            "ntl.interleave(exists(moved, mask(x, (0, 1))), exists(moved_1, mask(x, (0, 1))))",
        ),
    ],
)
def test_what_says_whether_elements_exist_is_moved_as_they_are_where_it_is_needed(compute, moved):
    def reduced(x, y):
        y = ntl.max(compute(x))

    def stored(x, y):
        y = compute(x)

    assert f"exists = {moved}" in excluded(reduced)
    assert "'lowest'" in excluded(reduced)
    assert "exists" not in excluded(stored)


def test_two_tiles_that_exist_alike_need_no_more_side_by_side():
    def application(x, y):
        y = ntl.max(ntl.join(x, x))

    assert excluded(application) == (
        "store y = ntl.max(excluded(ntl.join(x, x), mask(x, (0, 1, None)), 'lowest'))"
    )


def test_marks_of_two_tiles_are_joined():
    def application(x, y, z):
        z = ntl.max(x + y)

    assert excluded(application) == (
        "store z = ntl.max(excluded(x + y, mask(x, (0, 1)), mask(y, (0, 1)), 'lowest'))"
    )


def test_zeros_of_one_factor_do_not_make_up_for_the_other():
    def application(x, y, z):
        z = ntl.sum(x * y)

    assert "mask(x, (0, 1)), mask(y, (0, 1)), 'zero'" in excluded(application)


def test_a_tensor_with_other_has_no_marks():
    def application(padless, y):
        y = ntl.max(padless)

    assert excluded(application) == "store y = ntl.max(padless)"


def test_marks_follow_variables():
    def application(x, y):
        row = ntl.exp(x)
        a, b = row, row + 1
        a += 1
        y = ntl.sum(a) + ntl.sum(b)

    text = excluded(application)

    assert text.count("excluded(a, mask(x, (0, 1)), 'zero')") == 1
    assert text.count("excluded(b, mask(x, (0, 1)), 'zero')") == 1


def test_both_results_of_a_reduction_with_indices_are_marked():
    def application(x, y):
        value, place = ntl.max(x, 1, return_indices=True)
        y = ntl.max(value) + ntl.max(place)

    text = excluded(application)

    assert "excluded(value, mask(x, (0,)), 'lowest')" in text
    assert "excluded(place, mask(x, (0,)), 'lowest')" in text


def test_a_lane_without_an_element_in_a_round_keeps_what_it_had():
    def application(many, y):
        total = many[0] + 1
        kept = many[0] + 2
        for k in range(many.shape[0]):
            best = ntl.max(many[k])
            total = ntl.max(total) + many[k]
            y = ntl.max(total) + best + ntl.max(kept)
        y = ntl.max(total)

    assert excluded(application).splitlines()[3:] == [
        "    total_before = total",
        "    best = ntl.max(excluded(many[k], mask(many[k], (0, 1)), 'lowest'))",
        "    total = ntl.max(total) + many[k]",
        "    store y = ntl.max(excluded(total, mask(many[k], (0, 1)), 'lowest')) + best + "
        "ntl.max(excluded(kept, mask(many[0], (0, 1)), 'lowest'))",
        "    total = kept(total, total_before, mask(many[k], (0, 1)))",
        "store y = ntl.max(total)",
    ]


def test_a_run_time_if_leaves_the_marks_of_both_branches():
    def application(x, z, y, n):
        v = x + 1
        w = x + 2
        if n > 0:
            v = v * 2
            w = z + 1
        y = ntl.max(v) + w

    assert excluded(application).splitlines()[2:] == [
        "if n > 0:",
        "    v = v * 2",
        "    w = z + 1",
        "store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest')) + w",
    ]


def test_a_run_time_if_with_other_marks_goes_on_by_itself_where_they_matter():
    def application(x, z, y, n):
        v = x + 1
        if n > 0:
            v = z + 1
        y = ntl.max(v)

    assert excluded(application).splitlines()[1:] == [
        "if n > 0:",
        "    v = z + 1",
        "    store y = ntl.max(excluded(v, mask(z, (0, 1)), 'lowest'))",
        "else:",
        "    store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest'))",
    ]


def test_a_run_time_choice_with_other_marks_is_a_branch():
    def application(x, z, y, n):
        v = x + 1 if n > 0 else z
        w = x + 1 if n > 0 else x
        y = ntl.max(v) + ntl.max(w)

    text = excluded(application)

    assert text.count("if n > 0:") == 1
    assert text.count("w = x + 1 if n > 0 else x") == 2
    assert "store y = ntl.max(excluded(v, mask(z, (0, 1)), 'lowest'))" in text


def test_tiles_chosen_by_an_index_that_a_branch_assigns_are_not_the_same():
    def application(many, y, n):
        i = n
        if n > 0:
            v = many[i] + 1
        else:
            i = n + 1
            v = many[i] + 2
        y = ntl.max(v)

    assert excluded(application) == expected("""
        i = n
        if n > 0:
            many_index = i
            v = many[many_index] + 1
            store y = ntl.max(excluded(v, mask(many[many_index], (0, 1)), 'lowest'))
        else:
            i = n + 1
            many_index_1 = i
            v = many[many_index_1] + 2
            store y = ntl.max(excluded(v, mask(many[many_index_1], (0, 1)), 'lowest'))
    """)


def test_a_tile_from_before_an_if_is_the_same_after_it_whatever_its_index_is_then():
    def application(many, y, n):
        i = n
        v = many[i]
        if n > 0:
            v = v * 2
            i = i + 1
        y = ntl.max(v) + i

    assert excluded(application) == expected("""
        i = n
        many_index = i
        v = many[many_index]
        if n > 0:
            v = v * 2
            i = i + 1
        store y = ntl.max(excluded(v, mask(many[many_index], (0, 1)), 'lowest')) + i
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

    text = excluded(application).replace("v_value", "v")
    assert "store y = ntl.sum(excluded(x + v, mask(x, (0, 1)), 'zero'))" in text


def test_a_loop_keeps_the_marks_that_each_round_keeps():
    def application(x, y, n):
        v = x + 1
        w = x + 2
        for _ in range(n):
            for _ in range(n):
                v = v / ntl.sum(v)
            v, w = w, v
        y = ntl.max(v)

    text = excluded(application)

    assert "v / ntl.sum(excluded(v, mask(x, (0, 1)), 'zero'))" in text
    assert text.splitlines()[-1] == "store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest'))"


def test_an_index_that_is_padding_names_no_element():
    def application(z, x, y):
        x.source[z, 0] = x.source[z + 1, 2]

    assert excluded(application) == (
        "store x.source[excluded(z, mask(z, (0, 1)), 'nowhere'), 0] = "
        "excluded(x.source[excluded(z + 1, mask(z, (0, 1)), 'nowhere'), 2], mask(z, (0, 1)), 'nowhere')"
    )


def test_a_compile_time_if_keeps_the_marks_of_the_branch_taken():
    def application(x, y, FLAG):
        v = ntl.zeros(x.shape, dtype=ntl.float32)
        if FLAG:
            v = x + 1
        y = ntl.max(v)

    assert excluded(application).splitlines()[1:] == [
        "if FLAG:",
        "    v = x + 1",
        "    store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest'))",
        "else:",
        "    store y = ntl.max(excluded(v, within(M, (0, None)), within(N, (None, 0)), 'lowest'))",
    ]


def test_a_compile_time_if_with_equal_marks_is_left_alone():
    def application(x, y, FLAG):
        v = x + 1
        if FLAG:
            v = v * 2
        y = ntl.max(v)

    assert excluded(application).splitlines()[1:] == [
        "if FLAG:",
        "    v = v * 2",
        "store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest'))",
    ]


def test_a_compile_time_choice_keeps_the_marks_of_what_is_chosen():
    def application(x, y, FLAG):
        v = x + 1 if FLAG else ntl.zeros(x.shape, x.dtype)
        y = ntl.max(v)

    assert excluded(application).splitlines() == [
        "if FLAG:",
        "    v = x + 1",
        "    store y = ntl.max(excluded(v, mask(x, (0, 1)), 'lowest'))",
        "else:",
        "    v = ntl.zeros((widened(M), widened(N)), x.dtype)",
        "    store y = ntl.max(excluded(v, within(M, (0, None)), within(N, (None, 0)), 'lowest'))",
    ]


def test_an_index_that_changes_is_kept_for_the_mask():
    def application(many, y, n):
        i = n
        v = many[i]
        i = i + 1
        y = ntl.max(v) + i

    assert excluded(application) == expected("""
        i = n
        many_index = i
        v = many[many_index]
        i = i + 1
        store y = ntl.max(excluded(v, mask(many[many_index], (0, 1)), 'lowest')) + i
    """)


def test_a_loaded_index_is_loaded_once():
    def application(rows, cell, y):
        y = ntl.max(rows[cell])

    assert excluded(application) == expected("""
        rows_index = cell
        store y = ntl.max(excluded(rows[rows_index], mask(rows[rows_index], (0, 1)), 'lowest'))
    """)


def test_a_tile_as_an_index_is_its_one_element():
    def application(rows, odd, n, y):
        i = odd
        y = rows[odd] + rows[i + 1] + rows[n] + rows[ntl.max(odd)]

    assert excluded(application).splitlines()[1:] == [
        "store y = rows[odd.item()] + rows[(i + 1).item()] + rows[n] + "
        "rows[ntl.max(excluded(odd, mask(odd, (0, 1)), 'lowest'))]"
    ]


def test_a_stored_value_has_the_marks_of_its_tile():
    def application(x, y, z):
        y = ntl.exp(x)
        z = ntl.max(y) + ntl.sum(y)

    assert excluded(application, forward_stores).splitlines()[2:] == [
        "y_stored = excluded(ntl.cast(y_value, y.dtype), mask(y, (0, 1)), 'zero')",
        "store z = ntl.max(excluded(y_stored, mask(y, (0, 1)), 'lowest')) + ntl.sum(y_stored)",
    ]


def test_an_assertion_is_not_about_padding():
    def application(x, y):
        assert x > 0, "positive"
        y = x

    assert "device_assert(excluded(x > 0, mask(x, (0, 1)), 'one'), 'positive')" in excluded(
        application
    )


def test_padding_is_not_counted():
    def application(x, y):
        y = ntl.histogram(ntl.max(x, 1).to(ntl.int32), 4)

    assert excluded(application).endswith(
        "mask=excluded(ntl.cast(ntl.zeros_like(ntl.max(excluded(x, mask(x, (0, 1)), 'lowest'), 1)"
        ".to(int32)), int32) + 1, mask(x, (0,)), 'zero') != 0)"
    )


# Functions of the user's own.


def add(a, b):
    return a + b


def larger(a, b):
    return ntl.maximum(a, b)


def special(a, b):
    return a + b * 2


def pairs(a, i, b, j):
    is_first = a > b
    return ntl.where(is_first, a, b), ntl.where(is_first, i, j)


@pytest.mark.parametrize(("function", "identity"), [(add, "zero"), (larger, "lowest")])
def test_a_combine_function_with_a_known_identity(function, identity):
    def application(x, y):
        y = ntl.reduce(x + 1, 1, function)[:, None]

    assert f"excluded(x + 1, mask(x, (0, 1)), '{identity}')" in excluded(application)


def test_a_combine_function_without_one_sees_real_elements_only():
    def application(x, y):
        y = ntl.reduce(x, 1, special)[:, None]

    text = excluded(application)

    real = "excluded(ntl.cast(ntl.zeros_like(x), int32) + 1, mask(x, (0, 1)), 'zero')"
    assert text.endswith(f"store y = ntl.reduce((x, {real}), 1, special_real)[0][:, None]")
    assert "def special_real(left_0, left_is_real, right_0, right_is_real):" in text


def test_a_scan_without_a_known_identity():
    def application(x, y):
        y = ntl.associative_scan(x, 1, combine_fn=special)

    assert "1, combine_fn=special_real)[0]" in excluded(application)


def test_several_tiles_at_once():
    def application(x, y, z):
        value, place = ntl.reduce((x, x.offsets()), 1, pairs)
        y = ntl.max(value)[None, None]
        z = place[:, None]

    text = excluded(application)

    assert "'zero')), 1, pairs_real)" in text
    assert "value, place = (results[0], results[1])" in text
    assert "ntl.max(excluded(value, mask(x, (0,)), 'lowest'))" in text


def test_unmarked_values_are_reduced_as_they_are():
    def application(x, y):
        y = ntl.reduce(ntl.arange(0, N), 0, special)

    assert excluded(application).endswith("store y = ntl.reduce(ntl.arange(0, N), 0, special)")
