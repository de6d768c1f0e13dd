"""Two-dimensional maximum pooling, in floor and ceil mode."""

import functools

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)
WINDOW_HEIGHT = Symbol("WINDOW_HEIGHT", constexpr=True)
WINDOW_WIDTH = Symbol("WINDOW_WIDTH", constexpr=True)
STRIDE_HEIGHT = Symbol("STRIDE_HEIGHT", constexpr=True)
STRIDE_WIDTH = Symbol("STRIDE_WIDTH", constexpr=True)


def arrangement(input, output, ceil_mode=False):
    input_arranged = input.tile(
        (1, 1, WINDOW_HEIGHT, WINDOW_WIDTH),
        strides=(-1, -1, STRIDE_HEIGHT, STRIDE_WIDTH),
        floor_mode=not ceil_mode,
    )
    input_arranged = input_arranged.ravel().flatten(end_dim=4).flatten(start_dim=1)
    input_arranged = input_arranged.tile((BLOCK_SIZE, -1))

    output_arranged = output.flatten().unsqueeze(1).tile((BLOCK_SIZE, 1))

    return input_arranged, output_arranged


def application(input, output):
    # What lies outside of the input is left out of the maximum, for nothing says what it reads as.
    output = ntl.max(input, axis=1, keep_dims=True)


tensors = (Tensor(4), Tensor(4))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="max_pool2d")

ceil_kernel = ninetoothed.make(
    functools.partial(arrangement, ceil_mode=True),
    application,
    tensors,
    kernel_name="max_pool2d_ceil",
)


def max_pool2d(input, window, stride=None, ceil_mode=False):
    """The maxima of the windows of (n, c, h, w), as a new tensor (n, c, p, q).

    Window and stride are pairs (height, width); the stride is the window unless given. In ceil mode
    the last window may reach over the edge, but has to begin before it.
    """
    stride = window if stride is None else stride
    sizes = []

    for dim in range(2):
        size, excess = input.shape[2 + dim], int(ceil_mode) * (stride[dim] - 1)
        count = (size - window[dim] + excess) // stride[dim] + 1

        if (count - 1) * stride[dim] >= size:
            # The last window would begin past the edge: without the rows after the one before it,
            # it is not there.
            count -= 1
            input = input.narrow(2 + dim, 0, (count - 1) * stride[dim] + window[dim])

        sizes.append(count)

    output = input.new_empty((*input.shape[:2], *sizes))

    (ceil_kernel if ceil_mode else kernel)(
        input,
        output,
        WINDOW_HEIGHT=window[0],
        WINDOW_WIDTH=window[1],
        STRIDE_HEIGHT=stride[0],
        STRIDE_WIDTH=stride[1],
        BLOCK_SIZE=256,
    )

    return output
