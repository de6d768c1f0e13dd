"""Names that nothing has yet."""

from __future__ import annotations

from collections.abc import Container


def unused(wanted: str, taken: Container[str]) -> str:
    """The wanted name where it is not taken, else it with the first number that makes one."""
    name, number = wanted, 1
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
