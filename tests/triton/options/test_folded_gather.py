"""Gathered tiles in four dimensions: which, how they are loaded, and that the sums are the same."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.options import folded_gather  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.folded_gather import SWAPPED  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
CONVOLUTION = ((4, 512, 14, 14), (512, 512, 3, 3), (4, 512, 12, 12))
PRODUCT = ((500, 333), (333, 700), (500, 700))


def half(shape):
    return torch.empty(shape, dtype=torch.float16)


def config(**blocks: int) -> Config:
    return Config(tuple({**BLOCKS, **blocks}.items()), 8, 3, (("register_prefetch", 1),))


def folds(kernel, *tensors, **blocks):
    call = kernel.call_of(*tensors)
    names = [parameter.name for parameter in kernel.definition.tensor_parameters]
    return dict(
        folded_gather.folds(
            kernel.definition, names, environment_of(kernel.definition, call, config(**blocks))
        )
    )


def test_a_warp_follows_a_row_of_windows():
    assert folds(TEN["conv2d"], *map(half, CONVOLUTION)) == {"input": 0}


def test_be_they_the_rows_or_the_columns_of_a_matrix():
    input, filter, output = map(half, CONVOLUTION)

    assert folds(SWAPPED, filter, input, output) == {"other": 1}


def test_rows_that_begin_anywhere_are_not_folded():
    assert folds(TEN["mm"], *map(half, PRODUCT)) == {}


def test_nor_are_tiles_too_small_for_a_warp():
    small = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_K": 16}

    assert folds(TEN["conv2d"], *map(half, CONVOLUTION), **small) == {}


def test_a_narrow_tile_is_folded_along_what_is_left():
    small = folds(TEN["conv2d"], *map(half, CONVOLUTION), BLOCK_SIZE_M=16, BLOCK_SIZE_K=128)

    assert small == {"input": 1}


def lines_of(kernel, *shapes):
    call = kernel.call_of(*map(half, shapes))
    return [
        line.strip()
        for line in specialize(kernel.definition, call, config()).emitted.text.splitlines()
    ]


def test_positions_are_computed_folded():
    lines = lines_of(TEN["conv2d"], *CONVOLUTION)

    assert "input_position = BLOCK_SIZE_M * program_0 + fold_neighbours(BLOCK_SIZE_M)" in lines
    assert (
        "input_ahead = unfold_tile(tl.load(input_ptr + input_offset + input_offset_2), 0)" in lines
    )


def test_other_tiles_are_loaded_as_they_were():
    lines = lines_of(TEN["conv2d"], *CONVOLUTION)

    assert "other_position = BLOCK_SIZE_K * k + tl.arange(0, BLOCK_SIZE_K)[:, None]" in lines
    assert not any("fold" in line for line in lines_of(TEN["mm"], *PRODUCT))


def test_eight_elements_are_written_to_shared_memory_at_once(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "register_prefetch=1")
    compiled = TEN["conv2d"].compile(
        *map(half, CONVOLUTION),
        target=("cuda", 90),
        configuration=BLOCKS,
        num_warps=8,
        num_stages=3,
    )
    loop = re.search(r"scf\.for.*?\bscf\.yield", compiled.asm["ttgir"], re.DOTALL)

    assert loop and "tensor<32x8x8x2x!tt.ptr<f16>" in loop.group()
    assert "ttg.convert_layout" not in loop.group()
    if versions.version() > (3, 6):
        # From 3.7 on Triton lays the elements out so that each is written by itself: right, and slower.
        assert compiled.asm["ptx"].count(".b16 \t[") >= 16
        return
    # 64 × 64 elements by 256 threads.
    assert compiled.asm["ptx"].count("st.shared.v4.b32") >= 2
    assert not re.search(r"st\.shared\.b16", compiled.asm["ptx"])


@pytest.mark.parametrize("options", ["register_prefetch=1", "register_prefetch=1,split_k=2"])
def test_the_sums_are_the_same(options):
    assert failures("tests.triton.options.cases.folded_gather", options) == {}
