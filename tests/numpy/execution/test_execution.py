"""The executor on accesses made by hand: what names, assignments and helpers mean when run."""

from __future__ import annotations

import enum
import functools
import io
import pdb
import threading
import types

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed.backends.numpy.execution.addressing import Addressing
from ninetoothed.backends.numpy.execution.execute import Launch
from ninetoothed.backends.numpy.execution.tensors import Tensor, TensorPlan
from ninetoothed.backends.numpy.values.tile import SeveralElementsError, Tile
from ninetoothed.errors import (
    ApplicationError,
    ArgumentError,
    CompilationError,
    OutOfBoundsError,
)
from ninetoothed.language import dtypes
from ninetoothed.parsing import source as sources
from ninetoothed.symbols import expr


def tiled(array, block, middle=(), grid=None, other=None):
    """The plan for a vector in blocks, several of them in a middle level where it is given."""
    program = expr.index("program")
    selections = tuple(expr.index(f"selection_{dim}") for dim in range(len(middle)))
    lane = expr.index("lane")
    number = expr.as_symbol(0)
    for selection, size in zip(selections, middle, strict=True):
        number = number * size + selection
    position = (program * int(np.prod(middle, dtype=int)) + number) * block + lane
    access = types.SimpleNamespace(
        programs=(program,),
        selections=selections,
        lanes=(lane,),
        indices=(position,),
        conditions=(position < array.size, *([lane < block] if block & (block - 1) else [])),
    )
    levels = ((-1,), *((middle,) if middle else ()), (block,))
    parameter = types.SimpleNamespace(levels=levels)
    strides = (array.strides[0] // array.itemsize,)
    addressing = Addressing(parameter, access, {})
    dtype = dtypes.element_type(array.dtype)
    return TensorPlan("tensor", addressing, array.shape, strides, dtype, other, None)


def run(application, *arguments, block=4, programs=None, middle=(), other=None, checked=False):
    """Runs an application on arrays in blocks; anything else is handed through."""
    sizes = [argument.size for argument in arguments if isinstance(argument, np.ndarray)]
    if programs is None:
        programs = -(-max(sizes) // (block * int(np.prod(middle, dtype=int))))
    launch = Launch("kernel", application, (programs,), lambda symbol: {"SYMBOL": 7}[str(symbol)])
    handed = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            plan = tiled(argument, block, middle, other=other)
            argument = Tensor(plan, argument.ctypes.data, None, launch.running, checked)
            argument.memory.observers.append(launch.observe)
        elif isinstance(argument, float):
            argument = Tile.of(argument, dtypes.float32)
        handed.append(argument)
    launch.run(handed)


def floats(count):
    return np.arange(1, count + 1, dtype=np.float32)


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


def test_a_size_that_is_no_power_of_two_is_widened():
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
    assert seen[0].marks == ()


def test_an_unset_other_marks_the_lanes():
    seen = []

    def application(x):
        seen.append(x + 1)

    run(application, floats(3))
    assert [mark.tolist() for mark in seen[0].marks] == [[True, True, True, False]]


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


def double(value):
    return value + value


def store_doubled(place, value, factor=1):
    place = double(value) * factor


def accumulate(total, value):
    total = total + value


def accumulate_deeper(total, value):
    accumulate(total, value=value)


def test_a_helper_returns_a_value_in_the_middle_of_an_expression():
    def application(x, out):
        out = 1 + double(x) * 2

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, 1 + floats(4) * 4)


def test_a_tile_stays_that_tile_in_a_helper():
    def application(x, out):
        store_doubled(out, x, factor=5)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 10)


def test_a_selected_tile_stays_that_tile_in_a_helper():
    def application(x, out):
        for k in range(2):
            store_doubled(value=x[k], place=out[k])

    out = np.zeros(8, np.float32)
    run(application, floats(8), out, middle=(2,))
    np.testing.assert_array_equal(out, floats(8) * 2)


@pytest.mark.parametrize("helper", [accumulate, accumulate_deeper])
def test_a_local_variable_assigned_in_a_helper_is_rebound_at_the_caller(helper):
    def application(x, out):
        total = x * 0
        for _ in range(3):
            helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 3)


def test_a_helper_chosen_at_run_time_rebinds_too():
    def application(x, out):
        helper = (accumulate, double)[0]
        total = x * 0
        helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4))


