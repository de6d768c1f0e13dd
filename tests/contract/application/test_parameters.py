"""LANGUAGE.md, "Application": what a parameter names; loads, stores, offsets, the source."""

from __future__ import annotations

import re

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ArgumentError
from tests.contract.kernels import arange, blocks_of_rows, empty, matrices, run, tiles, vectors


def loads_of(kernel, parameter):
    """How often the emitted source loads from a parameter."""
    return len(re.findall(rf"tl\.load\(\s*{parameter}_ptr", kernel.source))


def stores_of(kernel, parameter):
    return len(re.findall(rf"tl\.store\(\s*{parameter}_ptr", kernel.source))


# Defaults and keywords are Python's.


def scaled(x, y, factor=3, shift=0.5):
    y = x * factor + shift  # noqa: F841


@pytest.mark.parametrize(
    ("given", "named", "expected"),
    [
        ((), {}, 3.5),
        ((2,), {}, 2.5),
        ((2, 4.0), {}, 6.0),
        ((), {"shift": 4.0}, 7.0),
        ((), {"shift": 4.0, "factor": 2}, 6.0),
        ((2,), {"shift": 4.0}, 6.0),
    ],
)
def test_a_scalar_has_the_applications_default(given, named, expected):
    def arrangement(x, y, factor, shift):
        return x.tile((-1,)), y.tile((-1,)), factor, shift

    kernel = ninetoothed.make(arrangement, scaled, (Tensor(1), Tensor(1), Tensor(0), Tensor(0)))
    x, y = torch.ones(5), empty(5)
    kernel(x, y, *given, **named)
    assert y.tolist() == [expected] * 5


def test_a_declared_default_goes_before_the_applications():
    def arrangement(x, y, factor, shift):
        return x.tile((-1,)), y.tile((-1,)), factor, shift

    factors = (Tensor(0, constexpr=True, value=7), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, scaled, (Tensor(1), Tensor(1), *factors))
    x, y = torch.ones(5), empty(5)
    kernel(x, y)
    assert y.tolist() == [7.5] * 5
    kernel(shift=1.0, y=y, x=x)
    assert y.tolist() == [8.0] * 5


def test_a_number_without_a_default_is_asked_for_by_name():
    def application(x, factor, y):
        y = x * factor  # noqa: F841

    def arrangement(x, factor, y):
        return x.tile((-1,)), factor, y.tile((-1,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    x, y = torch.ones(5), empty(5)
    kernel(x, y=y, factor=2)
    assert y.tolist() == [2.0] * 5
    with pytest.raises(ArgumentError, match="missing: factor"):
        kernel(x, y=y)


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


def _total(x, y):
    y = ntl.sum(x)  # noqa: F841


def _total_in_a_loop(x, y):
    for k in range(2):
        y += ntl.sum(x) * k


def _total_by_a_helper(x, y):
    value = ntl.sum(x)
    _put(y, value)


def _put(destination, value):
    destination = value  # noqa: F841


@pytest.mark.parametrize("application", [_total, _total_in_a_loop, _total_by_a_helper])
def test_a_result_that_is_assigned_to_a_number_is_refused(application):
    """Tensor(0) is a scalar argument, passed by value."""
    with pytest.raises(ApplicationError, match="`y` is a number .*stored nowhere") as caught:
        ninetoothed.make(lambda x, y: (x.tile((4,)), y), application, (Tensor(1), Tensor(0)))
    assert caught.value.location.file == __file__


def test_a_number_may_be_a_variable_of_the_application():
    def application(x, factor, y):
        factor = factor * ntl.sum(x)
        y = x * factor  # noqa: F841

    x = arange(4)
    assert run(application, x, 2, empty(4)).tolist() == (x * 2 * x.sum()).tolist()
