"""Kernels with products."""

from __future__ import annotations

import ninetoothed.language as ntl
from examples import conv2d, mm, sdpa
from ninetoothed import Tensor, block_size
from tests.corpus.kernels import _CONSTEXPR, COLUMNS, ROWS, WIDTH, made

# Products.


def product_and_scale(input, other, scale, output):
    input, other, output = mm.arrangement(input, other, output, 16, 16, 16)
    return input, other, scale, output


def activated(input, other, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    accumulator = accumulator * scale
    gate = ntl.sigmoid(accumulator)
    output = ntl.where(accumulator > -1.0, accumulator * gate, -accumulator)


def two(input, other, scale, output):
    first = ntl.zeros(output.shape, dtype=ntl.float32)
    second = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        first += ntl.dot(input[k], other[k])
        second += ntl.dot(ntl.abs(input[k]), other[k])
    output = first - scale * second


def normalized(input, other, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = accumulator - ntl.max(accumulator, axis=1)[:, None]


def padded_product(input, other, output, SIZE=block_size(lower_bound=16, upper_bound=16)):
    tiles = output.tile((SIZE, SIZE))
    left = input.pad(((0, 0), (8, 0))).tile((SIZE, SIZE)).tile((1, -1))
    left = left.expand((-1, tiles.shape[1]))
    left.dtype = left.dtype.squeeze(0)
    right = other.pad(((8, 0), (0, 0))).tile((SIZE, SIZE)).tile((-1, 1))
    right = right.expand((tiles.shape[0], -1))
    right.dtype = right.dtype.squeeze(1)
    return left, right, tiles


def one_more(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k])
    output = total + 1


def sums_of_columns(left, right, output):
    result = output.tile((ROWS,))
    left_arranged = left.tile((ROWS, -1)).squeeze(1)
    right_arranged = right.tile((COLUMNS, -1)).tile((-1, 1)).squeeze(1)
    right_arranged.dtype = right_arranged.dtype.squeeze(1)
    return left_arranged, right_arranged.expand((result.shape[0],)), result


def exponentials(left, right, output):
    total = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    for k in range(right.shape[0]):
        total += ntl.sum(ntl.exp(ntl.dot(left, ntl.trans(right[k]))), axis=1)
    output = total


def half_of_the_last(left, right, output):
    total = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    for k in range(right.shape[0]):
        product = ntl.dot(left, ntl.trans(right[k]))
        total = ntl.sum(product, axis=1) + 0.5 * total
    output = total + 1


def windows_as_columns(filter, input, output, *sizes):
    arranged = input.tile((1, *filter.shape[1:]), strides=(-1, -1, 1, 1), floor_mode=True)
    arranged = arranged.squeeze(1)
    arranged.dtype = arranged.dtype.squeeze(0)
    arranged = arranged.ravel().flatten(end_dim=3).flatten(start_dim=1).permute((1, 0))
    result = output.permute((1, 0, 2, 3)).flatten(start_dim=1)
    return mm.arrangement(filter.flatten(start_dim=1), arranged, result, *sizes)


def windows_in_blocks(filter, input, output, WIDTH=WIDTH):
    return windows_as_columns(filter, input, output, 16, 32, WIDTH)


def looped(query, key, value, scale, is_causal, output):
    """Attention without its softmax, with a name that rings of buffers have too."""
    output_buffer = ntl.zeros(output.shape, dtype=ntl.float32)
    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        output_buffer += ntl.dot(ntl.cast(scores, value.dtype.dtype), value[i])
    output = output_buffer


_FOUR = tuple(Tensor(4, shape_options=_CONSTEXPR) for _ in range(3))
_MATRICES = tuple(Tensor(2) for _ in range(3))
_SCALED = (Tensor(2), Tensor(2), Tensor(0), Tensor(2))
_COLUMNS = (Tensor(2), Tensor(2, shape_options=(None, _CONSTEXPR)), Tensor(1))

PRODUCTS = {
    "activated": made(product_and_scale, activated, *_SCALED),
    "two products": made(product_and_scale, two, *_SCALED),
    "normalized": made(product_and_scale, normalized, *_SCALED),
    "padded product": made(padded_product, one_more, *_MATRICES),
    "exponentials": made(sums_of_columns, exponentials, *_COLUMNS),
    "half of the last": made(sums_of_columns, half_of_the_last, *_COLUMNS),
    "windows as columns": made(windows_as_columns, mm.application, *_FOUR),
    "windows in blocks": made(windows_in_blocks, mm.application, *_FOUR),
    "looped": made(sdpa.arrangement, looped, *sdpa.tensors),
    "conv2d padded": conv2d.kernel_for((1, 1), (1, 1), (1, 1)),
    "conv2d strided": conv2d.kernel_for((2, 2), (2, 2), (2, 2)),
}
