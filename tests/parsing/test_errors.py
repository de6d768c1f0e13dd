"""What cannot be compiled: each error says where, what was found and what to do."""

import pytest

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError, UnresolvedNameError
from ninetoothed.tensors.tensor import Tensor
from tests.parsing.failures import failure

whole = Tensor(2, name="whole")
scale_factor = 2.0


# Names.


def test_an_unknown_name():
    def application(x, y):
        y = x * scale_facto  # HERE

    message = failure(application, UnresolvedNameError)

    assert "'scale_facto'" in message
    assert "Did you mean 'scale_factor'?" in message


def test_a_range_that_does_not_advance():
    def application(x, y, n):
        for k in range(0, n, 0):  # HERE
            y = x

    assert "The step of a range cannot be 0" in failure(application)


def test_a_tuple_that_indexes_a_shape():
    def application(x, y):
        y = x + x.shape[(0, 1)]  # HERE

    assert "A tuple is indexed with one integer or slice, but got a tuple" in failure(application)


def test_an_unknown_function_of_the_language():
    def application(x, y):
        y = ntl.summ(x)  # HERE

    message = failure(application, UnresolvedNameError)

    assert "summ" in message
    assert "Did you mean 'sum'?" in message


def test_an_unknown_attribute_of_an_object():
    def application(x, y):
        y = x * whole.shapes  # HERE

    assert "Did you mean 'shape'?" in failure(application, UnresolvedNameError)


def test_a_variable_read_before_it_is_assigned():
    def application(x, y):
        y = total + x  # HERE
        total = x

    assert "'total' is read before it is assigned" in failure(application)


@pytest.mark.parametrize("first", [True, False])
def test_a_loops_variable_read_after_the_loop(first):
    def application(x, y, n):
        if first:
            i = 100
        for i in range(n):
            y = x * i
        y = x + i  # HERE

    message = failure(application)
    assert "'i' is that of a loop, and ends with the loop" in message


def test_a_variable_that_a_branch_gives_after_a_loop_of_it():
    def application(x, y, n):
        if n > 3:
            i = 1
        y = x * i  # HERE
        for i in range(n):
            y = x * i

    assert "'i' is read before it is assigned" in failure(application)


def test_a_parameter_without_a_tensor():
    from ninetoothed.parsing import parse

    def application(x, y):
        y = x

    with pytest.raises(ApplicationError, match="'x' has no tensor"):
        parse(application, [], "kernel")


def test_an_application_returns_nothing():
    def application(x, y):
        return x + 1  # HERE

    assert "assigning to its parameters" in failure(application)


def test_an_endless_loop():
    def application(x, y):
        while True:  # HERE
            y = x

    assert "never ends" in failure(application)


def test_a_static_assertion():
    def application(x, y):
        assert x.ndim == 3, "three dimensions"  # HERE
        y = x

    assert "three dimensions" in failure(application)


def test_an_assertions_message_shows_sizes_and_what_is_known():
    def application(x, y):
        assert x.ndim == 3, f"{x.ndim:>3} not {3!r}: {x.shape}, {x.source.shape[0]}"  # HERE
        y = x

    assert "  2 not 3: (M, N), x_size_0" in failure(application)


def test_an_assertions_message_is_made_where_it_fails():
    def application(x, y):
        assert x.ndim == 2, f"{x} is a tile"
        y = x + scale_facto  # HERE

    assert "'scale_facto'" in failure(application, UnresolvedNameError)


def test_an_f_string_of_a_tile():
    def application(x, y):
        print(f"x is {x}")  # HERE
        y = x

    assert "An f-string shows what is known at compile time" in failure(application)


def test_an_f_string_whose_format_is_wrong():
    def application(x, y):
        print(f"{x.ndim:nothing}")  # HERE
        y = x

    assert "ValueError: Invalid format specifier" in failure(application)


