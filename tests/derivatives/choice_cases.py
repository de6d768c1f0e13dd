"""Choices by numbers: the way not taken has no derivative of any order, whatever it computes.

What is chosen stands beside infinities and NaN: square roots and logarithms of 0 and of what is negative.
"""

from __future__ import annotations

import torch

import ninetoothed.language as ntl
from tests.derivatives.program_cases import MATRIX, POSITIVE, X_0, Program, Y, numbers


def blocks(*tensors):
    return tuple(tensor.tile((16,)) if tensor.ndim else tensor for tensor in tensors)


def by_rows(x, w, n, output):
    row = (1, -1)
    return x.tile(row), w.tile(row).expand((x.shape[0], -1)), n, output.tile(row)


def tiles_of_four(*tensors):
    return tuple(t.tile((4,)).tile((-1,)) if t.ndim else t for t in tensors)


def root(x, n, output):
    output = ntl.sqrt(x) if n > 0 else x * x  # noqa: F841


def logarithm(x, n, output):
    output = x * x if n <= 0 else ntl.log(x)  # noqa: F841


def reciprocal_root(x, n, output):
    output = ntl.rsqrt(x) if n > 0 else x * x  # noqa: F841


def quotient(x, n, output):
    output = ntl.exp(1 / x) if n > 0 else x * x  # noqa: F841


def power(x, n, output):
    output = ntl.libdevice.pow(x, x) if n > 0 else x * x  # noqa: F841


def nested(x, n, output):
    output = (ntl.log(x) if n > 1 else ntl.sqrt(x)) if n > 0 else x * (x if n < -1 else 1 / x)  # noqa: F841


def computed_before(x, n, output):
    a = ntl.sqrt(x)
    output = a if n > 0 else x * x  # noqa: F841


def chosen_twice(x, n, output):
    a = ntl.sqrt(x)
    b = 1 / x
    c = (a if n > 1 else b) if n > 0 else x
    d = a * b if n == 1 else c * 2
    output = c * d * x  # noqa: F841


def sums_of_roots(x, n, output):
    total = ntl.sum(ntl.sqrt(x))
    output = (total * x if n > 0 else x) * x  # noqa: F841


def and_of_roots(x, n, output):
    output = (n > 0 and ntl.sum(ntl.sqrt(x))) * x + x * x  # noqa: F841


def chosen_by_what_is_summed(x, y, output):
    output = ntl.sqrt(x) if ntl.sum(x * 0 + y * 0) > 0 else x * x * y  # noqa: F841


def summed_of_roots(x, n, output):
    total = ntl.zeros((4,), ntl.float64)
    for k in range(x.shape[0]):
        total += ntl.sqrt(x[k])
    for k in range(x.shape[0]):
        output[k] = (total if n > 0 else x[k]) * x[k]


def in_rounds(x, n, output):
    total = ntl.zeros((4,), ntl.float64)
    for k in range(x.shape[0]):
        total += ntl.log(x[k]) if k > n else x[k] * x[k]
    root = ntl.sqrt(total - total)
    for k in range(x.shape[0]):
        output[k] = (root if k > 10 * n else total) * x[k]


def of_rounds(x, n):
    tiles = x.view(-1, 4)
    total = sum(torch.log(each) if k > n else each * each for k, each in enumerate(tiles))
    return (total * tiles).flatten()


def in_no_round(x, n, output):
    total = ntl.zeros((4,), ntl.float64)
    for k in range(x.shape[0]):
        total += x[k]
    root = ntl.sqrt(total)
    other = ntl.zeros((4,), ntl.float64)
    for k in range(n):
        other += root * (k + 1)
    for k in range(x.shape[0]):
        output[k] = (other + 1) * x[k]


def of_no_round(x, n):
    tiles = x.view(-1, 4)
    return ((n * (n + 1) / 2 * tiles.sum(0).sqrt() if n else 0.0) + 1) * tiles


def shared_roots(x, w, n, output):
    root = ntl.sqrt(w)
    y = x * root if n > 0 else x * w
    output = y / ntl.sum(y * y) if n < 0 else y * root  # noqa: F841


def of_shared_roots(x, w, n):
    y = x * w.sqrt() if n > 0 else x * w
    return y / (y * y).sum(1, keepdim=True) if n < 0 else y * w.sqrt()


def _square(x, n):
    return x * x


_ZEROS, _ROOTS = numbers(12).abs(), numbers(1, 7).abs()
_ZEROS[:3] = _ROOTS[:, :2] = 0

CHOICES: dict[str, Program] = {
    "root": Program(root, _square, (X_0, -1.0), blocks),
    "root, taken": Program(root, lambda x, n: x.sqrt(), (POSITIVE, 1.0), blocks),
    "logarithm": Program(logarithm, _square, (X_0, -1.0), blocks),
    "reciprocal root": Program(reciprocal_root, _square, (X_0, -1.0), blocks),
    "quotient": Program(quotient, _square, (X_0, -1.0), blocks),
    "power": Program(power, _square, (X_0, -1.0), blocks, is_interpreted=False),
    "nested": Program(nested, _square, (X_0, -3.0), blocks),
    "computed before": Program(computed_before, _square, (X_0, -1.0), blocks),
    "chosen twice": Program(chosen_twice, lambda x, n: 2 * x**3, (X_0, -3.0), blocks),
    "chosen twice, both taken": Program(
        chosen_twice, lambda x, n: 1 / x * (x.sqrt() / x) * x, (POSITIVE, 1.0), blocks
    ),
    "sums of roots": Program(sums_of_roots, _square, (X_0, -1.0), blocks),
    "and of roots": Program(and_of_roots, _square, (X_0, -1.0), blocks),
    "chosen by what is summed": Program(
        chosen_by_what_is_summed, lambda x, y: x * x * y, (X_0, Y), blocks
    ),
    "summed of roots": Program(summed_of_roots, _square, (_ZEROS, -1), tiles_of_four),
    "in rounds": Program(in_rounds, of_rounds, (_ZEROS, 1), tiles_of_four),
    "in no round": Program(in_no_round, lambda x, n: x, (_ZEROS * 0, 0), tiles_of_four),
    "in some rounds": Program(
        in_no_round, lambda x, n: of_no_round(x, n).flatten(), (_ZEROS + 1, 2), tiles_of_four
    ),
    "shared": Program(shared_roots, of_shared_roots, (MATRIX, _ROOTS, -1.0), by_rows),
    "shared, taken": Program(shared_roots, of_shared_roots, (MATRIX, _ROOTS + 1, 1.0), by_rows),
}
