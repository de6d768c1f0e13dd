"""Launches on a device that is not the current one; a machine with two CUDA devices is needed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import add, mm  # noqa: E402
from ninetoothed import plugins  # noqa: E402
from ninetoothed.backends.base import Device  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.frontends.kits import TorchCudaKit  # noqa: E402

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


def test_a_tensor_s_device_counts_in_each_call() -> None:
    """Calls that differ in nothing else: the one before must not be taken for them."""
    pairs = [torch.full((1000,), float(index + 1), device=f"cuda:{index}") for index in (0, 1)]
    for _ in range(3):
        for index, x in enumerate(pairs):
            output = torch.zeros_like(x)
            add.kernel(x, x, output, BLOCK_SIZE=256)
            torch.cuda.synchronize(index)
            assert bool((output == 2.0 * (index + 1)).all())


@pytest.mark.fixes_options("it fixes some")
@pytest.mark.parametrize("options", ["split_k=3", "descriptors=1", "descriptors=1,persistent=1"])
def test_workspaces_and_descriptors_are_of_the_tensors_device(
    options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NINETOOTHED_OPTIONS", options)

    def arrangement(*tensors):
        return mm.arrangement(*tensors, 64, 64, 32)

    kernel = ninetoothed.make(arrangement, mm.application, mm.tensors, num_warps=4, num_stages=3)
    for index in (0, 1, 0, 1):
        make = Maker(torch.float16, f"cuda:{index}")
        x, y = make(200, 1000), make(1000, 136)
        output = torch.full((200, 136), torch.nan, dtype=torch.float16, device=x.device)
        kernel(x, y, output)
        torch.cuda.synchronize(index)
        assert_matches(output, x.double() @ y.double(), 1000)


@pytest.mark.parametrize("is_planned", [True, False])
def test_a_graph_on_the_second_device(is_planned: bool) -> None:
    x = torch.arange(1000.0, device="cuda:1")
    output = torch.zeros_like(x)
    kernel = ninetoothed.make(add.arrangement, add.application, add.tensors)
    if is_planned:
        kernel(x, x, output, BLOCK_SIZE=256)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device="cuda:1")
    with torch.cuda.device(1):
        # PyTorch's own stream for captures is the device's that it first captured on.
        with torch.cuda.graph(graph, stream=stream):
            kernel(x, x, output, BLOCK_SIZE=256)
        x.fill_(3.0)
        output.fill_(0.0)
        graph.replay()
        torch.cuda.synchronize()
    assert bool((output == 6.0).all())


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


class TestTorchOnTheSecondDevice(TorchCudaKit):
    device = Device("cuda", 1)
    place = "cuda:1"

    def streams(self):
        return tuple(torch.cuda.stream(torch.cuda.Stream(device=self.place)) for _ in range(2))

    @pytest.mark.skip(reason="PyTorch's events are recorded on the current device, the first one")
    def test_event(self) -> None:
        raise AssertionError
