"""Symbols, variables, numbers and kernels that are called alike: a text tells them apart."""

from __future__ import annotations

import functools

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError

pytest.importorskip("triton", reason="needs Triton, which compiles for a device that is not there")

SIZE = Symbol("n", constexpr=True)


def blocks_of_rows(x, *more, size=SIZE):
    *numbers, y = more
    arranged = (tensor.tile((size,)).tile((-1,)) for tensor in (x, y))
    return next(arranged), *numbers, next(arranged)


def test_a_variable_is_called_as_a_symbol():
    def application(x, y):
        n = ntl.sum(x[0])
        for k in range(x.shape[0]):
            n += k
            y[k] = x[k] + n

    kernel = ninetoothed.make(blocks_of_rows, application, (Tensor(1), Tensor(1)))
    kernel.compile(torch.zeros(20), torch.zeros(20), n=16, target=("cuda", 90))
    x, y = torch.ones(20), torch.empty(20)
    kernel(x, y, n=16)
    assert torch.equal(y, 17.0 + (torch.arange(20) // 16))


def scaled(x, n, y):
    for k in range(x.shape[0]):
        y[k] = x[k] * n


NUMBERED = (Tensor(1), Tensor(0), Tensor(1))


def test_a_number_is_called_as_a_symbol_that_is_tuned():
    tuned = Symbol("n", meta=True, lower_bound=16, upper_bound=16)
    arrangement = functools.partial(blocks_of_rows, size=tuned)
    kernel = ninetoothed.make(arrangement, scaled, NUMBERED)
    kernel.compile(torch.zeros(20), 2, torch.zeros(20), target=("cuda", 90))


def test_a_number_is_called_as_a_symbol_that_a_call_gives():
    with pytest.raises(
        ArgumentError,
        match="two things that are called `n`: a parameter of the application and a symbol",
    ):
        ninetoothed.make(blocks_of_rows, scaled, NUMBERED)


def add(a, b):
    return a + b


def test_a_kernel_is_called_as_a_function_that_the_language_calls_back():
    def application(x, y):
        y = ntl.reduce(x[0], 0, add)  # noqa: F841

    def arrangement(x, y):
        return x.tile((16,)).tile((-1,)), y.tile((1,))

    tensors = (Tensor(1), Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="add")
    binary = kernel.compile(torch.zeros(20), torch.zeros(1), target=("cuda", 90))
    assert ".entry add(" in binary.asm["ptx"]
