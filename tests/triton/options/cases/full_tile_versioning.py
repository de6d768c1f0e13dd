"""Kernels whose tensors end within a program, and what they should give; nothing beside it changes."""

from __future__ import annotations

import itertools

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import add, silu
from ninetoothed import Symbol, Tensor
from tests.examples.compare import assert_matches

BLOCK = Symbol("BLOCK", constexpr=True)

#: Where the cases run.
DEVICE = "cpu"


def random(*shape):
    generator = torch.Generator(DEVICE).manual_seed(0)
    return torch.randn(*shape, generator=generator, device=DEVICE).half()


def view(*shape, offset=0, step=None):
    """A tensor within a vector of ones, and that vector."""
    strides = (step or shape[-1], 1) if len(shape) == 2 else (1,)
    whole = torch.ones(offset + shape[0] * strides[0] + 64, dtype=torch.half, device=DEVICE)
    return torch.as_strided(whole, shape, strides, offset), whole


def assert_alone(whole, tensor, expected, reduction=1):
    """A view is as expected, and what surrounds it still ones."""
    assert_matches(tensor, expected, reduction)
    tensor.fill_(1)
    assert bool((whole == 1).all())


def case_vectors_that_end_anywhere():
    for size, offset in itertools.product((1, 2, 127, 128, 129, 255, 257, 900, 1001), (0, 8, 1)):
        left, right, (output, whole) = random(size), random(size), view(size, offset=offset)
        add.kernel(left, right, output, BLOCK_SIZE=128)
        assert_alone(whole, output, left.double() + right.double())


def case_vectors_of_different_sizes():
    """A program is written without masks where all tensors go on."""
    tensors = (Tensor(1, other=0), Tensor(1, other=0), Tensor(1))
    kernel = ninetoothed.make(add.arrangement, add.application, tensors)
    for sizes in itertools.permutations((299, 300, 301)):
        left, right, (output, whole) = random(sizes[0]), random(sizes[1]), view(sizes[2])
        kernel(left, right, output, BLOCK_SIZE=128)
        padded = [torch.nn.functional.pad(x.double(), (0, 8))[: sizes[2]] for x in (left, right)]
        assert_alone(whole, output, padded[0] + padded[1])


def case_in_place():
    for size in (257, 1001):
        values, whole = view(size)
        values.copy_(random(size))
        expected = torch.nn.functional.silu(values.double())
        silu.kernel(values, values, BLOCK_SIZE=64)
        assert_alone(whole, values, expected)


def blocks(input, output):
    return input.tile((BLOCK, BLOCK)), output.tile((BLOCK, BLOCK))


def doubled(input, output):
    output = input + input


def case_blocks_of_a_part_of_a_matrix():
    kernel = ninetoothed.make(blocks, doubled, (Tensor(2), Tensor(2)))
    for rows, columns in itertools.product((32, 33, 64), (31, 33, 65, 129)):
        input, (output, whole) = random(rows, 144)[:, :columns], view(rows, columns, step=144)
        kernel(input, output, BLOCK=32)
        assert_alone(whole, output, 2 * input.double())


def sums(input, output):
    return input.tile((BLOCK,)), output.tile((1,))


def summed(input, output):
    output = ntl.sum(ntl.cast(input, ntl.float32))


def case_sums_of_blocks():
    """What does not exist is no part of a sum."""
    kernel = ninetoothed.make(sums, summed, (Tensor(1), Tensor(1)))
    for size in (100, 129, 257, 1001):
        input = random(size)
        output = torch.zeros(-(-size // 64), dtype=torch.float32, device=DEVICE)
        kernel(input, output, BLOCK=64)
        assert_matches(output, torch.stack([x.double().sum() for x in input.split(64)]), 64)


def twice_the_largest(input, output):
    output = ntl.max(ntl.interleave(input, input))


def case_what_exists_of_an_interleaved_tile():
    """That all of it does where the program is full says nothing of the last program."""
    kernel = ninetoothed.make(blocks_of_vectors, twice_the_largest, (Tensor(1), Tensor(1)))
    for size in (100, 129, 257, 1001):
        input, (output, whole) = -1 - random(size).abs(), view(size)
        kernel(input, output, BLOCK=64)
        largest = [part.max().expand(len(part)) for part in input.split(64)]
        assert_alone(whole, output, torch.cat(largest).double())


def blocks_of_vectors(input, output):
    return input.tile((BLOCK,)), output.tile((BLOCK,))


def case_a_tile_beyond_its_level():
    """That all tiles of a row are full says nothing of one behind them."""

    def arrangement(rows, input, output):
        arranged = rows.tile((1, BLOCK)).tile((1, -1)).squeeze(1)
        arranged.dtype = arranged.dtype.squeeze(0)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
        return arranged, input.tile((BLOCK,)), output.tile((BLOCK,))

    def application(rows, input, output):
        output = input + rows[4]

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1), Tensor(1)))
    input, (output, whole) = random(100), view(100)
    kernel(random(7, 64), input, output, BLOCK=16)
    assert_alone(whole, output, input.double())
