"""Offsets: collapsed where dimensions lie behind one another, one sum for what is of the same lanes."""

from __future__ import annotations

import random
import re

import pytest
import torch

from examples import conv2d, mm
from ninetoothed.backends.triton.specialization.offsets import (
    adjacent,
    by_lanes,
    collapsed,
    without_remainders,
)
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.tuning.space import Config
from tests.golden.kernels import TEN

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}


def environment_in(kernel, call):
    return environment_of(kernel.definition, call, Config(tuple(BLOCKS.items()), 4, 3))


def convolution(filter_strides=None):
    """The call of a convolution of (4, 512, 14, 14) with (512, 512, 3, 3)."""
    shapes = ((4, 512, 14, 14), (512, 512, 3, 3), (4, 512, 12, 12))
    input, filter, output = (torch.empty(shape, dtype=torch.float16) for shape in shapes)
    if filter_strides is not None:
        filter = torch.empty(8 << 20, dtype=torch.float16).as_strided(shapes[1], filter_strides)
    return conv2d.kernel.call_of(input, filter, output)


def strides_found(call):
    environment = environment_in(conv2d.kernel, call)
    return {
        conv2d.kernel.names[stride] for stride in adjacent(conv2d.kernel.definition, environment)
    }


def test_of_adjacent_dimensions_as_few_strides_are_replaced_as_do():
    assert strides_found(convolution()) == {"other_stride_1", "other_stride_2", "output_stride_2"}


@pytest.mark.parametrize("strides", [(9216, 18, 6, 2), (4608, 9, 3, 1)], ids=str)
def test_a_step_within_memory_does_not_matter(strides):
    assert {"other_stride_1", "other_stride_2"} <= strides_found(convolution(strides))


@pytest.mark.parametrize("strides", [(9216, 16, 4, 1), (9216, 16, 1, 4)], ids=str)
def test_dimensions_with_gaps_or_in_another_order_are_not_collapsed(strides):
    assert strides_found(convolution(strides)) == {"output_stride_2"}


def test_nothing_is_collapsed_where_nothing_was_flattened():
    x = torch.empty(256, 256, dtype=torch.float16)
    call = mm.kernel.call_of(x, x, x)

    assert adjacent(mm.kernel.definition, environment_in(mm.kernel, call)) == set()


@pytest.mark.parametrize("seed", range(20))
def test_a_collapsed_offset_is_the_same_number(seed):
    choose = random.Random(seed)
    for parameter in conv2d.kernel.definition.tensor_parameters:
        source = parameter.source
        access = conv2d.kernel.arrangement.accesses[parameter.name]
        strides = frozenset(stride for stride in source.strides if choose.random() < 0.7)
        short = collapsed(source, access.offset, strides)
        # An input is larger than its windows.
        values = {
            leaf: choose.randint(9, 20) if leaf in source.shape else choose.randint(1, 8)
            for leaf in {*access.offset.leaves(), *short.leaves(), *source.shape}
        }
        following = 1
        for stride, size in reversed(list(zip(source.strides, (*source.shape[1:], None)))):
            adjacent_to = following if size is None else values[size] * following
            values[stride] = adjacent_to if stride in strides else choose.randint(1, 99)
            following = values[stride]
        for position in (*access.programs, *access.selections, *access.coordinates):
            values[position] = choose.randint(0, 60)

        assert short.evaluate(values) == access.offset.evaluate(values)


@pytest.mark.parametrize("name", TEN)
def test_terms_by_lanes_have_the_same_sum(name):
    choose = random.Random(name)
    for access in TEN[name].arrangement.accesses.values():
        values = {leaf: choose.randint(1, 99) for leaf in access.offset.leaves()}
        terms = by_lanes(access, access.offset)

        assert sum(t.evaluate(values) for t in terms) == access.offset.evaluate(values)


def test_rows_and_columns_of_a_window_are_summed_apart():
    access = conv2d.kernel.arrangement.accesses["input"]
    rows, columns = by_lanes(access, access.offset)

    assert access.coordinates[1] not in set(rows.leaves())
    assert not {access.coordinates[0], *access.programs} & set(columns.leaves())


@pytest.mark.parametrize("seed", range(20))
def test_terms_without_remainders_are_the_same_number(seed):
    choose = random.Random(seed)
    access = conv2d.kernel.arrangement.accesses["input"]
    for term in by_lanes(access, access.offset):
        short = without_remainders(access, term)
        values = {leaf: choose.randint(1, 9) for leaf in {*term.leaves(), *short.leaves()}}
        # An input is larger than its windows.
        values |= {leaf: choose.randint(9, 20) for leaf in values if "input_size" in str(leaf)}
        values |= {lane: choose.randint(0, 999) for lane in access.coordinates}

        assert not [node for node in short.walk() if node.op == "%"]
        assert short.evaluate(values) == term.evaluate(values)


def test_an_offset_that_is_as_good_as_can_be_stays():
    access = mm.kernel.arrangement.accesses["input"]

    assert by_lanes(access, access.offset) == [access.offset]


def test_a_filter_that_lies_in_one_piece_is_loaded_by_vectors():
    pytest.importorskip("triton", reason="needs Triton")
    shapes = ((4, 512, 14, 14), (512, 512, 3, 3), (4, 512, 12, 12))
    tensors = (torch.empty(shape, dtype=torch.float16) for shape in shapes)
    compiled = conv2d.kernel.compile(
        *tensors, target=("cuda", 90), configuration=BLOCKS, num_warps=4, num_stages=3
    )

    # 64 × 128 elements in pieces of 16 bytes by 128 threads: for two stages ahead, then one more.
    assert len(re.findall(r"cp\.async\.cg\.shared\S+ .*, 0x10", compiled.asm["ptx"])) == 3 * 8
