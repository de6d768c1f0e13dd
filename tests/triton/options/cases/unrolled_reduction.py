"""Kernels that reduce over windows, and what they should give."""

from __future__ import annotations

import functools
import math

import torch
from torch.nn import functional

import ninetoothed
import ninetoothed.language as ntl
from examples import max_pool2d
from examples.more import pool2d
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)
WINDOW = Symbol("WINDOW", constexpr=True)


def windows(tensor, size=BLOCK_SIZE):
    """The square windows of images, one after another, a row each."""
    arranged = tensor.tile((1, 1, WINDOW, WINDOW), floor_mode=True).ravel()
    return arranged.flatten(end_dim=4).flatten(start_dim=1).tile((size, -1))


def arrangement(input, output):
    return windows(input), output.flatten().unsqueeze(1).tile((BLOCK_SIZE, 1))


def arrangement_of_two(input, other, output):
    return windows(input), windows(other), output.flatten().unsqueeze(1).tile((BLOCK_SIZE, 1))


def arrangement_of_vectors(input, output):
    return windows(input), output.flatten().tile((BLOCK_SIZE,))


def total(input, output):
    output = ntl.sum(input, axis=1, keep_dims=True)


def smallest_of_vectors(input, output):
    output = ntl.min(ntl.cast(input, ntl.float32) * 2 + 1, axis=-1)


def product(input, other, output):
    output = ntl.sum(ntl.exp(input) * other, axis=1, keep_dims=True)


def softmax_of_windows(input, output):
    shifted = ntl.exp(input - ntl.max(input, axis=1, keep_dims=True))
    output = ntl.max(shifted, axis=1, keep_dims=True) / ntl.sum(shifted, axis=1, keep_dims=True)


def _made(arrangement, application, count, **options):
    tensors = (*(Tensor(4, **options) for _ in range(count)), Tensor(4))
    return ninetoothed.make(arrangement, application, tensors)


KERNELS = {
    "total": _made(arrangement, total, 1),
    "with_other": _made(arrangement, total, 1, other=3),
    "smallest": _made(arrangement_of_vectors, smallest_of_vectors, 1),
    "product": _made(arrangement_of_two, product, 2),
    "softmax": _made(arrangement, softmax_of_windows, 1),
}


def parts(input, size):
    """The windows of images, (n, c, p, q, size²)."""
    n, c, h, w = (*input.shape[:2], input.shape[2] // size, input.shape[3] // size)
    cut = input[:, :, : h * size, : w * size].reshape(n, c, h, size, w, size)
    return cut.transpose(3, 4).reshape(n, c, h, w, size * size)


REFERENCES = {
    "total": lambda x: x.sum(-1),
    "with_other": lambda x: x.sum(-1),
    "smallest": lambda x: (x * 2 + 1).amin(-1),
    "product": lambda x, y: (x.exp() * y).sum(-1),
    "softmax": lambda x: x.softmax(-1).amax(-1),
}


def check(name, size, shape=(2, 3, 9, 11), dtype=torch.float32):
    count = 2 if name == "product" else 1
    # All negative: an element that does not exist would be a maximum.
    inputs = [(torch.randn(shape) - 5).to(dtype) for _ in range(count)]
    expected = REFERENCES[name](*(parts(input.double(), size) for input in inputs))
    output = torch.full(expected.shape, math.nan)
    KERNELS[name](*inputs, output, WINDOW=size, BLOCK_SIZE=8)
    torch.testing.assert_close(output.double(), expected, rtol=1e-3, atol=1e-4)


def case_sums():
    check("total", 2)


def case_sums_where_padding_is_a_value():
    check("with_other", 2)


def case_sums_of_small_integers():
    input = torch.randint(-128, 128, (2, 3, 8, 8), dtype=torch.int8)
    output = torch.full((2, 3, 4, 4), -1, dtype=torch.int32)
    KERNELS["total"](input, output, WINDOW=2, BLOCK_SIZE=8)
    assert torch.equal(output, parts(input.int(), 2).sum(-1, dtype=torch.int32))


def case_minima_of_what_is_computed_as_vectors():
    check("smallest", 2, dtype=torch.float16)


def case_two_tensors():
    check("product", 2)


def case_values_with_a_name_of_their_own():
    check("softmax", 2)


def case_windows_that_are_padded():
    # Where padding is a value, it is one of these too.
    for name in KERNELS.keys() - {"with_other"}:
        check(name, 3)


def case_strided_images_and_none():
    input = torch.randn(3, 2, 14, 10).transpose(0, 1)[:, :, ::2]
    torch.testing.assert_close(
        max_pool2d.max_pool2d(input, (2, 2)), functional.max_pool2d(input, 2), rtol=0, atol=0
    )
    assert max_pool2d.max_pool2d(input[:0], (2, 2)).shape == (0, 3, 3, 5)


def case_images_that_end_within_a_window():
    input = torch.randn(2, 3, 9, 11) - 9
    found = max_pool2d.max_pool2d(input, (2, 2), ceil_mode=True)
    assert torch.equal(found, functional.max_pool2d(input, 2, ceil_mode=True))


def case_padding():
    input = torch.randn(2, 3, 8, 6) - 9
    for kernel, reference in (
        (pool2d.max_pool2d, functional.max_pool2d),
        (pool2d.avg_pool2d, functools.partial(functional.avg_pool2d, count_include_pad=True)),
    ):
        found = kernel(input, (2, 2), (2, 2), (1, 1))
        torch.testing.assert_close(found, reference(input, 2, 2, 1))
