"""Kernels with tiny tiles, whose programs can be several in one, and what they should give."""

from __future__ import annotations

import functools

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from tests.corpus.kernels import (
    one_head,
    outer,
    outer_arrangement,
    rows,
    scaled_arrangement,
    scaled_sums,
    standardized,
)
from tests.examples.references import rope_reference

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def rotate(input, sin_table, cos_table):
    sin = sin_table
    cos = cos_table
    first = input[0]
    second = input[1]
    input[0] = first * cos - second * sin
    input[1] = first * sin + second * cos


def rope_of(interleaved):
    arrangement = functools.partial(one_head, interleaved=interleaved)
    sizes = {"constexpr": True}
    tensors = (
        Tensor(4, shape_options=(None, None, None, sizes)),
        Tensor(2, shape_options=(None, sizes)),
        Tensor(2, shape_options=(None, sizes)),
    )
    return ninetoothed.make(arrangement, rotate, tensors, kernel_name="rope")


ROPE = {True: rope_of(True), False: rope_of(False)}


def best(input, output):
    output = ntl.max(input, axis=-1) - ntl.min(input)


def best_arrangement(input, output):
    input_arranged = input.tile((1, -1))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)

    return input_arranged, output.tile((1,)).unsqueeze(1)


def single(input, output):
    output = ntl.maximum(input, 0) if True else input


def single_arrangement(input, output):
    return input, output


def _made(arrangement, application, *tensors):
    name = application.__name__
    return ninetoothed.make(arrangement, application, tensors, kernel_name=name)


KERNELS = {
    "standardized": _made(rows, standardized, Tensor(2), Tensor(2)),
    "scaled_sums": _made(scaled_arrangement, scaled_sums, Tensor(3), Tensor(1), Tensor(3)),
    "outer": _made(outer_arrangement, outer, Tensor(2), Tensor(2), Tensor(3)),
    "best": _made(best_arrangement, best, Tensor(2), Tensor(1)),
    "single": _made(single_arrangement, single, Tensor(1), Tensor(1)),
}


def close(actual, wanted):
    torch.testing.assert_close(actual, wanted, rtol=2e-3, atol=2e-3)


def case_rope():
    for shape in ((2, 3, 5, 8), (1, 4, 17, 6), (3, 1, 1, 2), (1, 2, 16, 64)):
        for interleaved, kernel in ROPE.items():
            tensor = torch.randn(shape)
            sin, cos = torch.randn(2, shape[1], shape[-1] // 2)
            wanted = rope_reference(tensor, sin, cos, interleaved)
            kernel(tensor, sin, cos)
            close(tensor, wanted)


def case_rope_of_a_view():
    whole = torch.randn(2, 3, 10, 16)
    kept = whole.clone()
    sin, cos = torch.randn(2, 3, 4)
    wanted = rope_reference(whole[:, :, ::2, 4:12], sin, cos)
    ROPE[True](whole[:, :, ::2, 4:12], sin, cos)
    close(whole[:, :, ::2, 4:12], wanted)
    kept[:, :, ::2, 4:12] = wanted
    close(whole, kept)


def case_standardize():
    for shape in ((1, 4), (5, 7), (33, 16), (16, 3)):
        input = torch.randn(shape)
        output = torch.full_like(input, 9)
        KERNELS["standardized"](input, output)
        centered = input - input.mean(1, keepdim=True)
        close(output, centered / centered.square().mean(1, keepdim=True).sqrt())


def case_scaled_sums():
    for batch, height, width in ((2, 9, 5), (7, 3, 4), (1, 10, 6), (3, 1, 8)):
        input, scale = torch.randn(batch, height, width), torch.randn(width)
        wanted = torch.stack([part.sum(1) for part in input.split(3, 1)], 1)
        output = torch.full_like(wanted, 9)
        KERNELS["scaled_sums"](input, scale, output)
        close(output, -(wanted + 1) * scale)


def case_outer():
    for batch, height, width in ((2, 9, 5), (7, 3, 4), (17, 2, 1)):
        left, right = torch.randn(batch, height), torch.randn(batch, width)
        output = torch.full((batch, height, width), 9.0)
        KERNELS["outer"](left, right, output)
        close(output, left[:, :, None] * right[:, None, :] + 1)


def case_best():
    for shape in ((5, 7), (33, 16)):
        input = torch.randn(shape)
        output = torch.full(shape[:1], 9.0)
        KERNELS["best"](input, output)
        close(output, input.max(1).values - input.min(1).values)


def case_single():
    for count in (1, 5, 64):
        input = torch.randn(count)
        output = torch.full_like(input, 9)
        KERNELS["single"](input, output)
        close(output, input.relu())


def case_blocks_of_sizes_of_one_class():
    """Other sizes of the class share the source that is coarsened for the greatest."""

    def arrangement(input, output):
        return input.tile((3, -1)), output.tile((3, -1))

    def application(input, output):
        output = input + input  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    for height in (40, 33, 35, 63):
        input, output = torch.randn(height, 5), torch.full((height, 5), 9.0)
        kernel(input, output)
        close(output, 2 * input)
