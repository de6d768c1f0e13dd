"""What may be done with a parameter: loads and stores, levels, offsets, the source."""

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import expected, parsed
from tests.parsing.failures import failure


def test_reading_loads_and_assigning_stores():
    def application(x, y):
        y = x

    assert parsed(application) == "store y = x"


def test_in_place_addition_is_a_load_an_addition_and_a_store():
    def application(x, y):
        y += x

    assert parsed(application) == "store y = y + x"


def test_a_local_variable_holds_the_loaded_value():
    def application(x, y):
        v = x
        y = v + v.shape[0]

    assert parsed(application) == expected("""
        v = x
        store y = v + v.shape[0]
    """)


def test_selection_in_a_level():
    def application(rows, y, n):
        y = rows[0] + rows[n] + rows[n + 1] + rows[-1]

    assert parsed(application) == "store y = rows[0] + rows[n] + rows[n + 1] + rows[2]"


def test_a_negative_index_into_a_symbolic_level():
    def application(many, y):
        y = many[-1]

    size = "(N + many_size_1 - 1) // N"
    assert parsed(application) == f"store y = many[({size} - 1)]"


def test_selection_with_two_indices():
    def application(grid, y):
        for i in range(grid.shape[0]):
            for j in range(grid.shape[1]):
                y = grid[i, j]

    assert parsed(application) == expected("""
        for i in range(2):
            for j in range(3):
                store y = grid[i, j]
    """)


def test_a_tuple_of_indices_in_a_variable():
    def application(grid, y):
        place = (1, 2)
        y = grid[place] + grid[(0, *place[1:])]

    assert parsed(application) == "store y = grid[1, 2] + grid[0, 2]"


def test_levels_within_levels():
    def application(deep, y):
        for k in range(deep.shape[0]):
            block = deep[k]
            for i in range(block.shape[0]):
                y = block[i, 1]
                deep[k][i, 0] = y

    lines = parsed(application).splitlines()

    assert lines[1:] == [
        "    for i in range(2):",
        "        store y = deep[k, i, 1]",
        "        store deep[k, i, 0] = y",
    ]


def test_an_alias_keeps_the_index_that_it_was_made_with():
    def application(deep, y, n):
        k = n
        block = deep[k]
        k = k + 1
        y = block[0, 0]

    assert parsed(application) == expected("""
        k = n
        deep_index = k
        k = k + 1
        store y = deep[deep_index, 0, 0]
    """)


def test_an_alias_is_stored_through():
    def application(deep, x):
        block = deep[0]
        block[1, 2] = x
        block[1, 1] += x

    assert parsed(application) == expected("""
        store deep[0, 1, 2] = x
        store deep[0, 1, 1] = deep[0, 1, 1] + x
    """)


def test_a_loaded_value_as_an_index():
    def application(rows, cell, y):
        y = rows[cell] + rows[ntl.sum(y).to(ntl.int32)]

    assert parsed(application) == "store y = rows[cell] + rows[ntl.sum(y).to(int32)]"


def test_an_index_is_evaluated_once_for_an_augmented_assignment():
    def application(rows, x, cell):
        rows[cell] += x

    assert parsed(application) == expected("""
        rows_index = cell
        store rows[rows_index] = rows[rows_index] + x
    """)


def test_a_selected_tile_has_a_shape_and_a_type():
    def application(rows, y):
        y = ntl.zeros(rows[0].shape, rows[0].dtype) * rows[0].ndim

    assert parsed(application) == "store y = ntl.zeros((padded(M), padded(N)), rows.dtype) * 2"


def test_inner_levels_are_types():
    def application(deep, y):
        y = (
            ntl.zeros(deep.dtype.dtype.shape, deep.dtype.dtype.dtype)
            * deep.dtype.shape[1]
            * deep.dtype.ndim
            * len(deep.shape)
        )

    zeros = "ntl.zeros((padded(M), padded(N)), deep.dtype)"
    assert parsed(application) == f"store y = {zeros} * 3 * 2 * 1"


def test_a_single_element():
    def application(cell):
        cell = cell * len(cell.shape) + cell.ndim

    assert parsed(application) == "store cell = cell * 0 + 0"


def test_offsets():
    def application(x, rows, y):
        y = x.offsets() + x.offsets(1) + rows[1].offsets(-2) + rows[0].offsets(dim=0)

    assert parsed(application) == (
        "store y = x.offsets() + x.offsets(1) + rows[1].offsets(0) + rows[0].offsets(0)"
    )


