"""The ten tasks of the paper, their inputs, and who contends in each."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.common.inputs import BUILDERS, ELEMENTS
from benchmarks.common.search import autotune, fastest_of
from benchmarks.peers import best, idiomatic
from tests.examples.maker import Maker
from tests.examples.references import rms_norm_reference, rope_reference, sdpa_reference

OURS, IDIOMATIC, BEST, TORCH = "ours", "idiomatic", "best", "PyTorch"

#: In the order of the tables. Ours is set against each of the others.
NAMES = (OURS, IDIOMATIC, BEST, TORCH)

#: The published package has our package's name, so it contends in a process of its own (`published`).
PUBLISHED = "published"


@dataclass(frozen=True)
class Task:
    """One task at one size.

    Attributes:
        name: as `--tasks` takes it.
        size: the size, in words.
        build: (maker) -> the arguments.
        contenders: name -> function of the arguments; each returns the result.
        reference: the result in float64, from arguments in float64.
        reduction: the number of terms of the longest sum.
        rounds_intermediates: whether contenders may round to the element type on the way.
    """

    name: str
    size: str
    build: Callable[[Maker], tuple[Any, ...]]
    contenders: dict[str, Callable[..., torch.Tensor]]
    reference: Callable[..., torch.Tensor]
    reduction: int = 1
    rounds_intermediates: bool = False


def _torch_rope_(
    tensor: torch.Tensor, sin: torch.Tensor, cos: torch.Tensor, interleaved: bool = True
) -> torch.Tensor:
    return tensor.copy_(rope_reference(tensor, sin, cos, interleaved))


def _torch_rms_norm(input: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(input, input.shape[-1:], eps=1e-6)


def _torch_attention(backend: SDPBackend) -> Callable[..., torch.Tensor]:
    def attention(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool = False
    ) -> torch.Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)

    attention.__name__ = backend.name
    return attention


#: PyTorch itself does not always choose the quickest of them.
torch_sdpa = fastest_of(
    "PyTorch's sdpa",
    _torch_attention(SDPBackend.CUDNN_ATTENTION),
    _torch_attention(SDPBackend.FLASH_ATTENTION),
)


#: The examples that are not in a module of their name.
_MODULES = {"rope_": "rope_in_place"}


def _example(name: str) -> Callable[..., torch.Tensor]:
    """An example's function, imported when it is called: it is made with the package at hand."""

    def call(*arguments: Any, **options: Any) -> torch.Tensor:
        module = importlib.import_module(f"examples.{_MODULES.get(name, name)}")
        return getattr(module, name)(*arguments, **options)

    return call


#: Where the published package needs, or is better served by, another program than our example.
_OWN = {
    "rope": "benchmarks.peers.published_rope",
    "rope_": "benchmarks.peers.published_rope",
    "sdpa": "benchmarks.peers.published_sdpa",
}


def _published(name: str) -> Callable[..., torch.Tensor]:
    """The same for the published package, whose tuning is hurried as that of our Triton kernels."""

    def call(*arguments: Any) -> torch.Tensor:
        triton.autotune = autotune
        if name not in _OWN:
            return _example(name)(*arguments)
        return getattr(importlib.import_module(_OWN[name]), name)(*arguments)

    return call


def _contenders(
    name: str, torch_: Callable[..., torch.Tensor]
) -> dict[str, Callable[..., torch.Tensor]]:
    """Everybody's function for the task of this name."""
    return {
        OURS: _example(name),
        IDIOMATIC: getattr(idiomatic, name),
        BEST: getattr(best, name),
        TORCH: torch_,
        PUBLISHED: _published(name),
    }


TASKS = (
    Task("add", f"{ELEMENTS}", BUILDERS["add"], _contenders("add", torch.add), torch.add),
    Task(
        "addmm",
        "4096³",
        BUILDERS["addmm"],
        _contenders("addmm", torch.addmm),
        torch.addmm,
        reduction=4096,
    ),
    Task(
        "bmm",
        "4 × 2048³",
        BUILDERS["bmm"],
        _contenders("bmm", torch.bmm),
        torch.bmm,
        reduction=2048,
    ),
    Task(
        "conv2d",
        "(4, 512, 14, 14) * (512, 512, 3, 3)",
        BUILDERS["conv2d"],
        _contenders("conv2d", F.conv2d),
        F.conv2d,
        reduction=512 * 9,
    ),
    Task("mm", "4096³", BUILDERS["mm"], _contenders("mm", torch.mm), torch.mm, reduction=4096),
    Task(
        "rms_norm",
        "(4096, 4096)",
        BUILDERS["rms_norm"],
        _contenders("rms_norm", _torch_rms_norm),
        rms_norm_reference,
        reduction=4096,
    ),
    Task(
        "rope",
        "(4, 1024, 48, 64)",
        BUILDERS["rope"],
        _contenders("rope", rope_reference),
        rope_reference,
        rounds_intermediates=True,
    ),
    Task(
        "rope_",
        "(4, 1024, 48, 64), in place",
        BUILDERS["rope_"],
        _contenders("rope_", _torch_rope_),
        rope_reference,
        rounds_intermediates=True,
    ),
    Task(
        "sdpa",
        "(4, 48, 1024, 64)",
        BUILDERS["sdpa"],
        _contenders("sdpa", torch_sdpa),
        sdpa_reference,
        reduction=1024,
        rounds_intermediates=True,
    ),
    Task("silu", f"{ELEMENTS}", BUILDERS["silu"], _contenders("silu", F.silu), F.silu),
    Task(
        "softmax",
        "(4096, 4096)",
        BUILDERS["softmax"],
        _contenders("softmax", lambda x: torch.softmax(x, -1)),
        lambda x: torch.softmax(x, -1),
        reduction=4096,
    ),
)

BY_NAME = {task.name: task for task in TASKS}
