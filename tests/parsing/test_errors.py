"""What cannot be compiled: each error says where, what was found and what to do."""

import linecache

import pytest

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError, UnresolvedNameError
from ninetoothed.tensors.tensor import Tensor
from tests.parsing.applications import program_of

whole = Tensor(2, name="whole")
scale_factor = 2.0


def failure(application, kind=ApplicationError):
    """The error of an application, whose location is checked to be on the line marked ``HERE``."""
    with pytest.raises(ApplicationError) as caught:
        program_of(application)
    assert type(caught.value) is kind
    location = caught.value.location
    assert "# HERE" in linecache.getline(location.file, location.line)
    assert "^" in str(caught.value)
    return caught.value.message


# Names.


def test_an_unknown_name():
    def application(x, y):
        y = x * scale_facto  # HERE

    message = failure(application, UnresolvedNameError)

    assert "'scale_facto'" in message
    assert "Did you mean 'scale_factor'?" in message


def test_a_loops_variable_after_the_loop():
    def application(x, y, n):
        k = 0
        for k in range(n):
            y = x
        y = x + k  # HERE

    assert "that of a `for` has none after it" in failure(application)


def test_a_range_that_does_not_advance():
    def application(x, y, n):
        for k in range(0, n, 0):  # HERE
            y = x

    assert "The step of a range cannot be 0" in failure(application)


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


def test_a_parameter_without_a_tensor():
    from ninetoothed.parsing import parse

    def application(x, y):
        y = x

    with pytest.raises(ApplicationError, match="'x' has no tensor"):
        parse(application, [], "kernel")


# Statements and expressions.


def with_try(x, y):
    try:  # HERE
        y = x
    except ValueError:
        pass


def with_with(x, y):
    with x:  # HERE
        y = x


def with_import(x, y):
    import math  # HERE

    y = x * math.pi


def with_import_from(x, y):
    from math import pi  # HERE

    y = x * pi


def with_class(x, y):
    class Inner:  # HERE
        pass


def with_break(x, y, n):
    for k in range(n):
        break  # HERE


def with_continue(x, y, n):
    for k in range(n):
        continue  # HERE


def with_global(x, y):
    global scale_factor  # HERE
    scale_factor = 3


def with_nonlocal(x, y):
    v = 1

    def inner():
        nonlocal v  # HERE
        v = 2

    inner()


def with_del(x, y):
    v = x
    del v  # HERE


def with_raise(x, y):
    raise ValueError("no")  # HERE


def with_comprehension(x, y):
    y = sum([k for k in range(3)])  # HERE


def with_generator(x, y):
    y = sum(k for k in range(3))  # HERE


def with_dict(x, y):
    v = {"a": x}  # HERE


def with_set(x, y):
    v = {1, 2}  # HERE


def with_lambda(x, y):
    f = lambda v: v + 1  # HERE  # noqa: E731


def with_fstring(x, y, n):
    print(f"{n}")  # HERE


def with_yield(x, y):
    yield x  # HERE


def with_matmul(x, y):
    y = x @ x  # HERE


def with_power(x, y):
    y = x**2  # HERE


def with_loop_else(x, y, n):
    for k in range(n):
        y = x
    else:
        y = x + 1  # HERE


def with_return_in_loop(x, y, n):
    for k in range(n):
        y = x
        return  # HERE


def with_attribute_target(x, y):
    x.shape = (1, 2)  # HERE


def with_decorator(x, y):
    @scale_factor
    def inner():  # HERE
        pass


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (with_try, "`try`"),
        (with_with, "`with`"),
        (with_import, "import at the top"),
        (with_import_from, "import at the top"),
        (with_class, "class"),
        (with_break, "`break`"),
        (with_continue, "`continue`"),
        (with_global, "`global`"),
        (with_nonlocal, "`nonlocal`"),
        (with_del, "`del`"),
        (with_raise, "use `assert`"),
        (with_comprehension, "write a loop"),
        (with_generator, "write a loop"),
        (with_dict, "dictionary"),
        (with_set, "set"),
        (with_lambda, "lambda"),
        (with_fstring, "device_print"),
        (with_yield, "`yield`"),
        (with_matmul, "use `ntl.dot`"),
        (with_power, "multiply"),
        (with_loop_else, "`else` after a loop"),
        (with_return_in_loop, "`return` inside of a loop"),
        (with_attribute_target, "not attributes"),
        (with_decorator, "decorated"),
    ],
)
def test_unsupported_syntax(application, words):
    assert words in failure(application)


def test_match_is_unsupported():
    def application(x, y, n):
        match n:  # HERE
            case 1:
                y = x

    assert "use `if`" in failure(application)


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


