"""LANGUAGE.md, "Application": one section of tests a bullet."""

from __future__ import annotations

import enum
import math
import re
import types

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError, UnresolvedNameError
from tests.contract.kernels import (
    B,
    arange,
    blocks_of_rows,
    empty,
    matrices,
    rows,
    run,
    tiles,
    vectors,
)


def loads_of(kernel, parameter):
    """How often the emitted source loads from a parameter."""
    return len(re.findall(rf"tl\.load\(\s*{parameter}_ptr", kernel.source))


def stores_of(kernel, parameter):
    return len(re.findall(rf"tl\.store\(\s*{parameter}_ptr", kernel.source))


# "a parameter names its second level: the tile."


def test_a_parameters_shape_is_the_tiles_shape():
    """Its `.shape` is the tile's shape"""

    def application(x, y):
        y = x * 0 + x.shape[0] * 10 + x.shape[1]  # noqa: F841

    y = empty(3, 5)
    ninetoothed.make(lambda x, y: (x.tile((2, 4)), y.tile((2, 4))), application, matrices(2))(
        arange(3, 5), y
    )

    assert torch.equal(y, torch.full((3, 5), 24.0))


def test_a_parameters_dtype_is_the_element_type():
    """its `.dtype` is the element type"""

    def application(x, y):
        if x.dtype is ntl.float16:
            y = (x + ntl.cast(1, x.dtype)).to(y.dtype)  # noqa: F841
        else:
            y = x * 0  # noqa: F841

    assert torch.equal(run(application, arange(5, dtype=torch.float16), empty(5)), arange(5) + 1)
    assert torch.equal(run(application, arange(5), empty(5)), torch.zeros(5))


def test_where_the_elements_are_tiles_dtype_is_that_inner_level():
    """or, where the tile's elements are tiles again, that inner level (`x.dtype.shape`,
    `x.dtype.dtype`)"""

    def application(x, y):
        for k in range(x.shape[0]):
            y[k] = x[k] + ntl.cast(x.dtype.shape[0], x.dtype.dtype)

    y = run(application, arange(6), empty(6), arrangement=blocks_of_rows)
    assert torch.equal(y, arange(6) + 4)


def nested_blocks(x, y):
    """(1,) programs of 2 blocks of rows of 3 blocks of 2 elements."""

    def arranged(tensor):
        tensor = tensor.tile((1, 2)).tile((1, 3)).tile((2, 1))
        tensor.dtype.dtype = tensor.dtype.dtype.squeeze(0)
        tensor.dtype.dtype.dtype = tensor.dtype.dtype.dtype.squeeze(0)
        return tensor

    return arranged(x), arranged(y)


def test_the_same_holds_for_an_element():
    """The same holds for `x[k]`."""

    def application(x, y):
        for i in range(x.shape[0]):
            row = x[i, 0]
            for j in range(row.shape[0]):
                size = row.dtype.shape[0]
                y[i, 0][j] = row[j] + ntl.cast(size * 100 + row.shape[0], row.dtype.dtype)

    y = run(application, arange(2, 6), empty(2, 6), arrangement=nested_blocks)
    assert torch.equal(y, arange(2, 6) + 203)


# "reading a parameter loads it"


def test_reading_a_parameter_loads_it_and_assigning_stores():
    """reading a parameter loads it; … assigning to a parameter, or to `x[k]`, stores"""

    def application(x, y):
        value = x
        y = value * value  # noqa: F841

    assert torch.equal(run(application, arange(7), empty(7)), arange(7) ** 2)


def test_a_subscript_selects_in_a_level_above_the_innermost():
    """`x[k]`, `x[i, j]` select in a level above the innermost and load (or name) that element"""

    def application(x, y):
        first = x[0]
        y[1] = first
        y[0] = x[1]

    y = run(application, arange(8), empty(8), arrangement=blocks_of_rows)
    assert torch.equal(y, arange(8).roll(4))


def grid_of_blocks(x, y):
    return x.tile((2, 2)).tile((-1, -1)), y.tile((2, 2)).tile((-1, -1))


def test_several_indices_select_too():
    def application(x, y):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] + i * 10 + j

    y = run(application, arange(4, 6), empty(4, 6), arrangement=grid_of_blocks)
    offsets = torch.arange(2).repeat_interleave(2)[:, None] * 10 + torch.arange(
        3
    ).repeat_interleave(2)
    assert torch.equal(y, arange(4, 6) + offsets)


