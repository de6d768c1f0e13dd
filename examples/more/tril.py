"""The lower triangle of matrices: where an element is decides whether it is kept."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, diagonal, output):
    def arrange(tensor):
        arranged = tensor.tile((1, BLOCK_SIZE, BLOCK_SIZE))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return arrange(input), diagonal, arrange(output)


def application(input, diagonal, output):
    row, column = input.offsets(1)[:, None], input.offsets(2)[None, :]
    output = ntl.where(column <= row + diagonal, input, 0)


tensors = (Tensor(3), Tensor(0), Tensor(3))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="tril")


def tril(input, diagonal=0):
    """Matrices (..., rows, columns) with what lies above a diagonal zeroed, as a new tensor."""
    output = input.new_empty(input.shape)
    matrices = (-1, *input.shape[-2:]) if input.numel() else (0, 1, 1)

    kernel(input.reshape(matrices), diagonal, output.view(matrices), BLOCK_SIZE=32)

    return output
