"""Random chains of meta-operations against the same chains executed on NumPy arrays."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from ninetoothed import Symbol, Tensor
from ninetoothed.tensors.access import access_of
from tests.tensors.gather import random_chain

CHAINS = 2000
GROUP = 100
SYMBOLIC_CHAINS = 400


def groups(count):
    """Ranges of seeds, one test each: a failure then names few chains."""
    return [range(start, start + GROUP) for start in range(0, count, GROUP)]


def arranged(tensor, steps, replace=None):
    for step in steps:
        tensor = step.apply(tensor, replace)
    return tensor


def described(seed, shape, steps):
    return f"chain {seed}: Tensor(shape={shape})" + "".join(map(str, steps))


@pytest.mark.parametrize("seeds", groups(CHAINS), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_eval_of_a_chain_is_the_chain_executed_in_numpy(seeds):
    for seed in seeds:
        shape, steps, expected = random_chain(seed)
        label = described(seed, shape, steps)
        tensor = arranged(Tensor(shape=shape), steps)
        assert [level.ndim for level in tensor.levels] == list(expected.ranks), label
        np.testing.assert_array_equal(tensor.eval(), expected.data, err_msg=label)


@pytest.mark.parametrize("seeds", groups(CHAINS), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_access_of_a_program_is_what_eval_gives_with_only_the_needed_conditions(seeds):
    for seed in seeds:
        shape, steps, expected = random_chain(seed)
        tensor = arranged(Tensor(shape=shape), steps)
        tile_rank = expected.ranks[-1] if len(expected.ranks) > 1 else 0
        offsets = elements_of(access_of(tensor), expected.data.shape, tile_rank, shape, {})
        np.testing.assert_array_equal(
            offsets, padded(expected.data, tile_rank), err_msg=described(seed, shape, steps)
        )


@pytest.mark.parametrize("seeds", groups(SYMBOLIC_CHAINS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_a_symbolic_chain_agrees_once_its_sizes_are_known(seeds):
    for seed in seeds:
        shape, steps, expected = random_chain(seed)
        label = described(seed, shape, steps)
        source = Tensor(len(shape))
        replace, symbols = symbols_for_some_numbers(seed)
        tensor = arranged(source, steps, replace)
        values = {source: {"shape": shape}, **symbols}
        np.testing.assert_array_equal(tensor.eval(values), expected.data, err_msg=label)


@pytest.mark.parametrize("seeds", groups(SYMBOLIC_CHAINS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_the_access_of_a_symbolic_chain_agrees_too(seeds):
    for seed in seeds:
        shape, steps, expected = random_chain(seed)
        source = Tensor(len(shape))
        replace, symbols = symbols_for_some_numbers(seed)
        access = access_of(arranged(source, steps, replace))
        values = {**dict(zip(source.shape, shape)), **symbols}
        tile_rank = expected.ranks[-1] if len(expected.ranks) > 1 else 0
        offsets = elements_of(access, expected.data.shape, tile_rank, shape, values)
        np.testing.assert_array_equal(
            offsets, padded(expected.data, tile_rank), err_msg=described(seed, shape, steps)
        )


def symbols_for_some_numbers(seed):
    """Puts constexpr symbols in the place of some of a chain's numbers; and their values."""
    choose = random.Random(seed)
    symbols = {}

    def replace(number):
        if number < 1 or choose.random() < 0.5:
            return number
        symbol = Symbol(f"S{number}", constexpr=True)
        symbols[symbol] = number
        return symbol

    return replace, symbols


def next_power_of_two(size):
    return 1 << max(size - 1, 0).bit_length()


def padded(data, tile_rank):
    """The data with its tile's dimensions padded; lanes that are not the tile's are -1."""
    first = data.ndim - tile_rank
    result = np.full((*data.shape[:first], *map(next_power_of_two, data.shape[first:])), -1)
    result[tuple(map(slice, data.shape))] = data
    return result


def elements_of(access, shape, tile_rank, source_shape, values):
    """The source index of every lane of every program and selection; -1 where a condition fails."""
    first = len(shape) - tile_rank
    shape = (*shape[:first], *map(next_power_of_two, shape[first:]))
    names = itertools.chain(access.programs, access.selections, access.coordinates)
    grids = np.indices(shape, sparse=True)
    values = {**values, **dict(zip(names, grids))}
    offsets, inside = np.zeros(shape, dtype=int), np.ones(shape, dtype=bool)
    for index, size in zip(access.indices, source_shape):
        offsets = offsets * size + index.evaluate(values)
    for condition in access.conditions:
        inside = inside & condition.evaluate(values)
    return np.where(inside, offsets, -1)


def test_the_chains_cover_what_they_are_meant_to():
    """Every operation, on outer and on nested levels, and results both empty and out of bounds."""
    seen, kinds = set(), set()
    for seed in range(CHAINS):
        _, steps, expected = random_chain(seed)
        seen |= {(step.name, min(step.depth, 2)) for step in steps}
        keywords = {name for step in steps for name in step.keywords}
        kinds |= keywords
        if expected.data.size == 0:
            kinds.add("empty")
        if (expected.data == -1).any():
            kinds.add("out of bounds")
        kinds.add(f"{len(expected.ranks)} levels")
    names = "tile expand squeeze unsqueeze permute flatten ravel pad __getitem__".split()
    assert seen >= {(name, depth) for name in names for depth in (0, 1, 2)}
    assert kinds >= {"strides", "dilation", "floor_mode", "empty", "out of bounds"}
    assert kinds >= {"start_dim", "end_dim", "1 levels", "2 levels", "3 levels", "4 levels"}
