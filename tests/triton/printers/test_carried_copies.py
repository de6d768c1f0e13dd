"""Variables that hand their values on from round to round, through Triton's compiler; no device is needed."""

import re

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

pytest.importorskip("triton", reason="needs Triton")


def handed_on(x, n, y):
    a = b = c = ntl.zeros((8,), ntl.float32)
    for _ in range(n):
        a, b, c = b, c, x
    y = a  # noqa: F841


def handed_on_in_a_branch(x, n, y):
    a = b = ntl.zeros((8,), ntl.float32)
    c = x
    for k in range(n):
        if k > 2:
            a = b
        b = c
    y = a  # noqa: F841


def handed_on_by_a_while(x, n, y):
    a = b = ntl.zeros((8,), ntl.float32)
    while n > 0:
        a = b
        b = x
        n -= 1
    y = a  # noqa: F841


def computed_in_the_round(x, n, y):
    a = ntl.zeros((8,), ntl.float32)
    for _ in range(n):
        b = a + x
        a = b
    y = a  # noqa: F841


def compiled(application):
    def arrangement(x, n, y):
        return x.tile((8,)), n, y.tile((8,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    return kernel.compile(torch.zeros(16), 5, torch.zeros(16), target=("cuda", 90))


@pytest.mark.parametrize(
    ("application", "count"),
    [(handed_on, 3), (handed_on_in_a_branch, 2), (handed_on_by_a_while, 3)],
)
def test_a_loop_carries_all_that_hand_on_what_was_one_value_before_it(application, count):
    text = compiled(application).asm["ttir"]
    (carried,) = re.findall(r"scf\.(?:for|while)[^(]*\(([^)]*)\)", text)
    assert carried.count(" = ") == count
    assert "tensor<8xf32>" in text.split("scf.yield")[1]


def test_what_is_computed_in_the_round_is_handed_on_as_it_is():
    assert "arith.select" not in compiled(computed_in_the_round).asm["ttir"]
