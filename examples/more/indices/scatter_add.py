"""Rows added to those rows of another matrix that an index names, several to the same one too."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE_M = Symbol("BLOCK_SIZE_M", constexpr=True)
BLOCK_SIZE_N = Symbol("BLOCK_SIZE_N", constexpr=True)


def arrangement(input, index, output):
    input_arranged = input.tile((BLOCK_SIZE_M, BLOCK_SIZE_N))
    index_arranged = index.tile((BLOCK_SIZE_M,)).unsqueeze(1)

    return input_arranged, index_arranged.expand((-1, input_arranged.shape[1])), output


def application(input, index, output):
    columns = input.offsets(1)[None, :]
    ntl.atomic_add(output.source[index[:, None], columns], input)


tensors = (Tensor(2), Tensor(1), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="scatter_add")


def scatter_add_(output, index, input):
    """Add row i of (n, columns) to row index[i] of the output (rows, columns), in place."""
    kernel(input, index, output, BLOCK_SIZE_M=16, BLOCK_SIZE_N=32)

    return output
