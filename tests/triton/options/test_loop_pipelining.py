"""Loops whose tiles are copied to shared memory rounds ahead: which, the text, and the results."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import fused_rms_norm, mm, softmax  # noqa: E402
from ninetoothed.backends.triton.planning import choices  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.derivatives.derive import derive  # noqa: E402
from ninetoothed.launch.kernel import Kernel  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases import loop_pipelining as cases  # noqa: E402
from tests.tuning.machines import H200  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

BLOCKS = (("BLOCK_SIZE_K", 32), ("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64))


@pytest.fixture(autouse=True)
def nothing_is_fixed(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)


def of_rows():
    """The backward of rms_norm by its rows and its weight."""
    found = derive(fused_rms_norm.kernel.definition, ("input", "weight"), parts=256)
    return Kernel(found.specializations)


def call_of(kernel, rows=100, columns=4096, dtype=torch.float16):
    matrix, vector = torch.empty(rows, columns, dtype=dtype), torch.empty(columns, dtype=dtype)
    count = -(-rows // -(-rows // 256))
    parts = torch.empty(count, 1, columns)
    return kernel.call_of(matrix, vector, 1e-6, matrix, matrix, parts)


def tried(kernel, call, device=H200, values=()):
    environment = environment_of(kernel.definition, call, Config(values, 4, 3))
    found = choices.choices(kernel.definition, call, environment, device)
    return {dict(chosen).get("loop_pipelining", 0) for chosen in found}


def source(kernel, call, **options):
    config = Config((), 8, 3, tuple(options.items()))
    return specialize(kernel.definition, call, config).emitted.text


def test_rows_that_are_reduced_are_loaded_ahead():
    kernel = of_rows()

    assert tried(kernel, call_of(kernel)) == {0, 2, 3, 4}
    assert tried(kernel, call_of(kernel), None) == {0}


def test_as_many_as_shared_memory_holds():
    kernel = of_rows()

    assert tried(kernel, call_of(kernel, columns=1 << 15)) == {0, 2}
    assert tried(kernel, call_of(kernel, columns=1 << 16)) == {0}


def test_products_are_the_compilers():
    tensor = torch.empty(256, 256)

    assert tried(mm.kernel, mm.kernel.call_of(tensor, tensor, tensor), values=BLOCKS) == {0}


def test_without_a_loop_there_is_nothing_to_load_ahead():
    tensor = torch.empty(256, 256)

    assert tried(softmax.kernel, softmax.kernel.call_of(tensor, tensor)) == {0}


def test_what_is_changed_in_place_is_not_loaded_ahead():
    call = torch.empty(8, 256), torch.empty(8)

    assert tried(cases.kernel, cases.kernel.call_of(*call)) == {0, 2, 3, 4}
    assert tried(cases.in_place, cases.in_place.call_of(*call)) == {0}


def test_nor_where_a_call_may_store_to_what_it_loads():
    kernel = of_rows()
    specializations = kernel.specializations
    user = Kernel(
        replace(specializations, plain=replace(specializations.plain, stores_apart=False))
    )

    assert tried(kernel, call_of(kernel)) == {0, 2, 3, 4}
    assert tried(user, call_of(user)) == {0}
    assert not fused_rms_norm.kernel.backward(wrt=("weight",)).declaration.stores_apart


def test_the_rounds_that_miss_nothing_are():
    kernel = of_rows()
    text = source(kernel, call_of(kernel, rows=1001), loop_pipelining=3, loop_splitting=1)
    lines = [line.strip() for line in text.splitlines()]

    assert "for i in tl.range(0, i_whole, num_stages=3):" in lines
    assert "for i in tl.range(i_whole, i_end):" in lines


def test_copies_run_in_the_background(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "loop_pipelining=3")
    kernel = of_rows()
    matrix, vector = torch.empty(100, 1024).half(), torch.empty(1024).half()
    compiled = kernel.compile(
        matrix, vector, 1e-6, matrix, matrix, torch.empty(100, 1, 1024), target=("cuda", 90)
    )

    # Of the rows and of their gradients, two rounds each.
    assert compiled.metadata.shared >= 2 * 2 * 1024 * 2
    assert "cp.async" in compiled.asm["ptx"]


@pytest.mark.parametrize("stages", [2, 4])
def test_the_results_are_the_same(stages):
    assert failures("tests.triton.options.cases.loop_pipelining", f"loop_pipelining={stages}") == {}
