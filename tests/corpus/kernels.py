"""Small kernels for what the examples' kernels do not show."""

from __future__ import annotations

import functools

import ninetoothed
import ninetoothed.language as ntl
from examples import rope
from ninetoothed import Symbol, Tensor

BLOCK = Symbol("BLOCK", constexpr=True)
WIDTH = Symbol("WIDTH", constexpr=True)
ROWS = Symbol("ROWS", constexpr=True)
COLUMNS = Symbol("COLUMNS", constexpr=True)

_CONSTEXPR = {"constexpr": True}


def made(arrangement, application, *tensors):
    """A kernel that is called as its application is."""
    return ninetoothed.make(
        arrangement, application, tensors, kernel_name=application.__name__.strip("_")
    )


# Elements one by one, and matrices in blocks.


def vectors(input, output):
    return input.tile((BLOCK,)), output.tile((BLOCK,))


def copied(input, output):
    output = input


def blocks(input, output):
    return input.tile((ROWS, COLUMNS)), output.tile((ROWS, COLUMNS))


def doubled(input, output):
    output = input + input


def odd_blocks(input, output):
    return input.tile((3, 5)), output.tile((3, 5))


def turned(input, output):
    return input.permute((1, 0)).tile((ROWS, COLUMNS)), output.tile((ROWS, COLUMNS))


def flattened(input, output):
    return input.flatten().tile((BLOCK,)), output.flatten().tile((BLOCK,))


def turned_and_flattened(input, output):
    return input.permute((2, 0, 1)).flatten().tile((BLOCK,)), output.flatten().tile((BLOCK,))


def surrounded(input, output):
    return input.pad(((1, 2), (3, 0))).tile((ROWS, COLUMNS)), output.tile((ROWS, COLUMNS))


def windows(input, output):
    arranged = input.tile((3,), strides=(2,), floor_mode=True).tile((BLOCK,))
    return arranged.ravel().flatten(end_dim=1).flatten(start_dim=1), output.tile((BLOCK,))


def widest(input, output):
    output = ntl.max(input, axis=1)


def single_elements(input, output):
    return input, output


def halved(input, output):
    output = input / 2 if True else input


def sums_of_blocks(input, output):
    return input.tile((BLOCK,)), output.tile((1,))


def summed(input, output):
    output = ntl.sum(ntl.cast(input, ntl.float32))


KERNELS = {
    "copy": made(vectors, copied, Tensor(1), Tensor(1)),
    "copy or 7": made(vectors, copied, Tensor(1, other=7), Tensor(1)),
    "double": made(blocks, doubled, Tensor(2), Tensor(2)),
    "double odd blocks": made(odd_blocks, doubled, Tensor(2), Tensor(2)),
    "double turned": made(turned, doubled, Tensor(2), Tensor(2)),
    "double flattened": made(flattened, doubled, Tensor(3), Tensor(3)),
    "double turned and flattened": made(turned_and_flattened, doubled, Tensor(3), Tensor(3)),
    "double padded": made(surrounded, doubled, Tensor(2, other=-1.5), Tensor(2)),
    "halves of elements": made(single_elements, halved, Tensor(1), Tensor(1)),
    "sums of blocks": made(sums_of_blocks, summed, Tensor(1), Tensor(1)),
}


# Rows: one a program, or a tile after the other in a loop.


def rows(input, output):
    return input.tile((1, -1)), output.tile((1, -1))


def standardized(input, output):
    x = ntl.cast(input, ntl.float32)
    size = input.source.shape[-1]
    mean = ntl.sum(x) / size
    centered = x - mean
    deviation = ntl.sqrt(ntl.sum(centered * centered) / size)
    output = ntl.where(deviation > 0, centered / deviation, 0.0)


def rows_and_sums(values, sums, differences):
    return values.tile((1, -1)), sums.tile((1, 1)), differences.tile((1, -1))


def sums_and_differences(values, sums, differences):
    sums = ntl.sum(ntl.cast(values, ntl.float32))
    differences = values - ntl.max(values)


