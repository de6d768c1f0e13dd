"""Tuned kernels on the GPU: every configuration that is tried must be right."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import mm, sdpa  # noqa: E402
from tests.examples.cases import Maker  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.references import sdpa_reference  # noqa: E402


def test_a_tuned_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    kernel = ninetoothed.make(mm.arrangement, mm.application, mm.tensors)
    make = Maker(torch.float16, "cuda")
    x, y = make(500, 700), make(700, 900)
    output = torch.full((500, 900), torch.nan, dtype=torch.float16, device="cuda")
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 700)
    output.fill_(torch.nan)
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 700)


def test_a_tuned_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    kernel = ninetoothed.make(sdpa.arrangement, sdpa.application, sdpa.tensors)
    make = Maker(torch.bfloat16, "cuda")
    query, key, value = (make(2, 4, 300, 64) for _ in range(3))
    output = torch.full_like(query, torch.nan)
    kernel(query, key, value, 0.125, True, output)
    expected = sdpa_reference(query.double(), key.double(), value.double(), is_causal=True)
    assert_matches(output, expected, 364, rounds_intermediates=True)


@pytest.mark.parametrize("blocks", [(32, 32, 32), (128, 256, 64), (64, 32, 128)], ids=str)
def test_products_of_fixed_blocks(blocks: tuple[int, int, int]) -> None:
    def arrangement(input, other, output):
        return mm.arrangement(input, other, output, *blocks)

    kernel = ninetoothed.make(arrangement, mm.application, mm.tensors, num_warps=4, num_stages=2)
    make = Maker(torch.float16, "cuda")
    x, y = make(333, 257), make(257, 415)
    output = torch.full((333, 415), torch.nan, dtype=torch.float16, device="cuda")
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 257)
