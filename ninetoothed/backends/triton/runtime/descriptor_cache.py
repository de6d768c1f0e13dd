"""Descriptors that were made of addresses, kept for the next launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninetoothed.bounded import keep

#: So many addresses' descriptors a plan remembers for one parameter.
_REMEMBERED = 1024


def remembering(make: Callable[[int], Any]) -> tuple[dict[int, Any], Callable[[int], Any]]:
    """What was made of addresses, and a function that makes what is not there and adds it."""
    known: dict[int, Any] = {}

    def remember(address: int) -> Any:
        return keep(known, address, make(address), _REMEMBERED)

    return known, remember
