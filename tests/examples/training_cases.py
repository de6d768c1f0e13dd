"""The operators of `examples.training`, with PyTorch's own in their place and tensors to try them on."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from examples import training


def rope_reference(input, sin_table, cos_table, interleaved=True):
    """Pairs turned by their angles."""
    sin, cos = (table[: input.shape[1], None, :] for table in (sin_table, cos_table))
    if interleaved:
        first, second = input[..., ::2], input[..., 1::2]
        parts = first * cos - second * sin, first * sin + second * cos
        return torch.stack(parts, -1).flatten(-2)
    first, second = input.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


def attention_reference(*inputs, is_causal=False):
    """Of (batch, sequence, heads, size)."""
    by_head = (tensor.transpose(1, 2) for tensor in inputs)
    return F.scaled_dot_product_attention(*by_head, is_causal=is_causal).transpose(1, 2)


#: name -> ours, PyTorch's, the shapes of what has a gradient, what else there is: a function of a device.
CASES = {
    "rms_norm": (
        training.rms_norm,
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
        [(3, 5, 77), (77,)],
        lambda device: (),
    ),
    "layer_norm": (
        training.layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        [(3, 5, 77), (77,), (77,)],
        lambda device: (),
    ),
    "softmax": (training.softmax, lambda x: x.softmax(-1), [(3, 5, 77)], lambda device: ()),
    "cross_entropy": (
        training.cross_entropy,
        F.cross_entropy,
        [(7, 77)],
        lambda device: (torch.arange(7, device=device) * 11,),
    ),
    "swiglu": (
        training.swiglu,
        lambda a, b: F.silu(a) * b,
        [(3, 5, 77), (3, 5, 77)],
        lambda device: (),
    ),
    "rope": (
        training.rope,
        rope_reference,
        [(2, 5, 3, 8)],
        lambda device: tuple(
            f(torch.arange(28.0, device=device).reshape(7, 4)) for f in (torch.sin, torch.cos)
        ),
    ),
    "rope_halves": (
        lambda *arguments: training.rope(*arguments, interleaved=False),
        lambda *arguments: rope_reference(*arguments, interleaved=False),
        [(2, 5, 3, 8)],
        lambda device: tuple(
            f(torch.arange(28.0, device=device).reshape(7, 4)) for f in (torch.sin, torch.cos)
        ),
    ),
    "embedding": (
        lambda table, index: training.embedding(index, table),
        lambda table, index: F.embedding(index, table),
        [(11, 77)],
        lambda device: (torch.tensor([[1, 0, 10], [3, 1, 1]], device=device),),
    ),
    "linear": (training.linear, F.linear, [(3, 5, 77), (33, 77)], lambda device: ()),
    "attention": (
        training.attention,
        attention_reference,
        [(2, 37, 3, 16), (2, 53, 3, 16), (2, 53, 3, 16)],
        lambda device: (),
    ),
    "causal attention": (
        lambda *arguments: training.attention(*arguments, is_causal=True),
        lambda *arguments: attention_reference(*arguments, is_causal=True),
        [(2, 70, 3, 16)] * 3,
        lambda device: (),
    ),
}


def _laid_out(x, layout):
    """A tensor with the same shape that lies otherwise in memory."""
    if layout == "strided":
        return torch.stack((x, torch.full_like(x, torch.nan)), -1)[..., 0]
    if layout == "permuted":
        return x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim)))
    if layout == "broadcast":
        return x[:1].expand(x.shape)
    return x


def outcomes(name, dtype, device="cpu", layout="contiguous"):
    """Output and gradients of ours, and of PyTorch's in float64 on the same elements."""
    ours, theirs, shapes, others = CASES[name]
    generator = torch.Generator(device).manual_seed(7)
    inputs = [
        torch.randn(shape, generator=generator, device=device).to(dtype).detach()
        for shape in shapes
    ]
    inputs = [_laid_out(x, layout) for x in inputs]
    wide = [x.double().requires_grad_() for x in inputs]
    inputs = [x.requires_grad_() for x in inputs]
    rest = others(device)
    output = ours(*inputs, *rest)
    reference = theirs(*wide, *(o.double() if o.is_floating_point() else o for o in rest))
    gradient = torch.randn(reference.shape, generator=generator, device=device)
    got = torch.autograd.grad(output, inputs, gradient.to(output.dtype))
    wanted = torch.autograd.grad(reference, wide, gradient.to(output.dtype).double())
    return [output, *got], [reference, *wanted]
