"""Small applications that both backends have to agree on, over tiles that reach past the edges.

The NumPy backend executes an application as Python; the Triton backend runs what the parser and the
passes made of it. ``x``, ``y``, ``z`` are one tile a program, ``row`` all tiles of a row of them,
``full`` is as ``x`` with ``other`` set, ``n`` is a scalar, ``FLAG`` a constexpr.
"""

from __future__ import annotations

import inspect

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

M = Symbol("M", constexpr=True)
N = Symbol("N", constexpr=True)


def arrangement_of(names):
    """The arrangement of parameters that are called so."""

    def arrangement(*tensors):
        return tuple(_arranged(name, tensor, tensors[-1]) for name, tensor in zip(names, tensors))

    return arrangement


def _arranged(name, tensor, last):
    if name in ("n", "FLAG"):
        return tensor
    tiles = tensor.tile((M, N))
    if name == "row":
        tiles = tiles.tile((1, -1)).expand((-1, last.tile((M, N)).shape[1]))
        tiles.dtype = tiles.dtype.squeeze(0)
    return tiles


def kernel_of(application):
    """The kernel of an application; its last parameter is a tile that is stored to."""
    names = list(inspect.signature(application).parameters)
    tensors = [
        Tensor(0)
        if name == "n"
        else Tensor(0, constexpr=True)
        if name == "FLAG"
        else Tensor(2, other=-2.5 if name == "full" else None)
        for name in names
    ]
    return ninetoothed.make(
        arrangement_of(names), application, tensors, kernel_name=application.__name__
    )


# Padding in reductions.


def mean(x, y):
    y = ntl.sum(ntl.exp(x)) / x.source.shape[1]


def softmax(x, y):
    shifted = ntl.exp(x - ntl.max(x, axis=1)[:, None])
    y = shifted / ntl.sum(shifted, axis=1)[:, None]


def variance(x, y):
    centered = x - ntl.sum(x, axis=1)[:, None] / x.shape[1]
    y = ntl.sum(centered * centered, axis=1)[:, None]


def smallest(x, y):
    y = ntl.min(x + 3, axis=0)[None, :] + ntl.max(ntl.min(x, axis=0))


def places(x, y):
    y = ntl.argmax(x - 4, axis=1)[:, None] + ntl.argmin(x + 4, axis=0)[None, :] * 100


def values_and_places(x, y):
    value, place = ntl.max(x - 4, axis=1, return_indices=True)
    y = value[:, None] + ntl.sum(place) + ntl.min(value)


def two_tiles(x, z, y):
    y = ntl.max(x[:, :, None] - z[:, None, :])


def transposed(x, y):
    t = ntl.trans(ntl.exp(x))
    y = ntl.sum(t, axis=0)[:, None] + ntl.max(t.T - 9)


def product_of_scan(x, y):
    y = ntl.cumprod(x + 2, axis=1)


def sums_of_scan(x, y):
    y = ntl.sum(ntl.cumsum(x + 1, axis=1), axis=1)[:, None]


def matrix_product(x, z, y):
    y = ntl.sum(ntl.dot(ntl.exp(x), ntl.trans(z + 1)), axis=1)[:, None]


def with_other(full, y):
    y = ntl.sum(full, axis=1)[:, None] + ntl.max(full)


def reshaped(x, y):
    flat = ntl.reshape(ntl.exp(x), (1, *x.shape))
    y = ntl.sum(ntl.sum(flat, axis=0), axis=1)[:, None]


def kept_dimension(x, y):
    y = ntl.max(x - 1, axis=1, keep_dims=True) + ntl.sum(ntl.max(x - 1, 1, keep_dims=True))


def chosen(x, y):
    y = ntl.sum(ntl.where(x > 0, x, 1.0), axis=1)[:, None]


def special(a, b):
    return a + b + 0.5


def own_combination(x, y):
    y = ntl.reduce(x, 1, special)[:, None]


def multiply(a, b):
    return a * b


def own_product(x, y):
    y = ntl.reduce(x + 2, 1, multiply)[:, None]


def own_scan(x, y):
    y = ntl.associative_scan(x, 1, special)


def sorted_rows(x, y):
    y = ntl.sort(x)


def counted(x, y):
    counts = ntl.histogram(ntl.sum(ntl.where(x > 0, 1, 0), axis=1), 8)
    y = x + ntl.sum(counts)


def several_at_once(x, y):
    total, place = ntl.reduce((x, x.offsets()), 1, least_and_last)
    y = total[:, None] + place[:, None]


