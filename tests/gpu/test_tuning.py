"""Tuned kernels on the GPU: every configuration that is tried must be right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import mm, sdpa, silu, softmax  # noqa: E402
from ninetoothed import block_size  # noqa: E402
from ninetoothed.backends.triton.planning import planner as planning  # noqa: E402
from ninetoothed.errors import CompilationError  # noqa: E402
from tests.examples.cases import Maker  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.references import sdpa_reference  # noqa: E402

#: The options are the search's to choose.
SEARCHES = pytest.mark.fixes_options("it searches among options")


@pytest.fixture(autouse=True)
def fresh_results(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """What other tests found is not found here."""
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))


@SEARCHES
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


@SEARCHES
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


@SEARCHES
def test_tuning_ahead_is_used_by_later_calls() -> None:
    """The effort of calls is `none` here, and still what was found is chosen."""
    kernel = ninetoothed.make(mm.arrangement, mm.application, mm.tensors)
    make = Maker(torch.float16, "cuda")
    x, y = make(512, 512), make(512, 512)
    output = torch.full((512, 512), torch.nan, dtype=torch.float16, device="cuda")
    kernel(x, y, output)
    tuned = ninetoothed.tune(kernel, x, y, output, effort="quick")
    assert tuned.device == torch.cuda.get_device_name()
    assert tuned.milliseconds <= 1.05 * min(tuned.times.values()) and len(tuned.times) > 10
    output.fill_(torch.nan)
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 512)

    from ninetoothed.backends.triton.planning.planner import Planner

    plan = Planner(kernel.definition, kernel.call_of(x, y, output)).plan(None)
    assert plan.details["config"] == tuned.config


@SEARCHES
@pytest.mark.parametrize("is_aligned", [True, False])
def test_what_a_tuned_kernel_overwrites_is_as_after_one_call(monkeypatch, is_aligned) -> None:
    """In place, each trial would apply the function once more."""
    monkeypatch.setenv("NINETOOTHED_TUNE", "full")
    kernel = ninetoothed.make(silu.arrangement, silu.application, silu.tensors)
    x = Maker(torch.float32, "cuda")(100_003)[0 if is_aligned else 1 :]
    expected = torch.nn.functional.silu(x.double())
    kernel(x, x, BLOCK_SIZE=1024)
    assert_matches(x, expected, 1)


@SEARCHES
def test_nothing_is_tuned_in_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    from ninetoothed.tuning.results import entries

    kernel = ninetoothed.make(softmax.arrangement, softmax.application, softmax.tensors)
    x = Maker(torch.float32, "cuda")(64, 1000)
    output = torch.full_like(x, torch.nan)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, output)
    # What the estimate ranked first is kept; nothing was measured.
    assert not any(entry.times for entry in entries().values())
    graph.replay()
    assert_matches(output, torch.softmax(x.double(), -1), 1000)


@SEARCHES
def test_a_fresh_process_finds_what_was_compiled(monkeypatch, tmp_path) -> None:
    """Neither a search nor a compilation: Triton's compiler is not even asked."""
    program = (
        "import torch\n"
        "from examples import mm\n"
        "from ninetoothed.backends.triton.planning import planner as planning\n"
        "asked = []\n"
        "compiled_for = planning.compiled_for\n"
        "planning.compiled_for = lambda *given: asked.append(1) or compiled_for(*given)\n"
        "x = torch.randn(512, 512, dtype=torch.float16, device='cuda')\n"
        "mm.mm(x, x)\n"
        "torch.cuda.synchronize()\n"
        "print(len(asked))\n"
    )
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    counts = [
        int(
            subprocess.run(
                [sys.executable, "-c", program],
                check=True,
                capture_output=True,
                text=True,
                cwd=Path(__file__).parents[2],
            ).stdout
        )
        for _ in range(2)
    ]
    assert counts[0] > 10 and counts[1] == 0


@SEARCHES
@pytest.mark.parametrize("effort", ["none", "quick"])
def test_where_all_that_count_fail_to_compile_smaller_ones_run(effort, monkeypatch) -> None:
    """What the estimate chose fails as if the device had not enough for it; what is left is tried."""
    attempt, asked = planning.Planner._candidate, []

    def fails_for_large_blocks(planner, config, is_kept=True):
        sizes = [value for _, value in config.values]
        asked.append(sizes)
        if max(sizes) > 32:
            raise CompilationError("out of resource: shared memory")
        return attempt(planner, config, is_kept)

    monkeypatch.setenv("NINETOOTHED_TUNE", effort)
    monkeypatch.setattr(planning.Planner, "_candidate", fails_for_large_blocks)
    kernel = ninetoothed.make(mm.arrangement, mm.application, mm.tensors, max_num_configs=2)
    make = Maker(torch.float16, "cuda")
    x, y = make(500, 700), make(700, 900)
    output = torch.full((500, 900), torch.nan, dtype=torch.float16, device="cuda")
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 700)
    assert max(asked[0]) > 32 >= max(asked[-1])


@SEARCHES
@pytest.mark.parametrize("effort", ["none", "quick"])
def test_a_space_whose_large_blocks_do_not_fit_the_device(effort, monkeypatch) -> None:
    """Three blocks of 512 by 512 float32 are more than any device's shared memory."""
    blocks = [block_size(lower_bound=32, upper_bound=512) for _ in range(3)]

    def arrangement(input, other, output):
        return mm.arrangement(input, other, output, *blocks)

    monkeypatch.setenv("NINETOOTHED_TUNE", effort)
    options = {"max_num_configs": 1, "num_warps": 8, "num_stages": 4}
    kernel = ninetoothed.make(arrangement, mm.application, mm.tensors, **options)
    x, y = (torch.randn(1000, 1000, device="cuda") for _ in range(2))
    output = torch.full((1000, 1000), torch.nan, device="cuda")
    kernel(x, y, output)
    assert_matches(output, x.double() @ y.double(), 1000)
