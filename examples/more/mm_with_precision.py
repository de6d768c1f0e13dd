"""A product of matrices whose precision is a constant of the call, decided while it is compiled."""

import enum

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size


class Precision(enum.IntEnum):
    """How the factors of float32 enter a product."""

    TF32 = 0
    TF32X3 = 1
    IEEE = 2


def arrangement(
    input,
    other,
    output,
    variant,
    BLOCK_SIZE_M=block_size(lower_bound=16, upper_bound=64),
    BLOCK_SIZE_N=block_size(lower_bound=16, upper_bound=64),
    BLOCK_SIZE_K=block_size(lower_bound=16, upper_bound=64),
):
    output_arranged = output.tile((BLOCK_SIZE_M, BLOCK_SIZE_N))

    input_arranged = input.tile((BLOCK_SIZE_M, BLOCK_SIZE_K)).tile((1, -1))
    input_arranged = input_arranged.expand((-1, output_arranged.shape[1]))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)

    other_arranged = other.tile((BLOCK_SIZE_K, BLOCK_SIZE_N)).tile((-1, 1))
    other_arranged = other_arranged.expand((output_arranged.shape[0], -1))
    other_arranged.dtype = other_arranged.dtype.squeeze(1)

    return input_arranged, other_arranged, output_arranged, variant


def application(input, other, output, variant):
    if variant == 2:
        precision: ntl.constexpr = "ieee"
    elif variant == 1:
        precision: ntl.constexpr = "tf32x3"
    else:
        precision: ntl.constexpr = "tf32"

    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)

    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k], input_precision=precision)

    output = accumulator


tensors = (Tensor(2), Tensor(2), Tensor(2), Tensor(0, constexpr=True))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="mm_with_precision")


def mm(input, other, precision=Precision.IEEE):
    """The product of (m, k) and (k, n), as a new tensor."""
    output = input.new_empty((input.shape[0], other.shape[1]))

    kernel(input, other, output, precision)

    return output