def test_a_middle_levels_element_may_be_named_step_by_step():
    def application(x, y):
        for i in range(x.shape[0]):
            for j in range(x[i, 0].shape[0]):
                y[i, 0][j] = x[i, 0][j] * 2

    y = run(application, arange(2, 6), empty(2, 6), arrangement=nested_blocks)
    assert torch.equal(y, arange(2, 6) * 2)


@pytest.mark.parametrize("kind", ["expression", "loaded", "tile"])
def test_an_index_is_any_integer_expression(kind):
    """an index is any integer expression, a loaded value or a one-element tile too"""

    def expression(x, which, y):
        y = x[x.shape[0] - 1 - ntl.program_id(0)]  # noqa: F841

    def loaded(x, which, y):
        y = x[which]  # noqa: F841

    def one_element(x, which, y):
        y = x[ntl.full((1,), 2, dtype=ntl.int32)]  # noqa: F841

    def arrangement(x, which, y):
        return x.tile((4,)).tile((-1,)), which, y.tile((4,))

    application = {"expression": expression, "loaded": loaded, "tile": one_element}[kind]
    y = empty(4)
    ninetoothed.make(arrangement, application, vectors(3))(arange(12), torch.tensor([2]), y)
    assert torch.equal(y, arange(12)[8:])


def test_augmented_assignment_is_a_load_an_operation_and_a_store():
    """`x += y` on a parameter is a load, an add and a store."""

    def application(x, y):
        y += x
        y *= 2

    y = arange(7)
    run(application, arange(7), y)
    assert torch.equal(y, arange(7) * 4)


def test_augmented_assignment_of_an_element():
    def application(x, y):
        for k in range(x.shape[0]):
            y[k] += x[k]

    y = arange(7)
    run(application, arange(7), y, arrangement=blocks_of_rows)
    assert torch.equal(y, arange(7) * 2)


def test_a_load_is_done_once():
    """A load is done once and reused until a store could have changed it."""

    def application(x, y):
        y = x * x + x  # noqa: F841

    kernel = ninetoothed.make(tiles, application, vectors(2))
    assert loads_of(kernel, "x") == 1

    y = empty(5)
    kernel(arange(5), y, B=4)
    assert torch.equal(y, arange(5) ** 2 + arange(5))


def test_a_store_could_have_changed_it():
    """until a store could have changed it"""

    def application(x, y):
        before = x
        y = before + 1
        y = x + y  # noqa: F841

    # Both parameters are the same memory.
    shared = arange(5)
    ninetoothed.make(tiles, application, vectors(2))(shared, shared, B=4)
    assert torch.equal(shared, (arange(5) + 1) * 2)


def test_what_was_stored_reads_as_its_element_type_rounded_it():
    def application(x, y):
        y = x / 3
        y = y * 3  # noqa: F841

    y = run(application, arange(7), empty(7, dtype=torch.float16))
    third = (arange(7) / 3).half()
    assert torch.equal(y, (third * 3).half())


# "x.offsets()"


def test_offsets_is_the_linear_offset_in_the_source():
    """`x.offsets()` is the linear offset of each element in the source"""

    def application(x, y):
        y = x.offsets()  # noqa: F841

    x, y = arange(6, 10)[::2, 1::3], empty(3, 3, dtype=torch.int64)
    ninetoothed.make(lambda x, y: (x.tile((2, 2)), y.tile((2, 2))), application, matrices(2))(x, y)
    assert torch.equal(y, torch.arange(3)[:, None] * 20 + torch.arange(3) * 3)


@pytest.mark.parametrize(("dim", "expected"), [(0, 0), (1, 1), (-1, 1), (-2, 0)])
def test_offsets_of_a_dimension_is_the_index_along_it(dim, expected):
    """`x.offsets(d)` its index along source dimension `d` … negative `d` counts from the end"""

    def along_rows(x, y):
        y = x.offsets(0)[:, None] + ntl.zeros(x.shape, dtype=ntl.int32)  # noqa: F841

    def along_the_last_but_one(x, y):
        y = x.offsets(-2)[:, None] + ntl.zeros(x.shape, dtype=ntl.int32)  # noqa: F841

    def along_columns(x, y):
        y = x.offsets(1)[None, :] + ntl.zeros(x.shape, dtype=ntl.int32)  # noqa: F841

    def along_the_last(x, y):
        y = x.offsets(-1)[None, :] + ntl.zeros(x.shape, dtype=ntl.int32)  # noqa: F841

    application = {0: along_rows, 1: along_columns, -1: along_the_last, -2: along_the_last_but_one}
    y = empty(3, 5, dtype=torch.int64)
    ninetoothed.make(lambda x, y: (x.tile((2, 2)), y.tile((2, 2))), application[dim], matrices(2))(
        arange(3, 5), y
    )
    indices = torch.arange(3)[:, None].expand(3, 5), torch.arange(5).expand(3, 5)
    assert torch.equal(y, indices[expected])


