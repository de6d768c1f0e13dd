"""Reductions in parts on the GPU: right, the same bits each time, on several streams, in graphs."""

from __future__ import annotations

import ctypes

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import addmm, bmm, conv2d, mm  # noqa: E402
from ninetoothed.backends.triton.runtime.device_api import runtime  # noqa: E402
from ninetoothed.backends.triton.runtime.workspace import COUNTER_BYTES, workspaces  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402

pytestmark = pytest.mark.fixes_options("its tests fix those that they are about")

BLOCKS = (64, 64, 32)


OPTIONS = [
    "split_k=2",
    "split_k=5,cooperative_reduction=0",
    "split_k=5,cooperative_reduction=1",
    "split_k=3,cooperative_reduction=2",
    "split_k=3,register_prefetch=1",
]


@pytest.fixture(params=[*OPTIONS, "register_prefetch=1"], autouse=True)
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", request.param)


def make(*shape: int) -> torch.Tensor:
    return Maker(torch.float16, "cuda")(*shape)


def product_kernel():
    def arrangement(*tensors):
        return mm.arrangement(*tensors, *BLOCKS)

    return ninetoothed.make(arrangement, mm.application, mm.tensors, num_warps=4, num_stages=3)


def poisoned(*shape):
    return torch.full(shape, torch.nan, dtype=torch.float16, device="cuda")


def poison_workspaces() -> None:
    """Puts NaN where sums are kept."""
    found = workspaces(0, "cuda")
    for address, room in found._kept.values():
        found._library.fill(address + COUNTER_BYTES, 0xFF, room, 0)
    torch.cuda.synchronize()


def counters() -> list[bytes]:
    torch.cuda.synchronize()
    found = workspaces(0, "cuda")
    return [
        found._library.copy_to_host(address, COUNTER_BYTES) for address, _ in found._kept.values()
    ]


@pytest.mark.parametrize(
    "shape",
    [(64, 2048, 64), (100, 1000, 70), (99, 1001, 77), (1, 4096, 200), (64, 32, 64), (64, 0, 64)],
    ids=str,
)
def test_products(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    kernel = product_kernel()
    for _ in range(3):
        x, y, output = make(m, k), make(k, n), poisoned(m, n)
        kernel(x, y, output)
        assert_matches(output, x.double() @ y.double(), k)
        poison_workspaces()
    assert all(not any(found) for found in counters())


def test_what_follows_the_product_is_done_once() -> None:
    bias, x, y = make(100, 70), make(100, 900), make(900, 70)
    expected = 0.5 * bias.double() + 2.0 * (x.double() @ y.double())
    # In place: done twice, the bias would count twice.
    addmm.kernel(bias, x, y, 0.5, 2.0, bias)
    assert_matches(bias, expected, 900)


def test_batches() -> None:
    x, y, output = make(3, 100, 500), make(3, 500, 70), poisoned(3, 100, 70)
    bmm.kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 500)


def test_a_convolution() -> None:
    x, y = make(2, 96, 14, 14), make(80, 96, 3, 3)
    expected = torch.nn.functional.conv2d(x.double(), y.double())
    assert_matches(conv2d.conv2d(x, y), expected, 96 * 9)


def test_the_same_arguments_give_the_same_bits() -> None:
    kernel = product_kernel()
    x, y = make(200, 3000), make(3000, 200)
    first = poisoned(200, 200)
    kernel(x, y, first)
    for _ in range(200):
        again = poisoned(200, 200)
        kernel(x, y, again)
        assert torch.equal(first, again)


def test_more_programs_than_run_at_once() -> None:
    """A part may wait for one that has not begun."""
    kernel = product_kernel()
    x, y = make(1024, 1000), make(1000, 4096)
    first = poisoned(1024, 4096)
    kernel(x, y, first)
    assert_matches(first, x.double() @ y.double(), 1000)
    for _ in range(20):
        again = poisoned(1024, 4096)
        kernel(x, y, again)
        assert torch.equal(first, again)
    assert all(not any(found) for found in counters())


def test_two_streams_at_a_time() -> None:
    kernel = product_kernel()
    pairs = [(make(200, 3000), make(3000, 200)) for _ in range(2)]
    expected = []
    for x, y in pairs:
        expected.append(poisoned(200, 200))
        kernel(x, y, expected[-1])
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    outputs = []
    for _ in range(100):
        for stream, (x, y), wanted in zip(streams, pairs, expected):
            with torch.cuda.stream(stream):
                output = poisoned(200, 200)
                kernel(x, y, output)
                outputs.append((output, wanted))
    torch.cuda.synchronize()
    assert all(torch.equal(output, wanted) for output, wanted in outputs)


def test_a_stream_that_is_given_the_handle_of_one_that_is_gone() -> None:
    """A stream may be destroyed before it has done its work, and the next one comes at once."""
    kernel, library = product_kernel(), runtime("cuda")
    x, y, expected = make(200, 3000), make(3000, 200), poisoned(200, 200)
    kernel(x, y, expected)
    outputs = [poisoned(200, 200) for _ in range(8)]
    torch.cuda.synchronize()
    for output in outputs:
        handle = ctypes.c_void_p()
        assert library._library.cuStreamCreate(ctypes.byref(handle), ctypes.c_uint(1)) == 0
        with torch.cuda.stream(torch.cuda.ExternalStream(handle.value)):
            for _ in range(20):
                kernel(x, y, output)
        assert library._library.cuStreamDestroy_v2(handle) == 0
    torch.cuda.synchronize()
    assert all(torch.equal(output, expected) for output in outputs)


def test_each_thread_s_own_default_stream() -> None:
    kernel = product_kernel()
    x, y, output = make(200, 3000), make(3000, 200), poisoned(200, 200)
    with torch.cuda.stream(torch.cuda.ExternalStream(2)):
        kernel(x, y, output)
    torch.cuda.synchronize()
    assert_matches(output, x.double() @ y.double(), 3000)


def test_graphs_have_workspaces_of_their_own() -> None:
    kernel = product_kernel()
    x, y, warm = make(200, 3000), make(3000, 200), poisoned(200, 200)
    kernel(x, y, warm)
    graphs = []
    for _ in range(2):
        graph, output = torch.cuda.CUDAGraph(), poisoned(200, 200)
        with torch.cuda.graph(graph):
            kernel(x, y, output)
            kernel(x, y, output)
        graphs.append((graph, output))
    # The kernel that was captured is not needed any more, nor are the eager launches' workspaces.
    poison_workspaces()
    streams = [torch.cuda.Stream() for _ in range(2)]
    for _ in range(20):
        x.copy_(make(200, 3000))
        for _, output in graphs:
            output.fill_(torch.nan)
        eager = poisoned(200, 200)
        torch.cuda.synchronize()
        for stream, (graph, _) in zip(streams, graphs):
            with torch.cuda.stream(stream):
                graph.replay()
        kernel(x, y, eager)
        torch.cuda.synchronize()
        assert_matches(eager, x.double() @ y.double(), 3000)
        assert all(torch.equal(output, eager) for _, output in graphs)


def test_a_graph_that_is_the_first_to_run() -> None:
    """Nothing is allocated for its stream before it is captured."""
    kernel = product_kernel()
    x, y, output = make(200, 3000), make(3000, 200), poisoned(200, 200)
    kernel(x, y, output.clone())
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        kernel(x, y, output)
    graph.replay()
    torch.cuda.synchronize()
    assert_matches(output, x.double() @ y.double(), 3000)
