"""Arrangements whose positions are counted from an end: divided, they must round as Python does."""

from __future__ import annotations

import functools
import itertools
import operator

import torch

import ninetoothed
from ninetoothed import Symbol, Tensor

BLOCK = Symbol("BLOCK", constexpr=True)

#: Where the cases run.
DEVICE = "cpu"

#: Slices of a flattened tensor.
SLICES = (
    slice(None, None, -1),
    slice(None, None, -2),
    slice(-1, None),
    slice(-5, -1),
    slice(-2, None, -3),
    slice(7, None, -1),
)

SHAPES = ((3, 5), (1, 7), (5, 1), (2, 3, 4), (4, 16))


def numbered(*shape):
    count = int(torch.Size(shape).numel())
    return torch.arange(1, count + 1, dtype=torch.float32, device=DEVICE).reshape(shape)


def poisoned(*shape):
    """A tensor of NaN within a vector of ones, and that vector."""
    count = int(torch.Size(shape).numel())
    whole = torch.ones(count + 128, device=DEVICE)
    inner = whole[64 : 64 + count].reshape(shape)
    inner.fill_(torch.nan)
    return inner, whole


def assert_gives(whole, output, expected):
    """The output is as expected, and what surrounds it still ones."""
    assert torch.equal(output, expected), (output, expected)
    output.fill_(1)
    assert bool((whole == 1).all())


def copied(input, output):
    output = input


def kernel_of(change, shape, is_stored=False):
    """Copies a flattened tensor with ``change`` to a vector; or, stored, a vector to such a one."""

    def arrangement(input, output):
        if is_stored:
            return input.tile((BLOCK,)), change(output.flatten()).tile((BLOCK,))
        return change(input.flatten()).tile((BLOCK,)), output.tile((BLOCK,))

    ranks = (1, len(shape)) if is_stored else (len(shape), 1)
    return ninetoothed.make(arrangement, copied, tuple(map(Tensor, ranks)))


def case_slices_of_a_flattened_tensor_are_read():
    for shape, part in itertools.product(SHAPES, SLICES):
        input = numbered(*shape)
        chosen = range(input.numel())[part]
        output, whole = poisoned(len(chosen))
        kernel_of(operator.itemgetter(part), shape)(input, output, BLOCK=8)
        assert_gives(whole, output, input.flatten()[list(chosen)])


def case_slices_of_a_flattened_tensor_are_written():
    for shape, part in itertools.product(SHAPES, SLICES):
        output, whole = poisoned(*shape)
        chosen = list(range(output.numel())[part])
        input = numbered(len(chosen))
        expected = output.clone().flatten()
        expected[chosen] = input
        expected = expected.reshape(shape).nan_to_num(1)
        kernel_of(operator.itemgetter(part), shape, is_stored=True)(input, output, BLOCK=4)
        assert_gives(whole, output.nan_to_num_(1), expected)


def one(input, output):
    return input.flatten()[-1:].tile((1,)), output.tile((1,))


def case_the_last_element():
    kernel = ninetoothed.make(one, copied, (Tensor(2), Tensor(1)))
    for shape in ((3, 5), (1, 1), (4, 8)):
        input, (output, whole) = numbered(*shape), poisoned(1)
        kernel(input, output)
        assert_gives(whole, output, input.flatten()[-1:])


def padded_and_reversed(left, tensor):
    return tensor.pad(((left, 2),))[::-1]


def case_positions_before_the_first_are_padding():
    """A flattened tensor is padded before, reversed, and merged with itself again."""
    for shape, left in itertools.product(((3, 5), (2, 8)), (1, 3, 6)):
        input = numbered(*shape)
        padded = torch.nn.functional.pad(input.flatten(), (left, 2))
        output, whole = poisoned(padded.numel())
        kernel_of(functools.partial(padded_and_reversed, left), shape)(input, output, BLOCK=8)
        assert_gives(whole, output, padded.flip(0))


def case_a_padding_known_at_the_call_gives_as_many_tiles_as_a_number():
    """Also where, before the padding, not even one window fits."""
    width = Symbol("WIDTH", constexpr=True, lower_bound=0)

    def arrangement(input, output, left=width):
        windows = input.tile((4,), (1,)).pad(((left, 0),)).tile((1,))
        windows.dtype = windows.dtype.ravel().squeeze(0)
        return windows, output.tile((4,))

    kernel = ninetoothed.make(arrangement, copied, (Tensor(1), Tensor(1)))
    for size, left in itertools.product((1, 3, 4, 6), (1, 2, 3)):
        input = numbered(size)
        count = max(size - 3, 0) + left
        output, whole = poisoned(4 * count)
        kernel(input, output, WIDTH=left)
        expected = torch.zeros(count, 4, device=DEVICE)
        for number in range(max(size - 3, 0)):
            expected[left + number] = input[number : number + 4]
        assert_gives(whole, output, expected.flatten())
