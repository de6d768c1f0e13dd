"""Padding left out of reductions: which masks, in which layout, and where none are needed."""

import pytest

import ninetoothed.language as ntl
from ninetoothed.passes import forward_stores
from tests.parsing.applications import expected
from tests.passes.masked import masked

FULL = "mask(x, (0, 1))"


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
        (lambda x: ntl.sum(x + 1), f"ntl.sum(masked(x + 1, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(ntl.exp(x)), f"ntl.sum(masked(ntl.exp(x), {FULL}, 'zero'))"),
        (lambda x: x.exp().sum(), f"masked(x.exp(), {FULL}, 'zero').sum()"),
        (lambda x: ntl.sum(x * float("inf")), f"ntl.sum(masked(x * float('inf'), {FULL}, 'zero'))"),
        (lambda x: ntl.sum(x / 0), f"ntl.sum(masked(x / 0, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(1 - x), f"ntl.sum(masked(1 - x, {FULL}, 'zero'))"),
        (lambda x: ntl.sum(x < 1), f"ntl.sum(masked(x < 1, {FULL}, 'zero'))"),
        (
            lambda x: ntl.sum(ntl.where(x > 1, x, 1.0)),
            f"ntl.sum(masked(ntl.where(x > 1, x, 1.0), {FULL}, 'zero'))",
        ),
        (lambda x: ntl.sum(ntl.cast(x, ntl.int32, bitcast=True)), None),
        # Other identities.
        (lambda x: ntl.max(x), f"ntl.max(masked(x, {FULL}, 'lowest'))"),
        (lambda x: ntl.min(x, axis=0), f"ntl.min(masked(x, {FULL}, 'highest'), axis=0)"),
        # Of integers: NaN is left out besides.
        (
            lambda x: ntl.argmax(ntl.cast(x, ntl.int32), 1),
            f"ntl.argmax(masked(ntl.cast(x, int32), {FULL}, 'lowest'), 1)",
        ),
        (
            lambda x: ntl.argmin(ntl.cast(x, ntl.int32), 1),
            f"ntl.argmin(masked(ntl.cast(x, int32), {FULL}, 'highest'), 1)",
        ),
        (lambda x: ntl.max(input=x), f"ntl.max(masked(x, {FULL}, 'lowest'))"),
        (lambda x: ntl.cumprod(x, 1), f"ntl.cumprod(masked(x, {FULL}, 'one'), 1)"),
        (lambda x: ntl.softmax(x, 1), f"ntl.softmax(masked(x, {FULL}, 'lowest'), 1)"),
        (lambda x: ntl.xor_sum(x, 0), "ntl.xor_sum(x, 0)"),
        (lambda x: ntl.sort(x), f"ntl.sort(masked(x, {FULL}, 'last'))"),
        (lambda x: ntl.sort(x, 1, True), f"ntl.sort(masked(x, {FULL}, 'lowest'), 1, True)"),
        (
            lambda x: ntl.max(ntl.libdevice.fast_expf(x)),
            f"ntl.max(masked(ntl.libdevice.fast_expf(x), {FULL}, 'lowest'))",
        ),
        # Nothing to exclude.
        (
            lambda x: ntl.max(ntl.zeros(x.shape, ntl.int32)),
            "ntl.max(masked(ntl.zeros((padded(M), padded(N)), int32), within(M, (0, None)), "
            "within(N, (None, 0)), 'lowest'))",
        ),
        (lambda x: ntl.max(x.offsets()), "ntl.max(x.offsets())"),
        (lambda x: ntl.exp(x) + 1, "ntl.exp(x) + 1"),
        (
            lambda x: ntl.max(ntl.flip(x)),
            "ntl.max(masked(flipped(x, 1, mask(x, (0, 1))), mask(x, (0, 1)), 'lowest'))",
        ),
        (
            lambda x: ntl.max(ntl.dot(x, x.T)),
            "ntl.max(masked(ntl.dot(x, x.T), mask(x, (0, None)), mask(x, (None, 0)), 'lowest'))",
        ),
    ],
)
def test_one_reduction(compute, text):
    def application(x, y):
        y = compute(x)

    result = masked(application)

    if text is None:
        assert ("masked" in result) == ("bitcast" in result)
    else:
        assert result == f"store y = {text}"


def test_of_the_greatest_those_are_stored_that_exist():
    def application(x, y):
        y = ntl.topk(x, 2)  # noqa: F841

    result = masked(application)

    assert f"moved = masked(x, {FULL}, 'lowest')" in result
    assert f"exists = ntl.topk(exists(moved, {FULL}), 2)" in result
    assert "= masked(ntl.topk(moved, 2), holds(exists, (0, 1)), 'nowhere')" in result


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

    outermost = masked(application).removeprefix("store y = ntl.max(masked(")

    assert f"mask(x, {mask})" in outermost[: outermost.rindex("'lowest'")]


