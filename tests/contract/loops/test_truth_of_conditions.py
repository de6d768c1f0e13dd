"""What a ``while`` asks is what Python takes for true, of numbers and constants too, and compiles on each backend."""

from __future__ import annotations

import os

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def behind_a_constant(x, n, y):
    while n > 0 and 0:
        n -= 1
    y = x + n


def behind_a_constant_that_is_true(x, n, y):
    while (n > 8 or 0) and 1.5:
        n -= 1
    y = x + n


def an_integer(x, n, y):
    while n:
        n -= 1
    y = x + n


def one_of_two_integers(x, n, y):
    least = ntl.min(x, 0)
    while n > 3 and least:
        n -= 1
    y = x + n


def a_float(x, n, y):
    rest = n * 0.5
    while rest - 1:
        rest -= 0.5
    y = x + rest


def a_choice(x, n, y):
    while 3 if n > 4 else 0:
        n -= 1
    y = x + n


LEFT = {
    behind_a_constant: 10,
    behind_a_constant_that_is_true: 8,
    an_integer: 0,
    one_of_two_integers: 3,
    a_float: 1,
    a_choice: 4,
}


def made(application):
    tensors = Tensor(1), Tensor(0), Tensor(1)
    kernel = ninetoothed.make(lambda x, n, y: (x.tile((4,)), n, y.tile((4,))), application, tensors)
    return kernel, (torch.tensor([1, 2, 3, 4], dtype=torch.int32), 10, torch.zeros(4))


@pytest.mark.parametrize("application", LEFT, ids=lambda each: each.__name__)
def test_a_loop_goes_on_while_its_condition_is_true(application):
    kernel, (x, n, y) = made(application)
    kernel(x, n, y)
    assert y.tolist() == (x + LEFT[application]).tolist()


@pytest.mark.parametrize("application", LEFT, ids=lambda each: each.__name__)
def test_triton_compiles_it(application):
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    kernel, arguments = made(application)
    assert kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]