def test_a_nested_function_and_a_lambda_see_the_tiles_of_the_function_around():
    def application(x, out):
        def shifted(by):
            return x + by

        scaled = lambda by: x * by  # noqa: E731
        out = shifted(2) + scaled(3)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 4 + 2)


def test_early_return_in_a_helper():
    def clipped(x, is_clipped):
        if is_clipped:
            return x * 0
        return x

    def application(x, out):
        out = clipped(x, False) + clipped(x, is_clipped=True)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4))


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


def mark(x, out):
    out = x * 0 + 7


def marking(x, out):
    mark(x, out)
    return ntl.sum(x) > 0


def is_positive(x):
    return ntl.sum(x) > 0


def is_marking(x, out):
    return marking(x, out)


@pytest.mark.parametrize("helper", [marking, is_marking])
@pytest.mark.parametrize("limit", [100.0, 5.0])
def test_a_helper_with_statements_is_called_where_python_would_call_it(helper, limit):
    """As on a device, where it stands in a branch."""

    def both(x, limit, seen, out):
        if ntl.sum(x) > limit and helper(x, seen):
            out = x

    def either(x, limit, seen, out):
        if ntl.sum(x) > limit or helper(x, seen):
            out = x

    for application in (both, either):
        seen, out = np.zeros(4, np.float32), np.zeros(4, np.float32)
        run(application, floats(4), limit, seen, out)
        is_greater = floats(4).sum() > limit
        is_called = is_greater if application is both else not is_greater
        np.testing.assert_array_equal(seen, np.full(4, 7 * is_called))
        holds = is_greater if application is both else True
        np.testing.assert_array_equal(out, floats(4) * holds)


def test_what_only_gives_a_value_is_taken_element_by_element():
    def application(x, out):
        found = ntl.sum(x) > 100.0 or (x > 1 and is_positive(x))
        out = ntl.where(found, x, 0.0)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * (floats(4) > 1))


def test_a_helper_with_statements_needs_one_number_before_it():
    def application(x, seen, out):
        if x > 1 and marking(x, seen):
            out = x

    with pytest.raises(SeveralElementsError, match="One number is needed"):
        run(application, floats(4), np.zeros(4, np.float32), np.zeros(4, np.float32))


def test_a_tile_without_an_attribute_says_so_at_the_line():
    def application(x, out):
        out = x.sums(0)

    with pytest.raises(
        CompilationError, match="A tile has no 'sums'. Did you mean 'sum'"
    ) as raised:
        run(application, floats(4), np.zeros(4, np.float32))
    assert raised.value.location.file == __file__
    assert "out = x.sums(0)" in str(raised.value)
    assert not hasattr(Tile.of(1.0), "sums")


def test_a_value_of_fewer_dimensions_is_stored_to_each_row():
    def rows(x, out):
        return x.tile((4,)), out.tile((3, 4)).squeeze(0)

    def copy(x, out):
        out = x  # noqa: F841

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x, out = torch.arange(6.0), torch.empty(3, 6)
    ninetoothed.make(rows, copy, (ninetoothed.Tensor(1), ninetoothed.Tensor(2)))(x, out)

    assert torch.equal(out, x.expand(3, 6))


def unknown_keyword(x, out):
    out = ntl.sum(x, dim=0)  # noqa: F841


def missing_argument(x, out):
    out = x + ntl.zeros(x.shape)  # noqa: F841


def not_the_language(x, out):
    ntl = x
    out = ntl.exp(x)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (unknown_keyword, r"keyword argument 'dim'. `ntl.sum` takes \(input, axis=None"),
        (missing_argument, r"'dtype'. `ntl.zeros` takes \(shape, dtype\)"),
        (not_the_language, r"exp\(\) takes 1 positional .* `ntl.exp` takes \(x\)"),
    ],
)
def test_a_call_with_the_wrong_arguments_says_what_the_function_takes(application, words):
    with pytest.raises(CompilationError, match=words) as raised:
        run(application, floats(4), np.zeros(4, np.float32))
    assert raised.value.location.file == __file__


def test_an_attribute_that_is_like_a_private_one_alone_names_no_other():
    def application(x, out):
        out = x.isinstance()

    with pytest.raises(CompilationError, match=r"A tile has no 'isinstance'. It has what Triton"):
        run(application, floats(4), np.zeros(4, np.float32))


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


