"""Rings that a loop's tiles are loaded to: where they are offered, and what is emitted for them."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
from examples import sdpa  # noqa: E402
from ninetoothed.backends.triton.analysis.resources import GROUP_WARPS, most_registers  # noqa: E402
from ninetoothed.backends.triton.compiler import versions  # noqa: E402
from ninetoothed.backends.triton.options import tma_pipeline  # noqa: E402
from ninetoothed.backends.triton.planning.planner import compiled_for  # noqa: E402
from ninetoothed.backends.triton.planning.space import space_of  # noqa: E402
from ninetoothed.backends.triton.printers.gluon.translation import needs_of  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, lowered  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.emitted import given_by  # noqa: E402
from tests.triton.options.cases.tma_pipeline import (  # noqa: E402
    HOPPER,
    attention,
    begins_later,
    changes_its_end,
    decides_as_it_goes,
    frame_bytes,
    goes_twice,
    goes_where_the_last_round_says,
    looped,
    made,
    multiplies_with_registers,
    names_things_as_we_do,
    reads_a_tile_itself,
    scaled_first,
    sorts,
    specialized,
    stores_as_it_goes,
    tried,
)
from tests.tuning.machines import H200  # noqa: E402

pytestmark = [
    pytest.mark.fixes_options("each of its tests says which options it is about"),
    pytest.mark.skipif(not versions.has_gluon(), reason="needs Triton 3.6's Gluon"),
]

GOLDEN = Path(__file__).parent / "tma_pipeline_sdpa.txt"


def test_attention_is_loaded_to_rings():
    assert tried(*attention()) == {0, *tma_pipeline.SIZES}
    assert tried(*attention(is_causal=True, dtype=torch.bfloat16, width=128)) == {
        0,
        *tma_pipeline.SIZES,
    }


@pytest.mark.parametrize("columns", [32, 64, 128])
def test_blocks_may_be_numbers(columns):
    def arrangement(*tensors):
        return sdpa.arrangement(*tensors, 64, columns)

    kernel = ninetoothed.make(arrangement, sdpa.application, sdpa.tensors)

    assert tried(*attention(kernel)) == {0, *tma_pipeline.SIZES}


@pytest.mark.parametrize(
    "device",
    [Target("cuda", 80, 32), Target("cuda", 100, 32), Target("hip", "gfx942", 64), None],
    ids=str,
)
def test_other_devices_have_none(device):
    assert tried(*attention(), device=device) == {0}


def test_another_gluon_has_none(monkeypatch):
    monkeypatch.setattr(versions, "has_gluon", lambda: False)

    assert tried(*attention()) == {0}


@pytest.mark.parametrize("taken_over", ["async_load", "async_store"])
def test_a_gluon_in_which_functions_have_other_names_is_not_this_one(monkeypatch, taken_over):
    from triton.experimental.gluon.language.nvidia.hopper import tma

    monkeypatch.setattr(tma, taken_over, None, raising=False)

    assert not versions.has_gluon.__wrapped__()


@pytest.mark.parametrize(
    ("call", "blocks"),
    [
        ({}, {"rows": 32}),
        ({}, {"rows": 128}),
        ({"dtype": torch.float32}, {}),
        ({"width": 8}, {}),
        ({"keys": 0}, {}),
        ({"make": lambda *shape, dtype: torch.empty(*shape, 2, dtype=dtype)[..., 0]}, {}),
        ({"make": lambda *s, dtype: torch.empty(*s[:-1], s[-1] + 1, dtype=dtype)[..., :-1]}, {}),
    ],
    ids=[
        "half of what the matrix unit takes",
        "more than it takes at once",
        "wide elements",
        "too little to sum",
        "no keys",
        "every other element",
        "rows that begin anywhere",
    ],
)
def test_what_the_hardware_does_not_take(call, blocks):
    assert tried(*attention(**call), **blocks) == {0}


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "conv2d", "softmax"])
def test_nothing_else_of_the_ten_has_several_products(name):
    assert not tma_pipeline.is_worth_it(TEN[name].definition)


def test_a_person_may_do_without():
    assert tried(*attention(), given={"tma_pipeline": 0}) == {0}
    assert tried(*attention(), given={"tma_pipeline": 2}) == {2}


def test_four_warps_whatever_was_asked_for():
    kernel, call = attention()
    found = [
        c
        for c in space_of(given_by(kernel, call), call, H200).ranked
        if dict(c.options).get("tma_pipeline")
    ]

    assert found and {config.num_warps for config in found} == {GROUP_WARPS}
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("width", "blocks"), [(64, (64, 128)), (128, (64, 64))], ids=["64 wide", "128 wide"]
)
def test_the_estimate_knows_which_was_measured_to_be_best(width, blocks):
    kernel, call = attention(queries=1024, keys=1024, width=width, heads=24)
    first, *_ = space_of(given_by(kernel, call), call, H200).ranked

    assert dict(first.options)["tma_pipeline"] == 1
    assert (first["BLOCK_SIZE_M"], first["BLOCK_SIZE_N"]) == blocks


# What is emitted.


def test_the_text():
    """Where the text changes on purpose: GOLDEN.write_text(the text) here, and look at it."""
    emitted, _ = specialized(
        *attention(is_causal=True), tma_pipeline=2, loop_splitting=1, partial_reduction_sinking=1
    )

    assert emitted.emitted.text == GOLDEN.read_text(encoding="utf-8")


def test_the_same_text_every_time():
    texts = set()
    for _ in range(2):
        kernel = ninetoothed.make(sdpa.arrangement, sdpa.application, sdpa.tensors)
        emitted, _ = specialized(
            *attention(kernel, is_causal=True), tma_pipeline=1, loop_splitting=1
        )
        texts.add(emitted.emitted.text)

    assert len(texts) == 1


def test_positions_need_no_division():
    text = specialized(*attention(), tma_pipeline=1)[0].emitted.text
    (found,) = (line for line in text.splitlines() if line.startswith("    program_0 = "))

    assert found == "    program_0 = (program.to(gl.int64) * program_0_inverse >> 30).to(gl.int32)"
    assert "%" not in text[text.index("@gluon.jit") :]


def test_positions_are_divided_for_where_there_are_very_many():
    text = specialized(*attention(queries=2**18), tma_pipeline=1)[0].emitted.text

    assert "gl.program_id" in text and "program_0 = program // (" in text


def test_other_lengths_and_numbers_of_heads_are_the_same_kernel():
    few, many = (
        specialized(*attention(heads=heads, queries=queries, keys=1000), tma_pipeline=1)[0]
        for heads, queries in ((6, 1000), (34, 77 * 8))
    )

    assert few.key == many.key and few.integers != many.integers


def test_a_ring_of_one_needs_no_numbers():
    text = specialized(*attention(), tma_pipeline=1)[0].emitted.text

    assert "key_ring.index(0)" in text and "slot" not in text
    assert "slot = i % 2" in specialized(*attention(), tma_pipeline=2)[0].emitted.text


def test_a_round_is_asked_for_only_where_there_is_one():
    text = specialized(*attention(), tma_pipeline=2)[0].emitted.text

    assert text.count("pred=coming < ") == text.count("pred=i + 2 < ") == 4


def test_what_needs_the_weights_too_comes_before_their_product():
    text = specialized(*attention(), tma_pipeline=1)[0].emitted.text

    assert text.index("total_parts = total_parts *") < text.index("accumulator = warpgroup_mma(")


def test_positions_are_compared_without_a_register_for_each():
    text = specialized(*attention(is_causal=True), tma_pipeline=1, loop_splitting=0)[0].emitted.text

    assert "columns_within(BLOCK_SIZE_M * program_2" in text


def test_the_result_is_stored_by_descriptor():
    found, _ = specialized(*attention(), tma_pipeline=1)

    assert "output_descriptor" in found.described
    assert "tma.async_copy_shared_to_global(" in found.emitted.text


@pytest.mark.parametrize("keys", [1024, 1000])
def test_a_split_loop_is_one_again(keys):
    text = specialized(*attention(is_causal=True, keys=keys), tma_pipeline=1, loop_splitting=1)[
        0
    ].emitted.text

    assert text.count("for i in range(") == text.count("if i >= i_whole:") == 1
    assert text.count("key_ring = ") == text.count("gl.where(") == 1


@pytest.mark.parametrize(("width", "loops"), [(64, 1), (48, 1), (80, 2), (128, 2)])
def test_a_split_loop_is_one_where_the_sums_are_narrow(width, loops):
    call = attention(is_causal=True, width=width)
    text = specialized(*call, tma_pipeline=1, loop_splitting=1)[0].emitted.text

    assert text.count("for i in range(") == loops
    assert text.count("if i >= i_whole:") == 2 - loops
    assert text.count("gl.where(") == text.count("columns_within(") == 1


def test_a_condition_that_holds_is_a_constant_where_it_has_to_stay():
    kernel, call = attention(made(scaled_first), keys=1024)
    found, config = specialized(kernel, call, tma_pipeline=1, loop_splitting=1)
    text = found.emitted.text

    assert "    if i >= i_whole:\n" in text and "    else:\n" in text
    assert text.count("gl.where(gl.full((BLOCK_SIZE_M, BLOCK_SIZE_N), True, gl.int1") == 1
    assert compiled_for(given_by(kernel, call), found, HOPPER, config).asm["cubin"]


def test_what_no_condition_changes_is_not_selected():
    text = specialized(*attention(keys=1024), tma_pipeline=1)[0].emitted.text

    assert "is_seen" not in text and "gl.where" not in text


def test_no_registers_are_kept_in_memory():
    """Two loops with the values of both took 72 bytes of it a thread."""
    kernel, call = attention(is_causal=True, queries=1024, keys=1024)
    found, config = specialized(kernel, call, 64, 128, tma_pipeline=1, loop_splitting=1)
    machine_code = compiled_for(given_by(kernel, call), found, HOPPER, config).asm["cubin"]

    assert found.most_registers == 128 and frame_bytes(machine_code) == 0


def test_the_compiler_is_told_how_many_registers_programs_share():
    def most(width, rows, columns):
        return specialized(*attention(width=width), rows, columns, tma_pipeline=1)[0].most_registers

    assert most(64, 64, 128) == 128
    assert most(128, 64, 64) == 128
    assert most(64, 64, 64) == 96
    assert most(128, 64, 128) == 168
    assert most_registers([128 * 128, 128 * 128]) is None


def test_what_tiles_look_like_in_shared_memory_is_in_the_signature():
    signature = specialized(*attention(width=32), tma_pipeline=1)[0].signature["key_descriptor"]

    assert signature == (
        "tensordesc<fp16[1,1,64,32],"
        "NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=16, rank=4)>"
    )


@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("width", [64, 128, 80])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("size", tma_pipeline.SIZES)
def test_machine_code(is_causal, width, dtype, size):
    kernel, call = attention(width=width, dtype=dtype, is_causal=is_causal, keys=777)
    found, config = specialized(kernel, call, tma_pipeline=size, loop_splitting=int(is_causal))
    compiled = compiled_for(given_by(kernel, call), found, HOPPER, config)

    assert "wgmma.mma_async" in compiled.asm["ptx"]
    assert "cp.async.bulk.tensor.4d.shared" in compiled.asm["ptx"]
    assert compiled.metadata.num_warps == GROUP_WARPS


def test_a_kernel_is_compiled_ahead(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "tma_pipeline=1")
    query, key = torch.empty(1, 2, 200, 64).half(), torch.empty(1, 2, 300, 64).half()
    blocks = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64}
    compiled = TEN["sdpa"].compile(
        query, key, key, 1.0, False, query, target=("cuda", 90), configuration=blocks
    )

    assert "wgmma.mma_async" in compiled.asm["ptx"]
    assert "gl.program_id" in compiled.asm["source"] or compiled.asm["cubin"]


def test_the_one_that_the_others_are_changes_of():
    assert tried(*attention(made(looped), keys=1024)) == {0, *tma_pipeline.SIZES}


@pytest.mark.parametrize(
    ("application", "reason"),
    [
        (stores_as_it_goes, "a loop that loads nothing by descriptor"),
        (reads_a_tile_itself, "`dot` has no layout"),
        (sorts, "`sort` is not known"),
        (begins_later, "a loop that does not begin at 0"),
        (goes_twice, "a program without a loop, or with several"),
        (decides_as_it_goes, "control flow in a loop"),
        (multiplies_with_registers, "a right operand that is not loaded by descriptor"),
        (changes_its_end, "a loop that changes its end"),
        (goes_where_the_last_round_says, "where a tile is depends on the round before"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_not_understood_is_not_offered_for_a_reason(application, reason):
    kernel, call = attention(made(application))
    config = Config((("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64)), 4, 3)
    definition = given_by(kernel, call)
    environment = environment_of(definition, call, config)
    chosen = {"descriptors": 1, "tma_pipeline": 1}

    assert tried(kernel, call) == {0}
    assert needs_of(definition, lowered(definition, call, environment, chosen)) == reason


def test_names_of_the_user_are_not_taken():
    kernel, query = made(names_things_as_we_do), torch.empty(1, 2, 128, 64, dtype=torch.float16)
    call = kernel.call_of(query, query, query, 0.125, False, torch.empty_like(query))
    specialized_, config = specialized(kernel, call, tma_pipeline=1)

    assert "output_buffer_1 = gl.allocate_shared_memory" in specialized_.emitted.text
    assert compiled_for(given_by(kernel, call), specialized_, HOPPER, config).asm["cubin"]
