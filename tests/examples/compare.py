"""How far a result may be from its float64 reference."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import torch

_FLOAT32_EPSILON = torch.finfo(torch.float32).eps


def assert_matches(
    actual: torch.Tensor,
    expected: torch.Tensor,
    reduction: int = 1,
    rounds_intermediates: bool = False,
) -> None:
    """Assert that a result is its float64 reference but for rounding.

    Args:
        actual: the result, in any floating-point type.
        expected: the reference, in float64.
        reduction: how many terms the longest sum has; float32 sums grow errors with its root.
        rounds_intermediates: whether the kernel rounds to the element type on the way as well.
    """
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    assert expected.dtype == torch.float64

    actual, epsilon = actual.double(), torch.finfo(actual.dtype).eps
    tiny = 2.0**-23  # twice float16's smallest subnormal

    unwritten = int((actual.isnan() & ~expected.isnan()).sum())
    assert unwritten == 0, f"{unwritten} of {actual.numel()} elements are NaN or were not written"

    if actual.numel() == 0:
        return

    accumulated = 4 * _FLOAT32_EPSILON * math.sqrt(reduction)
    on_the_way = accumulated + (4 * epsilon if rounds_intermediates else 0.0)
    difference = (actual - expected).abs()

    bound = epsilon * expected.abs() + 2 * on_the_way * float(expected.abs().max()) + tiny
    excess = difference - bound
    worst = int(excess.argmax())
    assert float(excess.max()) <= 0, (
        f"element {worst}: {float(actual.flatten()[worst])}, "
        f"expected {float(expected.flatten()[worst])} "
        f"within {float(bound.flatten()[worst]):.3e}"
    )

    relative = float(difference.norm() / expected.norm().clamp_min(tiny))
    allowed = epsilon + on_the_way
    assert relative <= allowed, f"relative norm of the difference {relative:.3e} > {allowed:.3e}"


@contextlib.contextmanager
def poisoned_memory() -> Iterator[None]:
    """While it lasts, PyTorch fills new tensors with NaN, so that what is not written shows."""
    before = torch.are_deterministic_algorithms_enabled()
    # What `torch.use_deterministic_algorithms` calls after it has imported PyTorch's compiler, which
    # takes seconds in each process.
    torch._C._set_deterministic_algorithms(True, warn_only=True)

    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(before)
