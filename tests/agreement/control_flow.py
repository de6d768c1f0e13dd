"""Applications with loops and branches."""

from __future__ import annotations

import ninetoothed.language as ntl

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