def test_comprehensions_run_as_pythons():
    def application(x, out):
        parts = [double(x) * k for k in range(3) if k > 0 and k < 3]
        out = parts[0] + parts[1]

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 6)


def test_the_program_and_the_line_stand_in_an_error():
    def application(x, out):
        if ntl.program_id(0) == 1:
            raise ValueError("told so")
        out = x

    with pytest.raises(ValueError, match="told so") as raised:
        run(application, floats(8), np.zeros(8, np.float32))
    last = raised.traceback[-1]
    assert str(last.path) == __file__
    assert "told so" in str(last.statement)
    if hasattr(raised.value, "__notes__"):
        assert raised.value.__notes__ == ["in program (1,) of (2,) of kernel 'kernel'"]


def test_an_error_of_the_package_shows_the_users_line():
    def application(x, out):
        out = ntl.arange(0, 8)

    with pytest.raises(ApplicationError, match=r"(?s)shape \(8,\).*`tensor`.*out = ntl.arange"):
        run(application, floats(8), np.zeros(8, np.float32))


def test_a_level_must_be_selected_before_it_is_assigned():
    def application(x):
        x = 1

    with pytest.raises(ApplicationError, match=r"(?s)Select one with `tensor\[\.\.\.\]`.*x = 1"):
        run(application, floats(8), middle=(2,))


def test_too_many_indices_are_refused():
    def application(x):
        x[0, 1] = 1

    with pytest.raises(ApplicationError, match=r"(?s)takes 1 indices.*got 2.*x\[0, 1\] = 1"):
        run(application, floats(8), middle=(2,))


def test_an_index_must_be_an_integer():
    def application(x):
        x["k"] = 1

    with pytest.raises(ArgumentError, match="must be an integer, got str 'k'"):
        run(application, floats(8), middle=(2,))


def test_a_tile_is_not_iterable():
    def application(x):
        for row in x:
            pass

    with pytest.raises(ApplicationError, match="is not iterable"):
        run(application, floats(8), middle=(2,))


def test_a_name_that_does_not_resolve_fails_only_where_it_is_read():
    """`make` refuses it, located, before a kernel gets here: here it is a branch not taken."""

    def application(x, out):
        if False:
            out = undefined_double(x)  # noqa: F821
        else:
            out = x

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)

    assert np.array_equal(out, floats(4))


def test_a_generator_is_refused():
    def application(x):
        yield x

    with pytest.raises(ApplicationError, match="cannot yield"):
        run(application, floats(4))


def test_a_pointer_that_leaves_its_tensor_is_an_error():
    def application(x, out):
        out = ntl.load(x.data_ptr() + x.offsets() + 1)

    with pytest.raises(OutOfBoundsError, match=r"(?s)leaves `tensor`: offset 8.*0 to 7.*ntl.load"):
        run(application, floats(8), np.zeros(8, np.float32))


