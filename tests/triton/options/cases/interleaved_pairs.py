"""Kernels with tiles that take turns in memory, and what they should give."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import rope, rope_in_place
from ninetoothed import Symbol, Tensor
from tests.corpus.kernels import backwards, read_between, swapped
from tests.examples import references

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def turns(tensor, size):
    """The even and the odd elements of each ``2 * size`` of a vector."""
    arranged = tensor.tile((2 * size,))
    arranged.dtype = arranged.dtype.tile((size,), strides=(1,), dilation=(2,))

    return arranged


def arrangement(input, output, BLOCK_SIZE=BLOCK_SIZE):
    return turns(input, BLOCK_SIZE), turns(output, BLOCK_SIZE)


def constants(input, output):
    difference = ntl.sum(input[1]) - ntl.sum(input[0])
    output[0] = 2
    output[1] = difference


def in_a_loop(input, output):
    total = ntl.zeros((BLOCK_SIZE,), dtype=ntl.float32)
    for _ in range(3):
        total += input[0] * input[1]
    output[0] = total
    output[1] = -total


def stored_between(input, output):
    first = input[0]
    output[0] = first
    output[1] = input[1]


def sometimes(input, output):
    first = input[0]
    if input.source.shape[0] > 3:
        second = input[1]
        output[0] = first
        output[1] = second
    else:
        output[0] = input[1]
        output[1] = input[1]


def kernel_of(application):
    return ninetoothed.make(
        arrangement, application, (Tensor(1, other=7), Tensor(1)), kernel_name=application.__name__
    )


KERNELS = {
    application.__name__: kernel_of(application)
    for application in (
        swapped,
        backwards,
        constants,
        in_a_loop,
        stored_between,
        read_between,
        sometimes,
    )
}


def expected(name, input, size):
    """What a kernel stores, a program at a time."""
    result = torch.full_like(input, -1)
    for start in range(0, input.numel(), 2 * size):
        here = torch.arange(start, start + 2 * size)
        padded = torch.full((2 * size,), 7, dtype=input.dtype)
        inside = here < input.numel()
        padded[inside] = input[here[inside]]
        even, odd = _pair(name, padded[0::2], padded[1::2], input.numel())
        both = torch.stack((even, odd), -1).flatten()
        result[here[inside]] = both[inside]
    return result


def _pair(name, first, second, count):
    if name == "swapped":
        return second, first
    if name == "backwards":
        return first - (second + 1), first + (second + 1)
    if name == "constants":
        return torch.full_like(first, 2), (second.sum() - first.sum()).expand(first.shape)
    if name == "in_a_loop":
        return 3 * first * second, -3 * first * second
    if name == "stored_between":
        return first, second
    if name == "read_between":
        return first, 2 * second
    return (first, second) if count > 3 else (second, second)


def case_vectors():
    for name, kernel in KERNELS.items():
        for count in (1, 2, 7, 16, 40, 61):
            for size in (1, 4, 5):
                check(name, kernel, torch.randint(-9, 9, (count,)).float(), size)


def check(name, kernel, input, size):
    output = torch.full_like(input, -1)
    kernel(input, output, BLOCK_SIZE=size)
    torch.testing.assert_close(output, expected(name, input, size), msg=f"{name} {input.numel()}")


def case_strided():
    for name, kernel in KERNELS.items():
        input = torch.randint(-9, 9, (90,)).float()
        check(name, kernel, input[::2], 4)


def case_half_precision_is_rounded_once():
    input = torch.randn(64, dtype=torch.float16)
    output = torch.empty_like(input)
    KERNELS["backwards"](input, output, BLOCK_SIZE=8)
    first, second = input[0::2], input[1::2] + 1
    wanted = torch.stack((first - second, first + second), -1).flatten()
    torch.testing.assert_close(output, wanted)


def case_rope():
    # A product of two large halves is rounded by more than the bound, once in some hundred draws.
    torch.manual_seed(0)
    for shape in ((2, 3, 5, 8), (1, 4, 3, 6), (2, 1, 7, 2), (1, 3, 4, 64)):
        for interleaved in (True, False):
            for dtype in (torch.float32, torch.float16):
                tensor = torch.randn(shape).to(dtype)
                sin, cos = torch.randn(2, shape[1], shape[-1] // 2).to(dtype)
                wanted = references.rope_reference(tensor, sin, cos, interleaved)
                actual = rope.rope(tensor, sin, cos, interleaved)
                torch.testing.assert_close(actual, wanted.to(dtype), rtol=2e-3, atol=2e-3)
                rope_in_place.rope_(tensor, sin, cos, interleaved)
                torch.testing.assert_close(tensor, wanted.to(dtype), rtol=2e-3, atol=2e-3)


def case_a_pair_of_which_one_is_beyond_its_level():
    def arrangement(input, output):
        return tuple(
            tensor.tile((4,), strides=(1,), dilation=(2,)).tile((-1,)) for tensor in (input, output)
        )

    def application(input, output):
        first = input[1]
        second = input[2]
        output[0] = first
        output[1] = second

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    input, output = torch.arange(8.0), torch.full((8,), torch.nan)
    kernel(input, output)
    assert output.tolist() == [1, 0, 3, 0, 5, 0, 7, 0]
