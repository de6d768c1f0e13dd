"""A function's definition is parsed by itself, and is what the whole file has."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import examples
from ninetoothed.parsing.syntax import definitions
from ninetoothed.parsing.syntax.definitions import definition_of

FILES = [
    *sorted(Path(examples.__file__).parent.glob("*.py")),
    *sorted(Path(__file__).parent.glob("*.py")),
    *(Path(module.__file__) for module in (argparse, inspect, textwrap)),
]


def functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if not constant.co_name.startswith("<"):
                yield constant
            yield from functions(constant)


def told(node: ast.AST | None) -> str:
    return "" if node is None else ast.dump(node, include_attributes=True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_function_of_a_file_is_as_in_the_file(file: Path) -> None:
    text = file.read_text()
    known = definitions._definitions(text)
    for code in functions(compile(text, str(file), "exec")):
        expected = known.get((code.co_name, code.co_firstlineno))
        assert told(definition_of(code, text.splitlines(keepends=True))) == told(expected)


AT_THE_END = {
    "a bracket that is closed further out": """
def f(x):
    def g(y):
        return max(
            y,
  )
    return g
""",
    "what never runs": """
def f(x):
    return x
    if False:
        x = 2
    "never"
""",
    "text that goes on further out": '''
def f(x):
    return x
    """
and on
    """
''',
    "a line that goes on": """
def f(x):
    return x + \\
1
""",
    "comments further out": """
def f(x):
    x = 1
# here
    return x
# and there
""",
    "tabs": """
class A:
\t@staticmethod
\tdef f(
\t\tx
\t):
\t\tif x:
\t\t\treturn 1
\t\treturn 2
\tx = 1
""",
    "one line": "def f(x): return x\n",
    "no line after it": "x = 1\ndef f(x):\n    return x",
}


@pytest.mark.parametrize("text", AT_THE_END.values(), ids=AT_THE_END.keys())
def test_a_function_is_whole_however_it_ends(text: str) -> None:
    known = definitions._definitions(text)
    for code in functions(compile(text, "file", "exec")):
        expected = known.get((code.co_name, code.co_firstlineno))
        if expected is not None:
            assert told(definition_of(code, text.splitlines(keepends=True))) == told(expected)


def test_the_rest_of_a_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
    (code,) = [each for each in functions(compile(text, "file", "exec")) if each.co_name == "g"]
    monkeypatch.setattr(definitions, "_parsed", lambda text: pytest.fail("parsed"))
    broken = text.replace("return x\n\n\n", "return (x\n\n\n").splitlines(keepends=True)
    assert definition_of(code, broken) is not None


def test_a_file_that_has_another_function_there_has_none() -> None:
    (code,) = functions(compile("def f(x):\n    return x\n", "file", "exec"))
    for text in (
        "def g(x):\n    return x\n",
        "def f(y):\n    return y\n",
        "",
        "\n\n(\n",
        "f = 1\n",
    ):
        assert definition_of(code, text.splitlines(keepends=True)) is None
