"""Kernels that keep the first of their results in the cache, and what they should give."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import add, silu, softmax
from ninetoothed import Tensor
from tests.examples.compare import assert_matches
from tests.triton.interior_cases import assert_alone, random, view

#: So many elements of 16 bits are 1 MiB.
MIB = 2**19


def case_results_of_more_than_is_kept():
    """With a MiB kept, the last programs of these keep nothing."""
    for size, offset in ((2 * MIB, 0), (2 * MIB + 77, 0), (2 * MIB, 3)):
        left, right, (output, whole) = random(size), random(size), view(size, offset=offset)
        add.kernel(left, right, output, BLOCK_SIZE=2**16)
        assert_alone(whole, output, left.double() + right.double())


def case_results_of_less():
    for size in (0, 1, 1000):
        values, (output, whole) = random(size), view(size)
        silu.kernel(values, output, BLOCK_SIZE=256)
        assert_alone(whole, output, torch.nn.functional.silu(values.double()))


def case_rows():
    values, (output, whole) = random(230, 4103)[:, 3:], view(230, 4100, step=4107)
    softmax.kernel(values, output)
    assert_alone(whole, output, torch.softmax(values.double(), -1), 4100)


def rows(values, sums, differences):
    return values.tile((1, -1)), sums.tile((1, 1)), differences.tile((1, -1))


def sums_and_differences(values, sums, differences):
    sums = ntl.sum(ntl.cast(values, ntl.float32))
    differences = values - ntl.max(values)


def case_two_results():
    kernel = ninetoothed.make(rows, sums_and_differences, [Tensor(2) for _ in range(3)])
    values, (sums, whole) = random(130, 9000), view(130, 1)
    differences, others = view(130, 9000)
    kernel(values, sums, differences)
    assert_alone(whole, sums, values.double().sum(-1, keepdim=True), 9000)
    expected = values.double() - values.double().max(-1, keepdim=True).values
    assert_matches(differences, expected)
    differences.fill_(1)
    assert bool((others == 1).all())
