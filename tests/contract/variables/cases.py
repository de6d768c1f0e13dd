"""Applications, each with what it gives, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import ninetoothed
from ninetoothed import Tensor


def table() -> tuple[dict[str, tuple[Any, Any]], Callable[[Any], Callable[[Any], Any]]]:
    """A table of applications, and what registers one with what it gives."""
    cases: dict[str, tuple[Any, Any]] = {}

    def case(expected: Any) -> Callable[[Any], Any]:
        def register(application: Any) -> Any:
            cases[application.__name__] = application, expected
            return application

        return register

    return cases, case


def check(application: Any, expected: Callable[[Any, int], Any], n: int) -> None:
    """An application of ``x``, which is 1, 2 and 3 in one tile, ``n`` and ``y`` gives what is expected."""
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
    kernel(x, n, y)
    torch.testing.assert_close(y, expected(x, n).to(y), rtol=1e-5, atol=1e-5)
