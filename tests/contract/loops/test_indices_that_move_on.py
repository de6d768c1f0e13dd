"""Tiles selected by one variable or element, which is another number at each: what one lacks, another may have.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def before_and_after(x, n, y):
    k, total = 0, 0.0
    while k < 3:
        v = ntl.flip(x[k])
        k += 1
        w = ntl.flip(x[k])
        total += ntl.sum(v + 1) + ntl.sum(w + 1) + ntl.sum(v * w + 1)
    y[0] = total


def sums_before_and_after(tiles, n):
    total = 0
    for k in range(3):
        v, w = tiles[k][::-1], tiles[k + 1][::-1]
        pairs = [a * b for a, b in zip(v, w)]
        total += (v + 1).sum() + (w + 1).sum() + sum(pairs) + len(pairs)
    return total


def of_both_ways(x, n, y):
    k, total = 0, 0.0
    while k < 3:
        if n > 2:
            v = x[k + 1]
        else:
            v = x[k + 1]
        k += 1
        total += ntl.sum(v + 1)
    y[0] = total


def moved_in_both_ways(x, n, y):
    k, total = 0, 0.0
    while k < 3:
        if n > 2:
            v = ntl.flip(x[k + 1])
            k += 1
        else:
            v = ntl.flip(x[k + 1])
            k += 1
        total += ntl.sum(v + 1)
    y[0] = total


def moved_before_or_after(x, n, y):
    k, total = 0, 0.0
    while k < 3:
        if n > 2:
            v = ntl.sort(x[k + 1])
            k += 1
        elif n > 1:
            k += 1
            v = ntl.sort(x[k])
        else:
            v = x[k + 1]
            k += 1
        total += ntl.sum(v + 1)
    y[0] = total


def sums_after_the_first(tiles, n):
    return sum((tile + 1).sum() for tile in tiles[1:])


def selected_anew(x, n, y):
    k, total = 0, 0.0
    while k < 3:
        v = ntl.flip(x[k])
        if n > 1:
            k += 1
            v = v * 0 + ntl.flip(x[k])
        else:
            k += 1
        total += ntl.sum(v + 1)
    y[0] = total


def sums_selected_anew(tiles, n):
    if n <= 1:
        return sum((tile + 1).sum() for tile in tiles[:3])
    pairs = zip(tiles, tiles[1:])
    return sum((new[::-1][: len(old)] + 1).sum() for old, new in pairs)


def handed_on(x, n, y):
    k, total = 0, 0.0
    v = ntl.sort(x[3])
    while k < 3:
        w = v
        v = ntl.sort(x[k])
        k += 1
        total += ntl.sum(w + 1) + ntl.sum(v * 2)
    y[0] = total + ntl.sum(v + 1)


def sums_handed_on(tiles, n):
    order = [tiles[3], *tiles[:3]]
    total = sum((w + 1).sum() + 2 * v.sum() for w, v in zip(order, order[1:]))
    return total + (tiles[2] + 1).sum()


def greatest(x, n, y):
    k = 0
    best = ntl.full((3,), -100.0, ntl.float32)
    while k < 3:
        if n > 2:
            best = ntl.maximum(best, ntl.sum(ntl.flip(x[k + 1]) + 1))
            k += 1
        else:
            k += 1
            best = ntl.maximum(best, ntl.sum(ntl.flip(x[k]) + 1))
    y[0] = ntl.max(best)


def greatest_sum(tiles, n):
    return max((tile + 1).sum() for tile in tiles[1:])


def counted_in_memory(x, n, y):
    total = 0.0
    for _ in range(3):
        v = ntl.flip(x[y.source[1].to(ntl.int32)])
        y.source[1] += 1
        w = ntl.flip(x[y.source[1].to(ntl.int32)])
        total += ntl.sum(v + 1) + ntl.sum(w + 1) + ntl.sum(v * w + 1)
    y[0] = total


def counted_once_in_memory(x, n, y):
    v = x[y.source[1].to(ntl.int32)]
    y.source[1] = 3
    w = x[y.source[1].to(ntl.int32)]
    y[0] = ntl.sum(v + 1) + ntl.sum(w + 1) + ntl.sum(v * w + 1)


def sums_of_two(tiles, n):
    v, w = tiles[0], tiles[3]
    return (v + 1).sum() + (w + 1).sum() + (v[: len(w)] * w + 1).sum()


def added_before_and_within(x, n, y):
    k = 3 + 0 * n
    v = ntl.flip(x[k])
    for j in range(3):
        k = j
        v = v + ntl.flip(x[k])
    y[0] = ntl.sum(v + 1)


def added_from_the_last_on(x, n, y):
    k = 4 + 0 * n
    k -= 1
    v = ntl.flip(x[k])
    while k > 0:
        k -= 1
        v = v + ntl.flip(x[k])
    y[0] = ntl.sum(v + 1)


def added_by_the_loop(x, n, y):
    k = 3 + 0 * n
    v = ntl.flip(x[k])
    for k in range(3):
        v = v + ntl.flip(x[k])
    y[0] = ntl.sum(v + 1)


def added_in_memory(x, n, y):
    y.source[1] = 3
    v = ntl.flip(x[y.source[1].to(ntl.int32)])
    for j in range(3):
        y.source[1] = j
        v = v + ntl.flip(x[y.source[1].to(ntl.int32)])
    y[0] = ntl.sum(v + 1)


def sum_of_common(tiles, n):
    size = len(tiles[3])
    return (sum(tile[::-1][:size] for tile in tiles) + 1).sum()


def put(destination, value):
    destination = value


def put_by_a_helper(x, n, y):
    k = 1
    if n > 1:
        put(k, 0)
        v = ntl.flip(x[k])
    else:
        put(k, 3)
        v = ntl.flip(x[k])
    put(k, 1)
    y[0] = ntl.sum(v + 1) + ntl.sum(v + ntl.flip(x[k]) + 1)


def sums_of_first_or_last(tiles, n):
    v = tiles[0 if n > 1 else 3][::-1]
    return (v + 1).sum() + (v + tiles[1][::-1][: len(v)] + 1).sum()


CASES = (
    (added_before_and_within, sum_of_common),
    (added_from_the_last_on, sum_of_common),
    (added_by_the_loop, sum_of_common),
    (added_in_memory, sum_of_common),
    (put_by_a_helper, sums_of_first_or_last),
    (counted_in_memory, sums_before_and_after),
    (counted_once_in_memory, sums_of_two),
    (before_and_after, sums_before_and_after),
    (of_both_ways, sums_after_the_first),
    (moved_in_both_ways, sums_after_the_first),
    (moved_before_or_after, sums_after_the_first),
    (selected_anew, sums_selected_anew),
    (handed_on, sums_handed_on),
    (greatest, greatest_sum),
)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(("application", "expected"), CASES)
def test_each_tile_has_its_own_elements(application, expected, number):
    def arrangement(x, n, y):
        return x.tile((3,)).tile((4,)), n, y.tile((1,)).tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    # Twelve, so that the last tile is whole, and ten.
    for size in (12, 10):
        x, y = torch.randn(size), torch.tensor([torch.nan, 0])
        kernel(x, number, y)
        tiles = np.split(x.double().cpu().numpy(), (3, 6, 9))
        assert y[0].item() == pytest.approx(expected(tiles, number), rel=1e-5, abs=1e-4)