def test_offsets_of_an_element():
    """both also on `x[k]`"""

    def application(x, y):
        for k in range(x.shape[0]):
            y[k] = x[k].offsets() * 100 + x[k].offsets(0)

    y = run(application, arange(14)[::2], empty(7, dtype=torch.int64), arrangement=blocks_of_rows)
    assert torch.equal(y, torch.arange(7) * 201)


# "x.source is the whole tensor"


def test_source_has_the_whole_tensors_shape_and_strides():
    """`.shape[d]`, `.stride(d)`"""

    def application(x, y):
        y = (  # noqa: F841
            x.source.shape[0] * 1000 + x.source.shape[-1] * 100 + x.source.stride(0) * 10
        ) + x.source.stride(-1)

    y = empty(3, 4, dtype=torch.int64)
    x = arange(3, 8)[:, ::2]
    ninetoothed.make(lambda x, y: (x.tile((2, 2)), y.tile((2, 2))), application, matrices(2))(x, y)
    assert torch.equal(y, torch.full((3, 4), 3482))


def test_source_loads_and_stores_arbitrary_elements():
    """`x.source[i, j]` with index tiles loads or stores arbitrary elements"""

    def application(x, index, y):
        row = ntl.load(index.data_ptr() + index.offsets())
        y.source[row, ntl.zeros_like(row)] = x.source[row, ntl.full(row.shape, 1, ntl.int64)]

    def arrangement(x, index, y):
        return x.tile((-1, -1)).squeeze(1), index.tile((-1,)), y.tile((-1, -1)).squeeze(1)

    x, y, index = arange(5, 2), empty(5, 1), torch.tensor([4, 0, 2, 1])
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1), Tensor(2)))(x, index, y)
    expected = empty(5, 1)
    expected[index, 0] = x[index, 1]
    assert torch.equal(y, expected)


def test_data_ptr_and_stride_mean_the_sources():
    """`x.data_ptr()` and `x.stride(d)` mean the source's."""

    def application(x, y):
        pointers = x.source.data_ptr() + x.offsets(0) * x.stride(0)
        again = x.data_ptr() + x.offsets()
        y = ntl.load(pointers, mask=x.offsets(0) < x.source.shape[0]) + ntl.load(  # noqa: F841
            again, mask=x.offsets(0) < x.source.shape[0]
        )

    y = run(application, arange(14)[::2], empty(7))
    assert torch.equal(y, arange(14)[::2] * 2)


# "for, while, if, local variables, …"


def test_for_over_a_symbolic_range():
    """`for k in range(x.shape[0])`"""

    def application(x, y):
        total = ntl.zeros(x.dtype.shape, dtype=ntl.float32)
        for k in range(x.shape[0]):
            total += x[k]
        y = total  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y.tile((4,))

    y = empty(4)
    ninetoothed.make(arrangement, application, vectors(2))(arange(12), y)
    assert torch.equal(y, arange(3, 4).sum(0))


@pytest.mark.parametrize("arguments", [(2, 5), (0, 6, 2), (5, -1, -1)], ids=str)
def test_for_with_start_and_step(arguments):
    start, stop, step = (*arguments, 1)[:3]

    def application(x, y):
        total = 0
        for k in range(start, stop, step):
            total = total * 7 + k
        y = x * 0 + total  # noqa: F841

    expected = 0
    for k in range(*arguments):
        expected = expected * 7 + k
    assert torch.equal(run(application, arange(3), empty(3)), torch.full((3,), float(expected)))


def test_while():
    """`while`"""

    def application(x, limit, y):
        value = 1
        steps = 0
        while value < limit:
            value *= 2
            steps += 1
        y = x * 0 + steps  # noqa: F841

    assert torch.equal(run(application, arange(3), 100, empty(3)), torch.full((3,), 7.0))


def test_if_on_a_run_time_scalar():
    """`if` on run-time scalars"""

    def application(x, flag, y):
        if flag > 0:
            y = x  # noqa: F841
        elif flag == 0:
            y = x * 0  # noqa: F841
        else:
            y = -x  # noqa: F841

    for flag in (2, 0, -1):
        y = run(application, arange(5), flag, empty(5))
        assert torch.equal(y, arange(5) * (flag > 0) - arange(5) * (flag < 0))


