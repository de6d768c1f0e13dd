"""Sums that a loop carries: in parts, where a product's columns are summed and nothing else reads them."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import sdpa  # noqa: E402
from ninetoothed.backends.triton.options.partial_reduction_sinking import applies, run  # noqa: E402
from ninetoothed.backends.triton.printers.triton import emit  # noqa: E402
from ninetoothed.backends.triton.translation import generic  # noqa: E402
from ninetoothed.kernels.call_types import with_scales  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.partial_reduction_sinking import KERNELS  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")


@pytest.mark.parametrize(
    ("name", "deferred"),
    [
        ("exponentials", True),
        ("half_of_the_last", True),
        ("twice", True),
        ("read_in_the_loop", False),
        ("from_one", False),
        ("no_product", False),
    ],
)
def test_which_sums_are_deferred(name, deferred):
    assert applies(KERNELS[name].definition) is deferred


def test_of_the_ten_only_attention_has_such_a_sum():
    assert [name for name, kernel in TEN.items() if applies(kernel.definition)] == ["sdpa"]


def test_the_loop_carries_partial_sums():
    scaled = with_scales(sdpa.kernel.definition, {"scale"})
    text = emit(generic(scaled, partial_reduction_sinking=1)).text

    assert "total_parts = total_parts * as_column(correction) + partial_sums(weights)" in text
    assert "    total = tl.sum(total_parts, axis=1)\n" in text


def test_the_program_is_not_changed():
    program = sdpa.kernel.definition.optimized
    before = str(program)
    run(program)

    assert str(program) == before


@pytest.mark.parametrize("is_causal", [False, True])
def test_threads_exchange_one_reduction_in_a_round(is_causal, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "partial_reduction_sinking=1")
    tensor = torch.empty(1, 2, 1024, 64, dtype=torch.float16)
    compiled = sdpa.kernel.compile(
        *(tensor, tensor, tensor, 1.0, is_causal, tensor),
        target=("cuda", 90),
        configuration={"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64},
        num_warps=4,
    )
    loop = re.search(r"scf\.for.*?scf\.yield", compiled.asm["ttgir"], re.DOTALL).group()
    sums = re.findall(r'"tt\.reduce"\([^)]*\) <\{axis = (\d)', loop)

    # The maximum goes along the row, which several threads have; the sum along what one has.
    assert sums == ["1", "1"]
    assert "tensor<64x8x8xf32" in loop
    assert "ttg.local_alloc" not in loop[loop.index("tensor<64x8x8xf32") :]


@pytest.mark.parametrize("target", [("cuda", 80), ("cuda", 100)], ids=str)
def test_other_matrix_units(target, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "partial_reduction_sinking=1")
    tensor = torch.empty(1, 2, 64, 16, dtype=torch.float16)
    compiled = sdpa.kernel.compile(tensor, tensor, tensor, 1.0, True, tensor, target=target)

    assert "partial_sums" in compiled.asm["source"]


@pytest.mark.parametrize("value", [0, 1])
def test_results(value):
    found = failures(
        "tests.triton.options.cases.partial_reduction_sinking", f"partial_reduction_sinking={value}"
    )

    assert not found, "\n".join(f"{case}: {error}" for case, error in found.items())
