"""What the demo needs of a framework: making and reading tensors, and its own ten operations.

A framework is imported when it is asked for, and no other is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Framework:
    """One framework, on the device that the demo runs on.

    Attributes:
        title: its name in words.
        package: what it is installed as.
        device: ``"cuda"`` or ``"cpu"``.
        machine: the GPU's name; empty on the CPU.
        put: makes a tensor on the device.
        fetch: brings a tensor to the host.
        synchronize: waits until the device has done its work.
        own: its own operation for each of the demo's tasks.
    """

    title: str
    package: str
    device: str
    machine: str
    put: Callable[[numpy.ndarray], Any]
    fetch: Callable[[Any], numpy.ndarray]
    synchronize: Callable[[], object]
    own: Mapping[str, Callable[..., Any]]


def pytorch() -> Framework:
    """PyTorch, on the GPU where there is one."""
    import torch
    import torch.nn.functional as F

    is_cuda = torch.cuda.is_available()
    device = "cuda" if is_cuda else "cpu"

    def rope(x: torch.Tensor, sine: torch.Tensor, cosine: torch.Tensor) -> torch.Tensor:
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        angles = torch.complex(cosine, sine)[None, :, None, :]
        return torch.view_as_real(turned * angles).flatten(-2)

    return Framework(
        "PyTorch",
        "torch",
        device,
        torch.cuda.get_device_name() if is_cuda else "",
        lambda array: torch.from_numpy(array).to(device),
        lambda tensor: tensor.cpu().numpy(),
        torch.cuda.synchronize if is_cuda else _nothing,
        {
            "add": torch.add,
            "silu": F.silu,
            "softmax": lambda x: F.softmax(x, dim=-1),
            "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-6),
            "rope": rope,
            "mm": torch.mm,
            "addmm": torch.addmm,
            "bmm": torch.bmm,
            "conv2d": F.conv2d,
            "sdpa": F.scaled_dot_product_attention,
        },
    )


def paddlepaddle() -> Framework:
    """PaddlePaddle, on the GPU where it is built for one and there is one."""
    import paddle
    import paddle.nn.functional as F

    count = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    place = paddle.CUDAPlace(0) if count else paddle.CPUPlace()

    def rms_norm(x: Any) -> Any:
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def rope(x: Any, sine: Any, cosine: Any) -> Any:
        sine, cosine = sine.unsqueeze(1), cosine.unsqueeze(1)
        first, second = x[..., 0::2], x[..., 1::2]
        turned = (first * cosine - second * sine, first * sine + second * cosine)
        return paddle.stack(turned, -1).flatten(-2)

    def sdpa(q: Any, k: Any, v: Any) -> Any:
        scores = paddle.matmul(q, k, transpose_y=True) * q.shape[-1] ** -0.5
        return paddle.matmul(F.softmax(scores, axis=-1), v)

    return Framework(
        "PaddlePaddle",
        "paddlepaddle",
        "cuda" if count else "cpu",
        paddle.device.cuda.get_device_name(0) if count else "",
        lambda array: paddle.to_tensor(array, place=place),
        lambda tensor: tensor.numpy(),
        paddle.device.synchronize if count else _nothing,
        {
            "add": paddle.add,
            "silu": F.silu,
            "softmax": lambda x: F.softmax(x, axis=-1),
            "rms_norm": rms_norm,
            "rope": rope,
            "mm": paddle.mm,
            "addmm": paddle.addmm,
            "bmm": paddle.bmm,
            "conv2d": F.conv2d,
            "sdpa": sdpa,
        },
    )


def _nothing() -> None:
    """The CPU has nothing pending."""


FRAMEWORKS: Mapping[str, Callable[[], Framework]] = {"torch": pytorch, "paddle": paddlepaddle}
