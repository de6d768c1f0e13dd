"""The examples whose backward is derived: how each is an operator, and what it computes in PyTorch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F

import ninetoothed
from examples import (
    add,
    addmm,
    bmm,
    conv2d,
    dropout,
    fused_rms_norm,
    layer_norm,
    mm,
    rms_norm,
    rope,
    silu,
    softmax,
    swiglu,
)
from examples.more import addcmul, clamp, group_norm, instance_norm, mm_with_precision, top1, tril
from ninetoothed import like
from tests.examples.references import rope_reference

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Derived:
    """An example with a derived backward.

    Attributes:
        kernel: its kernel.
        outputs: as `ninetoothed.op` takes them.
        reference: the same in PyTorch.
        shapes: of the tensors that come first; those after them, and numbers, are `others`.
        others: of them, in order.
        wrt: the inputs that gradients are asked for.
    """

    kernel: Any
    outputs: dict[str, Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    others: tuple[Any, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    wrt: tuple[str, ...] | None = None

    @functools.cached_property
    def operator(self) -> Any:
        """The operator, under a name of its own."""
        name = f"derived_examples::{self.kernel.name}_{next(NUMBERS)}"
        options = {"constants": self.constants, "wrt": self.wrt}
        return ninetoothed.op(name, self.kernel, self.outputs, backward="derive", **options)

    def check(self, dtype: torch.dtype, device: str = "cpu") -> None:
        """Compares all gradients with those of the reference in float64."""
        generator = torch.Generator().manual_seed(0)

        def numbers(shape: tuple[int, ...]) -> torch.Tensor:
            return torch.randn(shape, generator=generator).to(device, dtype)

        inputs = [numbers(shape).requires_grad_() for shape in self.shapes]
        wide = [each.detach().double().requires_grad_() for each in inputs]
        ours = self.operator(*inputs, *self.others)
        theirs = self.reference(*wide, *self.others)
        ours, theirs = (each if isinstance(each, tuple) else (each,) for each in (ours, theirs))
        given = [numbers(each.shape) for each in ours]
        found = torch.autograd.grad(ours, inputs, given, allow_unused=True)
        doubled = [each.double() for each in given]
        wanted = torch.autograd.grad(theirs, wide, doubled, allow_unused=True)
        names = [entry.name for entry in self.operator.definition.tensors]
        for name, one, other in zip(names, found, wanted):
            if self.wrt is not None and name not in self.wrt:
                assert one is None, f"{name} has a gradient"
                continue
            assert one.dtype == dtype
            scale = 40 * torch.finfo(dtype).eps
            torch.testing.assert_close(
                one.double(), other, rtol=scale, atol=scale * float(other.abs().max())
            )


def of(module: Any, reference: Callable[..., Any], *shapes: Any, **options: Any) -> Derived:
    """An example whose output is called that, and is like its first input."""
    outputs = {"output": like(module.kernel.declaration.call_names[0])}
    return Derived(
        module.kernel, **{"outputs": outputs, **options}, reference=reference, shapes=shapes
    )


def product(module: Any, *operands: Any, **options: Any) -> Derived:
    """A product of matrices (m, k) and (k, n)."""
    one, other = (tensor.shape for tensor in operands[:2])
    sizes = (*one[:-1], other[-1])
    names = [p.name for p in module.kernel.declaration.tensor_parameters]
    outputs = {"output": (sizes, names[0])}
    return Derived(module.kernel, outputs, **options)


def fused_add_rms_norm(input, residual, weight, eps):
    total = input + residual
    return F.rms_norm(total, weight.shape, weight, eps), total


def dropped(input, p, seed):
    return input * (dropout.dropout(torch.ones_like(input), p, seed) != 0) / (1 - p)


def norms_of_images(input, weight, bias, eps):
    mean = input.mean((2, 3))
    deviation = (input.var((2, 3), unbiased=False) + eps).sqrt()
    normal = (input - mean[..., None, None]) / deviation[..., None, None]
    return normal * weight[:, None, None] + bias[:, None, None], mean, deviation


ROWS = (5, 37)
_ELEMENTS = {"constants": {"BLOCK_SIZE": 16}}
_IMAGES = instance_norm.tensors[0].shape
_FILTERS = conv2d.kernel.declaration.tensor_parameters
_CONVOLVED = [p.source.shape for p in _FILTERS]

CASES: dict[str, Derived] = {
    "add": of(add, torch.add, (37,), (37,), **_ELEMENTS),
    "silu": of(silu, F.silu, (37,), **_ELEMENTS),
    "swiglu": of(swiglu, lambda a, b: a * F.silu(b), (37,), (37,), **_ELEMENTS),
    "dropout": of(dropout, dropped, (37,), others=(0.4, 3), **_ELEMENTS),
    "softmax": of(softmax, lambda x: x.softmax(-1), ROWS),
    "rms_norm": of(rms_norm, lambda x, eps: F.rms_norm(x, (37,), eps=eps), ROWS, others=(1e-3,)),
    "fused_rms_norm": of(
        fused_rms_norm, lambda x, w, eps: F.rms_norm(x, (37,), w, eps), ROWS, (37,), others=(1e-3,)
    ),
    "fused_add_rms_norm": Derived(
        fused_rms_norm.residual_kernel,
        {"output": like("input"), "total": like("input")},
        fused_add_rms_norm,
        (ROWS, ROWS, (37,)),
        (1e-3,),
    ),
    "layer_norm": of(
        layer_norm,
        lambda x, w, b, eps: F.layer_norm(x, (37,), w, b, eps),
        ROWS,
        (37,),
        (37,),
        others=(1e-3,),
    ),
    "rope": of(rope, rope_reference, (2, 5, 3, 8), (5, 4), (5, 4)),
    "rope_halves": Derived(
        rope.halves_kernel,
        {"output": like("input")},
        functools.partial(rope_reference, interleaved=False),
        ((2, 5, 3, 8), (5, 4), (5, 4)),
    ),
    "mm": product(mm, *mm.tensors, reference=torch.mm, shapes=((33, 40), (40, 37))),
    "bmm": product(bmm, *bmm.tensors, reference=torch.bmm, shapes=((2, 33, 40), (2, 40, 7))),
    "addmm": Derived(
        addmm.kernel,
        {"output": like("input")},
        lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b),
        ((33, 37), (33, 40), (40, 37)),
        (0.5, 2.0),
    ),
    "conv2d": Derived(
        conv2d.kernel,
        {
            "output": (
                (
                    _CONVOLVED[0][0],
                    _CONVOLVED[1][0],
                    *(a - b + 1 for a, b in zip(_CONVOLVED[0][2:], _CONVOLVED[1][2:])),
                ),
                "input",
            )
        },
        F.conv2d,
        ((2, 3, 9, 8), (5, 3, 3, 2)),
        wrt=("other",),
    ),
    "addcmul": Derived(
        addcmul.kernel_for(2),
        {"output": like("input")},
        lambda x, a, b, value: x + value * a * b,
        (ROWS, ROWS, ROWS),
        (0.5,),
        {"BLOCK_SIZE": 16, "mode": addcmul.Mode.MULTIPLY},
    ),
    "clamp": of(
        clamp,
        torch.clamp,
        (37,),
        others=(-0.5, 0.5),
        constants={"BLOCK_SIZE": 16, "replacement": None},
    ),
    "tril": of(tril, torch.tril, (2, 9, 7), others=(1,), constants={"BLOCK_SIZE": 8}),
    "group_norm": of(
        group_norm,
        lambda x, w, b, eps: F.group_norm(x, 2, w, b, eps),
        (3, 6, 4, 5),
        (6,),
        (6,),
        others=(1e-3,),
        constants={"CHANNELS": 3},
    ),
    "instance_norm": Derived(
        instance_norm.kernel,
        {
            "output": like("input"),
            "mean": (_IMAGES[:2], "input"),
            "deviation": (_IMAGES[:2], "input"),
        },
        norms_of_images,
        ((3, 6, 4, 5), (6,), (6,)),
        (1e-3,),
    ),
    "top1": Derived(
        top1.kernel,
        {"output": ((top1.tensors[0].shape[0],), "values")},
        lambda scores, values: values.gather(1, scores.argmax(1, keepdim=True))[:, 0],
        (ROWS, ROWS),
        wrt=("values",),
    ),
    "mm_with_precision": product(
        mm_with_precision,
        *mm_with_precision.tensors,
        reference=torch.mm,
        shapes=((33, 40), (40, 37)),
        constants={"variant": mm_with_precision.Precision.IEEE},
    ),
}