def test_what_raises_at_compile_time():
    def application(x, y):
        y = x * (1 // 0)  # HERE

    assert "ZeroDivisionError" in failure(application)


# Tiles.


def one_index_missing(grid, y):
    y = grid[0]  # HERE


def one_index_too_many(rows, y):
    y = rows[0, 1]  # HERE


def no_index(rows, y):
    y = rows + 1  # HERE


def no_index_to_store_to(rows, y):
    rows = y  # HERE


def out_of_range(rows, y):
    y = rows[3]  # HERE


def a_slice_of_tiles(rows, y):
    y = rows[0:2]  # HERE


def a_float_as_index(rows, y):
    y = rows[0.5]  # HERE


def an_element_of_a_tile(x, y):
    y = x[0, 0, 0, 0]  # HERE


def a_store_to_an_element(x, y):
    y[0, 0, 0, 0] = x  # HERE


def a_store_to_a_value(x, y):
    v = x + 1
    v[0] = x  # HERE


def offsets_of_several(rows, y):
    y = rows.offsets(0)  # HERE


def offsets_along_nothing(x, y):
    y = x.offsets(2)  # HERE


def offsets_along_an_unknown(x, y, n):
    y = x.offsets(n)  # HERE


def offsets_with_two(x, y):
    y = x.offsets(0, 1)  # HERE


def pointer_with_argument(x, y):
    y = x.data_ptr(0)  # HERE


def stride_without(x, y):
    y = x.stride()  # HERE


def source_with_one_index(x, y):
    y = x.source[0]  # HERE


def source_as_a_value(x, y):
    y = x.source + 1  # HERE


def source_attribute(x, y):
    y = x.source.foo  # HERE


def inner_level_as_type(rows, y):
    y = ntl.zeros(y.shape, dtype=rows.dtype)  # HERE


def inner_level_attribute(rows, y):
    y = rows.dtype.bits  # HERE


def method_not_called(x, y):
    y = x.offsets + 1  # HERE


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (one_index_missing, "'grid' is indexed with 1 index where it names 2×3 tiles: 2 indices"),
        (one_index_too_many, "'rows' is indexed with 2 indices where it names 3 tiles: 1 index"),
        (no_index, "'rows' names 3 tiles here, and one tile is needed"),
        (no_index_to_store_to, "'rows' names 3 tiles here"),
        (out_of_range, "'rows' is indexed with 3, and that dimension has size 3"),
        (a_slice_of_tiles, "one at a time"),
        (a_float_as_index, "indexed with 0.5"),
        (an_element_of_a_tile, "it is one tile here"),
        (a_store_to_an_element, "it is one tile here"),
        (a_store_to_a_value, "`v` is no tile of a parameter"),
        (offsets_of_several, "'rows' names 3 tiles here"),
        (offsets_along_nothing, "the source of 'x' has 2 dimensions"),
        (offsets_along_an_unknown, "needed at compile time"),
        (offsets_with_two, "takes one argument"),
        (pointer_with_argument, "takes no argument"),
        (stride_without, "takes one argument"),
        (source_with_one_index, "one index for each"),
        (source_as_a_value, "`x.source` is the whole tensor"),
        (source_attribute, "has no attribute 'foo'"),
        (inner_level_as_type, "Take `.dtype` once more"),
        (inner_level_attribute, "has no attribute 'bits'"),
        (method_not_called, "call it"),
    ],
)
def test_wrong_use_of_a_tile(application, words):
    assert words in failure(application)


def test_a_store_to_a_value_in_a_helper():
    def set_first(values, x):
        values[0] = x  # HERE

    def application(x, y):
        v = x + 1
        set_first(v, x)

    message = failure(application)

    assert "`values` is no tile of a parameter: it is a value" in message
    assert "(in 'set_first', which 'application' calls at" in message


def test_an_item_of_a_list_is_not_assigned():
    def set_first(x, y):
        both = [x, y]
        both[0] = x + 1  # HERE

    def application(x, y):
        set_first(x, y)

    message = failure(application)

    assert "An item of `both` is assigned: tuples, lists and dictionaries do not change" in message
    assert "(in 'set_first', which 'application' calls at" in message


def test_a_tensor_of_the_arrangement_in_the_application():
    def application(x, y):
        y = x + whole  # HERE

    assert "Hand the tensor over as a parameter" in failure(application)


def test_values_that_do_not_match_their_targets():
    def application(x, y):
        a, b = x.shape + (1,)  # HERE
        y = x * a

    assert "3 values cannot be assigned to 2 targets" in failure(application)


def test_an_object_without_a_value_at_run_time():
    thing = object()

    def application(x, y):
        y = x + thing  # HERE

    assert "cannot be a value of a running kernel" in failure(application)


def test_an_element_type_of_another_library():
    torch_like = type("dtype", (), {"__str__": lambda self: "torch.float16"})()

    def application(x, y):
        y = x.to(torch_like)  # HERE

    assert "write `ntl.float16`" in failure(application)


def test_a_list_that_is_to_grow():
    def application(x, y):
        parts = []
        parts.append(x)  # HERE
        y = x

    assert "'append' is not supported: tuples, lists and dictionaries" in failure(application)


def test_a_loop_that_is_broken_off():
    def application(x, y, n):
        k = 0
        while True:
            if k > n:
                break  # HERE
            k += 1
        y = x

    assert "end the loop by its condition, as in `while k < n and" in failure(application)


def test_a_loop_variable_cannot_be_a_tile():
    def application(x, y, n):
        for x in range(n):  # HERE
            y = x

    assert "'x' is a tile" in failure(application)
