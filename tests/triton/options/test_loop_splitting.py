"""Loops split where masks begin to matter, and comparisons that hold: the text, and the results."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import mm, sdpa  # noqa: E402
from ninetoothed.backends.triton.planning import choices  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.triton.emitted import given_by  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases import loop_splitting as cases  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

SPLIT = (("loop_splitting", 1),)
TILES = {
    "mm": (("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64), ("BLOCK_SIZE_K", 32)),
    "sdpa": (("BLOCK_SIZE_M", 128), ("BLOCK_SIZE_N", 64)),
}


def product(k):
    return mm.kernel.call_of(torch.empty(64, k), torch.empty(k, 64), torch.empty(64, 64))


def attention(length, is_causal=False):
    tensor = torch.empty(1, 2, length, 16)
    return sdpa.kernel.call_of(tensor, tensor, tensor, 1.0, is_causal, tensor)


def source(kernel, call, chosen=SPLIT):
    config = Config(TILES[kernel.name], 4, 3, chosen)
    return specialize(given_by(kernel, call), call, config).emitted.text


def tried(kernel, call):
    definition = given_by(kernel, call)
    environment = environment_of(definition, call, Config(TILES[kernel.name], 4, 3))
    return {
        dict(chosen).get("loop_splitting", 0)
        for chosen in choices.choices(definition, call, environment)
    }


def loops(text):
    """The text of each loop's body."""
    return re.findall(r"(?m)^    for .*\n((?:        .*\n)+)", text)


def test_only_the_last_round_of_a_product_has_masks():
    whole, rest = loops(source(mm.kernel, product(100)))

    assert "mask=" not in whole
    assert "mask=" in rest


def test_the_rounds_without_masks_are_counted():
    lines = [line.strip() for line in source(mm.kernel, product(100)).splitlines()]

    assert "k_whole = tl.minimum(k_whole, input_size_1 // BLOCK_SIZE_K)" in lines
    assert "for k in range(0, k_whole):" in lines
    assert "for k in range(k_whole, k_end):" in lines


def test_a_loop_that_needs_no_mask_stays_one():
    assert len(loops(source(mm.kernel, product(128)))) == 1


def test_causal_attention_compares_on_the_diagonal_only():
    whole, rest = loops(source(sdpa.kernel, attention(1024, True)))

    assert "<=" not in whole
    assert "<=" in rest


def test_a_comparison_that_holds_everywhere_is_not_made():
    (loop,) = loops(source(sdpa.kernel, attention(1024), ()))

    assert "is_seen = tl.full((BLOCK_SIZE_N,), True, tl.int1)" in loop


def test_a_comparison_that_fails_somewhere_is_made():
    (loop,) = loops(source(sdpa.kernel, attention(1000), ()))

    assert "is_seen = position < key_size_2" in loop


@pytest.mark.parametrize(
    ("length", "is_causal", "values"),
    [(1024, False, {0}), (1000, False, {0, 1}), (1024, True, {0, 1})],
)
def test_splitting_is_tried_where_it_leaves_something_out(length, is_causal, values):
    assert tried(sdpa.kernel, attention(length, is_causal)) == values


def test_splitting_a_product_is_tried_where_its_depth_does_not_divide():
    assert tried(mm.kernel, product(128)) == {0}
    assert tried(mm.kernel, product(100)) == {0, 1}


def test_the_sides_of_a_comparison_have_lanes_of_their_own():
    kernel = cases.of_one_tile_kernel
    call = kernel.call_of(torch.empty(64, 64), torch.empty(64, 64), WIDTH=8)

    assert ">=" in specialize(kernel.definition, call, None).emitted.text


@pytest.mark.parametrize("target", [("cuda", 90), ("hip", "gfx942")], ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_both_parts_compile(target, is_causal, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "loop_splitting=1")
    tensor = torch.empty(1, 2, 1000, 16, dtype=torch.float16)
    compiled = sdpa.kernel.compile(
        tensor,
        tensor,
        tensor,
        1.0,
        is_causal,
        tensor,
        target=target,
        configuration=dict(TILES["sdpa"]),
    )

    assert compiled.asm


@pytest.mark.parametrize("value", [0, 1])
def test_results(value):
    found = failures("tests.triton.options.cases.loop_splitting", f"loop_splitting={value}")

    assert not found, "\n".join(f"{case}: {error}" for case, error in found.items())
