"""Small kernels for what the examples' kernels do not show."""

from __future__ import annotations

import functools

import ninetoothed
import ninetoothed.language as ntl
from examples import conv2d, mm, rope, sdpa
from ninetoothed import Symbol, Tensor, block_size

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


# The language: `x`, `y` and `z` are a tile each, `row` the tiles of a row, `n` a scalar.


def tiles_of(names):
    """The arrangement of parameters that are called so."""

    def arranged(name, tensor, last):
        if name in ("n", "FLAG"):
            return tensor
        tiles = tensor.tile((ROWS, COLUMNS))
        if name == "row":
            tiles = tiles.tile((1, -1)).expand((-1, last.tile((ROWS, COLUMNS)).shape[1]))
            tiles.dtype = tiles.dtype.squeeze(0)
        return tiles

    def arrangement(*tensors):
        return tuple(arranged(name, tensor, tensors[-1]) for name, tensor in zip(names, tensors))

    return arrangement


def variance(x, y):
    centered = x - ntl.sum(x, axis=1)[:, None] / x.shape[1]
    y = ntl.sum(centered * centered, axis=1)[:, None]


def places(x, y):
    y = ntl.argmax(x - 4, axis=1)[:, None] + ntl.argmin(x + 4, axis=0)[None, :] * 100


def transposed(x, y):
    t = ntl.trans(ntl.exp(x))
    y = ntl.sum(t, axis=0)[:, None] + ntl.max(t.T - 9)


def scanned(x, y):
    y = ntl.cumprod(x + 2, axis=1) + ntl.cumsum(x, axis=0)


def combined(a, b):
    return a + b + 0.5


def own_combination(x, y):
    y = ntl.reduce(x, 1, combined)[:, None] + ntl.associative_scan(x, 1, combined)


def sorted_and_counted(x, y):
    counts = ntl.histogram(ntl.sum(ntl.where(x > 0, 1, 0), axis=1), 8)
    y = ntl.sort(x) + ntl.sum(counts)


def branches(x, z, n, y):
    if n > 2:
        scale = 1
        tile = x
    else:
        scale = 2
        tile = z
    y = tile * scale


def compile_time_branch(x, FLAG, y):
    v = x + 1 if FLAG else x
    if FLAG:
        v = v * 2
    y = ntl.max(v - 6)


def while_loop(x, n, y):
    i = n
    total = 0
    while i > 0:
        total += i
        i -= 2
    y = x * total


def loop_of_loops(row, n, y):
    total = ntl.zeros((y.shape[0],), dtype=ntl.float32)
    for i in range(n):
        for k in range(row.shape[0]):
            total += ntl.sum(ntl.exp(row[k]) + i, axis=1)
    y = total[:, None]


def index_that_changes(row, n, y):
    i = n - 3
    v = row[i]
    i = i + 1
    y = ntl.max(v - 5) + i


def stored_often(row, n, y):
    y = 0.0
    for k in range(row.shape[0]):
        y += row[k] * n


def clip(value, low, high):
    if low > high:
        return value
    value = ntl.maximum(value, low)
    return ntl.minimum(value, high)


def classify(n):
    if n > 5:
        return 2.0
    elif n > 2:
        return 3.0
    return 4.0


def helpers(x, n, y):
    y = clip(x, -0.5, 0.5) + clip(x, n, 2) * classify(n) + classify(7)


def store_helper(target, value, scale=2):
    target = value * scale


def stored_by_a_helper(x, z, y):
    store_helper(y, x)
    store_helper(z, y, scale=3)
    y = z + y


def unrolled(x, z, y):
    y = 0.0
    for dim in ntl.static_range(2):
        y += x * (dim + 1) + dim
    for tile in (x, z):
        y += tile


def numbers(x, n, y):
    y = ntl.where(0 < x + 1, x, 0.0) + max(n, 1, 2) + min(n, 9) + abs(x) + float(n) + int(n)
    y += (n & 1) + (n << 1) + (n | 4) + (n ^ 3) + ~n


def quotients(x, n, y):
    y = x // n + x % n + (n - 9) // 4 + (n - 9) % 4 + ntl.cdiv(n, 3)


def elements_of_the_source(row, y):
    columns = row[0].offsets(1)[None, :] * 0
    y = row.source[0, 0] + row.source[row[0].offsets(0)[:, None], columns]


def positions(x, y):
    y = x.offsets(0)[:, None] * 10 + x.offsets(1)[None, :] + x.offsets() * 100


def functions(x, y):
    y = (
        ntl.libdevice.tanh(x)
        + ntl.erf(x)
        + ntl.rsqrt(x)
        + ntl.fma(x, x, x)
        + ntl.rand(3, x.offsets())
    )


def element_types(x, FLAG, y):
    dtype = ntl.float16 if FLAG else ntl.float32
    if x.dtype in (ntl.float16, ntl.float32) and FLAG is not None:
        y = x.to(dtype).to(ntl.float32) + len(x.shape)


_LANGUAGE = (
    variance, places, transposed, scanned, own_combination, sorted_and_counted, branches,
    compile_time_branch, while_loop, loop_of_loops, index_that_changes, stored_often, helpers,
    stored_by_a_helper, unrolled, numbers, quotients, elements_of_the_source, positions, functions,
    element_types,
)  # fmt: skip


def of_language(application):
    """A kernel of tiles, after the names of the application's parameters."""
    code = application.__code__
    names = code.co_varnames[: code.co_argcount]
    tensors = [
        Tensor(0, constexpr=True) if name == "FLAG" else Tensor(0) if name == "n" else Tensor(2)
        for name in names
    ]
    return made(tiles_of(names), application, *tensors)


LANGUAGE = {f.__name__.replace("_", " "): of_language(f) for f in _LANGUAGE}
