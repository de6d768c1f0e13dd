"""The executor on accesses made by hand: what names, assignments and values mean when run."""

from __future__ import annotations

import enum

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed.errors import NineToothedError, OutOfBoundsError
from ninetoothed.language import dtypes
from ninetoothed.symbols import expr
from tests.numpy.execution.running import floats, run


def test_a_parameter_is_loaded_where_a_value_is_needed_and_stored_to_where_assigned():
    def application(x, y, scale, out):
        out = x * scale + y

    x, y, out = floats(10), floats(10) * 3, np.zeros(10, np.float32)
    run(application, x, y, 2.0, out)
    np.testing.assert_array_equal(out, x * 2 + y)


def test_augmented_assignment_of_a_parameter_loads_and_stores():
    def application(x):
        x += 1
        x *= x

    x = floats(6)
    run(application, x)
    np.testing.assert_array_equal(x, (floats(6) + 1) ** 2)


def test_lanes_beyond_the_source_are_neither_read_nor_written():
    def application(x, out):
        out = x + 1

    memory = floats(9)
    out = np.zeros(9, np.float32)
    run(application, memory[:5], out[:5])
    np.testing.assert_array_equal(out, [2, 3, 4, 5, 6, 0, 0, 0, 0])


def test_a_size_that_is_no_power_of_two_is_padded():
    seen = []

    def application(x, out):
        value = x
        seen.append((x.shape, value.shape, value.data.tolist()))
        out = value

    out = np.zeros(6, np.float32)
    run(application, floats(6), out, block=3)
    assert seen == [((3,), (4,), [1, 2, 3, 0]), ((3,), (4,), [4, 5, 6, 0])]
    np.testing.assert_array_equal(out, floats(6))


def test_other_fills_lanes_without_a_mark():
    seen = []

    def application(x):
        seen.append(x + 0)

    run(application, floats(3), other=9.0)
    assert seen[0].data.tolist() == [1, 2, 3, 9]
    assert seen[0].validity == ()


def test_an_unset_other_marks_the_lanes():
    seen = []

    def application(x):
        seen.append(x + 1)

    run(application, floats(3))
    assert [mask.tolist() for mask in seen[0].validity] == [[True, True, True, False]]


def test_middle_levels_are_selected_with_subscripts():
    def application(x, out):
        for k in range(x.shape[0]):
            row = x[k]
            out[k] = row + x.dtype.shape[0]
            out[k] += x[k].shape[0]

    out = np.zeros(16, np.float32)
    run(application, floats(16), out, middle=(2,))
    np.testing.assert_array_equal(out, floats(16) + 8)


def test_two_middle_dimensions_are_selected_at_once():
    def application(x, out):
        out[0, 1] = x[0, 1] * 2
        out[1, 0] = x[1, 0] * 3
        out[1, 1] = x[1, -1] * 4

    out = np.zeros(16, np.float32)
    run(application, floats(16), out, middle=(2, 2))
    factors = np.repeat([0, 2, 3, 4], 4)
    np.testing.assert_array_equal(out, floats(16) * factors)


def test_a_negative_constant_index_counts_from_the_end_but_not_a_computed_one():
    seen = []

    def application(x):
        seen.append((x[-1] + 0).data.tolist())
        for k in range(1):
            x[k - 1] = 0

    with pytest.raises(OutOfBoundsError, match=r"(?s)indexed with -1 in dimension 0.*x\[k - 1\]"):
        run(application, floats(8), middle=(2,), checked=True)
    assert seen == [[5, 6, 7, 8]]


def test_an_index_may_be_a_loaded_element():
    def application(order, x, out):
        out[0] = x[ntl.max(order[0])]

    out = np.zeros(8, np.float32)
    run(application, np.ones(8, np.int32), floats(8), out, middle=(2,))
    np.testing.assert_array_equal(out, [5, 6, 7, 8, 0, 0, 0, 0])


def test_an_application_may_have_keyword_only_parameters():
    def application(x, *, by, out):
        out = x * by

    out = np.zeros(4, np.float32)
    run(application, floats(4), 3, out)
    np.testing.assert_array_equal(out, floats(4) * 3)


def test_metadata_do_not_load():
    seen = []

    def application(x):
        seen.append((x.shape, x.ndim, x.dtype, x.stride(0), x.source.shape, x.source.strides))

    run(application, floats(20)[::2], programs=1)
    assert seen == [((4,), 1, dtypes.float32, 2, (10,), (2,))]


def test_offsets_are_linear_or_along_a_dimension():
    seen = []

    def application(x):
        seen.append((x.offsets(), x.offsets(0), x.offsets(-1)))

    run(application, floats(16)[::2])
    linear, along, last = seen[1]
    assert linear.data.tolist() == [8, 10, 12, 14]
    assert along.data.tolist() == last.data.tolist() == [4, 5, 6, 7]
    assert linear.dtype is dtypes.int32


