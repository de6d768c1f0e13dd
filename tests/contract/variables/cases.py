"""Applications, each with what it gives, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def table() -> tuple[dict[str, tuple[Any, Any]], Callable[[Any], Callable[[Any], Any]]]:
    """A table of applications, and what registers one with what it gives."""
    cases: dict[str, tuple[Any, Any]] = {}

    def case(expected: Any) -> Callable[[Any], Any]:
        def register(application: Any) -> Any:
            cases[application.__name__] = application, expected
            return application

        return register

    return cases, case
