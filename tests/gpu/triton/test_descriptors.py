"""Products by descriptor on the GPU, and programs that stay: right at any size, in graphs, far off."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import addmm, bmm, mm, sdpa  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.triton.emitted import last_emitted  # noqa: E402

pytestmark = pytest.mark.fixes_options("its tests fix those that they are about")


@pytest.fixture(params=[0, 1], ids=["", "persistent"], autouse=True)
def persistent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs Hopper or later")
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"descriptors=1,persistent={request.param}")
    return request.param


def make(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return Maker(dtype, "cuda")(*shape)


def poisoned(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.full(shape, torch.nan, dtype=dtype, device="cuda")


def product_kernel(blocks=(64, 128, 64), num_warps=4, num_stages=3):
    """mm's, with one configuration."""

    def arrangement(*tensors):
        return mm.arrangement(*tensors, *blocks)

    return ninetoothed.make(
        arrangement, mm.application, mm.tensors, num_warps=num_warps, num_stages=num_stages
    )


def moved(kernel) -> set[str]:
    """What the kernel's last source moves by descriptor."""
    last = last_emitted(kernel)
    return {p.parameter for p in last.parameters if p.kind == "descriptor"}


@pytest.mark.parametrize(
    "shape",
    [
        (64, 64, 128),
        (1000, 776, 1016),
        (1, 4096, 256),
        (4096, 8, 136),
        (100, 0, 64),
        (3000, 72, 2000),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_products(shape, dtype):
    m, k, n = shape
    kernel = product_kernel()
    x, y = make(m, k, dtype=dtype), make(k, n, dtype=dtype)
    output = poisoned(m, n, dtype=dtype)
    kernel(x, y, output)

    assert_matches(output, x.double() @ y.double(), k)
    # A tensor without elements has nothing to be described.
    assert moved(kernel) == ({"input", "other", "output"} if k else set())


@pytest.mark.parametrize("blocks", [(128, 256, 64), (256, 128, 64), (32, 32, 256), (16, 64, 32)])
def test_tiles(blocks):
    kernel = product_kernel(blocks, num_warps=8 if blocks[0] > 64 else 4)
    x, y, output = make(520, 264), make(264, 776), poisoned(520, 776)
    kernel(x, y, output)

    assert_matches(output, x.double() @ y.double(), 264)


def test_transposed_and_sliced_operands():
    kernel = product_kernel()
    x, y = make(264, 520).T, make(800, 1024)[8:784, 16:280].T
    output = poisoned(520, 1024)[:, :776]
    kernel(x, y, output)

    assert_matches(output, x.double() @ y.double(), 264)
    assert moved(kernel) == {"input", "other", "output"}


def test_what_is_outside_is_left_alone():
    kernel = product_kernel()
    whole = poisoned(200, 256)
    x, y = make(100, 72), make(72, 136)
    kernel(x, y, whole[50:150, 64:200])

    assert whole[:50].isnan().all() and whole[150:].isnan().all()
    assert whole[:, :64].isnan().all() and whole[:, 200:].isnan().all()
    assert not whole[50:150, 64:200].isnan().any()


def test_many_addresses():
    kernel = product_kernel()
    y = make(72, 136)
    rows = make(2000, 72)
    output = poisoned(2000, 136)
    for first in range(0, 2000, 20):
        kernel(rows[first : first + 20], y, output[first : first + 20])

    assert_matches(output, rows.double() @ y.double(), 72)


def test_offsets_past_32_bits():
    if torch.cuda.mem_get_info()[0] < 12 * 2**30:
        pytest.skip("needs 12 GiB")
    kernel = product_kernel((128, 16, 64))
    rows = 2**31 // 64 + 1000
    x, y = make(1000, 64), make(64, 16)
    far = torch.empty(rows, 64, dtype=torch.float16, device="cuda")
    far[-1000:] = x
    output = torch.zeros(rows, 16, dtype=torch.float16, device="cuda")
    kernel(far, y, output)

    assert_matches(output[-1000:], x.double() @ y.double(), 64)


def test_examples():
    a, b, c = make(3, 200, 328), make(3, 328, 264), make(200, 264)
    assert_matches(bmm.bmm(a, b), a.double() @ b.double(), 328)
    expected = 0.5 * c.double() + 2 * (a[0].double() @ b[0].double())
    assert_matches(addmm.addmm(c, a[0], b[0], beta=0.5, alpha=2.0), expected, 328)
    q, k, v = make(2, 3, 200, 64), make(2, 3, 328, 64), make(2, 3, 328, 64)
    attention = torch.nn.functional.scaled_dot_product_attention
    assert_matches(sdpa.sdpa(q, k, v), attention(q.double(), k.double(), v.double()), 328)


def test_batches_in_any_order_of_strides():
    a, b = make(200, 3, 328).transpose(0, 1), make(264, 3, 328).permute(1, 2, 0)

    assert_matches(bmm.bmm(a, b), a.double() @ b.double(), 328)
    assert moved(bmm.kernel) == {"input", "other", "output"}


def test_a_batch_of_one_with_any_stride():
    a = make(200, 328).as_strided((1, 200, 328), (5, 328, 1))
    b = make(1, 328, 264)

    assert_matches(bmm.bmm(a, b), a.double() @ b.double(), 328)
    assert moved(bmm.kernel) == {"input", "other", "output"}


def test_in_a_graph():
    kernel = product_kernel()
    x, y, output = make(1000, 776), make(776, 1016), poisoned(1000, 1016)
    kernel(x, y, output)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, y, output)
    x.copy_(make(1000, 776))
    output.fill_(torch.nan)
    graph.replay()

    assert_matches(output, x.double() @ y.double(), 776)
