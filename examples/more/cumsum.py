"""Sums of all elements so far: a scan of each block, and what the blocks before it carry over."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, output):
    def arrange(tensor):
        arranged = tensor.tile((1, BLOCK_SIZE)).tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)

        return arranged

    return arrange(input), arrange(output)


def application(input, output):
    carry = 0.0

    for k in range(input.shape[0]):
        block = ntl.cast(input[k], ntl.float32)
        output[k] = ntl.cumsum(block, axis=0) + carry
        carry += ntl.sum(block)


tensors = (Tensor(2), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="cumsum")


def cumsum(input):
    """The cumulative sums of (..., columns) along the last dimension, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(end_dim=-2), output.flatten(end_dim=-2), BLOCK_SIZE=64)

    return output
