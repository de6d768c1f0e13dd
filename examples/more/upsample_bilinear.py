"""Images enlarged: each pixel is a mixture of four of the source, that its position chooses."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, output):
    output_arranged = output.tile((1, 1, BLOCK_SIZE, BLOCK_SIZE))
    output_arranged.dtype = output_arranged.dtype.squeeze((0, 1))

    return input, output_arranged


def neighbours(position, size, enlarged_size):
    """The pixel before a position, the one after it, and how far it is from the first."""
    exact = ntl.maximum((position + 0.5) * size / enlarged_size - 0.5, 0.0)
    before = ntl.cast(exact, ntl.int32)

    return before, ntl.minimum(before + 1, size - 1), exact - before


def application(input, output):
    image, channel = output.offsets(0), output.offsets(1)
    height, width = input.source.shape[2], input.source.shape[3]

    top, bottom, down = neighbours(output.offsets(2)[:, None], height, output.source.shape[2])
    left, right, across = neighbours(output.offsets(3)[None, :], width, output.source.shape[3])

    upper = input.source[image, channel, top, left] * (1 - across)
    upper += input.source[image, channel, top, right] * across
    lower = input.source[image, channel, bottom, left] * (1 - across)
    lower += input.source[image, channel, bottom, right] * across

    output = upper * (1 - down) + lower * down


tensors = (Tensor(4), Tensor(4))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="upsample_bilinear")


def upsample_bilinear(input, size):
    """(n, c, h, w) as (n, c, *size), where pixels are areas (`align_corners=False`)."""
    output = input.new_empty((*input.shape[:2], *size))

    kernel(input, output, BLOCK_SIZE=16)

    return output
