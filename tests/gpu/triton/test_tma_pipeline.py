"""Attention whose tiles come through rings of buffers, on the GPU: right at any size, in graphs."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import sdpa  # noqa: E402
from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.options import tma_pipeline  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.triton.emitted import last_emitted  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests is about pipelines of tiles")


@pytest.fixture(params=tma_pipeline.SIZES, autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if torch.cuda.get_device_capability() != (9, 0) or not versions.has_gluon():
        pytest.skip("needs Hopper and Triton 3.6's Gluon")
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", f"tma_pipeline={request.param}")
    return request.param


@functools.lru_cache(maxsize=2)
def maker(dtype: torch.dtype) -> Maker:
    """One for all tests: no two tensors are the same."""
    return Maker(dtype, "cuda")


def make(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return maker(dtype)(*shape)


def attention_kernel(rows: int = 64, columns: int = 64):
    """sdpa's, with one configuration."""

    def arrangement(*tensors):
        return sdpa.arrangement(*tensors, rows, columns)

    return ninetoothed.make(arrangement, sdpa.application, sdpa.tensors)


@pytest.fixture(scope="module")
def kernels():
    """A kernel for each pair of block sizes: what has been compiled is used again."""
    return {(rows, columns): attention_kernel(rows, columns) for rows, columns in BLOCKS}


BLOCKS = [(64, 128), (64, 64), (64, 32)]


def has_rings(kernel) -> bool:
    """Whether the kernel's last source is the translation."""
    last = last_emitted(kernel)
    return "_ring = " in last.text


def expected(query, key, value, scale, is_causal):
    heads = query.shape[1] // key.shape[1]
    key, value = (x.double().repeat_interleave(heads, 1) for x in (key, value))
    scores = query.double() @ key.mT * scale
    if is_causal:
        unseen = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").triu(1)
        scores = scores.masked_fill(unseen, -torch.inf)
    return scores.softmax(-1) @ value


def matches(output, wanted):
    # The weights are rounded to the type of the values.
    assert_matches(output, wanted, 1000, rounds_intermediates=True)


def check(kernel, query, key, value, is_causal=False):
    output = torch.full_like(query, torch.nan)
    scale = query.shape[-1] ** -0.5
    kernel(query, key, value, scale, is_causal, output)

    assert has_rings(kernel)
    matches(output, expected(query, key, value, scale, is_causal))


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize(
    ("queries", "keys", "width"),
    [(128, 256, 64), (1000, 1000, 64), (1, 17, 64), (65, 300, 128), (300, 65, 32), (513, 1, 16)],
    ids=str,
)
def test_lengths(kernels, blocks, is_causal, queries, keys, width):
    query = make(2, 3, queries, width)
    key, value = make(2, 3, keys, width), make(2, 3, keys, width)

    check(kernels[blocks], query, key, value, is_causal)


@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_heads_that_share(kernels, dtype, is_causal):
    query = make(2, 8, 200, 128, dtype=dtype)
    key, value = make(2, 2, 333, 128, dtype=dtype), make(2, 2, 333, 128, dtype=dtype)

    check(kernels[64, 64], query, key, value, is_causal)


def test_a_width_that_is_no_power_of_two(kernels):
    check(kernels[64, 64], *(make(2, 3, 200, 80) for _ in range(3)), is_causal=True)


def test_any_order_of_strides(kernels):
    query, key = make(2, 200, 3, 64).transpose(1, 2), make(2, 300, 3, 128)[..., 64:].transpose(1, 2)
    value = make(3, 300, 2, 64).permute(2, 0, 1, 3)

    check(kernels[64, 128], query, key, value, is_causal=True)


def test_one_tensor_thrice(kernels):
    x = make(1, 2, 500, 64)

    check(kernels[64, 64], x, x, x, is_causal=True)


def test_into_the_queries(kernels):
    query, key, value = make(1, 2, 500, 64), make(1, 2, 300, 64), make(1, 2, 300, 64)
    wanted = expected(query, key, value, 0.125, False)
    kernels[64, 64](query, key, value, 0.125, False, query)

    assert has_rings(kernels[64, 64])
    matches(query, wanted)


def test_what_is_outside_is_left_alone(kernels):
    whole = torch.full((2, 3, 300, 192), torch.nan, dtype=torch.float16, device="cuda")
    query, key, value = (make(2, 3, 100, 64) for _ in range(3))
    kernels[64, 64](query, key, value, 0.125, False, whole[:, :, 100:200, 64:128])

    assert whole[:, :, :100].isnan().all() and whole[:, :, 200:].isnan().all()
    assert whole[..., :64].isnan().all() and whole[..., 128:].isnan().all()
    assert not whole[:, :, 100:200, 64:128].isnan().any()


def test_nothing_to_attend_to_and_nothing_that_does(kernels):
    query, key = make(2, 3, 0, 64), make(2, 3, 100, 64)
    output = torch.full_like(query, torch.nan)
    kernels[64, 64](query, key, key, 0.125, False, output)
    query, key = make(2, 3, 100, 64), make(2, 3, 0, 64)
    output = torch.zeros_like(query)
    kernels[64, 64](query, key, key, 0.125, False, output)

    # The quotient of two empty sums.
    assert output.isnan().all()


def test_in_a_graph(kernels):
    query, key, value = (make(2, 3, 200, 64) for _ in range(3))
    output = torch.full_like(query, torch.nan)
    kernel = kernels[64, 64]
    kernel(query, key, value, 0.125, True, output)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(query, key, value, 0.125, True, output)
    query.copy_(make(2, 3, 200, 64))
    output.fill_(torch.nan)
    graph.replay()

    matches(output, expected(query, key, value, 0.125, True))


def test_many_times(kernels):
    query, key, value = (make(4, 12, 777, 64) for _ in range(3))
    first = torch.empty_like(query)
    kernels[64, 128](query, key, value, 0.125, True, first)
    for _ in range(100):
        output = torch.full_like(query, torch.nan)
        kernels[64, 128](query, key, value, 0.125, True, output)

        assert torch.equal(output, first)
