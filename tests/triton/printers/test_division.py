"""Division rounds down, as Python's: on CPUs, in Triton's interpreter, in the text, by Triton's compiler."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.printers import division_cases  # noqa: E402

CASES = [name for name in vars(division_cases) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES)
def test_on_numpy(case: str) -> None:
    getattr(division_cases, case)()


def test_in_the_interpreter() -> None:
    assert failures(division_cases.__name__) == {}


def test_only_a_dividend_that_may_be_negative_costs_more() -> None:
    kernel = division_cases.kernel_of
    assert "floor_" in kernel(lambda t: t[::-1], (3, 5)).source
    assert "floor_" not in kernel(lambda t: t[2:], (3, 5)).source


def by_numbers(x, y):
    y = x % 7 + x // 7 + 7 % x + 7 // x


def by_truth(x, y):
    y = True % x + x // True + (x > 1) % x + ntl.cdiv(x, True) + ntl.cdiv(x, x > 0)


def of_floats(x, y):
    y = ntl.fdiv(x, 2.5) + ntl.fdiv(2.5, x) + ntl.fdiv(x, x) + ntl.fdiv(x.to(ntl.float32), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floats_are_divided_in_their_own_type(dtype) -> None:
    tensors = Tensor(1), Tensor(1)
    kernel = ninetoothed.make(lambda *given: [t.tile((8,)) for t in given], of_floats, tensors)

    compiled = kernel.compile(torch.ones(20, dtype=dtype), torch.ones(20), target=("cuda", 90))
    x, y = torch.arange(1, 21).to(dtype), torch.zeros(20)
    kernel(x, y)

    assert compiled.asm["cubin"]
    expected = x.double() / 2.5 + 2.5 / x.double() + 2
    assert torch.allclose(y.double(), expected, rtol=2e-2 if dtype.itemsize == 2 else 1e-6)


# The compiler tells an int32 from a literal, which has the other operand's type; the interpreter does not.
@pytest.mark.parametrize("application", [by_numbers, by_truth])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.int64])
def test_numbers_are_of_the_type_of_what_they_divide(application, dtype) -> None:
    tensors = Tensor(1), Tensor(1)
    kernel = ninetoothed.make(lambda *given: [t.tile((8,)) for t in given], application, tensors)

    compiled = kernel.compile(torch.ones(20, dtype=dtype), torch.ones(20), target=("cuda", 90))

    assert compiled.asm["cubin"]