def test_the_source():
    def application(rows, y):
        y = (
            rows.source.shape[-1]
            + rows.source.stride(-1)
            + rows.stride(0)
            + rows[0].stride(1)
            + rows.source.strides[0]
            + rows.strides[1]
            + rows.source.ndim
            + rows[0].source.shape[0]
            + rows.source.size(1)
        )

    assert parsed(application) == (
        "store y = (rows_size_1 + rows_stride_1 + rows_stride_0 + rows_stride_1 + rows_stride_0 "
        "+ rows_stride_1 + 2 + rows_size_0 + rows_size_1)"
    )


def test_pointers():
    def application(x, y):
        y = ntl.load(x.data_ptr() + x.source.data_ptr())

    assert parsed(application) == "store y = ntl.load(x.data_ptr() + x.data_ptr())"


def test_elements_of_the_source():
    def application(x, y, n):
        y = x.source[n, x.offsets(1)] + x.source[0, -1]
        y.source[n, y.offsets(1)] = ntl.sum(x, 0)
        y.source[0, n] += 1

    assert parsed(application) == expected("""
        store y = x.source[n, x.offsets(1)] + x.source[0, (x_size_1 - 1)]
        store y.source[n, y.offsets(1)] = ntl.sum(x, 0)
        store y.source[0, n] = y.source[0, n] + 1
    """)


def test_other_attributes_act_on_the_loaded_value():
    def application(x, rows, y):
        y = x.to(ntl.float32) + ntl.sum(rows[0].T) + ntl.sum(x[:, None])

    shown = "store y = x.to(float32) + ntl.sum(rows[0].T) + ntl.sum(x[:, None])"
    assert parsed(application) == shown


def test_a_tile_is_loaded_before_what_is_evaluated_after_it():
    def store_zero(tile):
        tile = 0.0

    def set_to_zero(tile):
        store_zero(tile)
        return 1.0

    def application(x, y):
        y = x + set_to_zero(x)

    assert parsed(application) == expected("""
        value = x
        store x = 0.0
        store y = value + 1.0
    """)


def test_tiles_in_a_tuple_can_be_looped_over():
    def application(x, y):
        for dim in range(2):
            y = x + 1
        for tile in (x, y):
            z = tile.shape[0]
            y.source[0, z] = ntl.sum(tile)

    assert parsed(application).splitlines()[2:] == [
        # A constant that a call gives may be negative, and counts from the end then.
        "store y.source[0, (M + min(max(-M, 0), 1) * y_size_1)] = ntl.sum(x)",
        "store y.source[0, (M + min(max(-M, 0), 1) * y_size_1)] = ntl.sum(y)",
    ]


def test_starred_parameters_take_the_rest():
    from ninetoothed.parsing import parse
    from tests.parsing.applications import body_of, parameter

    def application(x, *rest):
        for tile in rest:
            x += tile

    program = parse(application, [parameter(name) for name in ("x", "y", "z")], "kernel")

    assert body_of(program) == "store x = x + y\nstore x = x + z"


@pytest.mark.parametrize("name", ["shape", "ndim", "dtype", "foo"])
def test_elements_have_no_shape(name):
    def application(x, y):
        y = x + getattr(x.dtype, name)  # HERE

    message = failure(application)
    assert f"An element type has no {name!r}." in message
    assert "The tiles of 'x' have elements only, and `.dtype` is the type of these" in message


def test_what_element_types_have():
    def application(x, y):
        y = x * x.dtype.primitive_bitwidth * x.dtype.is_fp16()

    assert parsed(application) == "store y = x * x.dtype.primitive_bitwidth * x.dtype.is_fp16()"


def from_the_nth(rows, y, n):
    y = rows[n:]  # HERE


def one_from_the_nth(rows, y, n):
    y = rows[n:][0]  # HERE


def before_a_computed_one(rows, y):
    y = rows[: ntl.program_id(0)]  # HERE


def every_nth(rows, y, n):
    y = rows[::n]  # HERE


def between_two(rows, y, n, m):
    y = rows[n:m]  # HERE


def stored_from_the_nth(rows, y, n):
    rows[n:] = y  # HERE


@pytest.mark.parametrize(
    "application",
    [
        from_the_nth,
        one_from_the_nth,
        before_a_computed_one,
        every_nth,
        between_two,
        stored_from_the_nth,
    ],
)
def test_a_slice_that_the_kernel_computes_selects_no_tiles(application):
    message = failure(application)
    assert "is indexed with a slice, of bounds that the running kernel has" in message
    assert "tiles are selected one at a time" in message
