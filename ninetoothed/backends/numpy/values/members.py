"""The functions of the language that are members of its values: ``tile.sum(1)`` is ``ntl.sum(tile, 1)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ninetoothed.evaluation import EVALUATOR


def add_members(owner: type, names: Iterable[str]) -> None:
    """Gives a class of values these functions, called with the value first."""
    for name in names:
        setattr(owner, name, _member(name))


def _member(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return EVALUATOR.function(name)(self, *arguments, **keywords)

    call.__name__ = call.__qualname__ = name
    return call
