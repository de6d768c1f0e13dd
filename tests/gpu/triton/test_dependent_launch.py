"""Launches that begin while the kernel before ends: what it wrote is what is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from examples import add, conv2d, rms_norm, rope, rope_in_place, silu, softmax  # noqa: E402

pytestmark = pytest.mark.fixes_options("it compares both values of its option")

KERNELS = [module.kernel for module in (add, conv2d, rms_norm, rope, rope_in_place, silu, softmax)]


def fix(monkeypatch: pytest.MonkeyPatch, value: int) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"dependent_launch={value}")
    for kernel in KERNELS:
        kernel.forget_launches()


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    shapes = (64 * 4096,), (4, 512, 14, 14), (512, 512, 3, 3), (64, 32)
    x, image, weights, angles = (torch.randn(shape, device="cuda") for shape in shapes)
    return tuple(t.half() for t in (x, image, 0.01 * weights, angles.sin(), angles.cos()))


def chain(x, image, weights, sin, cos) -> tuple[torch.Tensor, torch.Tensor]:
    """Each kernel reads what the one before wrote; some of them are PyTorch's, one counts parts."""
    y = x
    for step in range(40):
        y = rms_norm.rms_norm(y.view(64, -1)).view(-1)
        y = silu.silu(add.add(y, x))
        if step % 3 == 0:
            y = y * 0.5 + 1
        y = add.add(y, softmax.softmax(y.view(64, -1)).view(-1))
        y = rope.rope(y.view(1, 64, -1, 64), sin, cos).view(-1)
        if step % 7 == 0:
            y = y.clone()
        if step % 5 == 0:
            image = image + 0.01 * conv2d.conv2d(image, weights)[:, :, :1, :1]
    return y, image


def results(run: Callable[[], tuple[torch.Tensor, ...]]) -> list[torch.Tensor]:
    found = [tensor.clone() for tensor in run()]
    torch.cuda.synchronize()
    return found


def test_a_chain_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    given = inputs()
    fix(monkeypatch, 0)
    expected = results(lambda: chain(*given))
    assert all(tensor.isfinite().all() for tensor in expected)
    fix(monkeypatch, 1)
    for _ in range(20):
        assert all(map(torch.equal, results(lambda: chain(*given)), expected))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = chain(*given)

    def replay() -> tuple[torch.Tensor, ...]:
        graph.replay()
        return captured

    for _ in range(20):
        assert all(map(torch.equal, results(replay), expected))


def test_what_another_stream_writes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    given = inputs()
    fix(monkeypatch, 0)
    expected = results(lambda: chain(*given))
    fix(monkeypatch, 1)
    chain(*given)
    stream = torch.cuda.Stream()

    def run() -> tuple[torch.Tensor, ...]:
        doubled = given[0] * 2
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            halved = doubled / 2
        torch.cuda.default_stream().wait_stream(stream)
        return chain(halved, *given[1:])

    for _ in range(20):
        assert all(map(torch.equal, results(run), expected))


def test_what_each_call_overwrites_is_what_the_next_one_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = inputs()[0].view(1, 64, -1, 64)
    angles = torch.linspace(0, 6, 64 * 32, device="cuda").view(64, 32)
    tables = angles.sin().half(), angles.cos().half()

    def run(is_waited_for: bool = False) -> tuple[torch.Tensor, ...]:
        turned = given.clone()
        for _ in range(1000):
            rope_in_place.rope_(turned, *tables)
            if is_waited_for:
                torch.cuda.synchronize()
        return (turned,)

    fix(monkeypatch, 0)
    expected = results(lambda: run(is_waited_for=True))
    assert expected[0].isfinite().all()
    fix(monkeypatch, 1)
    assert all(map(torch.equal, results(run), expected))
