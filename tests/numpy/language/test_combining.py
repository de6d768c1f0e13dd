"""``reduce``, ``associative_scan`` and ``map_elementwise`` with functions of the user's."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.language.combining import _TRITONS
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import NineToothedError
from ninetoothed.language import dtypes

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton to make a jit function"
)


def _tile(*shape: int) -> Tile:
    values = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    return Tile(values, dtypes.float32)


def _affine(scale, offset, next_scale, next_offset):
    """The composition of two affine maps: associative, but not commutative."""
    return scale * next_scale, offset * next_scale + next_offset


def _greater(a, b):
    if a > b:
        return a
    return b


def _greater_with_index(value, index, other_value, other_index):
    is_first = value > other_value or (value == other_value and index < other_index)
    return ntl.where(is_first, value, other_value), ntl.where(is_first, index, other_index)


def _folded(scale, offset):
    total, shift = 1.0, 0.0
    states = []
    for s, o in zip(scale.tolist(), offset.tolist(), strict=True):
        total, shift = total * s, shift * s + o
        states.append((total, shift))
    return np.array(states)


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_reduce_keeps_the_order_of_what_it_combines(size):
    scale, offset = _tile(size), _tile(size) + 1

    found = ntl.reduce((scale, offset), 0, _affine)

    wanted = _folded(scale.data, offset.data)[-1]
    np.testing.assert_allclose([float(item) for item in found], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_a_scan_gives_every_state(size):
    scale, offset = _tile(size), _tile(size) + 1

    found = ntl.associative_scan((scale, offset), 0, _affine)

    wanted = _folded(scale.data, offset.data)
    np.testing.assert_allclose(
        np.stack([item.data for item in found], 1), wanted, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reduce_works_along_any_axis(axis):
    x = _tile(4, 8)

    found = ntl.reduce(x, axis, lambda a, b: a + b)
    kept = ntl.reduce(x, axis, lambda a, b: a + b, keep_dims=True)

    np.testing.assert_allclose(found.data, x.data.sum(axis), rtol=1e-5)
    np.testing.assert_allclose(kept.data, x.data.sum(axis, keepdims=True), rtol=1e-5)


def test_reduce_of_everything():
    x = _tile(4, 8)

    assert ntl.reduce(x, None, ntl.maximum).data == x.data.max()
    assert ntl.reduce(x, None, ntl.maximum, keep_dims=True).shape == (1, 1)


def test_a_function_that_branches_is_called_element_by_element():
    x = _tile(4, 8)

    assert np.array_equal(ntl.reduce(x, 1, _greater).data, x.data.max(1))
    assert np.array_equal(
        ntl.associative_scan(x, 1, _greater).data, np.maximum.accumulate(x.data, 1)
    )


def test_and_and_or_work_on_whole_tiles():
    x = _tile(4, 8)
    index = ntl.broadcast_to(ntl.arange(0, 8)[None, :], 4, 8)

    value, place = ntl.reduce((x, index), 1, _greater_with_index)

    assert np.array_equal(value.data, x.data.max(1))
    assert np.array_equal(place.data, x.data.argmax(1))


@needs_triton
def test_tritons_own_combine_functions_are_taken():
    from triton.language import standard

    x = _tile(4, 8)
    index = ntl.broadcast_to(ntl.arange(0, 8)[None, :], 4, 8)

    total = ntl.reduce(x, 1, standard._sum_combine)
    greatest = ntl.reduce(x, 1, standard._elementwise_max)
    _, place = ntl.reduce((x, index), 1, standard._argmax_combine_tie_break_left)
    _, lowest = ntl.reduce((x, index), 1, standard._argmin_combine_tie_break_fast)

    np.testing.assert_allclose(total.data, x.data.sum(1), rtol=1e-5)
    assert np.array_equal(greatest.data, x.data.max(1))
    assert np.array_equal(place.data, x.data.argmax(1))
    assert np.array_equal(lowest.data, x.data.argmin(1))


@needs_triton
def test_jit_functions_of_the_users_are_taken():
    import triton
    import triton.language as tl

    @triton.jit
    def log_add(a, b):
        high = tl.maximum(a, b)
        return high + tl.log(tl.exp(a - high) + tl.exp(b - high))

    x = _tile(4, 8)

    found = ntl.reduce(x, 1, log_add)

    np.testing.assert_allclose(found.data, np.log(np.exp(x.data).sum(1)), rtol=1e-5)


def test_every_one_of_tritons_combine_functions_is_known():
    standard = pytest.importorskip("triton.language.standard", reason="needs Triton to compare")
    own = {n for n in dir(standard) if n.startswith("_") and "combine" in n} - {
        "_argmax_combine",
        "_argmin_combine",
    }

    assert own <= _TRITONS.keys()


def test_a_scan_in_reverse_begins_at_the_end():
    x = _tile(16)

    found = ntl.associative_scan(x, 0, lambda a, b: a + b, reverse=True)

    np.testing.assert_allclose(found.data, np.flip(np.cumsum(np.flip(x.data))), rtol=1e-4)


def test_results_take_the_type_of_what_is_combined():
    x = Tile(np.full(8, 100, np.int8), dtypes.int8)

    found = ntl.reduce(x, 0, lambda a, b: a.to(ntl.int32) + b)

    assert found.dtype is dtypes.int8 and found.data == np.int64(800).astype(np.int8)


def test_a_wrong_number_of_results_is_refused():
    with pytest.raises(NineToothedError, match="2 values must return as many, but it returned 1"):
        ntl.reduce((_tile(4), _tile(4)), 0, lambda a, b, c, d: a)


def test_tiles_of_several_shapes_are_refused():
    with pytest.raises(NineToothedError, match=r"one shape, but got \[\(4,\), \(8,\)\]"):
        ntl.associative_scan((_tile(4), _tile(8)), 0, _affine)


def test_map_elementwise_calls_the_function_with_numbers():
    x = _tile(4, 8)

    def signed(value, limit):
        if value > limit:
            return ntl.exp(value)
        return value * 2

    found = ntl.map_elementwise(signed, x, 0.5)

    np.testing.assert_allclose(found.data, np.where(x.data > 0.5, np.exp(x.data), 2 * x.data))


def test_map_elementwise_returns_as_many_tiles_as_the_function():
    x = _tile(8)

    whole, rest = ntl.map_elementwise(lambda v: (ntl.floor(v), v - ntl.floor(v)), x)

    np.testing.assert_allclose(whole.data + rest.data, x.data, rtol=1e-6)
    assert np.array_equal(whole.data, np.floor(x.data))


def test_map_elementwise_packs():
    x = _tile(8)

    found = ntl.map_elementwise(lambda a, b: (b, a), x, pack=2)

    assert np.array_equal(found.data, x.data.reshape(4, 2)[:, ::-1].reshape(-1))
