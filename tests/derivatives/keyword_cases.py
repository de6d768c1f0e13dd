"""Calls whose arguments are given by name, of every kind of function that derives."""

from __future__ import annotations

import torch

import ninetoothed.language as ntl
from tests.derivatives.program_cases import MATRIX, POSITIVE, SQUARE, Program, X, Y, numbers, whole


def elementwise(x, output):
    output = ntl.exp(x=ntl.sin(x=x)) * ntl.rsqrt(x=ntl.abs(x=x) + 1) + ntl.sigmoid(
        x=ntl.multiple_of(input=x, values=1)
    )  # noqa: F841


def of_elementwise(x):
    return torch.exp(torch.sin(x)) * torch.rsqrt(x.abs() + 1) + torch.sigmoid(x)


def of_several(x, y, output):
    chosen = ntl.where(condition=x > 0, x=x * y, y=y)
    bounded = ntl.clamp(max=y + 1, x=x, min=y - 1)
    output = ntl.fma(x=chosen, y=bounded, z=ntl.maximum(y=x, x=y))  # noqa: F841


def from_of_several(x, y):
    return torch.where(x > 0, x * y, y) * torch.clamp(x, y - 1, y + 1) + torch.maximum(x, y)


def of_the_device(x, y, output):
    output = ntl.libdevice.pow(arg0=x, arg1=y) + ntl.libdevice.tanh(arg0=x)  # noqa: F841


def reduced(x, output):
    most = ntl.max(input=x, axis=1, keep_dims=True)
    least = ntl.min(x, -1, False, True, True)
    output = ntl.sum(input=x) * x + most * least + ntl.cumsum(input=x, axis=1, reverse=True)  # noqa: F841


def of_reduced(x):
    sums = x.flip(1).cumsum(1).flip(1)
    return x.sum() * x + x.amax(1, keepdim=True) * x.amin(1, keepdim=True) + sums


def moved(x, output):
    wide = ntl.expand_dims(input=ntl.sum(x, axis=1), axis=1)
    whole = ntl.broadcast_to(wide, (4, 4))
    flat = ntl.reshape(ntl.ravel(x=ntl.flip(x=x, dim=0)), (4, 4))
    turned = ntl.trans(input=ntl.cast(input=x, dtype=ntl.float64))
    output = whole * flat * turned  # noqa: F841


def converted(x, n, output):
    output = ntl.cast(input=x, dtype=ntl.float64) if n > 0 else ntl.cast(x, dtype=ntl.float64)  # noqa: F841


def products(x, y, output):
    total = ntl.zeros((16, 16), dtype=ntl.float64)
    for _ in range(3):
        total = ntl.dot(other=y, input=x, acc=total)
    output = ntl.dot(x, other=y, acc=total)  # noqa: F841


KEYWORDS: dict[str, Program] = {
    "by name, element by element": Program(elementwise, of_elementwise, (X,)),
    "by name, several": Program(of_several, from_of_several, (X, Y)),
    "by name, of the device": Program(
        of_the_device, lambda x, y: x**y + x.tanh(), (POSITIVE, Y), is_interpreted=False
    ),
    "by name, reduced": Program(reduced, of_reduced, (MATRIX,), whole),
    "by name, moved": Program(
        moved, lambda x: x.sum(1, keepdim=True) * x.flip(0) * x.T, (SQUARE,), whole
    ),
    "by name, converted": Program(converted, lambda x, n: x, (X, 1)),
    "by name, products": Program(
        products, lambda x, y: 4 * (x @ y), (numbers(16, 16), numbers(16, 16, seed=2)), whole
    ),
}