def pieces_of_rows(input, output):
    arranged = input.tile((1, WIDTH)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
    return arranged, output.tile((1,)).unsqueeze(1)


def largest(input, output):
    found = ntl.full((1,), float("-inf"), dtype=ntl.float32)
    for k in range(input.shape[0]):
        found = ntl.maximum(found, ntl.max(input[k]))
    output = found


def after_the_first(input, output):
    total = ntl.zeros((1,), dtype=ntl.float32)
    for k in range(1, input.shape[0]):
        total += ntl.sum(input[k])
    output = total


def pieces_to_a_piece(input, output):
    arranged = input.tile((1, BLOCK)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
    result = output.tile((1, BLOCK))
    result.dtype = result.dtype.squeeze(0)
    return arranged, result


def sum_of_pieces(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += input[k]
    output = total


def moments(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    squares = ntl.zeros((1,), dtype=ntl.float32)
    for k in range(input.shape[0]):
        block = ntl.cast(input[k], ntl.float32)
        total = total + block
        squares -= ntl.sum(block * block)
    output = total - squares


KERNELS |= {
    "standardize": made(rows, standardized, Tensor(2), Tensor(2)),
    "sums and differences": made(rows_and_sums, sums_and_differences, *map(Tensor, (2, 2, 2))),
    "largest": made(pieces_of_rows, largest, Tensor(2), Tensor(1)),
    "after the first": made(pieces_of_rows, after_the_first, Tensor(2), Tensor(1)),
    "sum of pieces": made(pieces_to_a_piece, sum_of_pieces, Tensor(2), Tensor(2)),
    "moments": made(pieces_to_a_piece, moments, Tensor(2), Tensor(2)),
}


# Comparisons of positions, in loops that can be split.


def squares(input, output):
    def arrange(tensor):
        arranged = tensor.tile((WIDTH, WIDTH)).tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged

    return arrange(input), arrange(output)


def banded(input, output):
    for k in range(input.shape[0]):
        row = input[k].offsets(0)[:, None]
        column = input[k].offsets(1)[None, :]
        inside = (column - row <= 3) & (row - column < 5)
        output[k] = ntl.where(inside, input[k], -1.0)


def below(input, output):
    for k in range(input.shape[0]):
        is_below = input[k].offsets(0)[:, None] >= input[k].offsets(1)[None, :]
        output[k] = ntl.where(is_below, 1.0, 0.0)


KERNELS |= {
    "banded": made(squares, banded, Tensor(2), Tensor(2)),
    "below": made(squares, below, Tensor(2), Tensor(2)),
}


# Tiles that take turns in memory.


def turns(input, output, SIZE=BLOCK):
    def arrange(tensor):
        arranged = tensor.tile((2 * SIZE,))
        arranged.dtype = arranged.dtype.tile((SIZE,), strides=(1,), dilation=(2,))
        return arranged

    return arrange(input), arrange(output)


def swapped(input, output):
    first = input[0]
    second = input[1]
    output[1] = first
    output[0] = second


def backwards(input, output):
    second = input[1] + 1
    first = input[0]
    total = first + second
    output[1] = total
    difference = first - second
    output[0] = difference


def in_a_loop(input, output):
    total = ntl.zeros((BLOCK,), dtype=ntl.float32)
    for _ in range(3):
        total += input[0] * input[1]
    output[0] = total
    output[1] = -total


def read_between(input, output):
    first = input[0]
    second = input[1]
    output[0] = first
    third = input[1]
    output[1] = second + third


KERNELS |= {
    f.__name__.replace("_", " "): made(turns, f, Tensor(1, other=7), Tensor(1))
    for f in (swapped, backwards, in_a_loop, read_between)
}


# Tiles so small that several programs can be one.


def one_head(input, sin_table, cos_table, interleaved=True):
    """The arrangement of the paper: one head at one position a program."""
    half = input.shape[-1] // 2
    steps = {"strides": (-1, -1, -1, 1), "dilation": (1, 1, 1, 2)} if interleaved else {}
    arranged = input.tile((1, 1, 1, half), **steps).tile((1, 1, 1, 2))
    arranged.dtype = arranged.dtype.squeeze((0, 1, 2))
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1, 2))

    def arrange_table(table):
        result = table.tile((1, half)).unsqueeze(0).unsqueeze(2)
        result = result.expand((arranged.shape[0], -1, arranged.shape[2], -1))
        result.dtype = result.dtype.squeeze(0)
        return result

    return arranged, arrange_table(sin_table), arrange_table(cos_table)


def rotated(input, sin_table, cos_table):
    rope.application(input, sin_table, cos_table, input)


def scaled_arrangement(input, scale, output):
    arranged = input.tile((1, 3, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    result = output.tile((1, 1, -1))
    result.dtype = result.dtype.squeeze((0, 1))
    scales = scale.tile((-1,)).unsqueeze(0).unsqueeze(0).expand((*arranged.shape[:2], -1))
    return arranged, scales, result


def scaled_sums(input, scale, output):
    total = ntl.sum(input.to(ntl.float32), axis=0)
    total += 1
    output = -total * scale


def outer_arrangement(left, right, output):
    first = left.tile((1, -1)).squeeze(1)
    first.dtype = first.dtype.squeeze(0)
    second = right.tile((1, -1)).squeeze(1)
    second.dtype = second.dtype.squeeze(0)
    result = output.tile((1, -1, -1)).squeeze((1, 2))
    result.dtype = result.dtype.squeeze(0)
    return first, second, result


def outer(left, right, output):
    product = left[:, None] * right[None, :]
    output = product + ntl.full(output.shape, 1, dtype=output.dtype)


_HEADS = Tensor(4, shape_options=(None, None, None, _CONSTEXPR))
_TABLES = [Tensor(2, shape_options=(None, _CONSTEXPR)) for _ in range(2)]

KERNELS |= {
    "one head": made(one_head, rotated, _HEADS, *_TABLES),
    "one head, halves": made(
        functools.partial(one_head, interleaved=False), rotated, _HEADS, *_TABLES
    ),
    "scaled sums": made(scaled_arrangement, scaled_sums, Tensor(3), Tensor(1), Tensor(3)),
    "outer product": made(outer_arrangement, outer, Tensor(2), Tensor(2), Tensor(3)),
}


# Sequences of different lengths.


def sequences(x, y, z):
    """A sequence in blocks, those of a dense tensor as long as the longest, and a result each."""

    def in_blocks(tensor):
        arranged = tensor.tile((1, 4)).tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged

    return in_blocks(x), in_blocks(y), z.tile((1, 1))


def seen(x, y, z):
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(y.shape[0]):
        is_seen = y[k].offsets(1)[None, :] < x.source.shape[1]
        total += ntl.where(is_seen, y[k], 0.0)
    z = ntl.sum(total) / x.source.shape[1]


def bounded(x, y, z):
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(ntl.cdiv(x.source.shape[1], 4)):
        total += ntl.where(y[k].offsets(1)[None, :] < x.source.shape[1], y[k], 0.0)
    z = ntl.sum(total) / x.source.shape[1]


def added_up(x, y, z):
    total = ntl.zeros((1, 4), dtype=ntl.float32)
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    z = ntl.sum(total)


JAGGED = {
    f.__name__.replace("_", " "): made(sequences, f, Tensor(2, jagged_dim=1), Tensor(2), Tensor(2))
    for f in (seen, bounded, added_up)
}
