"""Applications with padding in reductions, scans and products."""

from __future__ import annotations

import ninetoothed.language as ntl

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


def reshaped_by_sizes(x, y):
    v = x
    y = x + ntl.max(v.reshape(v.shape[0] * v.shape[1]) - 9)


def flip_of_one(x, y):
    y = x + ntl.flip(ntl.max(ntl.max(x - 9, axis=0), axis=0, keep_dims=True))


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
