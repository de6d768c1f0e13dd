"""Reading a user's function: its tree, its positions, its names."""

import ast
import contextlib
import functools
import linecache
import math

import pytest

from ninetoothed.errors import ApplicationError, UnresolvedNameError
from ninetoothed.parsing import source

FACTOR = 3


def module_level(x):
    return x * FACTOR


def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


class _Managed(contextlib.ContextDecorator):
    """As `torch.no_grad` is: what Python's own library wraps."""


@decorate
def decorated(x):
    return x


def test_positions_are_those_of_the_file():
    read = source.read(module_level)

    returned = read.tree.body[0]
    line = linecache.getline(read.file, returned.lineno)

    assert line[returned.col_offset :].startswith("return x * FACTOR")


def test_a_nested_function_keeps_its_columns_and_its_closure():
    scale = 7

    def inner(x):
        return x * scale

    read = source.read(inner)

    assert read.tree.name == "inner"
    assert read.tree.col_offset == 4
    assert read.resolve("scale") == 7


def test_a_wrapper_of_the_users_own_is_what_is_read():
    read = source.read(decorated)

    assert read.tree.name == "wrapper"
    assert read.function is decorated


def test_a_wrapper_of_an_installed_package_is_read_through():
    read = source.read(_Managed()(module_level))

    assert read.function is module_level


@pytest.mark.parametrize(("name", "value"), [("FACTOR", 3), ("math", math), ("len", len)])
def test_free_names_resolve_as_python_would(name, value):
    assert source.read(module_level).resolve(name) is value


def test_an_unknown_name_suggests_a_near_one_and_is_located():
    read = source.read(module_level)
    node = read.tree.body[0].value.right

    with pytest.raises(UnresolvedNameError, match="Did you mean 'FACTOR'") as caught:
        read.resolve("FACTORS", node)

    assert caught.value.location.line == node.lineno
    assert "^^^^^^" in str(caught.value)


def test_an_empty_closure_cell_is_unresolved():
    def inner():
        return later

    read = source.read(inner)

    with pytest.raises(UnresolvedNameError, match="'later'"):
        read.resolve("later")
    later = 1
    assert later == 1


def test_defaults_by_name():
    def function(a, b=2, *, c=3, d):
        return a, b, c, d

    assert source.read(function).defaults == {"b": 2, "c": 3}


def test_a_lambda_becomes_a_definition():
    read = source.read(lambda a, b: a + b)

    assert ast.unparse(read.tree).replace("\n", "") == "def lambda_(a, b):    return a + b"


def test_two_lambdas_of_one_line_are_told_apart():
    functions = [lambda a: a + 1, lambda a: a + 2]

    texts = [ast.unparse(source.read(function).tree.body[0]) for function in functions]

    assert texts == ["return a + 1", "return a + 2"]


def test_lambdas_within_each_other_are_told_apart():
    outer = lambda a: (lambda a: lambda a: a * 2)(a + 1)  # noqa: E731

    functions = [outer, outer(1)]
    texts = [ast.unparse(source.read(function).tree.body[0]) for function in functions]

    assert texts == ["return (lambda a: lambda a: a * 2)(a + 1)", "return a * 2"]


def test_a_notebook_cell_is_found_through_linecache():
    text = "def cell(x):\n    return x\n"
    name = "<ipython-input-test>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {}
    exec(compile(text, name, "exec"), namespace)

    read = source.read(namespace["cell"])

    assert (read.file, read.tree.lineno) == (name, 1)


def test_no_source_is_a_located_error():
    namespace = {}
    exec("def lost(x):\n    return x\n", namespace)

    with pytest.raises(ApplicationError, match="'lost' was not found.*`python -c`") as caught:
        source.read(namespace["lost"])

    assert caught.value.location.file == "<string>"


def test_a_file_that_has_changed_since_is_noticed(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("def function(x):\n    return x\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("def function(other, parameters):\n    return parameters\n")

    with pytest.raises(ApplicationError, match="has not changed since"):
        source.read(namespace["function"])


def test_what_was_read_stays_when_its_file_changes(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("def function(x):\n    return x * 3\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    before = source.read(namespace["function"])
    path.write_text("def function(x):\n    return x * 4000\n")

    assert source.read(namespace["function"]).tree is before.tree
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert ast.unparse(source.read(namespace["function"]).tree).endswith("x * 4000")


def test_what_is_no_python_function_is_refused():
    with pytest.raises(ApplicationError, match="written in Python"):
        source.read(len)


def test_columns_count_characters():
    def function(x):
        return "é" + x + nothing_here  # noqa: F821

    read = source.read(function)

    with pytest.raises(UnresolvedNameError) as caught:
        read.resolve("nothing_here", read.tree.body[0].value.right)
    pointer = str(caught.value).splitlines()
    assert pointer[-2][pointer[-1].index("^") :].startswith("nothing_here")