def test_if_on_a_constant_has_only_the_taken_branch():
    """and on compile-time constants (then only the taken branch exists)"""
    has_bias = False

    def application(x, causal, y):
        if has_bias:
            y = x + no_such_name  # noqa: F821, F841
        elif x.shape[0] > 100:
            y = ntl.no_such_function(x)  # noqa: F841
        else:
            y = x  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles4, application, (Tensor(1), True, Tensor(1)))(arange(5), y)
    assert torch.equal(y, arange(5))


def tiles4(x, constant, y):
    return x.tile((4,)), constant, y.tile((4,))


def test_if_on_a_constant_of_the_call_has_only_the_taken_branch():
    """What the other branch would do to shapes and types does not matter."""

    def application(x, reduces, y):
        if reduces:
            value = ntl.sum(x, axis=0)
        else:
            value = ntl.trans(ntl.expand_dims(x, 0))
            value = ntl.reshape(value, (4,))
        y = value  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    for reduces in (True, False):
        y = empty(8)
        ninetoothed.make(tiles4, application, tensors)(arange(8), reduces, y)
        sums = arange(8).reshape(2, 4).sum(1).repeat_interleave(4)
        assert torch.equal(y, sums if reduces else arange(8))


def test_local_variables_and_constexpr_annotations():
    """local variables, `v: ntl.constexpr = …`"""

    def application(x, y):
        half: ntl.constexpr = x.shape[0] // 2
        low = ntl.arange(0, half)
        y = x + ntl.sum(low)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 1)


def test_tuples():
    """tuples"""

    def application(x, y):
        pair = (x + 1, x + 2)
        a, (b, c) = pair[0], (pair[1], 3)
        a, b = b, a
        y = a * 10 + b + c  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), (x + 2) * 10 + x + 1 + 3)


def test_chained_and_nested_calls():
    """chained and nested calls"""

    def application(x, y):
        y = ntl.exp(ntl.maximum(x, 0.0)).to(ntl.float32).sum(axis=0).to(y.dtype)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y

    y = empty(2)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(-arange(8), y)
    assert torch.equal(y, torch.full((2,), 4.0))


def test_a_bare_expression():
    """a bare expression"""

    def application(x, y):
        """A docstring."""
        x + 1
        ntl.atomic_add(y.data_ptr() + y.offsets(), x, mask=y.offsets() < y.source.shape[0])

    y = arange(5)
    run(application, arange(5), y)
    assert torch.equal(y, arange(5) * 2)


def test_early_return_and_conditional_expressions():
    def application(x, flag, y):
        if flag:
            y = x + 1
            return
        y = x if x.shape[0] == 4 else x * 2  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    for flag in (True, False):
        y = empty(5)
        ninetoothed.make(tiles, application, tensors)(arange(5), flag, y, B=4)
        assert torch.equal(y, arange(5) + flag)


# "a helper function written in Python is inlined where it is called"


def scaled(value, factor=2, *, offset=0):
    return value * factor + offset


def test_a_helper_takes_positional_and_keyword_arguments_and_defaults():
    """with positional and keyword arguments, defaults"""

    def application(x, y):
        y = scaled(x) + scaled(x, 3) + scaled(offset=1, value=x, factor=4)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) * 9 + 1)


def absolute(value, is_plain):
    if is_plain:
        return value
    negative = -value
    return ntl.maximum(value, negative)


def test_a_helpers_early_returns_and_structure_are_kept():
    """early structure kept"""

    def application(x, y):
        y = absolute(x, False) + absolute(x, True)  # noqa: F841

    x = arange(5) - 3
    assert torch.equal(run(application, x, empty(5)), x.abs() + x)


def test_a_helper_may_loop_in_the_middle_of_an_expression():
    """in the middle of an expression too"""

    def power(value, count):
        result = value * 0 + 1
        for _ in range(count):
            result *= value
        return result

    def application(x, y):
        y = 1 + power(x, 2) * power(x + power(x, 1), 1)  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), 1 + x**2 * (2 * x))


def test_statements_before_a_helper_in_an_expression_are_kept_in_order():
    def store(tile, value):
        tile = value  # noqa: F841

    def stored(tile, value):
        store(tile, value)
        return value + 1

    def application(x, y):
        y = x
        y = stored(y, y * 2) + y * 10  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), x * 2 + 1 + x * 2 * 10)


