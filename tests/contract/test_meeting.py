"""LANGUAGE.md, "The rule of meeting": where loaded tiles meet, the same elements exist in both."""

from __future__ import annotations

import functools
import inspect

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import addmm, bmm, conv2d, layer_norm, mm, sdpa
from ninetoothed import Tensor, block_size
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.meetings import agreement
from tests.contract.kernels import B, blocks_of_rows, tiles

BLOCK = block_size()


def blocks(*tensors):
    """Each vector in blocks that the tuner chooses."""
    return tuple(t.tile((BLOCK,)) for t in tensors)


def blocks_and_tiles(x, w, y):
    """Blocks that the tuner chooses, and tiles of 64, so that there is one choice."""
    return x.tile((BLOCK,)), w.tile((64,)), y.tile((BLOCK,))


def whole(*tensors):
    """Each vector as one tile."""
    return tuple(t.tile((-1,)) for t in tensors)


def whole_rows(*tensors):
    """Matrices in rows, each the one row for all of the output's rows where it has no rows itself."""
    output = tensors[-1]
    return tuple(
        (t.unsqueeze(0).expand((output.shape[0], -1)) if t.ndim == 1 else t).tile((1, -1))
        for t in tensors
    )


def matrices(x, w, y):
    """Two matrices and their product, each as one tile."""
    return tuple(t.tile((-1, -1)) for t in (x, w, y))


def filled(*shape):
    return torch.full(shape, 2.0)


def made(application, arrangement, *shapes, others=None):
    others = others or [None] * len(shapes)
    tensors = tuple(Tensor(len(s), other=o) for s, o in zip(shapes, others))
    return ninetoothed.make(arrangement, application, tensors)


def called(application, arrangement, *shapes, others=None):
    given = {"B": 64} if arrangement in (tiles, blocks_of_rows) else {}
    made(application, arrangement, *shapes, others=others)(*(filled(*s) for s in shapes), **given)


def sum_of_two(x, w, y):
    y = x + w  # noqa: F841


def through_a_local(x, w, y):
    value = ntl.exp(x)
    value = ntl.cast(value * 2, ntl.float32)
    y = value - w  # noqa: F841


def through_a_helper(x, w, y):
    y = scaled(x, w)  # noqa: F841


def scaled(value, factor=1):
    return value * factor


def through_a_function(x, w, y):
    y = ntl.maximum(x, w)  # noqa: F841


def through_where(x, w, y):
    y = ntl.where(x > 0, w, 0.0)  # noqa: F841


def in_place(x, w, y):
    y = x  # noqa: F841
    y += w  # noqa: F841


def through_a_gather(x, w, y):
    y = x.source[ntl.cast(w, ntl.int32)] + x  # noqa: F841


def in_a_loop(x, w, y):
    total = ntl.zeros(x.dtype.shape, dtype=ntl.float32)
    for k in range(x.shape[0]):
        total += x[k] * w[k]
    y[0] = total


def after_a_loop(x, w, y):
    total = ntl.zeros((64,), dtype=ntl.float32)
    for k in range(2):
        total += x[0] * k
    y[0] = total * w[0]


def by_rows(x, w, y):
    y = x * w  # noqa: F841


def as_a_row(x, w, y):
    y = ntl.sum(x, 1) + ntl.sum(x * w, 1)  # noqa: F841


def contracted(x, w, y):
    y = ntl.dot(x, w)  # noqa: F841


def contracted_with_its_transpose(x, w, y):
    y = ntl.dot(x, w.T)  # noqa: F841


def contracted_with_trans(x, w, y):
    y = ntl.dot(x, ntl.trans(w))  # noqa: F841


def added_to_a_product(x, w, y):
    y += ntl.dot(x, w)  # noqa: F841


def spread(x, w, y):
    y = x[:, None] * w[None, :]  # noqa: F841


def spread_and_added(x, w, y):
    y = y + x[:, None] * w[None, :]  # noqa: F841


def vectors_and_matrix(x, w, y):
    return x.tile((-1,)), w.tile((-1,)), y.tile((-1, -1)).squeeze(1)


