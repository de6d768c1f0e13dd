"""Quotients of sizes that divide a position: numbers in the source, and nothing where they are 1."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from examples import sdpa  # noqa: E402
from ninetoothed.backends.triton.specialization.size_ratios import divisors  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.golden.kernels import TEN  # noqa: E402


def key_lines(query_heads, key_heads, batch=2):
    """The lines of attention's source that compute a head of the keys."""
    query, key = (torch.empty(batch, heads, 64, 16) for heads in (query_heads, key_heads))
    call = sdpa.kernel.call_of(query, key, key, 1.0, False, query)
    config = Config((("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 64)), 4, 3)
    text = specialize(sdpa.kernel.definition, call, config).emitted.text
    return [line.strip() for line in text.splitlines() if line.strip().startswith("key_index_1 =")]


def test_as_many_heads_need_no_division():
    assert key_lines(8, 8) == ["key_index_1 = program_1"]


def test_a_group_of_heads_is_a_number():
    assert key_lines(8, 2) == ["key_index_1 = program_1 // 4"]


def test_calls_with_groups_of_one_size_share_their_source():
    assert key_lines(8, 2) == key_lines(32, 8, batch=3)


def test_sizes_alone_are_not_put_in():
    accesses = [a for kernel in TEN.values() for a in kernel.arrangement.accesses.values()]
    found = {str(divisor) for access in accesses for divisor in divisors(access)}

    assert found == {"query_size_1 // key_size_1"}
