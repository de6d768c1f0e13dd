"""Loops that transpose what they carry, through Triton's compiler, which never came to an end of them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed.language as ntl  # noqa: E402
from tests.processes import told_by  # noqa: E402
from tests.triton.emitted import last_emitted  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.printers import carried_layouts_cases as cases  # noqa: E402


def of_what_it_loads(x, n, y):
    a = ntl.zeros((8, 8), ntl.float32)
    for k in range(n):
        a += ntl.trans(x) * k
    y = a  # noqa: F841


def into_another_variable(x, n, y):
    a = x
    b = ntl.zeros((8, 8), ntl.float32)
    for _ in range(n):
        b += ntl.trans(a)
        a = a * 2
    y = b  # noqa: F841


def of_a_product(x, n, y):
    a = ntl.zeros((16, 16), ntl.float32) + 1
    for _ in range(n):
        a = a - ntl.dot(a, ntl.trans(a))
    y = x + ntl.max(ntl.max(a, 1), 0)  # noqa: F841


def test_the_compiler_comes_to_an_end():
    assert told_by(cases.__name__) == [each.__name__ for each in cases.APPLICATIONS]


def test_on_numpy():
    cases.case_what_they_give()


def test_in_the_interpreter():
    assert failures(cases.__name__) == {}


@pytest.mark.parametrize("application", [of_what_it_loads, into_another_variable, of_a_product])
def test_what_is_not_carried_to_itself_enters_a_loop_as_it_is(application):
    x, kernel = torch.zeros(8, 8), cases.made(application)
    kernel.compile(x, 3, x.clone(), target=("cuda", 90))
    assert "in_own_layout" not in last_emitted(kernel).text
