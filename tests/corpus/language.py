"""Applications for the language: `x`, `y` and `z` are a tile each, `row` the tiles of a row, `n` a scalar."""

from __future__ import annotations

import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.corpus.kernels import COLUMNS, ROWS, made

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
