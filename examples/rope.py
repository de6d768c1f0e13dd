"""Rotary position embedding: each pair of elements is turned by its position's angle.

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2. A pair is
two neighbours (interleaved), or an element of the first half with its fellow in the second.
"""

import functools

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, sin_table, cos_table, output, interleaved=True):
    def arrange_pairs(tensor):
        half = tensor.shape[-1] // 2

        # One program holds the two halves of all heads at one position.
        if interleaved:
            arranged = tensor.tile((1, 1, -1, half), strides=(-1, -1, -1, 1), dilation=(1, 1, 1, 2))
        else:
            arranged = tensor.tile((1, 1, -1, half))

        arranged = arranged.tile((1, 1, 1, 2))
        arranged.dtype = arranged.dtype.squeeze((0, 1, 2))
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

        return arranged

    def arrange_table(table):
        arranged = table.tile((1, -1)).unsqueeze(0).unsqueeze(2)

        return arranged.expand((input.shape[0], -1, -1, -1))

    return (
        arrange_pairs(input),
        arrange_table(sin_table),
        arrange_table(cos_table),
        arrange_pairs(output),
    )


def application(input, sin_table, cos_table, output):
    first = ntl.cast(input[0], ntl.float32)
    second = ntl.cast(input[1], ntl.float32)
    sin = ntl.cast(sin_table, ntl.float32)
    cos = ntl.cast(cos_table, ntl.float32)

    output[0] = first * cos - second * sin
    output[1] = first * sin + second * cos


shape_options = (None, None, {"constexpr": True}, {"constexpr": True})
input, output = (Tensor(4, shape_options=shape_options) for _ in range(2))
sin_table, cos_table = (Tensor(2, shape_options=shape_options[2:]) for _ in range(2))
tensors = (input, sin_table, cos_table, output)

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="rope")

halves_kernel = ninetoothed.make(
    functools.partial(arrangement, interleaved=False),
    application,
    tensors,
    kernel_name="rope_halves",
)


def rope(input, sin_table, cos_table, interleaved=True):
    """Turn (batch, sequence, heads, size); the tables are (sequence or more, size / 2)."""
    length = input.shape[1]
    output = input.new_empty(input.shape)

    (kernel if interleaved else halves_kernel)(
        input, sin_table[:length], cos_table[:length], output
    )

    return output
