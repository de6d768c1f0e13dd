"""Softmax over each sequence of a jagged batch, which is not padded for it."""

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, output):
    def arrange(tensor):
        arranged = tensor.tile((1, -1, BLOCK_SIZE))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return arrange(input), arrange(output)


def application(input, output):
    # The tile is as long as the longest sequence; what this one does not have is left out.
    sequence = ntl.cast(input, ntl.float32)
    numerator = ntl.exp(sequence - ntl.max(sequence, axis=0)[None, :])
    output = numerator / ntl.sum(numerator, axis=0)[None, :]


tensors = (Tensor(3, jagged_dim=1), Tensor(3, jagged_dim=1))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="jagged_softmax")


def jagged_softmax(input):
    """Softmax of a nested tensor (batch, *, size) in the jagged layout along its sequences."""
    output = torch.empty_like(input)

    kernel(input, output, BLOCK_SIZE=16)

    return output
