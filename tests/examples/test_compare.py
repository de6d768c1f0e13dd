"""The comparison itself: it must see what it is there to see."""

from __future__ import annotations

import pytest
import torch

from tests.examples.cases import DTYPES, Maker
from tests.examples.compare import assert_matches, poisoned_memory
from tests.examples.philox import random_bits


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_rounded_reference_matches(dtype: torch.dtype) -> None:
    reference = torch.randn(100, dtype=torch.float64)
    assert_matches(reference.to(dtype), reference)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_wrong_element_is_seen(dtype: torch.dtype) -> None:
    reference = torch.randn(100_000, dtype=torch.float64)
    result = reference.to(dtype)
    result[777] += 0.1
    with pytest.raises(AssertionError, match="element 777"):
        assert_matches(result, reference, reduction=1000)


def test_an_error_everywhere_is_seen() -> None:
    reference = Maker(torch.float64)(1000)
    with pytest.raises(AssertionError, match="relative norm"):
        assert_matches((reference * (1 + 2.5e-5)).float(), reference, reduction=1000)


def test_what_was_not_written_is_seen() -> None:
    with poisoned_memory():
        result = torch.zeros(4).new_empty(4)
    result[:2] = 1.0
    with pytest.raises(AssertionError, match="2 of 4 elements"):
        assert_matches(result, torch.ones(4, dtype=torch.float64))


def test_a_wrong_shape_is_seen() -> None:
    with pytest.raises(AssertionError, match="shape"):
        assert_matches(torch.zeros(0), torch.zeros(0, 1, dtype=torch.float64))


@pytest.mark.parametrize("layout", ["transposed", "sliced"])
def test_layouts_are_not_contiguous(layout: str) -> None:
    make = Maker(torch.float32, layout=layout)
    assert not make(5, 6).is_contiguous()
    assert not make(5).is_contiguous()
    assert make(5, 6).shape == (5, 6)


def test_philox_gives_the_published_vector() -> None:
    """The known answer of the reference implementation for a zero key and counter."""
    assert random_bits(0, torch.zeros(1, dtype=torch.int64))[0] == 0x6627E8D5
