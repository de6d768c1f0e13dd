"""`debugging.check(against="cuda")`: what CPU tensors are given by NumPy, the device gives too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import conv2d, layer_norm, mm, rope, sdpa, softmax  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.printers import triton as printer  # noqa: E402
from ninetoothed.debugging import check  # noqa: E402
from ninetoothed.errors import DifferingStoreError  # noqa: E402


def random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), device="cpu")


CALLS = {
    "mm": lambda: mm.mm(random(37, 70), random(70, 21)),
    "softmax": lambda: softmax.softmax(random(5, 1000)),
    "layer_norm": lambda: layer_norm.layer_norm(random(5, 70), random(70), random(70)),
    "sdpa": lambda: sdpa.sdpa(*(random(1, 2, 40, 32) for _ in range(3))),
    "conv2d": lambda: conv2d.conv2d(random(2, 3, 9, 9), random(4, 3, 3, 3)),
    "rope": lambda: rope.rope(random(2, 5, 3, 16), random(5, 8), random(5, 8)),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_example_is_the_same_on_both(name):
    with check(against="cuda"):
        CALLS[name]()


def test_what_the_device_computes_otherwise_is_named(monkeypatch):
    def application(x, y):
        y = x * 123.0  # noqa: F841

    original = printer.emit

    def changed(*arguments, **keywords):
        emitted = original(*arguments, **keywords)
        object.__setattr__(emitted, "text", emitted.text.replace("123.0", "124.0"))
        return emitted

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((32,)), y.tile((32,))), application, (Tensor(1), Tensor(1))
    )
    x = torch.arange(100.0)
    with check(against="cuda"):
        kernel(x, torch.empty(100))
    monkeypatch.setattr("ninetoothed.backends.triton.translation.emit", changed)
    other = ninetoothed.make(
        lambda x, y: (x.tile((32,)), y.tile((32,))),
        application,
        (Tensor(1), Tensor(1)),
        kernel_name="other",
    )
    with (
        check(against="cuda"),
        pytest.raises(DifferingStoreError, match=r"program \(0,\) stores 123.0 to `y` at \(1,\)"),
    ):
        other(x, torch.empty(100))
