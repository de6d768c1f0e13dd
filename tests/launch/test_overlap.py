"""Whether elements lie at one address, asked of shapes and strides, and found by looking at every element."""

import itertools
import random

import pytest

from ninetoothed.launch.overlap import overlaps


def test_it_is_as_every_element_tells():
    chosen, found = random.Random(0), 0
    for _ in range(4000):
        shape = tuple(
            chosen.randrange(1 if chosen.random() < 0.9 else 0, 6)
            for _ in range(chosen.randrange(5))
        )
        strides = tuple(chosen.randrange(-12, 40) for _ in shape)
        offsets = [
            sum(index * stride for index, stride in zip(position, strides))
            for position in itertools.product(*map(range, shape))
        ]
        expected = len({*offsets}) < len(offsets)
        assert overlaps(shape, strides) is expected, (shape, strides)
        found += expected
    assert found > 500


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((10**6, 10**6), (10**6, 1), False),
        ((10**6, 10**6), (1, 1), True),
        ((1000, 1000, 1000), (7, 11, 13), True),
        ((4,) * 20, tuple(4**place for place in range(20)), False),
        ((10**9, 1), (0, 0), True),
        ((1, 1), (0, 0), False),
    ],
)
def test_large_ones_take_no_time(shape, strides, expected):
    assert overlaps(shape, strides) is expected