def test_a_store_to_a_helpers_non_tile():
    def set_first(values, x):
        values[0] = x  # HERE

    def application(x, y):
        v = x + 1
        set_first(v, x)

    message = failure(application)

    assert "helper's non-tile: 'set_first'" in message
    assert "(in 'set_first', which 'application' calls at" in message


def test_a_tensor_of_the_arrangement_in_the_application():
    def application(x, y):
        y = x + whole  # HERE

    assert "Hand the tensor over as a parameter" in failure(application)


# What is needed at compile time.


def tuple_index(x, y, n):
    y = x * x.shape[n]  # HERE


def iteration(x, y):
    for v in x + 1:  # HERE
        y = v


def pythons_function(x, y, n):
    import_ = round(n)  # HERE


def attribute_name(x, y, n):
    y = getattr(x, n)  # HERE


def a_type_from_a_branch(x, y, n):
    dtype = ntl.float32
    if n > 0:
        dtype = ntl.float16
    y = x.to(dtype)  # HERE


def a_type_from_a_loop(x, y, n):
    dtype = ntl.float32
    for k in range(n):
        y = x.to(dtype)  # HERE
        dtype = ntl.float16


def a_double_star(x, y):
    y = ntl.sum(x, **x)  # HERE


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (tuple_index, "needed at compile time"),
        (iteration, "are not gone through one by one"),
        (pythons_function, "arguments are needed at compile time"),
        (attribute_name, "name at compile time"),
        (a_type_from_a_branch, "'dtype' is needed at compile time"),
        (a_type_from_a_loop, "'dtype' is needed at compile time"),
        (a_double_star, "known at compile time"),
    ],
)
def test_a_value_needed_at_compile_time(application, words):
    assert words in failure(application)


# Calls.


def helper(a, b=1, *, c=2):
    return a + b + c


def recursive(x):
    return recursive(x - 1)  # HERE


def positional_only(a, /):
    return a


def with_keywords(**keywords):
    return keywords


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: helper(), "needs 'a', which is not given"),  # HERE
        (lambda x: helper(x, 1, 2), "takes 2 positional arguments, and 3 are given"),  # HERE
        (lambda x: helper(x, a=1), "is given 'a' twice"),  # HERE
        (lambda x: helper(x, d=1), "has no parameter 'd'"),  # HERE
        (lambda x: positional_only(a=x), "has no parameter 'a'"),  # HERE
        (lambda x: with_keywords(a=x), "`**keywords`"),  # HERE
        (lambda x: recursive(x), "'recursive' calls itself"),
        (lambda x: open("file"), "'open' cannot be called"),  # HERE
        (lambda x: ntl.float16(x), "use `ntl.cast(value, float16)`"),  # HERE
        (lambda x: x.shape(), "This cannot be called"),  # HERE
        (lambda x: min(x), "arguments are needed at compile time"),  # HERE
    ],
)
def test_wrong_calls(call, words):
    def application(x, y):
        y = call(x)

    assert words in failure(application)


def test_a_combine_function_sees_no_values_of_the_kernel():
    def application(x, y):
        bias = x + 1

        def combine(a, b):
            return a + b + bias  # HERE

        y = ntl.reduce(x, 0, combine)

    assert "'bias' is a value of the running kernel" in failure(application)


def test_a_combine_function_has_to_return():
    def combine(a, b):  # HERE
        a + b

    def application(x, y):
        y = ntl.reduce(x, 0, combine)

    assert "returns nothing" in failure(application)


def test_a_function_without_source():
    namespace = {}
    exec("def lost(x):\n    return x\n", namespace)
    lost = namespace["lost"]

    def application(x, y):
        y = lost(x)  # HERE

    assert "source of 'lost' was not found" in failure(application)


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

    assert "'append' is not supported: tuples and lists" in failure(application)


def test_a_lambda_that_is_kept():
    def application(x, y):
        twice = lambda value: 2 * value  # noqa: E731  # HERE
        y = twice(x)

    assert "write a function with `def`" in failure(application)


def test_an_async_application():
    async def application(x, y):  # HERE
        y = x

    with pytest.raises(ApplicationError, match="`async def`.*Write `def`") as caught:
        program_of(application)
    location = caught.value.location
    assert "# HERE" in linecache.getline(location.file, location.line)


def test_a_function_as_a_value():
    def application(x, y):
        y = x + helper  # HERE

    assert "call it" in failure(application)


def test_a_range_as_a_value():
    def application(x, y, n):
        y = x + range(n)  # HERE

    assert "only for looping" in failure(application)


def test_a_loop_variable_cannot_be_a_tile():
    def application(x, y, n):
        for x in range(n):  # HERE
            y = x

    assert "'x' is a tile" in failure(application)
