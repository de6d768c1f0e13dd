"""What the NumPy backend chooses by itself: meta symbols types, sizes of tiles."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import torch

from ninetoothed import Symbol, Tensor, block_size, make
from ninetoothed.backends.numpy.execution.addressing import Sequences
from ninetoothed.backends.numpy.execution.planning import choose_meta
from ninetoothed.symbols.operators import next_power_of_2


def chosen(arranged, symbols, sizes):
    """The values chosen for symbols, with sizes given by tensor."""
    known = {}
    for tensor, shape in sizes.items():
        known |= dict(zip(tensor.source.shape, shape, strict=True))
    levels = [tuple(level.shape for level in tensor.levels) for tensor in arranged]
    values = choose_meta(symbols, levels, known)
    return [values[symbol] for symbol in symbols]


def test_a_lone_symbol_makes_few_programs():
    x, block = Tensor(1), block_size()
    assert chosen([x.tile((block,))], [block], {x: (1 << 20,)}) == [1024]


def test_several_symbols_share():
    x, rows, columns = Tensor(2), block_size(), block_size()
    assert chosen([x.tile((rows, columns))], [rows, columns], {x: (4096, 4096)}) == [128, 128]


def test_a_tile_is_no_larger_than_what_it_covers():
    x, rows, columns = Tensor(2), block_size(), block_size()
    assert chosen([x.tile((rows, columns))], [rows, columns], {x: (50, 4096)}) == [64, 128]


def test_bounds_hold():
    x, block = Tensor(1), block_size(lower_bound=64, upper_bound=256)
    assert chosen([x.tile((block,))], [block], {x: (1 << 20,)}) == [256]
    assert chosen([x.tile((block,))], [block], {x: (3,)}) == [64]


def test_a_symbol_that_is_no_power_of_two_stays_in_its_bounds():
    block = Symbol("block", meta=True, lower_bound=3, upper_bound=7, power_of_two=False)
    x = Tensor(1)
    assert chosen([x.tile((block,))], [block], {x: (100,)}) == [7]


def test_a_tile_with_a_whole_dimension_stays_below_the_largest_tile():
    x, rows = Tensor(2), block_size(lower_bound=1, upper_bound=1024)
    assert chosen([x.tile((rows, -1))], [rows], {x: (4096, 16384)}) == [64]


@pytest.mark.parametrize(("size", "power"), [(0, 1), (1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_the_next_power_of_two(size, power):
    assert next_power_of_2(size) == power


def test_sequences_that_are_not_there_have_no_length():
    sequences = Sequences(np.array([0, 3, 3, 8]))
    assert sequences.length(np.array([0, 1, 2, 3, -1])).tolist() == [3, 0, 5, 0, 0]
    assert sequences.start(np.array([0, 1, 2])).tolist() == [0, 3, 3]


def test_plans_of_a_large_tile_hold_no_array_of_it_each():
    def whole(x, out):
        return x.tile((-1,)), out.tile((-1,))

    def copy(x, out):
        out = x

    kernel = make(whole, copy, (Tensor(1), Tensor(1)))
    call_with = [torch.zeros((1 << 16) + 1 + extra) for extra in range(40)]
    for each in call_with[:20]:
        kernel(each, each)
    gc.collect()
    tracemalloc.start()
    for each in call_with[20:]:
        kernel(each, each)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # A position of each element would be a megabyte.
    assert held / 20 < 50_000
