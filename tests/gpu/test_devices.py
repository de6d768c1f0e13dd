"""CPU and CUDA tensors in one process, and streams other than the default one."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from examples import add, mm, softmax  # noqa: E402
from tests.examples.cases import Maker  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402


def test_cpu_and_cuda_in_turns() -> None:
    for _ in range(3):
        for device in ("cpu", "cuda"):
            x = Maker(torch.float32, device)(7, 37)
            output = softmax.softmax(x)
            assert output.device == x.device
            assert_matches(output, x.double().softmax(-1), 37)


def test_a_kernel_waits_for_its_own_stream() -> None:
    """The input is written late on a side stream: a launch elsewhere would read it too early."""
    size = 1 << 22
    x, y = torch.zeros(size, device="cuda"), torch.ones(size, device="cuda")
    add.add(x, y)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.fill_(41.0)
        output = add.add(x, y)
    stream.synchronize()
    assert bool((output == 42.0).all())


def test_threads() -> None:
    make = Maker(torch.float16, "cuda")
    x, y = make(130, 70), make(70, 90)
    expected = x.double() @ y.double()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                assert_matches(mm.mm(x, y), expected, 70)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
