"""Functions that ``triton.jit`` made, and names of Triton's language, in an application."""

from __future__ import annotations

import pytest

import ninetoothed
from ninetoothed import Tensor

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton, whose functions it calls")
tl = pytest.importorskip("triton.language")


def run(application, *arguments):
    """Runs an application on vectors in blocks of four."""

    def arrangement(*tensors):
        return tuple(tensor.tile((4,)) for tensor in tensors)

    tensors = tuple(Tensor(1) for _ in arguments)
    ninetoothed.make(arrangement, application, tensors)(*arguments)


def floats(count):
    return torch.arange(1.0, count + 1)


@triton.jit
def jit_square(x):
    return x * x


@triton.jit
def jit_helper(x, scale: tl.constexpr):
    result = tl.zeros_like(x)
    for _ in tl.static_range(2):
        result += jit_square(x).to(tl.float32) * scale
    return tl.where(result > 4, result, tl.exp(result - result))


def test_functions_that_triton_decorated_are_called():
    def application(x, out):
        out = jit_helper(x, scale=2)

    out = torch.empty(4)
    run(application, floats(4), out)
    assert out.tolist() == [1, 16, 36, 64]


def test_names_of_tritons_language_mean_ours():
    def application(x, out):
        out = tl.maximum(x, 2.0).to(tl.float32) + tl.sum(x, axis=0)

    out = torch.empty(4)
    run(application, floats(4), out)
    assert out.tolist() == [12, 12, 13, 14]
