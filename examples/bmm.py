"""The products of the matrices of two batches: mm's application, with one more dimension."""

import ninetoothed
from examples import mm
from ninetoothed import Tensor, block_size


def arrangement(
    input,
    other,
    output,
    BLOCK_SIZE_M=block_size(),
    BLOCK_SIZE_N=block_size(),
    BLOCK_SIZE_K=block_size(),
):
    output_arranged = output.tile((1, BLOCK_SIZE_M, BLOCK_SIZE_N))
    output_arranged.dtype = output_arranged.dtype.squeeze(0)

    input_arranged = input.tile((1, BLOCK_SIZE_M, BLOCK_SIZE_K))
    input_arranged = input_arranged.tile((1, 1, -1))
    input_arranged = input_arranged.expand((-1, -1, output_arranged.shape[2]))
    input_arranged.dtype = input_arranged.dtype.squeeze((0, 1))
    input_arranged.dtype.dtype = input_arranged.dtype.dtype.squeeze(0)

    other_arranged = other.tile((1, BLOCK_SIZE_K, BLOCK_SIZE_N))
    other_arranged = other_arranged.tile((1, -1, 1))
    other_arranged = other_arranged.expand((-1, output_arranged.shape[1], -1))
    other_arranged.dtype = other_arranged.dtype.squeeze((0, 2))
    other_arranged.dtype.dtype = other_arranged.dtype.dtype.squeeze(0)

    return input_arranged, other_arranged, output_arranged


tensors = tuple(Tensor(3) for _ in range(3))

kernel = ninetoothed.make(arrangement, mm.application, tensors)


def bmm(input, other):
    """The products of batches (b, m, k) and (b, k, n), as a new batch (b, m, n)."""
    output = input.new_empty((input.shape[0], input.shape[1], other.shape[2]))

    kernel(input, other, output)

    return output
