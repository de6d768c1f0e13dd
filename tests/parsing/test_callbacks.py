"""Functions handed to the language, and Triton's own objects."""

import sys
import types

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import body_of, expected, parsed, program_of

# Functions handed to the language.


def combine(a, b):
    larger = ntl.maximum(a, b)
    return larger + 0


def test_a_combine_function_is_kept_as_a_helper():
    def application(x, y):
        y = ntl.reduce(x, 1, combine)[:, None] + ntl.associative_scan(x, 1, combine)

    program = program_of(application)

    assert list(program.helpers) == ["combine"]
    assert body_of(program).endswith(
        expected("""
        def combine(a, b):
                larger = ntl.maximum(a, b)
                return larger + 0

            store y = ntl.reduce(x, 1, combine)[:, None] + ntl.associative_scan(x, 1, combine)
    """)
    )


def test_a_combine_function_with_branches_and_helpers():
    FLAG = 2

    def larger(a, b):
        return ntl.maximum(a, b) * FLAG

    def choose(a, b):
        if a > b:
            return larger(a, b)
        return b

    def application(x, y):
        y = ntl.reduce(x, None, choose)

    assert expected("""
        def choose(a, b):
                if a > b:
                    choose_result = ntl.maximum(a, b) * 2
                else:
                    choose_result = b
                return choose_result
    """) in body_of(program_of(application))


def test_a_lambda_as_a_combine_function():
    def application(x, y):
        y = ntl.reduce(x, 0, lambda a, b: a * b)

    program = program_of(application)

    assert list(program.helpers) == ["combine"]


# Triton's own objects. They are faked: no Triton is needed to parse.


@pytest.fixture
def fake_triton(monkeypatch):
    """A module that looks like Triton's language as far as the parser looks."""
    module = types.ModuleType("triton.language")

    def exp(x):
        """Stands for Triton's function of this name."""

    exp.__module__ = "triton.language.math"
    dtype = type(
        "dtype", (), {"__module__": "triton.language.core", "__str__": lambda self: "fp16"}
    )
    constexpr = type("constexpr", (), {"__module__": "triton.language.core", "value": 5})
    module.exp, module.float16, module.five = exp, dtype(), constexpr()
    monkeypatch.setitem(sys.modules, "triton.language", module)
    return module


def test_objects_of_triton_are_known_by_identity(fake_triton):
    tl = fake_triton

    def application(x, y):
        y = tl.exp(x).to(tl.float16) + tl.five

    assert parsed(application) == "store y = ntl.exp(x).to(float16) + 5"


@pytest.mark.parametrize("kind", ["JITFunction", "InterpretedFunction"])
def test_a_jit_function_is_an_extern(kind):
    members = {"__module__": "triton.runtime", "__name__": "own"}
    own = type(kind, (), {**members, "fn": staticmethod(lambda x, scale=1: x)})()

    def application(x, y):
        y = own(x, scale=2) + own(y)

    program = program_of(application)

    assert body_of(program) == expected("""
        value = own(x, scale=2)
        store y = value + own(y)
    """)
    assert program.externs == {"own": own}