def least_and_last(a, i, b, j):
    return ntl.minimum(a, b), ntl.maximum(i, j)


def nan_and_infinity(x, y):
    y = ntl.sum(x * float("inf"), axis=1)[:, None] + ntl.max(ntl.log(x * 0), axis=1)[:, None]


# Loops and branches.


def accumulated(row, y):
    total = ntl.zeros(y.shape, dtype=ntl.float32)
    for k in range(row.shape[0]):
        total += row[k]
    y = ntl.sum(total, axis=1)[:, None]


def running_maximum(row, y):
    best = ntl.full((y.shape[0],), float("-inf"), dtype=ntl.float32)
    for k in range(row.shape[0]):
        best = ntl.maximum(best, ntl.max(row[k] - 5, axis=1))
    y = best[:, None]


def carried_in_a_loop(x, y, n):
    v = x + 1
    for k in range(n):
        v = v * 2
    y = ntl.min(v)


def kept_before_a_loop(x, y, n):
    v = x - 7
    best = 0.0
    for k in range(n):
        best += ntl.max(v)
    y = v + best


def run_time_branch(x, y, n):
    v = x + 1
    if n > 2:
        v = v + 1
    y = ntl.min(v) + ntl.min(x + 1)


def run_time_branch_of_others(x, z, y, n):
    v = x + 1
    if n > 7:
        v = z + 1
    w = z - 1
    if n > 2:
        w = ntl.full(x.shape, 2.0, ntl.float32)
    y = ntl.sum(v) + ntl.sum(w)


def run_time_choice(x, z, y, n):
    v = x + 1 if n > 2 else z + 1
    w = x + 1 if n > 7 else ntl.full(x.shape, 2.0, ntl.float32)
    y = ntl.sum(v) + ntl.sum(w)


def zero_that_changes(x, n, y):
    v = 0.0
    total = 0.0
    for k in range(n):
        total += ntl.sum(x + v)
        v += 1.0
    w = 0.0
    if n > 2:
        w = 2.0
    y = total + ntl.sum(x + w)


def compile_time_branch(x, FLAG, y):
    v = ntl.zeros(x.shape, dtype=ntl.float32)
    if FLAG:
        v = x + 1
    y = ntl.min(v)


def compile_time_expression(x, FLAG, y):
    v = x + 1 if FLAG else x
    y = ntl.max(v - 6)


def compile_time_choice(x, FLAG, y):
    v = x + 1 if not FLAG else ntl.full(x.shape, 0.5, ntl.float32)
    y = ntl.max(v - 6) + ntl.sum(v)


def index_that_changes(row, n, y):
    i = n - 3
    v = row[i]
    i = i + 1
    y = ntl.max(v - 5) + i


def loop_of_loops(row, n, y):
    total = ntl.zeros((y.shape[0],), dtype=ntl.float32)
    for i in range(n):
        for k in range(row.shape[0]):
            total += ntl.sum(ntl.exp(row[k]) + i, axis=1)
    y = total[:, None]


def while_loop(x, n, y):
    i = n
    total = 0
    while i > 0:
        total += i
        i -= 2
    y = x * total


def one_element_as_a_number(x, z, y, n):
    one = ntl.full((1,), n, ntl.int32)
    total = ntl.zeros(x.shape, dtype=ntl.float32)
    for k in range(one):
        total += x * k
    while one > 1:
        total += z
        one -= 1
    y = total + (x if one > 0 and n > 0 else z)


def constants_and_variables(x, n, y):
    count = 1
    pair = (count, x)
    for k in range(n):
        count = count + 2
        pair = (count * k, pair[1] + 1)
    y = pair[1] * pair[0] + count


def select(n, a, b):
    if n > 1:
        return a
    b = b + 1
    return b


def early_return(x, n, y):
    y = select(n, x, x * 2) + select(n - 5, x, x * 3)


def nothing_stored(x, n, y):
    y = x
    if n > 1:
        return
    y = x + 1


# Memory.


def read_back(x, y):
    y = ntl.exp(x)
    y = y + ntl.min(y)


def read_back_a_number(x, y):
    y = 2.0
    y = ntl.sum(y) + x


def in_place(x, y):
    y = x
    y += 1
    y *= y


def swapped(x, z, y):
    x, z = z, x
    y = x - z


def accumulate_in_memory(row, n, y):
    y = 0.0
    for k in range(row.shape[0]):
        y += row[k] * n


def store_helper(target, value, scale=2):
    target = value * scale


