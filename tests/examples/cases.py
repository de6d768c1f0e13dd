"""Every example with its input builder and its float64 reference: one table for all the tests.

The NumPy backend, Triton's interpreter and the GPU are all tested with it, at sizes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from examples import (
    add,
    addmm,
    bmm,
    conv2d,
    dropout,
    fused_rms_norm,
    layer_norm,
    max_pool2d,
    mm,
    rms_norm,
    rope,
    sdpa,
    silu,
    softmax,
    swiglu,
)
from tests.examples.inputs.examples import (
    ATTENTIONS,
    BATCHED_PRODUCTS,
    CONVOLUTIONS,
    ELEMENTWISE,
    JAGGED,
    LARGE_ATTENTIONS,
    LARGE_BATCHED_PRODUCTS,
    LARGE_CONVOLUTIONS,
    LARGE_ELEMENTWISE,
    LARGE_JAGGED,
    LARGE_POOLS,
    LARGE_PRODUCTS,
    LARGE_ROTATIONS,
    LARGE_ROWS,
    POOLS,
    PRODUCTS,
    ROTATIONS,
    ROWS,
    build_addmm,
    build_addmm_with_bias,
    build_bmm,
    build_conv2d,
    build_dropout,
    build_jagged,
    build_max_pool2d,
    build_mm,
    build_rope,
    build_sdpa,
    conv2d_reduction,
    pad_jagged,
    turned_in_place,
    with_vectors,
)
from tests.examples.maker import Maker
from tests.examples.references import (
    addmm_reference,
    dropout_reference,
    fused_add_rms_norm_reference,
    jagged_reference,
    layer_norm_reference,
    max_pool2d_reference,
    rms_norm_reference,
    rope_reference,
    sdpa_reference,
)

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LAYOUTS = ("contiguous", "transposed", "sliced")


@dataclass(frozen=True)
class Example:
    """One example kernel and how to know that it is right.

    Attributes:
        name: what tests call it.
        function: the PyTorch-facing function.
        reference: the same mathematics, on float64 tensors.
        build: (maker, *parameters) -> the positional arguments of both.
        small: tables of parameters, by label, for backends that run a program at a time.
        large: the same for a GPU.
        options: keyword arguments of both.
        reduction: (*parameters) -> the number of terms of the longest sum.
        rounds_intermediates: whether the kernel rounds to the element type on the way.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    build: Callable[..., tuple[Any, ...]]
    small: dict[str, tuple[Any, ...]]
    large: dict[str, tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    reduction: Callable[..., int] = lambda *parameters: 1
    rounds_intermediates: bool = False

    def arguments(self, maker: Maker, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments for one entry of a table."""
        return self.build(maker, *parameters)

    def expected(self, arguments: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        """The float64 results for these arguments."""
        widened = (
            argument.double()
            if isinstance(argument, torch.Tensor) and argument.is_floating_point()
            else argument
            for argument in arguments
        )
        return as_tuple(self.reference(*widened, **self.options))

    def actual(self, arguments: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        """Our results for these arguments."""
        return as_tuple(self.function(*arguments, **self.options))


def as_tuple(result: Any) -> tuple[torch.Tensor, ...]:
    """One result or several, as several."""
    return result if isinstance(result, tuple) else (result,)


def same_shapes(count: int) -> Callable[..., tuple[Any, ...]]:
    """A builder of so many tensors of one shape."""
    return lambda make, *shape: tuple(make(*shape) for _ in range(count))


def columns(*shape: int) -> int:
    """The size of the last dimension."""
    return shape[-1]


def _rows(name: str, function: Any, reference: Any, build: Any) -> Example:
    return Example(name, function, reference, build, ROWS, LARGE_ROWS, reduction=columns)


def _elementwise(name: str, function: Any, reference: Any, build: Any) -> Example:
    return Example(name, function, reference, build, ELEMENTWISE, LARGE_ELEMENTWISE)


def _products(name: str, function: Any, reference: Any, build: Any, **options: Any) -> Example:
    return Example(
        name,
        function,
        reference,
        build,
        PRODUCTS,
        LARGE_PRODUCTS,
        options,
        reduction=lambda m, k, n: k,
    )


def _conv2d(name: str, **options: Any) -> Example:
    return Example(
        name,
        conv2d.conv2d,
        F.conv2d,
        build_conv2d,
        CONVOLUTIONS if not options else {"odd": ((2, 3, 8, 9), (5, 3, 3, 2))},
        LARGE_CONVOLUTIONS if not options else {"odd": ((3, 17, 46, 51), (37, 17, 3, 5))},
        options,
        reduction=conv2d_reduction,
    )


def _sdpa(name: str, **options: Any) -> Example:
    return Example(
        name,
        sdpa.sdpa,
        sdpa_reference,
        build_sdpa,
        ATTENTIONS,
        LARGE_ATTENTIONS,
        options,
        reduction=lambda batch, heads, key_heads, queries, keys, size: keys + size,
        rounds_intermediates=True,
    )


EXAMPLES = (
    _elementwise("add", add.add, torch.add, same_shapes(2)),
    _elementwise("silu", silu.silu, F.silu, same_shapes(1)),
    _elementwise("swiglu", swiglu.swiglu, lambda x, gate: x * F.silu(gate), same_shapes(2)),
    _elementwise("dropout", dropout.dropout, dropout_reference, build_dropout),
    _rows("softmax", softmax.softmax, lambda x: torch.softmax(x, -1), same_shapes(1)),
    _rows("rms_norm", rms_norm.rms_norm, rms_norm_reference, same_shapes(1)),
    _rows(
        "fused_rms_norm",
        fused_rms_norm.fused_rms_norm,
        lambda x, weight: rms_norm_reference(x) * weight,
        with_vectors(1),
    ),
    _rows(
        "fused_add_rms_norm",
        fused_rms_norm.fused_add_rms_norm,
        fused_add_rms_norm_reference,
        lambda make, *shape: (make(*shape), make(*shape), make(shape[-1])),
    ),
    _rows("layer_norm", layer_norm.layer_norm, layer_norm_reference, with_vectors(2)),
    _products("mm", mm.mm, torch.mm, build_mm),
    _products("addmm", addmm.addmm, addmm_reference, build_addmm, beta=0.5, alpha=-1.5),
    _products("addmm of a vector", addmm.addmm, addmm_reference, build_addmm_with_bias),
    Example(
        "bmm",
        bmm.bmm,
        torch.bmm,
        build_bmm,
        BATCHED_PRODUCTS,
        LARGE_BATCHED_PRODUCTS,
        reduction=lambda b, m, k, n: k,
    ),
    _conv2d("conv2d"),
    _conv2d("conv2d with padding", padding=1),
    _conv2d("conv2d with strides", stride=(2, 3), padding=(0, 2)),
    _conv2d("conv2d with dilation", stride=2, padding=(2, 1), dilation=(2, 3)),
    Example(
        "max_pool2d",
        max_pool2d.max_pool2d,
        max_pool2d_reference,
        build_max_pool2d,
        POOLS,
        LARGE_POOLS,
    ),
    Example(
        "max_pool2d in ceil mode",
        max_pool2d.max_pool2d,
        max_pool2d_reference,
        build_max_pool2d,
        POOLS,
        LARGE_POOLS,
        {"ceil_mode": True},
    ),
    *(
        Example(
            name,
            function,
            rope_reference,
            build_rope,
            ROTATIONS,
            LARGE_ROTATIONS,
            {"interleaved": interleaved},
        )
        for name, function, interleaved in (
            ("rope", rope.rope, True),
            ("rope of halves", rope.rope, False),
            ("rope in place", turned_in_place, True),
            ("rope of halves in place", turned_in_place, False),
        )
    ),
    _sdpa("sdpa"),
    _sdpa("causal sdpa", is_causal=True),
    _sdpa("sdpa with a scale", scale=0.3),
    Example(
        "jagged_to_padded",
        pad_jagged,
        jagged_reference,
        build_jagged,
        JAGGED,
        LARGE_JAGGED,
        {"padding_value": 0.0},
    ),
    Example(
        "jagged_to_padded with a value",
        pad_jagged,
        jagged_reference,
        build_jagged,
        {"odd": JAGGED["odd"]},
        {"odd": LARGE_JAGGED["odd"]},
        {"padding_value": -1.5},
    ),
)

BY_NAME = {example.name: example for example in EXAMPLES}
