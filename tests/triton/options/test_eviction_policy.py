"""Hints for the cache: at loads of what is read once, in kernels that have no products."""

from __future__ import annotations

import pytest

from examples import rope_in_place
from ninetoothed.backends.triton.analysis.streamed_tensors import streamed
from ninetoothed.backends.triton.planning.choices import choices
from ninetoothed.backends.triton.printers.triton import emit
from ninetoothed.backends.triton.translation import environment_of, generic
from tests.corpus.package import call_of, tensor
from tests.golden.kernels import TEN
from tests.tuning.machines import H200

pytestmark = pytest.mark.fixes_options("each of its tests says whether there are hints")


@pytest.fixture(autouse=True)
def nothing_is_fixed(monkeypatch):
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)


def tried(name, call, device=H200):
    """The policies that are tried, with the numbers of programs in one."""
    definition = TEN[name].definition
    found = map(dict, choices(definition, call, environment_of(definition, call, None), device))
    return [(each.get("eviction_policy", 1), each.get("program_coarsening", 1)) for each in found]


def of_heads(heads):
    tables = {name: tensor(1024, 32) for name in ("sin_table", "cos_table")}
    turned = {name: tensor(4, 1024, heads, 64) for name in ("input", "output")}
    return call_of({**turned, **tables})


def of_rows(rows, columns):
    return call_of({name: tensor(rows, columns) for name in ("input", "output")})


def test_what_just_fits_the_cache_has_no_hint():
    # 50 MB of the H200's 63.
    assert tried("rope", of_heads(48)) == [(0, 1)]
    assert tried("rope", of_heads(64)) == tried("rope", of_heads(32)) == [(1, 1)]
    assert tried("softmax", of_rows(3072, 4096)) == [(0, 1)]
    assert tried("softmax", of_rows(4096, 4096)) == [(1, 1)]


def test_what_streams_two_tensors_has_hints():
    vectors = {name: tensor(2**23) for name in ("input", "other", "output")}
    assert tried("add", call_of(vectors, constants={"BLOCK_SIZE": 1024})) == [(1, 1)]


def test_where_the_cache_is_not_known_there_are_hints():
    assert tried("rope", of_heads(48), None) == [(1, 1)]


def test_programs_without_hints_are_coarsened_too():
    assert set(tried("softmax", of_rows(3 * 2**14, 256))) == {(0, 1), (0, 4), (0, 8)}


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