#: Application, arrangement, shapes; the sizes and dimensions that are named.
REFUSED = [
    (sum_of_two, blocks_and_tiles, [(60,), (50,), (60,)], "60 in dimension 0 of `x` and 50 in dim"),
    (sum_of_two, blocks_and_tiles, [(200,), (199,), (200,)], "199 in dimension 0 of `w`"),
    (sum_of_two, blocks, [(1000,), (600,), (1000,)], "1000 in dimension 0 of `x` and 600 in dim"),
    (sum_of_two, tiles, [(60,), (50,), (60,)], "60 in dimension 0 of `x` and 50 in dimension 0 of"),
    (sum_of_two, whole, [(100,), (90,), (100,)], "100 in dimension 0 of `x` and 90 in dimension 0"),
    (sum_of_two, whole, [(100,), (7,), (100,)], "100 in dimension 0 of `x` and 7 in dimension 0"),
    (through_a_local, blocks, [(9,), (8,), (9,)], "9 in dimension 0 of `x` and 8 in dimension 0"),
    (through_a_helper, blocks, [(9,), (8,), (9,)], "9 in dimension 0 of `x` and 8 in dimension 0"),
    (through_a_function, blocks, [(8,), (9,), (9,)], "8 in dimension 0 of `x` and 9 in dimension"),
    (
        through_where,
        blocks,
        [(8,), (9,), (9,)],
        "8 in dimension 0 of `x` and 9 in dimension 0 of `w",
    ),
    (in_place, blocks, [(9,), (8,), (9,)], "9 in dimension 0 of `y` and 8 in dimension 0 of `w`"),
    (through_a_gather, blocks, [(9,), (8,), (9,)], "8 in dimension 0 of `w` and 9 in dimension 0"),
    (in_a_loop, blocks_of_rows, [(500,), (400,), (64,)], "500 in dimension 0 of `x` and 400 in"),
    (in_a_loop, blocks_of_rows, [(500,), (499,), (64,)], "500 in dimension 0 of `x` and 499 in"),
    (after_a_loop, blocks_of_rows, [(60,), (50,), (60,)], "60 in dimension 0 of `x` and 50 in dim"),
    (by_rows, whole_rows, [(5, 100), (90,), (5, 100)], "100 in dimension 1 of `x` and 90 in dimen"),
    (
        contracted,
        matrices,
        [(16, 30), (20, 16), (16, 16)],
        "30 in dimension 1 of `x` and 20 in dim",
    ),
    (
        contracted_with_its_transpose,
        matrices,
        [(16, 30), (16, 20), (16, 16)],
        "30 in dimension 1 of `x` and 20 in dimension 1 of `w`",
    ),
    (
        contracted_with_trans,
        matrices,
        [(16, 30), (16, 20), (16, 16)],
        "30 in dimension 1 of `x` and 20 in dimension 1 of `w`",
    ),
    (
        added_to_a_product,
        matrices,
        [(13, 16), (16, 16), (14, 16)],
        "14 in dimension 0 of `y` and 13 in dimension 0 of `x`",
    ),
    (
        spread_and_added,
        vectors_and_matrix,
        [(5,), (6,), (5, 7)],
        "7 in dimension 1 of `y` and 6 in dimension 0 of `w`",
    ),
    (
        spread,
        vectors_and_matrix,
        [(5,), (6,), (6, 6)],
        "`x` of shape (5,) is stored to `y` of shape (6, 6)",
    ),
    (
        contracted,
        matrices,
        [(16, 30), (30, 15), (16, 16)],
        "`w` of shape (30, 15) is stored to `y`",
    ),
]


@pytest.mark.parametrize(
    "application, arrangement, shapes, words",
    REFUSED,
    ids=[f"{a.__name__} {' '.join(map(str, s))}" for a, _, s, _ in REFUSED],
)
def test_sizes_that_meet_are_equal(application, arrangement, shapes, words):
    with pytest.raises(ArgumentError) as caught:
        called(application, arrangement, *shapes)

    assert words in caught.value.message
    assert "Make them equal" in caught.value.message
    lines, first = inspect.getsourcelines(application)
    if application is not through_a_helper:
        assert caught.value.location.file == __file__
        assert first < caught.value.location.line < first + len(lines)
        assert caught.value.location.column is not None


