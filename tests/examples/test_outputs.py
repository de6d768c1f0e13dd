"""Kernels called directly, writing into views: all of the view is written, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from examples import (
    add,
    bmm,
    conv2d,
    layer_norm,
    max_pool2d,
    mm,
    rope,
    rope_in_place,
    sdpa,
    softmax,
)
from tests.examples.cases import Maker
from tests.examples.compare import assert_matches
from tests.examples.references import rope_reference, sdpa_reference


def view_in_nan(*shape: int, order: tuple[int, ...] | None = None) -> tuple[torch.Tensor, ...]:
    """A NaN-filled buffer and a view of every second element of it, its dimensions in an order."""
    order = order or tuple(range(len(shape)))
    stored_shape = [0] * len(shape)
    for position, dim in enumerate(order):
        stored_shape[position] = shape[dim]
    buffer = torch.full([2 * size + 3 for size in stored_shape], torch.nan)
    view = buffer[tuple(slice(1, 1 + 2 * size, 2) for size in stored_shape)]
    return buffer, view.permute([order.index(dim) for dim in range(len(shape))])


def check(
    launch: Callable[[torch.Tensor], None],
    expected: torch.Tensor,
    order: tuple[int, ...] | None = None,
    reduction: int = 1,
) -> None:
    buffer, view = view_in_nan(*expected.shape, order=order)
    launch(view)
    assert_matches(view, expected, reduction)
    assert int((~buffer.isnan()).sum()) == expected.numel(), "something beside the view was written"


make = Maker(torch.float32)


def test_add_into_a_slice() -> None:
    x, y = make(1500), make(1500)
    check(lambda out: add.kernel(x, y, out, BLOCK_SIZE=256), x.double() + y.double())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_softmax_into_a_view(order: tuple[int, ...]) -> None:
    x = make(7, 37)
    check(lambda out: softmax.kernel(x, out), x.double().softmax(-1), order, 37)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_layer_norm_into_a_view(order: tuple[int, ...]) -> None:
    x, weight, bias = make(7, 37), make(37), make(37)
    expected = F.layer_norm(x.double(), (37,), weight.double(), bias.double())
    check(lambda out: layer_norm.kernel(x, weight, bias, 1e-5, out), expected, order, 37)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_mm_into_a_view(order: tuple[int, ...]) -> None:
    x, y = make(33, 17), make(17, 35)
    check(lambda out: mm.kernel(x, y, out), x.double() @ y.double(), order, 17)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_bmm_into_a_view(order: tuple[int, ...]) -> None:
    x, y = make(3, 33, 17), make(3, 17, 35)
    check(lambda out: bmm.kernel(x, y, out), x.double() @ y.double(), order, 17)


def test_conv2d_into_channels_last() -> None:
    x, weights = make(2, 3, 7, 9), make(5, 3, 3, 3)
    expected = F.conv2d(x.double(), weights.double())
    check(lambda out: conv2d.kernel(x, weights, out), expected, (0, 2, 3, 1), 27)


def test_max_pool2d_into_channels_last() -> None:
    x = make(2, 3, 9, 11)
    sizes = {"WINDOW_HEIGHT": 3, "WINDOW_WIDTH": 2, "STRIDE_HEIGHT": 3, "STRIDE_WIDTH": 2}
    expected = F.max_pool2d(x.double(), (3, 2))
    check(lambda out: max_pool2d.kernel(x, out, **sizes, BLOCK_SIZE=16), expected, (0, 2, 3, 1))


def test_sdpa_into_heads_inside() -> None:
    query, key, value = make(2, 2, 33, 16), make(2, 2, 37, 16), make(2, 2, 37, 16)
    expected = sdpa_reference(query.double(), key.double(), value.double())
    check(lambda out: sdpa.kernel(query, key, value, 0.25, False, out), expected, (0, 2, 1, 3), 64)


@pytest.mark.parametrize("interleaved", [True, False])
def test_rope_into_heads_outside(interleaved: bool) -> None:
    x, sin, cos = make(2, 5, 3, 8), make(5, 4), make(5, 4)
    expected = rope_reference(x.double(), sin.double(), cos.double(), interleaved)
    kernel = rope.kernel if interleaved else rope.halves_kernel
    check(lambda out: kernel(x, sin, cos, out), expected, (0, 2, 1, 3))


@pytest.mark.parametrize("interleaved", [True, False])
def test_rope_in_a_view(interleaved: bool) -> None:
    x, sin, cos = make(2, 5, 3, 8), make(5, 4), make(5, 4)
    expected = rope_reference(x.double(), sin.double(), cos.double(), interleaved)

    def launch(out: torch.Tensor) -> None:
        out.copy_(x)
        assert rope_in_place.rope_(out, sin, cos, interleaved) is out

    check(launch, expected, (2, 0, 1, 3))
