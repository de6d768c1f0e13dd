"""Applications that read what they stored."""

from __future__ import annotations

import ninetoothed.language as ntl

# Memory.


def read_back(x, y):
    y = ntl.exp(x)
    y = y + ntl.min(y)


def read_back_a_number(x, y):
    y = 2.0
    y = ntl.sum(y) + x


def read_back_a_row(x, y):
    y = ntl.sum(x, axis=0)
    y = y + 1


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
