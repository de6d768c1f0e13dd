"""Elements kept between two scalars: what is outside becomes the nearer, or what a constant says."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, low, high, replacement, output):
    return input.tile((BLOCK_SIZE,)), low, high, replacement, output.tile((BLOCK_SIZE,))


def application(input, low, high, replacement, output):
    if replacement is None:
        output = ntl.where(input < low, low, ntl.where(input > high, high, input))
    else:
        output = ntl.where((input < low) | (input > high), replacement, input)


# The bounds are numbers of the launch; the replacement, which may be None, one of the compilation.
tensors = (Tensor(1), Tensor(0), Tensor(0), Tensor(0, constexpr=True), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="clamp")


def clamp(input, low, high, replacement=None):
    """A tensor of any shape with what is under `low` or over `high` replaced, as a new tensor."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(), low, high, replacement, output.flatten(), BLOCK_SIZE=256)

    return output
