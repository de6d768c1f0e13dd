"""Applications with helpers, and with variables that are bound again."""

from __future__ import annotations

import ninetoothed.language as ntl
from tests.agreement.reductions import special

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