def test_source_reads_and_writes_anywhere():
    def application(x, out):
        last = x.source.shape[0] - 1
        out.source[last - out.offsets(0)] = x.source[x.offsets(0)]

    out = np.zeros(8, np.float32)
    run(application, floats(8), out)
    np.testing.assert_array_equal(out, floats(8)[::-1])


def test_elements_through_pointers():
    def application(x, out):
        value = ntl.load(x.data_ptr() + x.offsets())
        ntl.store(out.data_ptr() + out.offsets(), value + 1)

    out = np.zeros(8, np.float32)
    run(application, floats(8), out)
    np.testing.assert_array_equal(out, floats(8) + 1)


def test_what_was_stored_is_read_back_rounded():
    def application(x, out):
        x = x / 3
        out = x

    x, out = floats(4).astype(np.float16), np.zeros(4, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, (floats(4) / 3).astype(np.float16).astype(np.float32))


def test_a_tuple_of_targets_may_hold_tiles():
    def application(x, out):
        (out, kept), x = (x + 1, 5), x * 2
        out += kept

    x, out = floats(4), np.zeros(4, np.float32)
    run(application, x, out)
    np.testing.assert_array_equal(out, floats(4) + 6)
    np.testing.assert_array_equal(x, floats(4) * 2)


def test_a_value_read_before_a_store_is_the_old_one():
    def application(x, out):
        old = x
        x = x * 0
        out = old

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4))


def test_a_scalar_parameter_is_rebound_as_a_local():
    def application(scale, out):
        scale = scale * 2
        out = ntl.full(out.shape, 0, ntl.float32) + scale

    out = np.zeros(4, np.float32)
    run(application, 3.0, out)
    np.testing.assert_array_equal(out, [6, 6, 6, 6])


def test_a_symbol_read_in_an_application_is_its_value():
    symbol = expr.Symbol("SYMBOL", constexpr=True)

    def application(out):
        out = ntl.full(out.shape, symbol, ntl.float32)

    out = np.zeros(4, np.float32)
    run(application, out)
    np.testing.assert_array_equal(out, [7, 7, 7, 7])


def test_and_or_not_of_tiles_are_taken_element_by_element():
    def application(x, out):
        is_inner = x > 1 and x < 4
        is_kept = is_inner or not x < 8
        out = ntl.where(is_kept, x, 0.0)

    out = np.zeros(8, np.float32)
    run(application, floats(8), out)
    np.testing.assert_array_equal(out, [0, 2, 3, 0, 0, 0, 0, 8])


def test_a_chain_of_comparisons_holds_where_each_does():
    def application(x, out):
        out = ntl.where(1 < x <= 3 < 4, x, 0.0)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, [0, 2, 3, 0])


def test_a_value_of_fewer_dimensions_is_stored_to_each_row():
    def rows(x, out):
        return x.tile((4,)), out.tile((3, 4)).squeeze(0)

    def copy(x, out):
        out = x  # noqa: F841

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x, out = torch.arange(6.0), torch.empty(3, 6)
    ninetoothed.make(rows, copy, (ninetoothed.Tensor(1), ninetoothed.Tensor(2)))(x, out)

    assert torch.equal(out, x.expand(3, 6))


def test_and_or_not_of_python_values_are_pythons():
    seen = []

    def application(x):
        seen.append((0 or "last", 0 and "never", not 3, 2 and 3 and 4))

    run(application, floats(4))
    assert seen == [("last", 0, False, 4)]


def test_pythons_max_and_min_take_tiles():
    def application(x, out):
        out = max(x, 2.0) + min(x, 3.0) + max(1, 2)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, np.maximum(floats(4), 2) + np.minimum(floats(4), 3) + 2)


def test_a_tuple_of_tiles_that_is_taken_apart_holds_values():
    def swap(*tiles):
        first, second = tiles
        tiles[0] * 1
        return second, first

    def application(x, y):
        x, y = swap(x, y)

    x, y = floats(4), floats(4) * 10
    run(application, x, y)
    np.testing.assert_array_equal(x, floats(4) * 10)
    np.testing.assert_array_equal(y, floats(4))


class Mode(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


def test_members_of_enumerations_compare_and_count_as_their_values():
    def application(x, mode, out):
        if mode is Mode.TRIPLE:
            out = x * Mode.TRIPLE + Mode.DOUBLE

    out = np.zeros(4, np.float32)
    run(application, floats(4), Mode.TRIPLE, out)
    np.testing.assert_array_equal(out, floats(4) * 3 + 2)


def test_an_assertion_holds_where_all_elements_do():
    def application(x, limit):
        assert x < limit, "too large"

    run(application, floats(4), 5.0)
    with pytest.raises(NineToothedError, match="too large"):
        run(application, floats(4), 4.0)


def test_pythons_casts_take_tiles():
    seen = []

    def application(x):
        seen.append((int(x).dtype, float(int(x)).dtype, bool(x).dtype, int("3"), float(2)))

    run(application, floats(4))
    assert seen == [(dtypes.int64, dtypes.float32, dtypes.bool, 3, 2.0)]
