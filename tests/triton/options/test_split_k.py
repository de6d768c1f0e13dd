"""A reduction in parts: which loops may be cut, that the parts together give the same, what is tried."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.analysis.reduction_form import form_of  # noqa: E402
from ninetoothed.backends.triton.options import split_k  # noqa: E402
from ninetoothed.backends.triton.planning.choices import are_right, choices, defaults  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.options.cases.split_k import CUT, KERNELS, WHOLE  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}


def half(*shape):
    return torch.empty(shape, dtype=torch.float16)


def convolution():
    call = TEN["conv2d"].call_of(half(4, 512, 14, 14), half(512, 512, 3, 3), half(4, 512, 12, 12))
    return TEN["conv2d"], call


def product(m, k, n):
    return TEN["mm"], TEN["mm"].call_of(half(m, k), half(k, n), half(m, n))


def config(**options):
    return Config(tuple(BLOCKS.items()), 4, 3, tuple(options.items()))


def tried(kernel, call, multiprocessors=132):
    return split_k.choices(
        kernel.definition, environment_of(kernel.definition, call, config()), multiprocessors
    )


@pytest.mark.parametrize("name", CUT)
def test_a_loop_that_only_adds_may_be_cut(name):
    assert form_of(KERNELS[name].definition) is not None


@pytest.mark.parametrize("name", WHOLE)
def test_any_other_loop_may_not(name):
    assert form_of(KERNELS[name].definition) is None


@pytest.mark.parametrize("name", TEN)
def test_of_the_ten_kernels_the_products_may_be_cut(name):
    is_product = name in ("mm", "addmm", "bmm", "conv2d")

    assert (form_of(TEN[name].definition) is not None) is is_product


def test_a_grid_that_is_too_small_is_tried_in_parts():
    # 36 tiles in 72 rounds for 132 multiprocessors.
    assert tried(*convolution()) == (7, 3, 11)


def test_a_grid_that_fills_the_device_is_not():
    assert tried(*product(4096, 4096, 4096)) == ()
    assert tried(*convolution(), multiprocessors=18) == ()


def test_a_part_has_some_rounds():
    # 2 tiles in 16 rounds.
    assert tried(*product(64, 1024, 256)) == (4,)
    assert tried(*product(64, 256, 256)) == ()


def test_nothing_is_tried_where_the_device_is_not_known():
    assert tried(*convolution(), multiprocessors=0) == ()


def test_the_grid_has_a_program_for_each_part():
    kernel, call = convolution()
    whole, parts = (specialize(kernel.definition, call, config(**o)) for o in ({}, {"split_k": 7}))

    assert (whole.num_programs, parts.num_programs) == (36, 7 * 36)
    assert (whole.workspace, parts.workspace) == (0, 7 * 36 * 64 * 128 * 4)


def test_what_stands_after_the_loop_is_done_once():
    kernel, call = convolution()
    lines = specialize(kernel.definition, call, config(split_k=7)).emitted.text.splitlines()
    place = lines.index("    if is_last_part(arrivals_ptr + tile, 7):")

    assert "    for k in range(num_k * part // 7, num_k * (part + 1) // 7):" in lines[:place]
    assert [line for line in lines if "tl.store(" in line] == [lines[-1]]
    assert all(line.startswith("        ") for line in lines[place + 1 :])


def test_one_part_is_the_plain_translation():
    kernel, call = convolution()

    assert defaults()["split_k"] == 1
    assert "part" not in specialize(kernel.definition, call, config()).emitted.text


@pytest.mark.parametrize("name", ["conv2d", "addmm", "bmm"])
def test_parts_are_compiled(name, monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "split_k=5")
    shapes = {
        "conv2d": [(2, 64, 14, 14), (64, 64, 3, 3), (2, 64, 12, 12)],
        "bmm": [(2, 100, 500), (2, 500, 100), (2, 100, 100)],
        "addmm": [(100, 100), (100, 500), (500, 100), 1.0, 1.0, (100, 100)],
    }[name]
    arguments = (half(*shape) if isinstance(shape, tuple) else shape for shape in shapes)
    compiled = TEN[name].compile(
        *arguments, target=("cuda", 90), configuration=BLOCKS, num_warps=4, num_stages=3
    )

    # Stored before it is counted, counted before it is loaded; no load from a cache of one's own.
    assert "atom.global.gpu.acq_rel.add.u32" in compiled.asm["ptx"]
    assert "ld.global.cg" in compiled.asm["ptx"]


@pytest.mark.parametrize("parts", [2, 5])
def test_the_parts_together_give_the_same(parts):
    assert failures("tests.triton.options.cases.split_k", f"split_k={parts}") == {}


def test_parts_and_descriptors_do_not_go_together(monkeypatch):
    """Nor do they where a person asks for parts and the other is tried."""
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "split_k=2,dependent_launch=0")
    kernel, call = product(4096, 4096, 4096)
    target = Target("cuda", 90, 32)
    found = choices(
        kernel.definition, call, environment_of(kernel.definition, call, config()), target
    )

    assert found and all(dict(chosen) == {"split_k": 2} for chosen in found)


def test_parts_that_were_found_for_another_call_are_right_for_this_one():
    kernel, call = product(64, 4096, 4000)
    environment = environment_of(kernel.definition, call, config())
    target = Target("cuda", 90, 32)

    assert are_right(kernel.definition, call, environment, target, (("split_k", 5),))
    assert not are_right(
        kernel.definition, call, environment, target, (("persistent", 1), ("split_k", 5))
    )
