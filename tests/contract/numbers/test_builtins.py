"""Python's own functions mean the same of tiles by whatever name they are called."""

from __future__ import annotations

import pytest
import torch

from tests.contract.numbers.test_objects import X, result


def in_a_variable(x, y):
    largest, smallest, size = max, min, abs
    y = largest(x, 0.5) + smallest(x, 2 * x, 0.5) + size(x)  # noqa: F841


def in_a_comprehension(x, y):
    y = sum([function(x, 0.5) for function in (max, min)])  # noqa: F841


def in_a_helper(x, y):
    def of_both(function, value):
        return function(value, 0.5)

    y = of_both(max, x)  # noqa: F841


def of_a_chain(x, y):
    y = max([max(value, 0.5) for value in (x, 2 * x)]) + max(v for v in (x, 2 * x))  # noqa: F841


def of_a_tuple(x, y):
    y = min((x, 2 * x)) + max((1, 2))  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (in_a_variable, X.clamp(min=0.5) + torch.minimum(X, 2 * X).clamp(max=0.5) + X.abs()),
        (in_a_comprehension, X + 0.5),
        (in_a_helper, X.clamp(min=0.5)),
        (of_a_chain, torch.maximum(X, 2 * X).clamp(min=0.5) + torch.maximum(X, 2 * X)),
        (of_a_tuple, torch.minimum(X, 2 * X) + 2),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_function_of_pythons(application, expected):
    assert result(application) == expected.tolist()