@pytest.mark.parametrize(
    "application, arrangement, shapes, words",
    [row for row in REFUSED if row[2] != [(100,), (7,), (100,)] and row[0] is not through_a_gather],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_tensor_with_other_set_is_exempt(application, arrangement, shapes, words):
    """A tensor with `other` set is exempt: what is beyond its end is an element like any."""
    called(application, arrangement, *shapes, others=[0, 0, 0])


#: Sizes that are equal, or that do not meet: a kernel runs with any such.
ALLOWED = [
    (sum_of_two, blocks_and_tiles, [(200,), (200,), (200,)]),
    (sum_of_two, blocks, [(1000,), (1000,), (1000,)]),
    (sum_of_two, tiles, [(50,), (50,), (50,)]),
    (sum_of_two, whole, [(100,), (1,), (100,)]),
    (sum_of_two, blocks, [(1000,), (1000,), (999,)]),
    (by_rows, whole_rows, [(5, 100), (100,), (5, 100)]),
    (by_rows, whole_rows, [(5, 100), (1,), (5, 100)]),
    (spread, vectors_and_matrix, [(5,), (6,), (5, 6)]),
    # Of what is longer only as much is selected as there is of the other.
    (in_a_loop, blocks_of_rows, [(128,), (200,), (64,)]),
    (contracted, matrices, [(16, 30), (30, 16), (16, 16)]),
]


@pytest.mark.parametrize("application, arrangement, shapes", ALLOWED)
def test_what_agrees_runs(application, arrangement, shapes):
    called(application, arrangement, *shapes)


def test_the_error_points_at_the_place_where_they_meet():
    with pytest.raises(ArgumentError) as caught:
        mm.kernel(filled(16, 100), filled(70, 16), filled(16, 16))

    text = str(caught.value)
    assert "kernel `mm`: `input` of shape (16, 100) meets `other` of shape (70, 16) here" in text
    assert "100 in dimension 1 of `input` and 70 in dimension 0 of `other`" in text
    assert "Tensor(…, other=0)" in text
    assert text.splitlines()[-2].strip() == "accumulator += ntl.dot(input[k], other[k])"
    assert text.splitlines()[-1].strip("^ ") == ""


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: mm.mm(filled(64, 1024), filled(64, 64)), ["`input`", "`other`", "1024", "64"]),
        (lambda: mm.mm(filled(64, 64), filled(65, 64)), ["64 in dimension 1", "65 in dimension 0"]),
        (
            lambda: bmm.bmm(filled(2, 9, 8), filled(2, 7, 9)),
            ["8 in dimension 2", "7 in dimension 1"],
        ),
        (
            lambda: addmm.kernel(filled(9, 8), filled(9, 7), filled(7, 9), 1.0, 1.0, filled(9, 9)),
            ["8 in dimension 1 of `input`", "9 in dimension 1 of `mat2`"],
        ),
        (
            lambda: layer_norm.layer_norm(filled(5, 100), filled(90), filled(100)),
            ["100 in dimension 1 of `input`", "90 in dimension 0 of `weight`"],
        ),
        (
            lambda: layer_norm.layer_norm(filled(5, 100), filled(100), filled(90)),
            ["100 in dimension 1 of `input`", "90 in dimension 0 of `bias`"],
        ),
        (
            lambda: sdpa.sdpa(filled(1, 2, 40, 32), filled(1, 2, 40, 32), filled(1, 2, 33, 32)),
            ["40 in dimension 2 of `key`", "33 in dimension 2 of `value`"],
        ),
        (
            lambda: sdpa.sdpa(
                filled(1, 2, 40, 32), filled(1, 2, 40, 32), filled(1, 2, 33, 32), is_causal=True
            ),
            ["40 in dimension 2 of `key`", "33 in dimension 2 of `value`"],
        ),
        (
            lambda: sdpa.sdpa(filled(1, 2, 40, 30), filled(1, 2, 40, 32), filled(1, 2, 40, 32)),
            ["30 in dimension 3 of `query`", "32 in dimension 3 of `key`"],
        ),
        (
            lambda: conv2d.kernel(filled(2, 3, 9, 9), filled(4, 4, 3, 3), filled(2, 4, 7, 7)),
            ["`input`"],
        ),
    ],
)
def test_the_examples_refuse_sizes_that_do_not_agree(call, words):
    with pytest.raises((ArgumentError, ArrangementError)) as caught:
        call()

    assert all(word in caught.value.message for word in words), caught.value.message