def test_a_breakpoint_stops_in_the_users_line(monkeypatch):
    output = io.StringIO()

    def application(x, out):
        local = x + 1
        breakpoint()
        out = local

    commands = io.StringIO("p local.data.tolist()\np x\nn\nn\nc\n")
    debugger = pdb.Pdb(stdin=commands, stdout=output, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    monkeypatch.setattr("sys.breakpointhook", lambda: debugger.set_trace(_frame_of("application")))
    run(application, floats(4), np.zeros(4, np.float32))
    text = output.getvalue()
    assert "test_execution.py" in text
    assert "out = local" in text
    assert "[2.0, 3.0, 4.0, 5.0]" in text
    assert "tensor of program (0,)" in text


def _frame_of(name):
    import sys

    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame


def test_a_print_shows_the_loaded_tile(capsys):
    def application(x):
        print("tile", x)

    run(application, floats(4))
    assert "float32[4]" in capsys.readouterr().out


def test_a_debugger_steps_line_by_line_without_added_stops():
    def application(x, flag, out):
        total = x * 0
        for k in range(2):
            if flag > k:
                total = total + x
        out = total

    lines = []
    first = application.__code__.co_firstlineno

    def trace(frame, event, argument):
        if frame.f_code.co_name != "application":
            return None
        if event == "line":
            lines.append(frame.f_lineno - first)
        return trace

    import sys

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        run(application, floats(4), 1.0, np.zeros(4, np.float32))
    finally:
        sys.settrace(previous)
    assert lines == [1, 2, 3, 4, 2, 3, 2, 5]


def test_the_users_function_is_not_changed():
    def application(x, out):
        out = x

    code = application.__code__
    run(application, floats(4), np.zeros(4, np.float32))
    assert application.__code__ is code


def test_threads_run_kernels_side_by_side():
    def application(x, out):
        out = x + ntl.program_id(0)

    results = {}

    def work(number):
        out = np.zeros(64, np.float32)
        for _ in range(5):
            run(application, floats(64) * number, out)
        results[number] = out

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(results[number], floats(64) * number + np.arange(64) // 4)


class Scaling:
    """A helper that is a method."""

    def __init__(self, factor):
        self.factor = factor

    def apply(self, total, x):
        total = total + x * self.factor

    def __call__(self, x):
        return x * self.factor


@pytest.mark.parametrize(
    "helper",
    [Scaling(3).apply, functools.partial(Scaling.apply, Scaling(3))],
    ids=["method", "partial"],
)
def test_a_method_and_a_partial_function_are_helpers(helper):
    def application(x, out):
        total = x * 0
        helper(total, x)
        out = total

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 3)


def test_a_function_defined_inside_is_rewritten_once(monkeypatch):
    read = []
    monkeypatch.setattr(
        sources, "read", lambda f, read=read, of=sources.read: (read.append(f), of(f))[1]
    )

    def application(x, out):
        def doubled(value):
            return value * 2

        out = doubled(x)

    out = np.zeros(64, np.float32)
    run(application, floats(64), out)
    np.testing.assert_array_equal(out, floats(64) * 2)
    assert [function.__name__ for function in read].count("doubled") == 1


def larger(a, b):
    return max(a, b) if b is not None and a is not None else a


def test_a_function_that_the_language_calls_back_is_rewritten_too():
    def application(x, out):
        def smaller(a, b):
            return min(a, b)

        highest = ntl.reduce(x, 0, larger)
        lowest = ntl.reduce(x, 0, smaller)
        out = x * 0 + highest * 10 + lowest + ntl.reduce(x, 0, lambda a, b: max(a, b))

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, [45, 45, 45, 45])


@pytest.mark.parametrize(("activation", "expected"), [(ntl.abs, 3), (double, -6)])
def test_a_function_in_an_object_of_the_closure(activation, expected):
    settings = types.SimpleNamespace(activation=activation)

    def application(x, out):
        out = settings.activation(x)

    out = np.zeros(4, np.float32)
    run(application, np.full(4, -3, np.float32), out)
    np.testing.assert_array_equal(out, [expected] * 4)


def test_keyword_only_parameters_and_defaults_of_helpers():
    def scaled(x, *, by=2, shift=0):
        return x * by + shift

    def application(x, out):
        out = scaled(x) + scaled(x, by=3, shift=x)

    out = np.zeros(4, np.float32)
    run(application, floats(4), out)
    np.testing.assert_array_equal(out, floats(4) * 6)


def test_starred_arguments_and_parameters():
    def total(*values, **named):
        result = named["start"]
        for value in values:
            result = result + value
        return result

    def application(x, y, out):
        pair = (x, y)
        out = total(*pair, x, start=y)

    out = np.zeros(4, np.float32)
    run(application, floats(4), floats(4) * 10, out)
    np.testing.assert_array_equal(out, floats(4) * 22)


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
    with pytest.raises(AssertionError, match="too large"):
        run(application, floats(4), 4.0)


def test_pythons_casts_take_tiles():
    seen = []

    def application(x):
        seen.append((int(x).dtype, float(int(x)).dtype, bool(x).dtype, int("3"), float(2)))

    run(application, floats(4))
    assert seen == [(dtypes.int64, dtypes.float32, dtypes.bool, 3, 2.0)]


def test_the_operands_of_a_tile_in_a_debugger_are_its_values():
    def application(x, out):
        reference = [x.source, out]
        assert reference[0].shape == (4,)
        inspect_references(x, out)

    def inspect_references(x, out):
        seen.append(references(locals()))

    seen = []
    run(application, floats(4), floats(4))
    (names,) = seen
    assert (names["x"] + names["out"]).data.tolist() == [2, 4, 6, 8]
    assert (2 * names["x"]).data.tolist() == [2, 4, 6, 8]
    assert (-names["x"]).data.tolist() == [-1, -2, -3, -4]
    assert (names["x"] < 3).data.tolist() == [True, True, False, False]


def references(names):
    return dict(names)
