"""LANGUAGE.md, "The rule of meeting": what meets under conditions, from round to round, and after it was moved."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError
from tests.contract.kernels import B, blocks_of_rows


def blocks(*tensors):
    """Vectors in blocks, numbers as they are."""
    return tuple(t.tile((B,)) if t.ndim else t for t in tensors)


def whole(*tensors):
    """Each tensor as one tile, numbers as they are."""
    return tuple(t.tile((-1,) * t.ndim) if t.ndim else t for t in tensors)


def made(application, arrangement, *shapes, numbers=()):
    tensors = (*(Tensor(len(shape)) for shape in shapes), *(Tensor(0) for _ in numbers))
    return ninetoothed.make(arrangement, application, tensors)


def given(arrangement, *shapes, numbers=()):
    """Tensors of twos and the numbers, and with which blocks."""
    tensors = [torch.full(shape, 2.0) for shape in shapes]
    blocks_of = {"B": 16} if arrangement in (blocks, blocks_of_rows) else {}
    return {"arguments": (*tensors, *numbers), **blocks_of}


def called(application, arrangement, *shapes, numbers=()):
    kernel = made(application, arrangement, *shapes, numbers=numbers)
    keywords = given(arrangement, *shapes, numbers=numbers)
    arguments = keywords.pop("arguments")
    kernel(*arguments, **keywords)
    return arguments[: len(shapes)]


# Under conditions.


def where_sizes_say(x, w, y):
    if x.source.shape[0] > 4:
        y = x + w
    else:
        y = x  # noqa: F841


def where_sizes_do_not_say(x, w, y):
    if not (x.source.shape[0] > 4 and w.source.shape[0] != 7):
        y = x + w
    else:
        y = x  # noqa: F841


def chosen_by_sizes(x, w, y):
    y = x + w if x.source.shape[0] >= 5 else x  # noqa: F841


def a_variable_that_sizes_choose(x, w, y):
    value = x * 2
    if x.source.shape[0] > 4:
        value = w * 3
    y = value + y


def in_both_branches(x, w, y, flag):
    if flag > 0:
        y = x + w
    else:
        y = w - x  # noqa: F841


def in_both_choices(x, w, y, flag):
    y = x + w if flag > 0 else w * x  # noqa: F841


@pytest.mark.parametrize("arrangement", [blocks, whole])
@pytest.mark.parametrize(
    "application, numbers",
    [
        (where_sizes_say, ()),
        (chosen_by_sizes, ()),
        (in_both_branches, (1.0,)),
        (in_both_branches, (0.0,)),
        (in_both_choices, (1.0,)),
    ],
)
def test_what_surely_meets_under_a_condition_is_compared(application, numbers, arrangement):
    with pytest.raises(
        ArgumentError, match="[89] in dimension 0 of `[xw]` and [89] in dim"
    ) as caught:
        called(application, arrangement, (9,), (8,), (9,), numbers=numbers)
    assert caught.value.location.file == __file__


def test_a_condition_on_several_sizes_is_computed():
    with pytest.raises(ArgumentError, match="9 in dimension 0 of `x` and 7 in dimension 0 of `w`"):
        called(where_sizes_do_not_say, whole, (9,), (7,), (9,))
    *_, y = called(where_sizes_do_not_say, whole, (9,), (8,), (9,))
    assert y.tolist() == [2.0] * 9


def test_a_variable_is_what_sizes_choose():
    with pytest.raises(ArgumentError, match="9 in dimension 0 of `y`|8 in dimension 0 of `w`"):
        called(a_variable_that_sizes_choose, whole, (8,), (8,), (9,))
    with pytest.raises(ArgumentError, match="`x` of shape \\(3,\\) meets `y`"):
        called(a_variable_that_sizes_choose, whole, (3,), (4,), (4,))
    *_, y = called(a_variable_that_sizes_choose, whole, (9,), (8,), (8,))
    assert y.tolist() == [8.0] * 8


@pytest.mark.parametrize("application", [where_sizes_say, chosen_by_sizes])
def test_where_sizes_decide_against_it_nothing_meets(application):
    *_, y = called(application, whole, (3,), (4,), (3,))
    assert y.tolist() == [2.0] * 3


# By a function.


def product(one, other):
    return one * other


def mapped(x, w, y):
    y = ntl.map_elementwise(product, x, w)  # noqa: F841


def test_what_a_function_maps_meets():
    with pytest.raises(ArgumentError, match="9 in dimension 0 of `x` and 8 in dimension 0 of `w`"):
        called(mapped, blocks, (9,), (8,), (9,))
    *_, y = called(mapped, blocks, (9,), (9,), (9,))
    assert y.tolist() == [4.0] * 9


# In loops.


def counted_by_while(x, w, y):
    total = ntl.zeros((16,), dtype=ntl.float32)
    k = 0
    while k < x.shape[0]:
        total += x[k] * w[k]
        k += 1
    y[0] = total


def counted_down(x, w, y):
    total = ntl.zeros((16,), dtype=ntl.float32)
    k = x.shape[0] - 1
    while k >= 0:
        total += x[k] * w[k]
        k -= 1
    y[0] = total


def counted_by_a_sum(x, w, y):
    total = ntl.zeros((16,), dtype=ntl.float32)
    k = 0
    while k != x.shape[0]:
        total += x[k] * w[k]
        k = 1 + k
    y[0] = total


def with_the_round_before(x, w, y):
    """A running difference: what is loaded in one round is used in the next."""
    before = w[0]
    for k in range(x.shape[0]):
        y[k] = x[k] - before
        before = w[k]


def fetched_ahead(x, w, y):
    ahead = w[0]
    for k in range(x.shape[0]):
        now = ahead
        ahead = w[k + 1]
        y[k] = x[k] * now


def with_the_round_before_of_rows(x, w, y):
    before = x[0] * 0.0
    for k in range(x.shape[0]):
        y[k] = x[k] - before
        before = w[k]


def rows(*tensors):
    """Matrices as rows of blocks, all in one program."""
    return tuple(t.tile((2, -1)).squeeze(1).tile((-1,)) for t in tensors)


def from_the_second_on(x, w, y):
    for k in range(1, x.shape[0]):
        y[k] = x[k] + w[k]


@pytest.mark.parametrize(
    "application",
    [counted_by_while, counted_down, counted_by_a_sum, fetched_ahead, from_the_second_on],
)
def test_what_meets_in_a_round_is_compared(application):
    with pytest.raises(
        ArgumentError, match="40 in dimension 0 of `x` and 39 in dimension 0 of `w`"
    ):
        called(application, blocks_of_rows, (40,), (39,), (40,))
    called(application, blocks_of_rows, (40,), (40,), (40,))


def test_what_the_round_before_left_is_compared():
    with pytest.raises(ArgumentError, match="9 in dimension 1 of `x` and 10 in dimension 1 of `w`"):
        called(with_the_round_before_of_rows, rows, (6, 9), (6, 10), (6, 9))
    called(with_the_round_before_of_rows, rows, (6, 9), (6, 9), (6, 9))
    # There is no round before the first.
    called(with_the_round_before_of_rows, rows, (2, 9), (2, 10), (2, 9))
    # Of the last tile of `w` one more has no use.
    called(with_the_round_before, blocks_of_rows, (48,), (48,), (48,))


def stepped_otherwise(x, w, y):
    """By squares; the first round aside, which tiles meet no size tells."""
    total = ntl.zeros((16,), dtype=ntl.float32)
    k = 0
    while k < x.shape[0]:
        total += x[k] * w[k]
        k = k * k + 1
    y[0] = total


def test_a_while_that_takes_no_steps_of_one_length_is_left_alone():
    """The seventeenth element of `x` meets none of `w`, and the sum keeps what it had."""
    *_, y = called(stepped_otherwise, blocks_of_rows, (17,), (16,), (16,))
    assert y.tolist() == [4.0] * 16


def test_a_while_without_a_round_meets_nothing():
    called(counted_by_while, blocks_of_rows, (0,), (5,), (16,))


# After elements have moved.


def joined(x, w, y):
    y = ntl.join(x, w)  # noqa: F841


def joined_and_added(x, w, y):
    y = ntl.join(x, x) + w[:, None]  # noqa: F841


def interleaved(x, w, y):
    y = ntl.interleave(x, x) * ntl.sum(w, 1, keep_dims=True)  # noqa: F841


def gathered(x, w, y):
    y = ntl.gather(x, ntl.cast(x * 0, ntl.int32), 1) + w  # noqa: F841


def one_half(x, w, y):
    left, right = ntl.split(ntl.reshape(x, (x.shape[0], 4, 2)))
    y = left + ntl.sum(w, 1, keep_dims=True) + right  # noqa: F841


def half_of_a_join(x, w, y):
    _, second = ntl.split(ntl.join(w, ntl.full(x.shape, 1.0, ntl.float32)))
    y = second  # noqa: F841


def half_of_a_sum(x, w, y):
    first, _ = ntl.split(ntl.join(x, w) + ntl.join(x, w))
    y = first  # noqa: F841


def half_of_a_flip(x, w, y):
    first, _ = ntl.split(ntl.flip(ntl.join(x, w), 1))
    y = first  # noqa: F841


def half_of_a_scan(x, w, y):
    _, second = ntl.split(ntl.cumsum(ntl.join(w, x), 1))
    y = second  # noqa: F841


def first_half_of_a_join(x, w, y):
    first, _ = ntl.split(ntl.join(w, x))
    y = first  # noqa: F841


def combined(x, w, y):
    y, _ = ntl.reduce((x, w), 0, both)


def both(x, w, other_x, other_w):
    return x * other_w + other_x * w, w + other_w


def scanned(x, w, y):
    y, _ = ntl.associative_scan((x, w), 0, both)


def reduced_by_rows(x, w, y):
    y = ntl.reduce(x, 1, larger) + w


def larger(one, other):
    return ntl.maximum(one, other)


def compared_together(x, w, y):
    y = (x > 0) and (w > 0)  # noqa: F841


@pytest.mark.parametrize(
    "application, shapes, words",
    [
        (joined, [(9,), (8,), (9, 2)], "`w` of shape (8,) is stored to `y`"),
        (joined_and_added, [(9,), (8,), (9, 2)], "9 in dimension 0 of `x` and 8 in dimension 0 of"),
        (interleaved, [(9, 4), (8, 4), (9, 8)], "9 in dimension 0 of `x` and 8 in dimension 0 of"),
        (gathered, [(9, 4), (8, 4), (9, 4)], "8 in dimension 0 of `w`"),
        (first_half_of_a_join, [(9,), (8,), (9,)], "`w` of shape (8,) is stored to `y`"),
        (half_of_a_flip, [(9,), (8,), (9,)], "`w` of shape (8,) is stored to `y`"),
        (half_of_a_scan, [(9,), (8,), (9,)], "`w` of shape (8,) is stored to `y`"),
        (combined, [(9,), (8,), (1,)], "9 in dimension 0 of `x` and 8 in dimension 0 of `w`"),
        (scanned, [(9,), (8,), (9,)], "9 in dimension 0 of `x` and 8 in dimension 0 of `w`"),
        (scanned, [(8,), (8,), (9,)], "is stored to `y`"),
        (reduced_by_rows, [(9, 4), (8,), (9,)], "9 in dimension 0 of `x` and 8 in dimension 0 of"),
        (compared_together, [(9,), (8,), (9,)], "9 in dimension 0 of `x` and 8 in dimension 0 of"),
    ],
)
def test_what_was_moved_or_combined_is_compared(application, shapes, words):
    with pytest.raises(ArgumentError) as caught:
        called(application, whole, *shapes)
    assert words in caught.value.message
    # With sizes that agree it runs.
    size = max(shapes[0][0], shapes[1][0])
    called(application, whole, *((size, *s[1:]) if s != (1,) else s for s in shapes))


@pytest.mark.parametrize("application", (half_of_a_join, half_of_a_sum))
def test_half_of_what_was_joined_is_made_of_its_own_tiles(application):
    _, _, y = called(application, blocks, (16,), (4,), (16,))
    assert set(y.tolist()) == {1.0 if application is half_of_a_join else 4.0}


def sum_of_halves(x, w, y):
    y = ntl.sum(ntl.join(w, ntl.full(x.shape, 1.0, ntl.float32)), 1)  # noqa: F841


def halves_combined(x, w, y):
    y = ntl.reduce(ntl.join(ntl.full(x.shape, 1.0, ntl.float32), w), -1, plus)


def plus(one, other):
    return one + other


@pytest.mark.parametrize("application", (sum_of_halves, halves_combined))
def test_what_a_join_is_reduced_to_exists_where_one_half_does(application):
    _, _, y = called(application, blocks, (16,), (4,), (16,))
    assert y.tolist() == [3.0] * 4 + [1.0] * 12


def sum_of_a_whole_and_a_half(x, w, y):
    y = ntl.sum(ntl.join(w, ntl.full(x.shape, 1.0, ntl.float32)) * w[:, None], 1)  # noqa: F841


def test_what_meets_both_halves_is_still_compared():
    with pytest.raises(ArgumentError, match="`w` of shape .4,. is stored to `y`"):
        called(sum_of_a_whole_and_a_half, blocks, (16,), (4,), (16,))


# Where there is nothing to store to.


def beyond_all_tiles(*tensors):
    """The tile that `pad` puts behind all others, as one program's."""
    return tuple(t.tile((2, 2)).pad(((0, 1), (0, 1)))[-1, -1] for t in tensors)


