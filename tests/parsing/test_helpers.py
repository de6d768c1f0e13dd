"""Helpers: plain functions inlined, functions handed to the language, ``triton.jit`` functions."""

import functools

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import expected, parsed, program_of

# Inlining.

OPTIONS = {"offset": 5}


def scaled(tile, factor=2.0, *, offset=0):
    return tile * factor + offset


def square_sum(values):
    squares = values * values
    return ntl.sum(squares)


def both(values):
    return values + 1, values - 1


def store_sum(target, a, b):
    target = a + b


def double(value):
    value = value * 2


def select(n, a, b):
    if n > 0:
        return a
    return b


def select_nested(n, a, b):
    if n > 0:
        if n > 5:
            result = a
        else:
            return b
        result = result + 1
    else:
        result = b
    return result


def nothing(x):
    pass


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: scaled(x), "x * 2.0 + 0"),
        (lambda x: scaled(x, 3), "x * 3 + 0"),
        (lambda x: scaled(factor=0.5, tile=x), "x * 0.5 + 0"),
        (lambda x: scaled(x, offset=1), "x * 2.0 + 1"),
        (lambda x: scaled(*(x, 4), **OPTIONS), "x * 4 + 5"),
    ],
)
def test_arguments_are_paired_as_python_does(call, text):
    def application(x, y):
        y = call(x)

    assert parsed(application) == f"store y = {text}"


def test_a_helper_of_a_helper():
    def application(x, y):
        y = 1 + scaled(scaled(x, 3))

    assert parsed(application) == expected("""
        tile = x * 3 + 0
        store y = 1 + (tile * 2.0 + 0)
    """)


def test_a_helper_in_the_middle_of_an_expression():
    def application(x, y):
        y = x / square_sum(x + 1) + square_sum(x)

    assert parsed(application) == expected("""
        values = x + 1
        squares = values * values
        square_sum_squares = x * x
        store y = x / ntl.sum(squares) + ntl.sum(square_sum_squares)
    """)


def test_names_of_helpers_stay_apart_from_the_callers():
    def application(x, y):
        squares = x + 1
        y = square_sum(squares) + squares

    assert parsed(application) == expected("""
        squares = x + 1
        square_sum_squares = squares * squares
        store y = ntl.sum(square_sum_squares) + squares
    """)


def test_a_parameter_tile_stays_that_tile():
    def application(x, y, z):
        store_sum(z, x, y)

    assert parsed(application) == "store z = x + y"


def test_a_selected_tile_stays_that_tile():
    def application(rows, y):
        for k in range(3):
            store_sum(rows[k], rows[0], y)

    assert parsed(application) == expected("""
        for k in range(3):
            store rows[k] = rows[0] + y
    """)


def test_a_local_variable_handed_over_is_rebound():
    def application(x, y):
        v = x + 1
        double(v)
        y = v

    assert parsed(application) == expected("""
        v = x + 1
        v = v * 2
        store y = v
    """)


def test_a_rebound_variable_is_carried_through_a_loop():
    def application(x, y, n):
        count = 1
        for k in range(n):
            double(count)
        y = x * count

    assert parsed(application) == expected("""
        count = 1
        for k in range(n):
            count = count * 2
        store y = x * count
    """)


def test_a_helper_that_returns_a_value_rebinds_its_parameters_for_itself_alone():
    def bump(value):
        value = value + 1
        return value

    def application(x, y):
        v = x + 1
        y = v + bump(v) * v

    assert parsed(application) == expected("""
        v = x + 1
        value = v
        value = value + 1
        store y = v + value * v
    """)


def test_several_results():
    def application(x, y, z):
        y, z = both(x)
        a, b = both(both(x)[0])
        y = a * b

    assert parsed(application) == expected("""
        value = x - 1
        store y = x + 1
        store z = value
        values = x + 1
        a = values + 1
        b = values - 1
        store y = a * b
    """)


def test_early_returns_become_branches():
    def application(x, y, n):
        y = select(n, x, x + 1)

    assert parsed(application) == expected("""
        b = x + 1
        if n > 0:
            select_result = x
        else:
            select_result = b
        store y = select_result
    """)


def test_early_returns_within_branches():
    def application(x, y, n):
        y = select_nested(n, x, -x)

    assert parsed(application) == expected("""
        b = -x
        if n > 0:
            if n > 5:
                result = x
                result = result + 1
                select_nested_result = result
            else:
                select_nested_result = b
            select_nested_result_1 = select_nested_result
        else:
            result = b
            select_nested_result_1 = result
        store y = select_nested_result_1
    """)


