"""Hints for the cache: at loads of what is read once, in kernels that have no products."""

from __future__ import annotations

import pytest

from examples import rope_in_place
from ninetoothed.backends.triton.analysis.streams import streamed
from ninetoothed.backends.triton.printers.triton import emit
from ninetoothed.backends.triton.translation import generic
from tests.golden.kernels import TEN


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("add", {"input", "other"}),
        ("softmax", {"input"}),
        ("rope", {"input"}),
        ("mm", set()),
        ("sdpa", set()),
    ],
)
def test_what_is_read_once(name, parameters):
    assert streamed(TEN[name].definition) == parameters


def test_what_programs_share_is_not_read_once():
    assert not streamed(TEN["rope"].definition) & {"sin_table", "cos_table"}


def test_what_is_stored_to_again_is_not_kept():
    assert not streamed(rope_in_place.kernel.definition)


def test_loads_carry_the_hint():
    assert emit(generic(TEN["add"].definition)).text.count("eviction_policy='evict_last'") == 2


def test_hints_can_be_left_out():
    assert "eviction_policy" not in emit(generic(TEN["add"].definition, eviction_policy=0)).text