def stored_by_a_helper(x, z, y):
    store_helper(y, x)
    store_helper(z, y, scale=3)
    y = z + y


def source_elements(x, y):
    first = x.source[0, 0]
    y = x + first


# Helpers and variables.


def bump(value):
    value = value + 1
    return value


def bump_tile(tile, amount=2):
    tile = tile + amount
    return 1.0


def less(value):
    rest = value - 1
    return rest


def sum_and_double(a):
    return a + 1, a * 2


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


def add_tile(target, tiles, k):
    target = target + tiles[k]


def rebound_in_an_expression(x, y):
    v = x + 1
    y = v + bump(v) * v


def rebound_in_a_loop(x, n, y):
    count = 1
    for k in range(n):
        bump(count)
    y = x * count


def stored_in_an_expression(x, y):
    y = x + bump_tile(x) + x


def stored_in_an_argument(x, z, y):
    y = ntl.where(x > z, x, bump_tile(x)) + ntl.maximum(z, -bump(z))
    y += x + z


def stored_in_a_tuple(row, z, n, y):
    y = z * n
    for k in range(row.shape[0]):
        if n > 2:
            y, z = row[k], bump_tile(row[k])
        v, w = row[k], bump_tile(row[k], 3)
        y += v * 10 + w + z


def rebound_in_an_argument(x, n, y):
    v = x + 1
    y = ntl.minimum(v, bump(v)) - v * max(n, bump(n))
    y += special(v, bump(v)) * special(n, bump(n)) - v * n


def helper_in_a_condition(x, n, y):
    i = n
    total = 0
    while less(i) > 0:
        total += i
        i = less(i)
    y = x * total


def helper_in_a_choice(x, n, y):
    y = x
    scale = bump_tile(y) if n > 1 else 2.0
    y = y * scale + (bump_tile(y) if n > 100 else 2.0)


def helpers_in_helpers(x, n, y):
    y = clip(x, -0.5, 0.5) + clip(x, n, 2) * classify(n) + classify(7)


def helper_with_tiles_to_choose_from(row, n, y):
    y = n
    for k in range(row.shape[0]):
        add_tile(y, row, k)


def function_within(x, z, n, y):
    def scaled(value, power=2):
        return value * power + n

    y = scaled(x) + scaled(z, power=3)


def tuples(x, y):
    a, b = sum_and_double(x)
    a, b = b, a
    (p, q), r = sum_and_double(a), b
    y = p - q * r


def unrolled(x, z, y):
    y = 0.0
    for dim in ntl.static_range(2):
        y += x * (dim + 1) + dim
    for tile in (x, z):
        y += tile


def branches_that_assign(x, z, n, y):
    if n > 2:
        scale = 1
        tile = x
    else:
        scale = 2
        tile = z
    y = tile * scale


def nested_loops(x, n, y):
    total = 0.0
    for i in range(0, n, 2):
        for j in range(i):
            total += i * j
        total = total + 1
    y = x + total


def kept_before_a_store(x, y):
    old = x
    x = x + 1
    y = old + x


def chained(x, z, y):
    y = z = x + 1
    y += z


def element_types(x, FLAG, y):
    dtype = ntl.float16 if FLAG else ntl.float32
    if x.dtype in (ntl.float16, ntl.float32) and FLAG is not None:
        y = x.to(dtype).to(ntl.float32) + len(x.shape)


def numbers(x, n, y):
    y = ntl.where(0 < x + 1, x, 0.0) + max(n, 1, 2) + min(n, 9) + abs(x) + float(n) + int(n)
    y += (n & 1) + (n << 1) + (n | 4) + (n ^ 3) + ~n


def selected_tiles(row, y):
    first, last = row[0], row[-1]
    y = first - last + row[0].offsets(1)[None, :]


def elements_of_the_source(row, y):
    columns = row[0].offsets(1)[None, :] * 0
    y = row.source[0, 0] + row.source[row[0].offsets(0)[:, None], columns]


def offsets(x, y):
    y = x.offsets(0)[:, None] * 10 + x.offsets(1)[None, :] + x.offsets() * 100


def bounded_by_offsets(x, y):
    inside = x.offsets(1)[None, :] < x.source.shape[1]
    y = ntl.sum(ntl.where(inside, x + 1, 0.0), axis=1)[:, None]


APPLICATIONS = [
    value
    for name, value in list(globals().items())
    if inspect.isfunction(value)
    and value.__module__ == __name__
    and list(inspect.signature(value).parameters)[-1] in ("y", "n")
    and set(inspect.signature(value).parameters) & {"y"}
]