@pytest.mark.parametrize(
    ("compute", "moved"),
    [
        (
            lambda x: ntl.ravel(x),
            "ntl.reshape(exists(moved, mask(x, (0, 1))), (padded(M) * padded(N),))",
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

    def shown(x, y):
        ntl.device_print("x", compute(x))

    assert f"exists = {moved}" in masked(reduced)
    assert "'lowest'" in masked(reduced)
    assert f"exists = {moved}" in masked(stored)
    assert "'nowhere'" in masked(stored)
    assert "exists" not in masked(shown)


def test_two_tiles_that_exist_alike_need_no_more_side_by_side():
    def application(x, y):
        y = ntl.max(ntl.join(x, x))

    assert masked(application) == (
        "store y = ntl.max(masked(ntl.join(x, x), mask(x, (0, 1, None)), 'lowest'))"
    )


def test_masks_of_two_tiles_are_joined():
    def application(x, y, z):
        z = ntl.max(x + y)

    assert masked(application) == (
        "store z = ntl.max(masked(x + y, mask(x, (0, 1)), mask(y, (0, 1)), 'lowest'))"
    )


def test_zeros_of_one_factor_do_not_make_up_for_the_other():
    def application(x, y, z):
        z = ntl.sum(x * y)

    assert "mask(x, (0, 1)), mask(y, (0, 1)), 'zero'" in masked(application)


def test_a_tensor_with_other_has_no_marks():
    def application(padless, y):
        y = ntl.max(padless)

    assert masked(application) == "store y = ntl.max(padless)"


def test_masks_follow_variables():
    def application(x, y):
        row = ntl.exp(x)
        a, b = row, row + 1
        a += 1
        y = ntl.sum(a) + ntl.sum(b)

    text = masked(application)

    assert text.count("masked(a, mask(x, (0, 1)), 'zero')") == 1
    assert text.count("masked(b, mask(x, (0, 1)), 'zero')") == 1


def test_both_results_of_a_reduction_with_indices_are_marked():
    def application(x, y):
        value, place = ntl.max(x, 1, return_indices=True)
        y = ntl.max(value) + ntl.max(place)

    text = masked(application)

    assert "masked(value, mask(x, (0,)), 'lowest')" in text
    assert "masked(place, mask(x, (0,)), 'lowest')" in text


def test_an_index_that_is_padding_names_no_element():
    def application(z, x, y):
        x.source[z, 0] = x.source[z + 1, 2]

    assert masked(application) == (
        "store x.source[masked(z, mask(z, (0, 1)), 'nowhere'), 0] = "
        "masked(x.source[masked(z + 1, mask(z, (0, 1)), 'nowhere'), 2], mask(z, (0, 1)), 'nowhere')"
    )


def test_an_index_that_changes_is_kept_for_the_mask():
    def application(many, y, n):
        i = n
        v = many[i]
        i = i + 1
        y = ntl.max(v) + i

    assert masked(application) == expected("""
        i = n
        many_index = i
        v = many[many_index]
        i = i + 1
        store y = ntl.max(masked(v, mask(many[many_index], (0, 1)), 'lowest')) + i
    """)


def test_an_index_in_what_decides_a_choice_is_kept_before_it():
    def application(many, y, n):
        i = n
        i = i + 1
        y = ntl.max(many[0] if ntl.max(many[i]) > 0 else many[1])

    assert masked(application) == expected("""
        i = n
        i = i + 1
        many_index = i
        if ntl.max(masked(many[many_index], mask(many[many_index], (0, 1)), 'lowest')) > 0:
            choice = many[0]
            store y = ntl.max(masked(choice, mask(many[0], (0, 1)), 'lowest'))
        else:
            choice = many[1]
            store y = ntl.max(masked(choice, mask(many[1], (0, 1)), 'lowest'))
    """)


def test_a_loaded_index_is_loaded_once():
    def application(rows, cell, y):
        y = ntl.max(rows[cell])

    assert masked(application) == expected("""
        rows_index = cell
        store y = ntl.max(masked(rows[rows_index], mask(rows[rows_index], (0, 1)), 'lowest'))
    """)


def test_a_tile_as_an_index_is_its_one_element():
    def application(rows, odd, n, y):
        i = odd
        y = rows[odd] + rows[i + 1] + rows[n] + rows[ntl.max(odd)]

    assert masked(application).splitlines()[1:] == [
        "store y = rows[odd.item()] + rows[(i + 1).item()] + rows[n] + "
        "rows[ntl.max(masked(odd, mask(odd, (0, 1)), 'lowest'))]"
    ]


def test_a_stored_value_has_the_marks_of_its_tile():
    def application(x, y, z):
        y = ntl.exp(x)
        z = ntl.max(y) + ntl.sum(y)

    assert masked(application, forward_stores).splitlines()[2:] == [
        "y_stored = ntl.cast(masked(y_value, mask(y, (0, 1)), 'zero'), y.dtype)",
        "store z = ntl.max(masked(y_stored, mask(y, (0, 1)), 'lowest')) + ntl.sum(y_stored)",
    ]


def test_an_assertion_is_not_about_padding():
    def application(x, y):
        assert x > 0, "positive"
        y = x

    assert "device_assert(masked(x > 0, mask(x, (0, 1)), 'one'), 'positive')" in masked(application)


def test_padding_is_not_counted():
    def application(x, y):
        y = ntl.histogram(ntl.max(x, 1).to(ntl.int32), 4)

    assert masked(application).endswith(
        "mask=masked(ntl.cast(ntl.zeros_like(ntl.max(masked(x, mask(x, (0, 1)), 'lowest'), 1)"
        ".to(int32)), int32) + 1, mask(x, (0,)), 'zero') != 0)"
    )