def test_a_constant_argument_decides_the_branch():
    def application(x, y):
        y = select(1, x, 0.0)

    assert parsed(application) == "store y = x"


def test_a_helper_without_a_return_gives_none():
    def application(x, y):
        if nothing(x) is None:
            y = x

    assert parsed(application) == "store y = x"


def test_a_helper_in_a_condition_of_a_loop_is_evaluated_in_each_round():
    def remaining(value):
        rest = value - 1
        return rest

    def application(x, y, n):
        i = n
        while remaining(i) > 0:
            i = i // 2
        y = x * i

    assert parsed(application) == expected("""
        i = n
        rest = i - 1
        condition = rest > 0
        while condition:
            i = i // 2
            remaining_rest = i - 1
            condition = remaining_rest > 0
        store y = x * i
    """)


def test_a_helper_behind_and_is_only_evaluated_where_python_would():
    def store_increased(tile):
        tile += 1

    def increase(tile):
        store_increased(tile)
        return True

    def application(x, y, n):
        if n > 0 and increase(y):
            x = y

    text = parsed(application)

    assert text == expected("""
        condition = n > 0
        if condition:
            store y = y + 1
            condition = True
        if condition:
            store x = y
    """)


def test_a_helper_in_a_conditional_expression():
    def store_increased(tile):
        tile += 1

    def increase(tile):
        store_increased(tile)
        return 1

    def application(x, y, n):
        y = x * (increase(x) if n > 0 else 2)

    assert parsed(application) == expected("""
        value = x
        if n > 0:
            store x = x + 1
            choice = 1
        else:
            choice = 2
        store y = value * choice
    """)


def test_helpers_see_their_own_module_and_closure():
    factor = 11

    def inner(x):
        return x * factor

    def outer(x):
        return inner(x) + 1

    def application(x, y):
        factor = 3
        y = outer(x) + factor

    assert parsed(application) == "store y = x * 11 + 1 + 3"


def test_a_function_defined_in_the_application_sees_its_variables():
    def application(x, y):
        scale = x + 1

        def apply(value, power=2):
            return value * scale + power

        y = apply(x) + apply(x, 3)

    assert parsed(application) == expected("""
        scale = x + 1
        store y = x * scale + 2 + (x * scale + 3)
    """)


def test_a_wrapped_helper():
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*arguments):
            return function(*arguments)

        return wrapper

    @decorate
    def helper(x):
        return x + 1

    def application(x, y):
        y = helper(x)

    assert parsed(application) == "store y = x + 1"


def test_what_a_wrapper_does_is_done():
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*arguments, **keywords):
            return 2 * function(*arguments, **keywords)

        return wrapper

    @doubled
    def helper(x, by=1):
        return x + by

    def application(x, y):
        y = helper(x, by=3)

    assert parsed(application) == "store y = 2 * (x + 3)"


def test_keywords_that_are_left_over_are_a_dictionary():
    def scaled(x, **options):
        return x * options["by"] + len(options)

    def application(x, y):
        settings = {"by": 3.0}
        y = scaled(x, more=x, **settings)

    assert parsed(application) == "store y = x * 3.0 + 2"


def test_partial_functions_methods_and_cached_functions():
    class Options:
        factor = 3

        def apply(self, x):
            return x * self.factor

        @staticmethod
        def add(x, amount):
            return x + amount

    @functools.cache
    def half():
        return 0.5

    options = Options()
    add_two = functools.partial(Options.add, amount=2)
    minimum = functools.partial(ntl.minimum, 7)

    def application(x, y):
        y = options.apply(x) + add_two(x) + half() + minimum(x)

    assert parsed(application) == "store y = x * 3 + (x + 2) + 0.5 + ntl.minimum(7, x)"


def test_star_parameters_of_a_helper():
    def total(first, *rest):
        for tile in rest:
            first = first + tile
        return first

    def application(x, y, z):
        v = x + 0
        z = total(v, x, y)

    assert parsed(application) == expected("""
        v = x + 0
        first = v
        first_before = first
        first = first + x
        first = kept(first, first_before)
        first_before_1 = first
        first = first + y
        first = kept(first, first_before_1)
        store z = first
    """)


def test_positions_of_helpers_are_their_own(request):
    def application(x, y):
        store_sum(y, x, x)

    assert program_of(application).body[0].lineno == store_sum.__code__.co_firstlineno + 1
