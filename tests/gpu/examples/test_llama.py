"""The kernels and the model of `examples.llama` on a device, against float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.examples.llama.cases import BOUNDS, CASES, check  # noqa: E402
from tests.examples.llama.models import generated, logits_apart  # noqa: E402


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_kernels(name, dtype):
    check(name, dtype, "cuda")


@pytest.mark.parametrize("page_size", [None, 16])
@pytest.mark.parametrize("requests", [1, 2, 7])
def test_graphs_give_what_a_reference_gives(requests, page_size):
    """Steps after the first are a recorded graph's."""
    assert logits_apart(torch.float32, "cuda", requests, page_size, steps=5) < 1e-3


def test_bfloat16_is_within_its_noise():
    assert logits_apart(torch.bfloat16, "cuda", 2, None, steps=3) < 0.15


def test_the_same_seed_draws_the_same():
    first = generated("cuda", temperature=0.8, top_p=0.9, seed=3)

    assert torch.equal(first, generated("cuda", temperature=0.8, top_p=0.9, seed=3))
    assert not torch.equal(first, generated("cuda", temperature=0.8, top_p=0.9, seed=4))
