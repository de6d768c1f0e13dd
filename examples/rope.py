"""Rotary position embedding, in place: each pair of elements is turned by its position's angle.

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2. A pair is
two neighbours (interleaved), or an element of the first half with its fellow in the second.
"""

import functools

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, sin_table, cos_table, interleaved=True):
    half = input.shape[-1] // 2

    # One program holds the two halves of all heads at one position.
    if interleaved:
        input_arranged = input.tile(
            (1, 1, -1, half), strides=(-1, -1, -1, 1), dilation=(1, 1, 1, 2)
        )
    else:
        input_arranged = input.tile((1, 1, -1, half))

    input_arranged = input_arranged.tile((1, 1, 1, 2))
    input_arranged.dtype = input_arranged.dtype.squeeze((0, 1, 2))
    input_arranged.dtype.dtype = input_arranged.dtype.dtype.squeeze((0, 1))

    def arrange_table(table):
        table_arranged = table.tile((1, -1)).unsqueeze(0).unsqueeze(2)

        return table_arranged.expand((input_arranged.shape[0], -1, -1, -1))

    return input_arranged, arrange_table(sin_table), arrange_table(cos_table)


def application(input, sin_table, cos_table):
    first = ntl.cast(input[0], ntl.float32)
    second = ntl.cast(input[1], ntl.float32)
    sin = ntl.cast(sin_table, ntl.float32)
    cos = ntl.cast(cos_table, ntl.float32)

    input[0] = first * cos - second * sin
    input[1] = first * sin + second * cos


tensors = (
    Tensor(4, shape_options=(None, None, {"constexpr": True}, {"constexpr": True})),
    Tensor(2, shape_options=(None, {"constexpr": True})),
    Tensor(2, shape_options=(None, {"constexpr": True})),
)

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="rope")

halves_kernel = ninetoothed.make(
    functools.partial(arrangement, interleaved=False),
    application,
    tensors,
    kernel_name="rope_halves",
)


def rope_(input, sin_table, cos_table, interleaved=True):
    """Turn (batch, sequence, heads, size) in place; the tables are (sequence or more, size / 2)."""
    length = input.shape[1]

    (kernel if interleaved else halves_kernel)(input, sin_table[:length], cos_table[:length])

    return input


def rope(input, sin_table, cos_table, interleaved=True):
    """As `rope_`, but the turned tensor is a new one."""
    return rope_(input.clone(), sin_table, cos_table, interleaved)
