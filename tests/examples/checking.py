"""Runs one example of the tables and compares it with its reference."""

from __future__ import annotations

from typing import Any

import torch

from tests.examples.cases import EXAMPLES, Example, Maker
from tests.examples.compare import assert_matches, poisoned_memory
from tests.examples.more_cases import MORE

BY_NAME = {example.name: example for example in (*EXAMPLES, *MORE)}


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
    compare(example, parameters, actual, expected, maker.dtype)


def compare(
    example: Example,
    parameters: tuple[Any, ...],
    actual: tuple[torch.Tensor, ...],
    expected: tuple[torch.Tensor, ...],
    dtype: torch.dtype,
) -> None:
    """Compare an example's results with its reference."""
    assert len(actual) == len(expected)

    for result, reference in zip(actual, expected, strict=True):
        if not reference.is_floating_point():
            assert result.dtype == reference.dtype
            assert torch.equal(result, reference)
            continue

        assert result.dtype == dtype
        assert_matches(
            result, reference, example.reduction(*parameters), example.rounds_intermediates
        )