def test_assigning_a_parameter_tile_in_a_helper_stores():
    """A parameter tile handed to a helper stays that tile: assigning it in the helper stores"""

    def store(destination, value):
        destination = value  # noqa: F841

    def application(x, y):
        store(y, x + 1)

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 1)


def test_a_helper_that_returns_a_value_rebinds_its_own_name():
    """In a helper that returns a value, assigning a parameter rebinds the helper's own name"""

    def halved(value, times):
        for _ in range(times):
            value = value / 2
        return value

    def application(x, n, y):
        v = x + 0
        y = halved(x, n) + halved(v, n) + x + v  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, 2, empty(5)), x / 2 + x * 2)
    assert torch.equal(x, arange(5))


def test_an_element_handed_to_a_helper_stays_that_element():
    def add(destination, value):
        destination += value

    def application(x, y):
        for k in range(x.shape[0]):
            add(y[k], x[k])

    y = arange(7)
    run(application, arange(7), y, arrangement=blocks_of_rows)
    assert torch.equal(y, arange(7) * 2)


def test_assigning_a_local_variable_in_a_helper_rebinds_the_callers():
    """handing a local variable and assigning it rebinds the caller's variable."""

    def accumulate(total, value):
        total += value

    def reset(total):
        total = total * 0  # noqa: F841

    def application(x, y):
        total = ntl.zeros(x.shape, dtype=ntl.float32)
        accumulate(total, x)
        accumulate(total, x)
        other = total
        reset(other)
        y = total + other  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) * 2)


def test_helpers_may_call_helpers_and_share_names():
    def inner(value):
        x = value + 1
        return x

    def outer(value):
        x = inner(value) * 2
        return x + inner(value)

    def application(x, y):
        total = outer(x)
        y = total + x  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), (x + 1) * 3 + x)


def test_functions_decorated_with_triton_jit_may_be_called():
    """Functions decorated with `triton.jit` may be called."""
    pytest.importorskip("triton")
    from tests.contract.triton_functions import plus_product

    def application(x, y):
        y = plus_product(x, x, 2)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + arange(5) * 2)


# "names resolve as Python would"


OFFSET = 7


class Mode(enum.IntEnum):
    FAST = 1
    EXACT = 2


class Activation(enum.Enum):
    RELU = "relu"
    NONE = "none"


def test_closures():
    """closures"""
    for factor in (2, 3):

        def application(x, y):
            y = x * factor  # noqa: F841, B023

        assert torch.equal(run(application, arange(5), empty(5)), arange(5) * factor)


def test_module_globals():
    """module globals"""

    def application(x, y):
        y = x + OFFSET  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 7)


def test_math_pi():
    """`math.pi`"""

    def application(x, y):
        y = x * math.pi  # noqa: F841

    torch.testing.assert_close(run(application, arange(5), empty(5)), arange(5) * math.pi)


def test_enum_members():
    """enum members"""

    def application(x, mode, activation, y):
        value = x
        if mode == Mode.EXACT:
            value = value + Mode.EXACT
        if activation is Activation.RELU:
            y = ntl.maximum(value, 0.0)  # noqa: F841
        else:
            y = value  # noqa: F841

    tensors = (Tensor(1), *(Tensor(0, constexpr=True),) * 2, Tensor(1))
    kernel = ninetoothed.make(tiles, application, tensors)
    x = arange(5) - 5
    for mode in Mode:
        for activation in Activation:
            y = empty(5)
            kernel(x, mode, activation, y, B=4)
            expected = x + 2 if mode is Mode.EXACT else x
            assert torch.equal(y, expected.relu() if activation is Activation.RELU else expected)


def test_default_arguments():
    """default arguments"""

    def application(x, y, factor=3, offset=OFFSET):
        y = x * factor + offset  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles, application, vectors(2))(arange(5), y, B=4)
    assert torch.equal(y, arange(5) * 3 + 7)


def test_a_name_that_is_nowhere_is_a_located_error():
    def application(x, y):
        y = x * facotr  # noqa: F821, F841

    factor = 2
    with pytest.raises(UnresolvedNameError, match="'facotr'") as caught:
        ninetoothed.make(tiles, application, vectors(2))
    assert caught.value.location.file == __file__
    assert "y = x * facotr" in str(caught.value)
    assert factor == 2


