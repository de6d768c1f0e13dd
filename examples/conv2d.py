"""Two-dimensional convolution as an implicit product: mm's arrangement and application.

The input's windows become the rows of a matrix and the filters the columns of another. Nothing is
copied: both are arrangements.
"""

import functools

import ninetoothed
from examples import mm
from ninetoothed import Tensor


def arrangement(input, filter, output, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    top_and_bottom, left_and_right = ((amount, amount) for amount in padding)

    input_arranged = input.pad(((0, 0), (0, 0), top_and_bottom, left_and_right))
    input_arranged = input_arranged.tile(
        (1, *filter.shape[1:]),
        strides=(-1, -1, *stride),
        dilation=(1, 1, *dilation),
        floor_mode=True,
    )
    input_arranged = input_arranged.squeeze(1)
    input_arranged.dtype = input_arranged.dtype.squeeze(0)
    input_arranged = input_arranged.ravel()
    input_arranged = input_arranged.flatten(end_dim=3).flatten(start_dim=1)

    filter_arranged = filter.flatten(start_dim=1)
    filter_arranged = filter_arranged.permute((1, 0))

    output_arranged = output.permute((0, 2, 3, 1)).flatten(end_dim=3)

    return mm.arrangement(input_arranged, filter_arranged, output_arranged)


@functools.cache
def kernel_for(stride, padding, dilation):
    """The kernel for one geometry; each argument is a pair (height, width)."""
    shape_options = {"constexpr": True}
    tensors = tuple(Tensor(4, shape_options=shape_options) for _ in range(3))

    return ninetoothed.make(
        functools.partial(arrangement, stride=stride, padding=padding, dilation=dilation),
        mm.application,
        tensors,
        kernel_name="conv2d",
    )


kernel = kernel_for((1, 1), (0, 0), (1, 1))


def conv2d(input, filter, stride=1, padding=0, dilation=1):
    """The convolution of (n, c, h, w) with (k, c, r, s), as a new tensor (n, k, p, q).

    Stride, padding and dilation are an int or a pair (height, width).
    """
    stride, padding, dilation = (
        (value, value) if isinstance(value, int) else tuple(value)
        for value in (stride, padding, dilation)
    )
    height, width = (
        (input.shape[dim] + 2 * padding[i] - dilation[i] * (filter.shape[dim] - 1) - 1) // stride[i]
        + 1
        for i, dim in enumerate((2, 3))
    )
    output = input.new_empty((input.shape[0], filter.shape[0], height, width))

    kernel_for(stride, padding, dilation)(input, filter, output)

    return output
