"""Tiles moved by descriptor: which are boxes, what the hardware takes, and that results stay right."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.analysis import boxes as box_analysis  # noqa: E402
from ninetoothed.backends.triton.ir.lowered import Lowered  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices  # noqa: E402
from ninetoothed.backends.triton.printers.box_shapes import as_block, as_tile  # noqa: E402
from ninetoothed.backends.triton.printers.spelling import Spelling  # noqa: E402
from ninetoothed.backends.triton.printers.triton import emit  # noqa: E402
from ninetoothed.backends.triton.specialization.boxes import Box, Description  # noqa: E402
from ninetoothed.backends.triton.specialization.call_facts import CallFacts  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.language.dtypes import float16  # noqa: E402
from ninetoothed.program.nodes import Store, TileRef  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

HOPPER = Target("cuda", 90, 32)
BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 32}


def half(*shape):
    return torch.empty(shape, dtype=torch.float16)


def product(input, other, **blocks):
    """mm's kernel, the call, and a configuration by descriptor."""
    output = half(input.shape[0], other.shape[1]).to(input.dtype)
    values = tuple((BLOCKS | blocks).items())
    config = Config(values, 4, 3, (("descriptors", 1),))
    return TEN["mm"], TEN["mm"].call_of(input, other, output), config


def boxes(kernel, call, config):
    return dict(
        box_analysis.boxes(kernel.definition, call, environment_of(kernel.definition, call, config))
    )


def described(kernel, call, config):
    return specialize(kernel.definition, call, config).described


def blocks_of_products(rounds):
    """A kernel of which each program multiplies two blocks of its own, or goes on to the next one's."""

    def arrangement(input, other, output):
        blocks = input.tile((64, 32)).tile((1, 2)), other.tile((32, 64)).tile((2, 1))
        return (*blocks, output.tile((64, 64)))

    def application(input, other, output):
        total = ntl.zeros((64, 64), ntl.float32)
        for k in range(rounds):
            total += ntl.dot(input[0, k], other[k, 0])
        output = total  # noqa: F841

    return ninetoothed.make(arrangement, application, (Tensor(2),) * 3)


@pytest.mark.parametrize(("rounds", "offered"), [(2, {0, 1}), (3, {0})])
def test_another_programs_tile_is_not_moved_by_descriptor(rounds, offered):
    """It lies in the source, so a descriptor would not leave it out."""
    kernel = blocks_of_products(rounds)
    call = kernel.call_of(half(64, 128), half(64, 128), half(64, 128))
    environment = environment_of(kernel.definition, call, Config((), 4, 3))
    found = choices(kernel.definition, call, environment, HOPPER)
    assert {dict(chosen).get("descriptors", 0) for chosen in found} == offered


def test_products_read_and_write_boxes():
    assert set(boxes(*product(half(50, 72), half(72, 88)))) == {"input", "other", "output"}


def test_a_descriptor_has_the_sources_sizes_and_strides_and_the_tiles_extents():
    found = described(*product(half(50, 160)[:, :72], half(72, 88)))

    assert found["input_descriptor"] == Description((50, 72), (160, 1), (64, 32))
    assert found["input_descriptor"].signature(float16) == "tensordesc<fp16[64,32]>"


def test_the_contiguous_dimension_comes_last():
    kernel, call, config = product(half(72, 48).T, half(72, 88))

    assert boxes(kernel, call, config)["input"] == Box((1, 0), (1, 0))
    assert "tl.permute(\n" in specialize(kernel.definition, call, config).emitted.text


def test_batches_are_boxes_one_element_deep():
    kernel = TEN["bmm"]
    call = kernel.call_of(half(3, 50, 72), half(3, 72, 88), half(3, 50, 88))
    config = Config(tuple(BLOCKS.items()), 4, 3, (("descriptors", 1),))

    assert described(kernel, call, config)["other_descriptor"].extents == (1, 32, 128)


def test_no_mask_and_no_address_is_left():
    kernel, call, config = product(half(50, 72), half(72, 88))
    text = specialize(kernel.definition, call, config).emitted.text

    assert "tl.arange" not in text and "mask" not in text
    assert "input_descriptor.load([BLOCK_SIZE_M * program_0, BLOCK_SIZE_K * k])" in text


def test_indices_are_32_bits_where_offsets_are_64():
    kernel, call, config = product(half(50, 72), half(72, 88))
    known = box_analysis.boxes(
        kernel.definition, call, environment_of(kernel.definition, call, config)
    )
    text = emit(Lowered(kernel.definition, CallFacts(wide=True), boxes=known, group_size=8)).text

    assert ".to(tl.int64)" in text and "tl.cast(BLOCK_SIZE_M * program_0, tl.int32)" in text


