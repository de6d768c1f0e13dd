"""The Llama of the examples: its kernels and the whole of it against float64, on CPU tensors."""

from __future__ import annotations

import pytest
import torch

from tests.examples.llama.cases import CASES, check
from tests.examples.llama.models import CONFIG, WITH_BIASES, generated, logits_apart
from tests.processes import told_by


@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    check(name, torch.float32)


#: Those whose outputs are written whole: of a cache or a history a step writes some elements.
WHOLE = [name for name in CASES if name.startswith(("product", "turning", "nucleus"))]


@pytest.mark.parametrize("name", WHOLE)
def test_kernels_in_debug_mode(name, monkeypatch):
    """No stray access, nothing unwritten, nothing written twice."""
    monkeypatch.setenv("NINETOOTHED_DEBUG", "1")
    check(name, torch.float32)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param("generic", marks=pytest.mark.fixes_options("what is generic has none")),
        "specialised",
    ],
)
def test_kernels_in_the_interpreter(variant):
    pytest.importorskip("triton", reason="needs Triton")
    result = told_by("tests.examples.llama.interpreter", variant)
    assert result["ran"] >= 12
    assert not result["failures"]


@pytest.mark.parametrize(
    ("requests", "page_size", "config"), [(1, None, CONFIG), (2, 16, WITH_BIASES)]
)
def test_logits_are_those_of_a_reference(requests, page_size, config):
    assert logits_apart(torch.float32, "cpu", requests, page_size, 2, config) < 1e-4


def test_the_same_seed_draws_the_same():
    first = generated("cpu", temperature=0.8, top_p=0.9, seed=3)

    assert torch.equal(first, generated("cpu", temperature=0.8, top_p=0.9, seed=3))
    assert not torch.equal(first, generated("cpu", temperature=0.8, top_p=0.9, seed=4))