def test_constexpr_symbols_resolve_too():
    scale = Symbol("SCALE", constexpr=True)

    def application(x, y):
        y = x * scale + B  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles, application, vectors(2))(arange(5), y, B=4, SCALE=3)
    assert torch.equal(y, arange(5) * 3 + 4)


# "ntl.X is every public function, type and constant of Triton's language"


def test_every_name_of_tritons_language():
    """`ntl.X` is every public function, type and constant of Triton's language under the same name"""
    triton_language = pytest.importorskip("triton.language")
    missing = []
    for name in triton_language.__all__:
        if not hasattr(ntl, name):
            missing.append(name)
    assert missing == []


def test_libdevice():
    """and `ntl.libdevice.X`"""

    def application(x, y):
        y = ntl.libdevice.tanh(x) + ntl.libdevice.pow(x, 2.0)  # noqa: F841

    x = arange(5) / 5
    torch.testing.assert_close(run(application, x, empty(5)), x.tanh() + x**2)


def test_methods_and_subscripts_of_values():
    """`tile.to(dtype)`, `tile.T`, `tile[:, None]`, `x.dtype is ntl.float16` work as there"""

    def application(x, y):
        turned = x.T.to(ntl.float16)
        column = ntl.sum(turned, axis=1)
        y = (column[:, None] + ntl.zeros((4, 4), ntl.float16)).to(ntl.float32).T  # noqa: F841

    y = empty(4, 4)
    ninetoothed.make(lambda x, y: (x.tile((4, 4)), y.tile((4, 4))), application, matrices(2))(
        arange(4, 4), y
    )
    assert torch.equal(y, arange(4, 4).sum(0).expand(4, 4))


def test_a_name_that_triton_does_not_have_is_an_error_with_the_near_one():
    def application(x, y):
        y = ntl.sqrtt(x)  # noqa: F841

    with pytest.raises(ApplicationError, match="sqrtt.*sqrt"):
        ninetoothed.make(tiles, application, vectors(2))


# "a parameter that the compiled program never touches …"


def test_an_untouched_parameter_may_be_given_any_argument_with_a_shape():
    """a parameter that the compiled program never touches may be given any argument with a shape"""

    def application(x, bias, has_bias, y):
        if has_bias:
            y = x + bias  # noqa: F841
        else:
            y = x  # noqa: F841

    tensors = (Tensor(2), Tensor(2), Tensor(0, constexpr=True), Tensor(2))
    kernel = ninetoothed.make(rows, application, tensors)
    for bias in (
        torch.empty(3, 0, dtype=torch.int8),
        torch.empty(3, 5, device="meta"),
        np.empty((3, 5)),
        types.SimpleNamespace(shape=(3, 5)),
    ):
        y = empty(3, 5)
        kernel(arange(3, 5), bias, False, y)
        assert torch.equal(y, arange(3, 5))
    kernel(arange(3, 5), arange(3, 5), True, y)
    assert torch.equal(y, arange(3, 5) * 2)


def test_an_element_is_loaded_before_what_is_added_to_it():
    """``x += y`` on a parameter is a load, an add and a store"""

    def bump(tile):
        tile = tile + 1
        return tile

    def application(x):
        for k in range(x.shape[0]):
            x[k] += bump(x[k])

    x = arange(6)
    ninetoothed.make(lambda x: x.tile((4,)).tile((-1,)), application, (Tensor(1),))(x)
    assert torch.equal(x, arange(6) * 2 + 1)


def test_what_is_read_for_nothing_is_read_as_what_it_is():
    """a parameter that the compiled program never touches may be given any argument with a shape"""

    def swapped(a, b):
        return b, a

    def application(x, other, y):
        value, unused = swapped(other * 0.5, x + 1)
        if ntl.sum(other) > 1:
            unused = unused + 1  # noqa: F841
        y = value  # noqa: F841

    def first(x, other, y):
        y = swapped(swapped(x, other)[0], x)[0] + 1  # noqa: F841

    for function in (application, first):
        kernel = ninetoothed.make(tiles, function, vectors(3))
        for other in (arange(5), arange(10)[::2], arange(5).to(torch.float64)):
            y = empty(5)
            kernel(arange(5), other, y, B=4)
            assert torch.equal(y, arange(5) + 1)


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_program_that_touches_no_tensor_does_nothing(is_copied):
    def application(x, is_copied, y):
        if is_copied:
            y = x  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    y = empty(5)
    ninetoothed.make(tiles, application, tensors)(arange(5), is_copied, y, B=4)
    assert torch.equal(y, arange(5) if is_copied else empty(5))