@pytest.mark.parametrize(
    "input",
    [
        half(50, 73)[:, :72],
        half(50, 72).float(),
        half(50, 144)[:, ::2],
        half(1, 72).expand(50, 72),
        half(0, 72),
        half(3601)[1:].reshape(50, 72),
    ],
    ids=[
        "a stride of no 16 bytes",
        "wide elements",
        "every other element",
        "a stride of 0",
        "no element",
        "an address of no 16 bytes",
    ],
)
def test_what_the_hardware_does_not_take(input):
    assert "input" not in boxes(*product(input, half(72, 88)))


@pytest.mark.parametrize("size", [4, 512])
def test_extents_that_the_hardware_does_not_take(size):
    assert "input" not in boxes(*product(half(50, 1024), half(1024, 88), BLOCK_SIZE_K=size))


@pytest.mark.parametrize("name", ["add", "silu", "softmax", "rms_norm", "rope", "conv2d"])
def test_nothing_else_of_the_ten_is_moved_so(name):
    assert not box_analysis._candidates(TEN[name].definition)


def tried(device):
    kernel, call, config = product(half(64, 64), half(64, 128))
    return choices(kernel.definition, call, environment_of(kernel.definition, call, config), device)


def test_an_engine_is_tried_where_there_is_one():
    assert any(("descriptors", 1) in chosen for chosen in tried(HOPPER))
    assert any(("descriptors", 1) in chosen for chosen in tried(Target("cuda", 100, 32)))


@pytest.mark.parametrize(
    "device", [Target("cuda", 80, 32), Target("hip", "gfx942", 64), None], ids=str
)
def test_no_engine_no_descriptor(device):
    assert not any(("descriptors", 1) in chosen for chosen in tried(device))


def test_a_person_may_do_without(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "descriptors=0")

    assert not any(("descriptors", 1) in chosen for chosen in tried(HOPPER))


def test_what_stands_in_the_way_of_a_fixed_option_is_not_tried(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "descriptors=1")

    assert all(("descriptors", 1) in chosen for chosen in tried(HOPPER))


def compiled(name, target, monkeypatch, **options):
    """An example's machine code with options fixed, for sizes that no tile divides."""
    fixed = ",".join(f"{option}={value}" for option, value in options.items())
    monkeypatch.setenv("NINETOOTHED_OPTIONS", fixed)
    arguments = {
        "mm": (half(200, 328), half(328, 264), half(200, 264)),
        "bmm": (half(3, 200, 328), half(3, 328, 264), half(3, 200, 264)),
        "addmm": (half(200, 264), half(200, 328), half(328, 264), 1.0, 1.0, half(200, 264)),
        "sdpa": (*(half(2, 3, 200, 64) for _ in range(3)), 1.0, False, half(2, 3, 200, 64)),
    }[name]
    kernel = TEN[name]
    sizes = {kernel.names[s]: 64 for s in kernel.definition.meta_symbols}
    return kernel.compile(*arguments, target=target, configuration=sizes, num_warps=4)


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "sdpa"])
@pytest.mark.parametrize("arch", [90, 100])
def test_the_engine_is_in_the_machine_code(name, arch, monkeypatch):
    assert (
        "cp.async.bulk.tensor"
        in compiled(name, ("cuda", arch), monkeypatch, descriptors=1).asm["ptx"]
    )


@pytest.mark.parametrize("name", ["mm", "sdpa"])
def test_older_devices_load_by_address(name, monkeypatch):
    ptx = compiled(name, ("cuda", 80), monkeypatch, descriptors=1).asm["ptx"]

    assert "cp.async.bulk.tensor" not in ptx


def test_other_devices_load_by_address(monkeypatch):
    assert compiled("mm", ("hip", "gfx942"), monkeypatch, descriptors=1).asm["hsaco"]


def test_the_parts_of_a_box_are_put_in_the_tiles_order():
    box = Box((0, 2, 1), (None, 1, 0))
    widths = [ast.Name("M", ast.Load()), ast.Name("N", ast.Load())]
    value = ast.Name("x", ast.Load())

    tile, block = (
        ast.unparse(Spelling("tl").of(put(value, box, widths))) for put in (as_tile, as_block)
    )
    assert tile == "tl.permute(tl.reshape(x, (N, M)), (1, 0))"
    assert block == "tl.reshape(tl.permute(x, (1, 0)), (1, N, M))"


def test_a_result_that_is_read_too_is_no_box():
    kernel, call, _ = product(half(64, 64), half(64, 128))
    program = kernel.definition.optimized
    last = program.body[-1]
    last = Store(tile=TileRef(parameter="input", indices=[]), value=last.value)

    assert box_analysis._moved(program) == {"input", "other", "output"}
    assert box_analysis._moved(replace(program, body=[*program.body[:-1], last])) == {"other"}


def test_results_in_the_interpreter():
    assert not failures("tests.triton.options.cases.descriptors", "descriptors=1")
