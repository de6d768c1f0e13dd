"""The sigmoid linear unit: ``output = input * sigmoid(input)``."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, output, BLOCK_SIZE=BLOCK_SIZE):
    return input.tile((BLOCK_SIZE,)), output.tile((BLOCK_SIZE,))


def application(input, output):
    x = ntl.cast(input, ntl.float32)
    output = x * ntl.sigmoid(x)


tensors = (Tensor(1), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors)


def silu(input):
    """SiLU of each element of a tensor of any shape, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(), output.flatten(), BLOCK_SIZE=1024)

    return output
