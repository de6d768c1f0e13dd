"""Tiles loaded one round ahead: which, and that the sums are the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import conv2d  # noqa: E402
from ninetoothed.backends.triton.options import register_prefetch  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}


def config(**options: int) -> Config:
    return Config(tuple(BLOCKS.items()), 4, 3, tuple(options.items()))


def call_of(name: str, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float16):
    return TEN[name].call_of(*(torch.empty(shape, dtype=dtype) for shape in shapes))


CONVOLUTION = ("conv2d", (4, 512, 14, 14), (512, 512, 3, 3), (4, 512, 12, 12))


def product(m, k, n):
    return ("mm", (m, k), (k, n), (m, n))


def is_tried(name, *shapes, dtype=torch.float16):
    call = call_of(name, *shapes, dtype=dtype)
    return register_prefetch.is_worth_it(
        TEN[name].definition, call, environment_of(TEN[name].definition, call, config())
    )


def test_the_gathered_windows_of_a_convolution_are_loaded_ahead():
    assert is_tried(*CONVOLUTION)


def test_so_are_windows_that_are_two_apart():
    """A window's first elements are neighbours wherever it begins, but its lines are of three."""
    kernel = conv2d.kernel_for((2, 2), (1, 1), (1, 1))
    shapes = ((4, 64, 28, 28), (128, 64, 3, 3), (4, 128, 14, 14))
    call = kernel.call_of(*(torch.empty(shape, dtype=torch.float16) for shape in shapes))

    assert register_prefetch.narrow(
        kernel.definition, call, environment_of(kernel.definition, call, config())
    ) == {"input"}


def test_what_is_copied_in_the_background_is_not():
    assert not is_tried(*product(512, 512, 512))


def test_rows_that_begin_anywhere_are():
    assert is_tried(*product(500, 333, 700))


def test_elements_of_32_bits_are_copied_one_by_one():
    assert not is_tried(*CONVOLUTION, dtype=torch.float32)


def test_a_loop_of_no_round_loads_nothing():
    assert not is_tried(*product(500, 0, 700))


def test_nor_does_a_kernel_without_such_a_loop():
    assert not is_tried("softmax", (3, 501), (3, 501))


def loop_of(*call, **options):
    specialized = specialize(TEN[call[0]].definition, call_of(*call), config(**options))
    lines = specialized.emitted.text.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("    for k in "))
    return [line.strip() for line in lines[:start]], [line.strip() for line in lines[start:]]


def test_only_the_windows_are_loaded_before_the_loop():
    before, loop = loop_of(*CONVOLUTION, register_prefetch=1)

    assert [line for line in before if "tl.load(" in line] == [
        "input_ahead = unfold_tile(tl.load(input_ptr + input_offset + input_offset_1), 0)"
    ]
    assert loop[1] == "input_tile = input_ahead"
    assert "input_selected = tl.minimum(k + 1, last_k)" in loop
    assert "accumulator += tl.dot(input_tile, other_tile, input_precision='ieee')" in loop


def test_a_part_begins_with_its_own_first_round():
    before, loop = loop_of(*CONVOLUTION, register_prefetch=1, split_k=7)

    assert "input_selected = num_k * part // 7" in before
    assert "last_k = num_k * (part + 1) // 7 - 1" in before


def test_without_the_option_nothing_is():
    before, _ = loop_of(*CONVOLUTION)

    assert not [line for line in before if "tl.load(" in line]


def test_the_loads_come_before_the_product_in_machine_code(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "register_prefetch=1")
    tensors = (torch.empty(shape, dtype=torch.float16) for shape in CONVOLUTION[1:])
    compiled = TEN["conv2d"].compile(
        *tensors, target=("cuda", 90), configuration=BLOCKS, num_warps=4, num_stages=3
    )

    # 64 × 64 elements by 128 threads, before the loop and in it.
    assert compiled.asm["ptx"].count("ld.global.b16") == 2 * 32


@pytest.mark.parametrize("options", ["register_prefetch=1", "register_prefetch=1,split_k=3"])
def test_the_sums_are_the_same(options):
    assert failures("tests.triton.options.cases.split_k", options) == {}
