"""Launches on a device that is not the current one; a machine with two CUDA devices is needed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from examples import add, mm  # noqa: E402
from ninetoothed import plugins  # noqa: E402
from ninetoothed.backends.base import Device  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="needs two CUDA devices; there are fewer"
)


@pytest.fixture(autouse=True)
def first_device():
    """The first device is the current one, before a launch and after it."""
    with torch.cuda.device(0):
        yield
        assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (1, 0, 1, 0)], ids=str)
def test_a_kernel_runs_where_its_tensors_are(order: tuple[int, ...]) -> None:
    for index in order:
        make = Maker(torch.float16, f"cuda:{index}")
        x, y = make(130, 70), make(70, 90)

        output = mm.mm(x, y)

        assert output.device == torch.device("cuda", index)
        assert_matches(output, x.double() @ y.double(), 70)
        assert torch.cuda.current_device() == 0


def test_the_device_is_tuned_on_that_the_tensors_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timing, copies and workspaces of the tuner are on the second device too."""
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    make = Maker(torch.float16, "cuda:1")
    x, y = make(513, 257), make(257, 385)

    assert_matches(mm.mm(x, y), x.double() @ y.double(), 257)


def test_the_stream_of_the_tensors_device_is_followed() -> None:
    """The input is written late on a side stream of the second device."""
    size = 1 << 22
    x, y = torch.zeros(size, device="cuda:1"), torch.ones(size, device="cuda:1")
    add.add(x, y)
    torch.cuda.synchronize(1)
    stream = torch.cuda.Stream(device="cuda:1")
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.fill_(41.0)
        with torch.cuda.device(0):
            output = add.add(x, y)
    stream.synchronize()
    assert bool((output == 42.0).all())


def test_tensors_of_two_devices_are_refused() -> None:
    from ninetoothed.errors import ArgumentError

    x, y, output = (torch.ones(64, device=f"cuda:{index}") for index in (0, 1, 1))
    with pytest.raises(ArgumentError, match="cuda:0.*cuda:1|cuda:1.*cuda:0"):
        add.kernel(x, y, output, BLOCK_SIZE=64)


def test_the_frontends_guard_synchronisation_and_memory_are_of_the_device_asked_for() -> None:
    frontend = plugins.frontend_named("torch")
    second = Device("cuda", 1)

    with frontend.device_guard(1):
        assert torch.cuda.current_device() == 1
    made = frontend.empty((4,), frontend.dtype_of(torch.float32), second)
    stream = torch.cuda.Stream(device="cuda:1")
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        found = frontend.current_stream(1)
    frontend.synchronize(1)

    assert made.device == torch.device("cuda", 1)
    assert frontend.device_of(made.device) == second
    assert found == stream.cuda_stream
    assert stream.query(), "the second device was not waited for"
