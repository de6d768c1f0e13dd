"""Values needed when the kernel is made, and wrong calls: each error says where, and what to do."""

import linecache

import pytest

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError
from tests.parsing.applications import program_of
from tests.parsing.failures import failure

# What is needed at compile time.


def tuple_index(x, y, n):
    y = x * x.shape[n]  # HERE


def iteration(x, y):
    for v in x + 1:  # HERE
        y = v


def tiles_with_their_numbers(rows, y):
    for k, row in enumerate(rows):  # HERE
        y = row + k


def text_after_values(x, y, n):
    print("first", n, "then")  # HERE


def an_element_type_shown(x, y):
    print(x.dtype)  # HERE


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
        (tiles_with_their_numbers, "by their numbers: `for k in range(rows.shape[0])`"),
        (text_after_values, "`print` shows one text"),
        (an_element_type_shown, "`print` shows one text"),
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


class Scaled:
    def __call__(self, value):
        return value * 2


SCALED = Scaled()


def an_object(x, y):
    y = SCALED(x)  # HERE


def test_an_object_is_called_by_its_methods_name():
    assert "name its method, `object.__call__(...)`" in failure(an_object)


def helper(a, b=1, *, c=2):
    return a + b + c


def recursive(x):
    return recursive(x - 1)  # HERE


def positional_only(a, /):
    return a


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: helper(), "needs 'a', which is not given"),  # HERE
        (lambda x: helper(x, 1, 2), "takes 2 positional arguments, and 3 are given"),  # HERE
        (lambda x: helper(x, a=1), "is given 'a' twice"),  # HERE
        (lambda x: helper(x, d=1), "has no parameter 'd'"),  # HERE
        (lambda x: positional_only(a=x), "has no parameter 'a'"),  # HERE
        (lambda x: helper(**x), "`**` needs a dictionary"),  # HERE
        (lambda x: recursive(x), "'recursive' calls itself 16 deep"),
        (lambda x: open("file"), "'open' cannot be called"),  # HERE
        (lambda x: ntl.float16(x), "use `ntl.cast(value, float16)`"),  # HERE
        (lambda x: ntl.cast(x, "float16"), "element type such as ntl.float32 is needed"),  # HERE
        (lambda x: x.to(None), "is needed here, but got None"),  # HERE
        (lambda x: ntl.zeros((4,), dtype="int8"), "needed here, but got 'int8'"),  # HERE
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
