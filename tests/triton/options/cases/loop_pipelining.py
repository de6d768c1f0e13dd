"""Kernels with loops whose tiles are loaded rounds ahead, and what they should give."""

from __future__ import annotations

import itertools

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.derivatives.operators import made
from tests.derivatives.test_shared_inputs import scaled, with_vectors


def pieces(input, output):
    """A row in pieces of 16 for each program."""
    arranged = input.tile((1, 16)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    return arranged, output.tile((1,)).unsqueeze(1)


def largest_squares(input, output):
    total = ntl.zeros((1, 16), dtype=ntl.float32)
    for i in range(input.shape[0]):
        total = ntl.maximum(total, input[i] * input[i])
    output = ntl.max(total)  # noqa: F841


def changed_in_place(input, output):
    total = ntl.zeros((1, 16), dtype=ntl.float32)
    for i in range(input.shape[0]):
        total += input[i]
        input[i] = total
    output = ntl.sum(total)  # noqa: F841


kernel = ninetoothed.make(pieces, largest_squares, (Tensor(2), Tensor(1)))
in_place = ninetoothed.make(pieces, changed_in_place, (Tensor(2), Tensor(1)))
normal = made(scaled, *with_vectors(2))


def case_loads_alone():
    for rows, columns in itertools.product((1, 3), (16, 33, 100, 160)):
        input, output = torch.randn(rows, columns), torch.empty(rows)
        kernel(input, output)
        torch.testing.assert_close(output, input.square().amax(1))


def case_a_tile_is_stored_in_each_round():
    """A weight's gradient in parts, and beside it that of the rows."""
    for rows in (1, 7, 300):
        inputs = [torch.randn(shape, requires_grad=True) for shape in ((rows, 33), (33,), (33,))]
        found = torch.autograd.grad(normal(*inputs).sin().sum(), inputs)
        reference = torch.nn.functional.layer_norm(inputs[0], (33,), *inputs[1:])
        for one, other in zip(found, torch.autograd.grad(reference.sin().sum(), inputs)):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
