"""Runs one example of the table and compares it with its reference."""

from __future__ import annotations

from typing import Any

import torch

from tests.examples.cases import BY_NAME, Maker
from tests.examples.compare import assert_matches, poisoned_memory


def check(name: str, parameters: tuple[Any, ...], maker: Maker) -> None:
    """Run one example on fresh arguments and compare; inputs must come out as they went in."""
    example = BY_NAME[name]
    arguments = example.arguments(maker, parameters)
    expected = example.expected(arguments)
    before = [value.clone() for value in arguments if isinstance(value, torch.Tensor)]

    with poisoned_memory():
        actual = example.actual(arguments)

    after = [value for value in arguments if isinstance(value, torch.Tensor)]
    assert all(map(torch.equal, before, after)), "an input was written to"
    assert len(actual) == len(expected)

    for result, reference in zip(actual, expected, strict=True):
        assert result.dtype == maker.dtype
        assert_matches(
            result, reference, example.reduction(*parameters), example.rounds_intermediates
        )
