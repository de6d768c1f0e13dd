"""`input + value * first * second`, or with a quotient: a member of an enumeration decides."""

import enum
import functools

import ninetoothed
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


class Mode(enum.Enum):
    """What is done with the two tensors before they are added."""

    MULTIPLY = "multiply"
    DIVIDE = "divide"


def arrangement(input, first, second, value, mode, output):
    input, first, second, output = (
        tensor.flatten().tile((BLOCK_SIZE,)) for tensor in (input, first, second, output)
    )

    return input, first, second, value, mode, output


def application(input, first, second, value, mode, output):
    if mode is Mode.MULTIPLY:
        output = input + value * first * second
    else:
        output = input + value * first / second


@functools.cache
def kernel_for(ndim):
    """The kernel for tensors of one number of dimensions, which need not be contiguous."""
    input, first, second, output = (Tensor(ndim) for _ in range(4))
    tensors = (input, first, second, Tensor(0), Tensor(0, constexpr=True), output)

    return ninetoothed.make(arrangement, application, tensors, kernel_name="addcmul")


def addcmul(input, first, second, value=1.0, mode=Mode.MULTIPLY):
    """The sum of a tensor and a product or quotient of two others of its shape, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel_for(input.ndim)(input, first, second, value, mode, output, BLOCK_SIZE=256)

    return output
