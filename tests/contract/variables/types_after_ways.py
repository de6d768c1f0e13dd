"""Applications in which both ways of an ``if`` give a variable another shape or element type than it has before.

Each is given the rows of ``x``, a number ``n`` and ``y``; beside it is what it does to whole arrays.
"""

import numpy as np

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def sums(x):
    return ntl.sum(x, 1, keep_dims=True)


def a_column_becomes_a_block(x, n, y):
    v = sums(x)
    if n > 1:
        v = v * x
    else:
        v = v - x
    y = v


def blocks(x, n):
    of_rows = x.sum(1, keepdims=True)
    return of_rows * x if n > 1 else of_rows - x


def augmented(x, n, y):
    v = sums(x)
    if n > 1:
        v *= x
    else:
        v -= x
    y = v


def of_three_ways(x, n, y):
    v = sums(x)
    if n > 1:
        v = v * x
    elif n > 0:
        v += x
    else:
        v = x - v
    y = v


def of_three(x, n):
    of_rows = x.sum(1, keepdims=True)
    return of_rows * x if n > 1 else of_rows + x if n > 0 else x - of_rows


def integers_become_floats(x, n, y):
    v = x.to(ntl.int32)
    if n > 1:
        v = v * 1.5
    else:
        v = v / 2
    y = v


def halves(x, n):
    return np.trunc(x) * (1.5 if n > 1 else 0.5)


def in_each_round(x, n, y):
    total = x * 0
    for k in range(n):
        v = sums(x)
        if k > 0:
            v = v * x
        else:
            v = v - x
        total += v
    y = total


def all_rounds(x, n):
    return sum((blocks(x, 2 * (k > 0)) for k in range(n)), 0 * x)


def handed_on_to_the_next_round(x, n, y):
    v = x + 1
    for k in range(n):
        v = sums(v)
        if k > 0:
            v = v * x
        else:
            v = v - x
    y = v


def handed_on(x, n):
    v = x + 1
    for k in range(n):
        of_rows = v.sum(1, keepdims=True)
        v = of_rows * x if k > 0 else of_rows - x
    return v


def what_it_was_is_read_in_a_loop(x, n, y):
    v, total = sums(x), x * 0
    if n > 1:
        for _ in range(n):
            total += v
        v = v * x
    else:
        v = x - v
    y = v + total


def read_in_a_loop(x, n):
    of_rows = x.sum(1, keepdims=True)
    return of_rows * x + n * of_rows if n > 1 else x - of_rows


def two_at_once(x, n, y):
    v, w = sums(x), x * 2
    if n > 1:
        v, w = w, v
    else:
        v, w = w + v, v * 2
    y = v + w


def swapped(x, n):
    of_rows = x.sum(1, keepdims=True)
    return of_rows + 2 * x if n > 1 else 2 * x + 3 * of_rows


def before_another(x, n, y):
    v = sums(x)
    if n > 1:
        v = v * x
    else:
        v = v - x
    v = sums(v)
    if n > 0:
        v = x - v
    else:
        v = x + v
    y = v


def one_after_another(x, n):
    of_rows = blocks(x, n).sum(1, keepdims=True)
    return x - of_rows if n > 0 else x + of_rows


def of_a_helper(x, n, y):
    def put(v, x, n):
        if n > 1:
            v = v * x
        else:
            v = v - x
        return v

    v = sums(x)
    y = put(v, x, n) + v


def returned(x, n):
    return blocks(x, n) + x.sum(1, keepdims=True)


def twice_in_a_way(x, n, y):
    v = sums(x)
    if n > 1:
        before = v
        v = x * 2
        v = v + before
    else:
        v = x
        v += 1
    y = v


def twice(x, n):
    return 2 * x + x.sum(1, keepdims=True) if n > 1 else x + 1


def kept_in_a_round(x, n, y):
    v, total = x.offsets(1) + 0 * x.to(ntl.int32), ntl.full(x.shape, 0.0, ntl.float64)
    for k in range(n):
        if ntl.program_id(0) >= 0:
            if k != 1:
                total += v // 0.5
        elif n != 2:
            total += v // 0.5
    y = ntl.sum(total) + 0 * x


def quotients_of_rounds(x, n):
    rounds = sum(k != 1 for k in range(n))
    blocks_of_rows = np.split(0 * x + 2 * rounds * np.arange(x.shape[1]), (4,))
    return np.concatenate([rows.sum() + 0 * rows for rows in blocks_of_rows])


CASES = (
    (kept_in_a_round, quotients_of_rounds),
    (a_column_becomes_a_block, blocks),
    (augmented, blocks),
    (of_three_ways, of_three),
    (integers_become_floats, halves),
    (in_each_round, all_rounds),
    (handed_on_to_the_next_round, handed_on),
    (what_it_was_is_read_in_a_loop, read_in_a_loop),
    (two_at_once, swapped),
    (before_another, one_after_another),
    (of_a_helper, returned),
    (twice_in_a_way, twice),
)


def kernel_of(application):
    def arrangement(x, n, y):
        return x.tile((4, -1)), n, y.tile((4, -1))

    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(0), Tensor(2)))
