"""Maximum and average pooling of images: padding is a constant of the call, and may be 0."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)
WINDOW_HEIGHT = Symbol("WINDOW_HEIGHT", constexpr=True)
WINDOW_WIDTH = Symbol("WINDOW_WIDTH", constexpr=True)
STRIDE_HEIGHT = Symbol("STRIDE_HEIGHT", constexpr=True)
STRIDE_WIDTH = Symbol("STRIDE_WIDTH", constexpr=True)
PADDING_HEIGHT = Symbol("PADDING_HEIGHT", constexpr=True)
PADDING_WIDTH = Symbol("PADDING_WIDTH", constexpr=True)


def arrangement(input, output):
    vertical, horizontal = (PADDING_HEIGHT, PADDING_HEIGHT), (PADDING_WIDTH, PADDING_WIDTH)

    input_arranged = input.pad(((0, 0), (0, 0), vertical, horizontal))
    input_arranged = input_arranged.tile(
        (1, 1, WINDOW_HEIGHT, WINDOW_WIDTH),
        strides=(-1, -1, STRIDE_HEIGHT, STRIDE_WIDTH),
        floor_mode=True,
    )
    input_arranged = input_arranged.ravel().flatten(end_dim=4).flatten(start_dim=1)
    input_arranged = input_arranged.tile((BLOCK_SIZE, -1))

    output_arranged = output.flatten().unsqueeze(1).tile((BLOCK_SIZE, 1))

    return input_arranged, output_arranged


def max_application(input, output):
    # What lies outside of the image does not exist, and is left out of the maximum.
    output = ntl.max(input, axis=1, keep_dims=True)


def avg_application(input, output):
    # It is left out of the sum too, but counts among a window's elements.
    total = ntl.sum(ntl.cast(input, ntl.float32), axis=1, keep_dims=True)
    output = total / input.shape[1]


tensors = (Tensor(4), Tensor(4))

max_kernel = ninetoothed.make(arrangement, max_application, tensors, kernel_name="max_pool2d")
avg_kernel = ninetoothed.make(arrangement, avg_application, tensors, kernel_name="avg_pool2d")


def _pool2d(kernel, input, window, stride, padding):
    stride = window if stride is None else stride
    sizes = (
        (input.shape[2 + dim] + 2 * padding[dim] - window[dim]) // stride[dim] + 1
        for dim in range(2)
    )
    output = input.new_empty((*input.shape[:2], *sizes))

    kernel(
        input,
        output,
        WINDOW_HEIGHT=window[0],
        WINDOW_WIDTH=window[1],
        STRIDE_HEIGHT=stride[0],
        STRIDE_WIDTH=stride[1],
        PADDING_HEIGHT=padding[0],
        PADDING_WIDTH=padding[1],
        BLOCK_SIZE=64,
    )

    return output


def max_pool2d(input, window, stride=None, padding=(0, 0)):
    """The maxima of the windows of (n, c, h, w), as a new tensor; pairs are (height, width)."""
    return _pool2d(max_kernel, input, window, stride, padding)


def avg_pool2d(input, window, stride=None, padding=(0, 0)):
    """The means of the windows of (n, c, h, w), in which padding counts as zeros."""
    return _pool2d(avg_kernel, input, window, stride, padding)
