"""A jagged batch of sequences as a dense one: the short sequences are padded."""

import functools

import ninetoothed
from ninetoothed import Symbol, Tensor

BLOCK_SIZE_L = Symbol("BLOCK_SIZE_L", constexpr=True)
BLOCK_SIZE_D = Symbol("BLOCK_SIZE_D", constexpr=True)


def arrangement(input, output):
    tile_shape = (1, BLOCK_SIZE_L, BLOCK_SIZE_D)

    return input.tile(tile_shape), output.tile(tile_shape)


def application(input, output):
    output = input


@functools.cache
def kernel_for(padding_value):
    """The kernel that pads with one value: a position past a sequence's end reads as it."""
    tensors = (Tensor(3, jagged_dim=1, other=padding_value), Tensor(3))

    return ninetoothed.make(arrangement, application, tensors, kernel_name="jagged_to_padded")


kernel = kernel_for(0.0)


def jagged_to_padded(input, padding_value=0.0):
    """A nested tensor (batch, *, size) in the jagged layout, as (batch, longest, size)."""
    values, offsets = input.values(), input.offsets()
    longest = int(offsets.diff().max())
    output = values.new_empty((input.shape[0], longest, input.shape[2]))

    kernel_for(padding_value)(input, output, BLOCK_SIZE_L=16, BLOCK_SIZE_D=64)

    return output