def test_it_is_asked_once_for_each_new_set_of_shapes(monkeypatch):
    asked, pairs = [], agreement.equal_sizes
    monkeypatch.setattr(agreement, "equal_sizes", lambda *a: asked.append(a) or pairs(*a))
    kernel = made(sum_of_two, blocks, (3,), (3,), (3,))
    for size in (3, 3, 4, 4, 3):
        kernel(filled(size), filled(size), filled(size))

    assert len(asked) == 2


def test_a_parameter_that_a_constant_leaves_out_does_not_meet():
    def application(x, bias, has_bias, y):
        if has_bias:
            y = x + bias
        else:
            y = x  # noqa: F841

    def arrangement(x, bias, has_bias, y):
        return x.tile((-1,)), bias.tile((-1,)), has_bias, y.tile((-1,))

    tensors = (Tensor(1), Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    kernel(filled(9), filled(3), False, y := filled(9) * torch.nan)
    assert y.tolist() == [2] * 9
    with pytest.raises(
        ArgumentError, match="9 in dimension 0 of `x` and 3 in dimension 0 of `bias`"
    ):
        kernel(filled(9), filled(3), True, y)


def test_what_a_number_of_run_time_decides_is_left_alone():
    def application(x, bias, has_bias, y):
        y = x
        if has_bias:
            y = x + bias  # noqa: F841

    def arrangement(x, bias, has_bias, y):
        return x.tile((16,)), bias.tile((16,)), has_bias, y.tile((16,))

    tensors = (Tensor(1), Tensor(1), Tensor(0), Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    kernel(filled(9), filled(3), 0, y := filled(9) * torch.nan)
    assert y.tolist() == [2] * 9


def test_a_tensor_may_meet_itself_otherwise_arranged():
    """The differences of neighbours: the first tile goes one further than the second."""

    def arrangement(x, y):
        return x.tile((4,)), x[1:].tile((4,)), y.tile((4,))

    def application(here, next, y):
        y = next - here  # noqa: F841

    x = torch.arange(7.0) ** 2
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((6,), torch.nan)
    kernel(x, x, y)
    assert y.tolist() == x.diff().tolist()


@pytest.mark.parametrize("padding", [(0, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_windows_that_go_beyond_the_end_meet_their_filters(padding, stride):
    conv = functools.partial(conv2d.conv2d, stride=stride, padding=padding)
    output = conv(filled(2, 3, 9, 8), filled(5, 3, 3, 2))
    expected = torch.nn.functional.conv2d(
        filled(2, 3, 9, 8), filled(5, 3, 3, 2), stride=stride, padding=padding
    )
    assert torch.equal(output, expected)


def test_one_tile_ahead_meets_another_tensor():
    """What selects beyond the end is no matter of sizes."""

    def application(x, w, y):
        for k in range(y.shape[0]):
            y[k] = x[k + 1] + w[k]

    called(application, blocks_of_rows, (128,), (128,), (128,))


def test_a_product_without_a_term_is_zero():
    """In no round of the loop anything meets."""
    output = torch.full((5, 6), torch.nan)
    mm.kernel(filled(5, 0), filled(0, 6), output)
    assert torch.equal(output, torch.zeros(5, 6))


def test_an_empty_grid_launches_nothing():
    called(sum_of_two, blocks, (0,), (0,), (0,))


def test_sequences_meet_where_their_lengths_are_data():
    def application(x, w, y):
        y = x + w  # noqa: F841

    def arrangement(*tensors):
        return tuple(t.tile((1, B, -1)) for t in tensors)

    tensors = tuple(Tensor(3, jagged_dim=1) for _ in range(3))
    kernel = ninetoothed.make(arrangement, application, tensors)
    sequences = [torch.ones(length, 4) for length in (3, 0, 5)]
    x = torch.nested.nested_tensor(sequences, layout=torch.jagged)
    y = torch.nested.nested_tensor_from_jagged(torch.full((8, 4), torch.nan), x.offsets())
    kernel(x, x, y, B=4)
    assert y.values().tolist() == [[2] * 4] * 8


def test_what_was_made_has_elements_where_what_it_is_interleaved_with_has_none():
    def application(x, y):
        pairs = ntl.interleave(x, ntl.zeros(x.shape, ntl.float32))
        y = ntl.max(ntl.trans(pairs), 0)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4, 4)), y.tile((4, 4))

    y = torch.ones(1, 2)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(-torch.ones(1, 2), y)
    assert y.tolist() == [[0, 0]]
