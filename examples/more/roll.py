"""Columns that move around: an output that chooses what it reads, of a tensor that has no tile."""

import ninetoothed
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, shift, output):
    return input, shift, output.tile((1, BLOCK_SIZE))


def application(input, shift, output):
    row = output.offsets(0)[:, None]
    column = output.offsets(1)[None, :]
    output = input.source[row, (column - shift) % input.source.shape[1]]


tensors = (Tensor(2), Tensor(0), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="roll")


def roll(input, shift):
    """(..., columns) with each column moved by `shift`, which may be negative, to the right."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(end_dim=-2), shift, output.flatten(end_dim=-2), BLOCK_SIZE=64)

    return output
