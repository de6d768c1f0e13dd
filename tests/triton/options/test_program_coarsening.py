"""Several programs in one: where it is offered, what is emitted, and that every element is right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import dropout, jagged_to_padded, rms_norm, softmax  # noqa: E402
from ninetoothed import Symbol, Tensor, block_size  # noqa: E402
from ninetoothed.backends.triton.options import program_coarsening  # noqa: E402
from ninetoothed.backends.triton.planning.choices import choices as tried  # noqa: E402
from ninetoothed.backends.triton.planning.planner import compiled_for  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of, specialize  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402
from ninetoothed.program.verify import verify  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402
from tests.triton.interpreted import ROOT, failures  # noqa: E402
from tests.triton.options.cases.program_coarsening import KERNELS, ROPE, rows  # noqa: E402

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def half(*shape):
    return torch.empty(shape, dtype=torch.float16)


def rope_call(batch=4, length=1024, heads=48):
    tables = half(length, 32), half(length, 32)
    return ROPE[True].call_of(half(batch, length, heads, 64), *tables)


def choices(kernel, call):
    return program_coarsening.choices(
        kernel.definition, call, environment_of(kernel.definition, call, None)
    )


def coarsened(kernel, call, count):
    """What a kernel is for a call with so many programs in one."""
    return specialize(kernel.definition, call, Config((), 4, 3, (("program_coarsening", count),)))


def made(application, *tensors, arrangement=rows):
    return ninetoothed.make(arrangement, application, tensors, kernel_name="made")


def batched(kernel):
    return [
        program_coarsening._batched(kernel.definition, dim) is not None
        for dim in range(len(kernel.definition.grid))
    ]


# Where it is offered.


def test_programs_are_coarsened_until_they_move_enough():
    # 128 bytes are loaded and 128 stored.
    assert choices(ROPE[True], rope_call()) == (32, 16)


def test_a_program_that_moves_enough_is_left():
    matrix = half(4096, 4096)

    assert choices(softmax.kernel, softmax.kernel.call_of(matrix, matrix)) == ()


def test_what_takes_longer_than_a_programs_start_is_left():
    matrix = half(4096, 1024)  # 2048 bytes are loaded and as many stored.

    assert choices(softmax.kernel, softmax.kernel.call_of(matrix, matrix)) == ()


def test_few_programs_are_left():
    assert choices(ROPE[True], rope_call(batch=1, length=16)) == ()


def test_enough_programs_remain():
    # 6144 programs: two in one leave 3072, four 1536.
    assert choices(ROPE[True], rope_call(batch=1, length=128)) == (4,)


def test_what_no_program_could_hold_is_not_coarsened_by_force(monkeypatch):
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "program_coarsening=16")
    short, long = (softmax.kernel.call_of(half(64, n), half(64, n)) for n in (2048, 4096))

    assert tried(
        softmax.kernel.definition, short, environment_of(softmax.kernel.definition, short, None)
    ) == [(("program_coarsening", 16),)]
    assert tried(
        softmax.kernel.definition, long, environment_of(softmax.kernel.definition, long, None)
    ) == [()]


def test_what_the_tuner_chooses_is_not_multiplied():
    def arrangement(input, output, size=block_size()):
        return input.tile((size,)), output.tile((size,))

    def application(input, output):
        output = input + 1  # noqa: F841

    kernel = made(application, Tensor(1), Tensor(1), arrangement=arrangement)
    vector = half(1 << 20)
    call = kernel.call_of(vector, vector)
    environment = environment_of(kernel.definition, call, Config((("size", 32),), 4, 3))

    assert program_coarsening.choices(kernel.definition, call, environment) == ()


def test_the_innermost_dimension_that_is_long_enough_is_coarsened():
    call = ROPE[True].call_of(half(4, 4096, 6, 64), half(4096, 32), half(4096, 32))
    along_positions, along_heads = (coarsened(ROPE[True], call, count) for count in (16, 4))

    assert along_positions.num_programs == 4 * 256 * 6
    assert along_heads.num_programs == 4 * 4096 * 2


@pytest.mark.parametrize("name", ["mm", "addmm", "bmm", "conv2d", "sdpa"])
def test_products_are_left(name):
    assert not any(batched(TEN[name]))


@pytest.mark.parametrize("name", ["add", "silu", "softmax", "rms_norm", "rope"])
def test_memory_bound_kernels_can_be_coarsened(name):
    assert batched(TEN[name])[0]


@pytest.mark.parametrize("name", KERNELS)
def test_so_can_the_cases(name):
    assert batched(KERNELS[name])[0]


def test_other_kernels_are_left():
    def loops(input, output):
        total = ntl.zeros(input.shape, dtype=ntl.float32)
        for _ in range(3):
            total += input
        output = total  # noqa: F841

    def branches(input, output):
        if input.source.shape[0] > 3:
            output = input  # noqa: F841

    def scans(input, output):
        output = ntl.cumsum(input, 1)  # noqa: F841

    def looks_around(input, output):
        output = input.source[output.offsets(0), output.offsets(1)]  # noqa: F841

    def knows_where(input, output):
        output = input + output.offsets(1)  # noqa: F841

    for application in (loops, branches, scans, looks_around, knows_where):
        assert not any(batched(made(application, Tensor(2), Tensor(2)))), application.__name__
    # Random numbers follow the offsets; sequences begin where memory says.
    assert not any(batched(dropout.kernel))
    assert not any(batched(jagged_to_padded.kernel))


def test_a_tile_that_is_the_same_for_all_programs_is_not_stored_by_several():
    def arrangement(input, output):
        return input.tile((1, -1)), output.tile((1, -1)).expand((input.shape[0], -1))

    def application(input, output):
        output = input  # noqa: F841

    kernel = made(application, Tensor(2), Tensor(2), arrangement=arrangement)

    assert batched(kernel) == [False, False]


# What is emitted.


def test_a_coarsened_kernel_reads_like_another():
    lines = [
        line.strip() for line in coarsened(ROPE[True], rope_call(), 16).emitted.text.splitlines()
    ]

    assert "input_index_2 = program_2 * 16 + tl.arange(0, 16)[:, None]" in lines
    assert any(
        line.startswith(
            "sin = tl.load(sin_table_ptr + (program_1 * sin_table_stride_0 + sin_table_index_1)"
        )
        for line in lines
    )
    assert (
        "input_tile, input_tile_1 = tl.split(tl.reshape(input_pair, (16, input_size_3 // 2, 2)))"
        in lines
    )
    assert not any("mask" in line for line in lines)


def test_a_rest_is_masked():
    text = coarsened(ROPE[True], rope_call(heads=47), 16).emitted.text

    assert text.count("mask=input_index_2 < input_size_2") == 2


def test_a_reduction_leaves_the_rows_apart():
    matrix = half(4096, 256)
    call = rms_norm.kernel.call_of(matrix, 1e-6, matrix)
    text = coarsened(rms_norm.kernel, call, 4).emitted.text

    assert "tl.sum(tl.sum(row * row, axis=2), axis=1) / input_size_1" in text
    assert "row * tl.rsqrt(mean_square + eps)[:, None, None]" in text


def test_a_grid_of_one_has_nothing_to_join():
    call = rope_call(batch=1, length=1, heads=1)
    assert coarsened(ROPE[True], call, 2).emitted == coarsened(ROPE[True], call, 1).emitted


def test_programs_that_cannot_be_joined_are_refused_by_name():
    from examples import mm

    call = mm.kernel.call_of(half(64, 64), half(64, 64), half(64, 64))
    config = Config(
        tuple((mm.kernel.names[symbol], 32) for symbol in mm.kernel.definition.meta_symbols),
        4,
        3,
        (("program_coarsening", 2),),
    )
    with pytest.raises(ArgumentError, match="`mm` cannot be joined"):
        specialize(mm.kernel.definition, call, config)


def test_one_program_is_the_plain_kernel():
    call = rope_call()

    assert coarsened(ROPE[True], call, 1) == specialize(
        ROPE[True].definition, call, Config((), 4, 3)
    )


@pytest.mark.parametrize("kernel", [*KERNELS.values(), *ROPE.values()], ids=lambda k: k.name)
def test_the_coarsened_program_is_well_formed(kernel):
    verify(program_coarsening._coarsened(kernel.definition, 0, 8).program)


@pytest.mark.parametrize("target", [("cuda", 90), ("hip", "gfx942")], ids=str)
@pytest.mark.parametrize("name", ["softmax", "rms_norm", "rope"])
def test_it_compiles(name, target):
    tensor, constants = half(4099, 60), ()
    if name == "rope":
        kernel, call = ROPE[True], rope_call(1, 300, 47)
    else:
        kernel, constants = TEN[name], () if name == "softmax" else (1e-6,)
        call = kernel.call_of(tensor, *constants, tensor)
    config = Config((), 4, 3, (("program_coarsening", 16),))

    assert compiled_for(
        kernel.definition, coarsened(kernel, call, 16), Target.parse(target), config
    ).asm["ttgir"]


def test_tiny_tiles_are_moved_in_wide_accesses():
    config = Config((), 4, 3, (("program_coarsening", 16),))
    specialized = coarsened(ROPE[True], rope_call(), 16)
    ptx = compiled_for(ROPE[True], specialized, Target.parse(("cuda", 90)), config).asm["ptx"]

    assert len(re.findall(r"ld\.global\S*\.v4\.b32", ptx)) == 1
    assert len(re.findall(r"st\.global\S*\.v4\.b32", ptx)) == 1


# That it is right.


@pytest.mark.parametrize("count", [1, 2, 16, 64])
def test_every_element_is_right(count):
    assert (
        failures("tests.triton.options.cases.program_coarsening", f"program_coarsening={count}")
        == {}
    )


def test_every_example_is_right():
    done = subprocess.run(
        [sys.executable, "-m", "tests.examples.interpreter", "specialised", "examples"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NINETOOTHED_OPTIONS": "program_coarsening=4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    assert json.loads(done.stdout.splitlines()[-1])["failures"] == {}
