"""Tiles that take turns in memory: one access for both where nothing could tell, and else two."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import rope  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.interleaved_pairs import KERNELS  # noqa: E402


def source(name, input=None, size=8):
    """The emitted source for a contiguous vector, or another."""
    input = torch.empty(64) if input is None else input
    kernel = KERNELS[name]
    call = kernel.call_of(input, torch.empty(64), BLOCK_SIZE=size)
    return specialize(kernel.definition, call, None).emitted.text


def accesses(text):
    return text.count("tl.load("), text.count("tl.store(")


@pytest.mark.parametrize("name", ["swapped", "backwards", "constants", "in_a_loop"])
def test_a_pair_is_loaded_once_and_stored_once(name):
    assert accesses(source(name)) == (1, 1)


def test_the_access_is_contiguous():
    lines = [line.strip() for line in source("swapped").splitlines()]

    assert "input_index_0 = BLOCK_SIZE * program * 2 + tl.arange(0, 2 * BLOCK_SIZE)" in lines
    assert any(line.startswith("input_pair = tl.load(input_ptr + input_index_0") for line in lines)
    assert "input_tile, input_tile_1 = tl.split(tl.reshape(input_pair, (BLOCK_SIZE, 2)))" in lines
    assert lines[-1].startswith(
        "tl.store(output_ptr + output_index_0, tl.interleave(output_value, output_value_1)"
    )


def test_a_store_in_between_keeps_loads_apart():
    assert accesses(source("stored_between")) == (2, 2)


def test_a_load_in_between_keeps_stores_apart():
    assert accesses(source("read_between"))[1] == 2


def test_what_happens_only_sometimes_is_paired_where_both_happen():
    text = source("sometimes")

    assert text.count("input_pair") == 0
    assert text.count("tl.interleave") == 1


def test_elements_that_are_not_neighbours_are_left():
    assert accesses(source("swapped", torch.empty(128)[::2])) == (2, 1)


def test_halves_are_left():
    tensors = [torch.empty(1, 4, 8, 16) for _ in range(2)]
    arguments = (tensors[0], torch.empty(4, 8), torch.empty(4, 8), tensors[1])
    call = rope.halves_kernel.call_of(*arguments)
    text = specialize(rope.halves_kernel.definition, call, None).emitted.text

    assert "tl.split" not in text


def test_a_pair_is_moved_in_wide_accesses(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)
    shapes = (1, 4, 16, 64), (4, 32), (4, 32), (1, 4, 16, 64)
    arguments = [torch.empty(shape, dtype=torch.float16) for shape in shapes]
    compiled = rope.kernel.compile(*arguments, target=("cuda", 90))

    assert len(re.findall(r"ld\.global\S*\.v4\.b32", compiled.asm["ptx"])) == 1
    assert len(re.findall(r"st\.global\S*\.v4\.b32", compiled.asm["ptx"])) == 1


@pytest.mark.parametrize("target", [("cuda", 90), ("hip", "gfx942")], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles(name, dtype, target):
    tensor = torch.zeros(61, dtype=dtype)

    assert KERNELS[name].compile(tensor, tensor, BLOCK_SIZE=5, target=target).asm["ttgir"]


def test_truth_values_are_pairs_too():
    tensor = torch.zeros(61, dtype=torch.bool)

    assert KERNELS["swapped"].compile(tensor, tensor, BLOCK_SIZE=4, target=("cuda", 90)).asm["ptx"]


def test_results_are_right():
    assert failures("tests.triton.options.cases.interleaved_pairs") == {}
