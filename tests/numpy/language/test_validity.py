"""Lanes that are not real: masks follow element-wise work and leave reductions out."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values.rounds import lasting
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import CompilationError
from ninetoothed.language import dtypes
from tests.numpy.language.cases import random_array

#: 3 of 4 rows and 5 of 8 columns are real.
_ROWS = np.arange(4)[:, None] < 3
_COLUMNS = np.arange(8)[None, :] < 5
_REAL = (slice(0, 3), slice(0, 5))


def _loaded(spec: str = "fp32[4, 8]") -> Tile:
    array, dtype = random_array(f"{spec}+", "validity")
    # Below zero everywhere, so that a 0 from the padding would win a maximum.
    array = (array if dtype.kind == "uint" else -np.abs(array)).astype(dtype.numpy)
    return Tile(np.where(_ROWS & _COLUMNS, array, dtype.numpy.type(0)), dtype, (_ROWS, _COLUMNS))


#: function -> (of the tile, of the real elements in NumPy)
_REDUCTIONS = {
    "sum": (lambda x: ntl.sum(ntl.exp(x), axis=1), lambda a: np.exp(a).sum(1)),
    "sum of all": (lambda x: ntl.sum(x + 1), lambda a: (a + 1).sum()),
    "sum along rows": (lambda x: ntl.sum(1 - x, 0), lambda a: (1 - a).sum(0)),
    "max": (lambda x: ntl.max(x, axis=1), lambda a: a.max(1)),
    "max of all": (lambda x: ntl.max(x), lambda a: a.max()),
    "min": (lambda x: ntl.min(-x, 0), lambda a: (-a).min(0)),
    "argmax": (lambda x: ntl.argmax(x, 1), lambda a: a.argmax(1)),
    "argmin": (lambda x: ntl.argmin(-x, 1), lambda a: (-a).argmin(1)),
    "max with index": (lambda x: ntl.max(x, 1, return_indices=True)[0], lambda a: a.max(1)),
    "softmax": (
        lambda x: ntl.softmax(x, 1, keep_dims=True),
        lambda a: (
            np.exp(a - a.max(1, keepdims=True))
            / np.exp(a - a.max(1, keepdims=True)).sum(1, keepdims=True)
        ),
    ),
    "cumsum": (lambda x: ntl.cumsum(x + 1, 1), lambda a: (a + 1).cumsum(1)),
    "cumsum from the end": (
        lambda x: ntl.cumsum(x + 1, 1, reverse=True),
        lambda a: np.flip(np.flip(a + 1, 1).cumsum(1), 1),
    ),
    "cumprod": (
        lambda x: ntl.cumprod(x, 1, reverse=True),
        lambda a: np.flip(np.flip(a, 1).cumprod(1), 1),
    ),
    "reduce": (lambda x: ntl.reduce(x, 1, lambda a, b: a * b), lambda a: a.prod(1)),
    "reduce of all": (lambda x: ntl.reduce(x, None, lambda a, b: a * b), lambda a: a.prod()),
    "associative_scan": (
        lambda x: ntl.associative_scan(x, 1, lambda a, b: a * b, reverse=True),
        lambda a: np.flip(np.flip(a, 1).cumprod(1), 1),
    ),
    "sort": (lambda x: ntl.sort(x), lambda a: np.sort(a, 1)),
    "sort, descending": (
        lambda x: ntl.sort(x, descending=True),
        lambda a: np.flip(np.sort(a, 1), 1),
    ),
    "topk": (lambda x: ntl.topk(x, 4), lambda a: np.flip(np.sort(a, 1), 1)[:, :4]),
    "variance in two passes": (
        lambda x: ntl.sum((x - ntl.sum(x, 1, keep_dims=True) / 5) * (x + 1), 1),
        lambda a: ((a - a.sum(1, keepdims=True) / 5) * (a + 1)).sum(1),
    ),
    "max of a sum": (lambda x: ntl.max(ntl.sum(x, 1), 0), lambda a: a.sum(1).max()),
    "max transposed": (lambda x: ntl.max(x.T, 0), lambda a: a.max(1)),
    "max permuted": (lambda x: ntl.max(ntl.permute(x, 1, 0), 0), lambda a: a.max(1)),
    "max with a dimension more": (lambda x: ntl.max(x[:, None, :], 2), lambda a: a.max(1)[:, None]),
    "max reshaped": (lambda x: ntl.max(x.reshape(4, 1, 8), 2), lambda a: a.max(1)[:, None]),
    "max cast": (lambda x: ntl.max(x.to(ntl.float64), 1), lambda a: a.max(1)),
    "max of a choice": (lambda x: ntl.max(ntl.where(x > -100, x, 0), 1), lambda a: a.max(1)),
    "max of two": (lambda x: ntl.max(ntl.maximum(x, x - 1), 1), lambda a: a.max(1)),
    "max of libdevice": (lambda x: ntl.max(ntl.libdevice.tanh(x), 1), lambda a: np.tanh(a).max(1)),
}


@pytest.mark.parametrize("name", _REDUCTIONS)
def test_a_reduction_leaves_the_padding_out(name):
    of_tile, of_array = _REDUCTIONS[name]
    x = _loaded()

    with np.errstate(all="ignore"):
        found = np.asarray(of_tile(x).data)
    wanted = np.asarray(of_array(x.data[_REAL].astype(np.float64)))

    real = tuple(slice(0, size) for size in wanted.shape)
    np.testing.assert_allclose(found[real], wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", "i8 i32 i64 fp16 bf16 fp32 fp64".split())
@pytest.mark.parametrize("name", ["max", "min", "sum", "argmax", "argmin"])
def test_every_type_has_an_identity(name, kind):
    x = _loaded(f"{kind}[4, 8]")

    found = getattr(ntl, name)(x, 1).data[:3].astype(np.float64)

    wanted = getattr(np, name)(x.data[_REAL].astype(np.float64), 1)
    np.testing.assert_allclose(found, wanted, rtol=2e-2)


def test_dot_leaves_the_padding_of_both_operands_out():
    rows, columns = np.arange(4)[:, None] < 3, np.arange(16)[None, :] < 5
    data = np.where(rows & columns, np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16), 0)
    x = Tile(data.astype(np.float32), dtypes.float32, (rows, columns))

    found = ntl.dot(ntl.exp(x), ntl.exp(x).T)

    a = np.exp(data[:3, :5].astype(np.float64))
    np.testing.assert_allclose(found.data[:3, :3], a @ a.T, rtol=1e-5)
    real = np.logical_and.reduce(np.broadcast_arrays(*found.validity))
    assert np.array_equal(real, rows & (np.arange(4)[None, :] < 3))


def test_xor_sum_and_reduce_or_leave_the_padding_out():
    x = _loaded("i32[4, 8]")

    assert np.array_equal(ntl.xor_sum(~x, 1).data[:3], np.bitwise_xor.reduce(~x.data[_REAL], 1))
    assert np.array_equal(
        ntl.reduce_or(x + 1, 1).data[:3], np.bitwise_or.reduce(x.data[_REAL] + 1, 1)
    )


def test_a_histogram_does_not_count_the_padding():
    x = Tile(np.array([1, 1, 2, 0, 0, 0, 0, 0], np.int32), dtypes.int32, (np.arange(8) < 4,))

    assert ntl.histogram(x, 4).data.tolist() == [1, 2, 1, 0]


def test_the_padding_fails_no_assertion():
    x = _loaded()

    ntl.device_assert(x < 0)


def test_the_marks_of_the_dimensions_that_remain_are_kept():
    found = ntl.sum(_loaded(), 1)

    assert [mask.tolist() for mask in found.validity] == [[True, True, True, False]]
    assert ntl.sum(_loaded(), 1, keep_dims=True).validity[0].shape == (4, 1)
    assert ntl.sum(_loaded()).validity == ()


def test_marks_join_where_operands_broadcast():
    row = Tile(np.ones(8, np.float32), dtypes.float32, (np.arange(8) < 5,))
    column = Tile(np.ones((4, 1), np.float32), dtypes.float32, (_ROWS,))

    found = row + column

    assert sorted(mask.shape for mask in found.validity) == [(1, 8), (4, 1)]
    assert ntl.sum(found).data == 3 * 5 * 2


def test_a_lane_that_a_round_has_no_element_for_keeps_what_it_had():
    x = _loaded()
    rows_alone = Tile(x.data + 7, x.dtype, (_ROWS.copy(),))
    every = Tile(x.data + 7, x.dtype)

    # Masks of its own, which are told from those that the next round makes.
    own = lasting(x, x, "v")
    assert own.data is x.data and own.validity[0] is not x.validity[0]
    assert all(map(np.array_equal, own.validity, x.validity))
    assert lasting(x, None, "v") is x

    kept = lasting(x, every, "v")
    exists = x.validity[0] & x.validity[1]
    assert kept.validity == ()
    assert (kept.data == np.where(exists, x.data, every.data)).all()

    kept = lasting(x, rows_alone, "v")
    assert len(kept.validity) == 1 and (kept.validity[0] == _ROWS).all()
    is_kept = kept.data == np.where(exists, x.data, rows_alone.data)
    assert (is_kept | ~_ROWS).all()

    first, second = lasting((x, 3), (every, 2), "v")
    assert first.validity == () and second.dtype is dtypes.int32
    assert lasting("text", None, "v") == "text"


def test_a_lane_exists_after_a_round_where_it_did_before_or_does_now():
    x = _loaded()
    row = Tile(x.data, x.dtype, (x.validity[0],))
    column = Tile(x.data + 1, x.dtype, (x.validity[1],))

    kept = lasting(row, column, "v")
    assert (np.logical_and.reduce(kept.validity) == (x.validity[0] | x.validity[1])).all()


def test_a_round_that_changes_a_variables_type_or_shape_is_refused():
    x = _loaded()
    for before in (0, 0.0, Tile(x.data.astype(np.float64), dtypes.float64)):
        with pytest.raises(CompilationError, match="The loop changes what 'total' is"):
            lasting(x, before, "total")


_EXISTS = np.broadcast_to(_ROWS & _COLUMNS, (4, 8))


@pytest.mark.parametrize(
    ("moved", "exists"),
    [
        (lambda x: ntl.join(x, x), np.stack([_EXISTS, _EXISTS], -1)),
        (lambda x: ntl.interleave(x, x), np.stack([_EXISTS, _EXISTS], -1).reshape(4, 16)),
        (lambda x: ntl.flip(x, 1), _EXISTS),
        (lambda x: x.reshape(2, 2, 8), _EXISTS.reshape(2, 2, 8)),
        (lambda x: ntl.ravel(x), _EXISTS.reshape(32)),
        (lambda x: ntl.split(ntl.join(x, x))[1], _EXISTS),
        (lambda x: ntl.sort(x), _EXISTS),
        (lambda x: ntl.topk(x, 2), _EXISTS[:, :2]),
        (lambda x: ntl.gather(x, _backwards(), 1), _EXISTS[:, ::-1]),
    ],
    ids="join interleave flip reshape ravel split sort topk gather".split(),
)
def test_where_an_element_goes_what_says_whether_it_exists_goes_too(moved, exists):
    found = moved(_loaded())

    assert np.array_equal(np.logical_and.reduce(np.broadcast_arrays(*found.validity)), exists)


def _backwards() -> Tile:
    return Tile(np.broadcast_to(np.arange(7, -1, -1, dtype=np.int32), (4, 8)), dtypes.int32)


def test_flip_reverses_what_exists():
    x = _loaded()

    assert np.array_equal(ntl.flip(x, 1).data[:3, :5], x.data[:3, 4::-1])


def test_what_is_made_exists_in_the_sizes_that_were_asked_for():
    assert ntl.sum(ntl.full((3, 5), 1, ntl.int32)).data == 15
    assert ntl.sum(ntl.zeros((3,), ntl.int32) + 1).data == 3
    assert ntl.sum(ntl.zeros_like(_loaded()) + 1).data == 15