def every_second_row(*tensors):
    """The second row of each two, of which `pad` adds one, of a matrix of one column."""
    arranged = [t.pad(((0, 1), (0, 0))).tile((2, 1), floor_mode=True) for t in tensors]
    for each in arranged:
        each.dtype = each.dtype[-1]
    return tuple(t.tile((2, 2)) for t in arranged)


def behind_padding(*tensors):
    """Rows of which none exists, behind one that `pad` puts in front of each two of them."""
    arranged = tuple(t.tile((2, 4)) for t in tensors)
    for each in arranged:
        each.dtype = each.dtype.pad(((1, 0), (0, 0)))
    return tuple(t.pad(((0, 1), (0, 0))) for t in arranged)


def rows_beside(x, y):
    y = ntl.sum(x, 1) - y  # noqa: F841


def turned(x, y):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = x[j, i]


def places(x, y):
    y = ntl.argmin(x, axis=1)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "arrangement", "shape"),
    [
        (places, beyond_all_tiles, (1, 2)),
        (turned, every_second_row, (3, 1)),
        (rows_beside, behind_padding, (0, 4)),
    ],
)
def test_no_elements_meet_none_where_nothing_is_stored(application, arrangement, shape):
    called(application, arrangement, shape, shape)


def test_a_store_of_too_few_elements_beside_what_pad_adds_is_refused():
    with pytest.raises(ArgumentError, match="have not the same elements"):
        called(turned, every_second_row, (4, 1), (4, 1))
