"""`sentences.toml` says which tests show each sentence of the language: all of them are there."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 to read TOML")

TESTS = Path(__file__).parents[1]

SECTIONS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8")
)

SHOWN = [
    pytest.param(sentence, tests, id=f"{section}: {sentence[:40]}")
    for section, sentences in SECTIONS.items()
    for sentence, tests in sentences.items()
]


@functools.cache
def names_in(path: str) -> set[str]:
    """The tests that pytest collects of a file."""
    file = TESTS / path
    if not (file.name.startswith("test_") and file.is_file()):
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return {name for name in names if name.startswith("test_")}


@pytest.mark.parametrize(("sentence", "tests"), SHOWN)
def test_a_sentence_has_tests_that_are_there(sentence: str, tests: list[str]) -> None:
    assert tests, f"no test shows {sentence!r}"
    for test in tests:
        path, _, name = test.partition("::")
        assert name in names_in(path), f"{test} is not there"


def test_all_sections_of_the_language_are_here() -> None:
    assert len(SHOWN) >= 100
    assert {"Symbol", "Tensor", "Meta-operations", "Application", "Padding", "Numbers"} <= {
        *SECTIONS
    }
