"""Convolutions, whose windows are loaded folded; run in Triton's interpreter with ``register_prefetch`` fixed."""

from __future__ import annotations

import torch
from torch.nn.functional import conv2d as convolution

import ninetoothed
from examples import conv2d, mm
from ninetoothed import Symbol, Tensor


def swapped(filter, input, output, *blocks):
    """The filters are the rows of the left matrix, the windows the columns of the right one."""
    windows = input.tile((1, *filter.shape[1:]), strides=(-1, -1, 1, 1), floor_mode=True)
    windows = windows.squeeze(1)
    windows.dtype = windows.dtype.squeeze(0)
    windows = windows.ravel().flatten(end_dim=3).flatten(start_dim=1).permute((1, 0))
    result = output.permute((1, 0, 2, 3)).flatten(start_dim=1)

    return mm.arrangement(filter.flatten(start_dim=1), windows, result, *blocks)


def in_blocks(filter, input, output, WIDTH=Symbol("WIDTH", constexpr=True)):
    """The same in tiles of a width that need be no power of two."""
    return swapped(filter, input, output, 16, 32, WIDTH)


TENSORS = tuple(Tensor(4, shape_options={"constexpr": True}) for _ in range(3))
SWAPPED = ninetoothed.make(swapped, mm.application, TENSORS, kernel_name="swapped")
IN_BLOCKS = ninetoothed.make(in_blocks, mm.application, TENSORS, kernel_name="in_blocks")


def half(*shape: int) -> torch.Tensor:
    return torch.randn(shape).to(torch.float16)


def assert_close(output: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(output.double(), expected, rtol=2e-3, atol=2e-2)


def case_windows():
    input, filter = half(2, 9, 12, 11), half(20, 9, 3, 3)
    assert_close(conv2d.conv2d(input, filter), convolution(input.double(), filter.double()))


def case_windows_of_padding():
    input, filter = half(2, 5, 12, 11), half(20, 5, 3, 5)
    options = {"stride": 2, "padding": 2, "dilation": 2}
    expected = convolution(input.double(), filter.double(), **options)
    assert_close(conv2d.conv2d(input, filter, **options), expected)


def case_windows_in_another_order():
    input, filter = half(2, 12, 11, 9).permute(0, 3, 1, 2), half(20, 9, 3, 3)
    assert_close(conv2d.conv2d(input, filter), convolution(input.double(), filter.double()))


def case_windows_as_columns():
    input, filter = half(2, 9, 12, 11), half(20, 9, 3, 3)
    output = torch.full((2, 20, 10, 9), torch.nan, dtype=torch.float16)
    SWAPPED(filter, input, output)
    assert_close(output, convolution(input.double(), filter.double()))


def case_tiles_that_are_padded():
    input, filter = half(2, 9, 12, 11), half(20, 9, 3, 3)
    output = torch.full((2, 20, 10, 9), torch.nan, dtype=torch.float16)
    for width in (24, 27, 32):
        IN_BLOCKS(filter, input, output, WIDTH=width)
        assert_close(output, convolution(input.double(), filter.double()))
