"""The functions of the language that are members of its values: ``tile.sum(1)`` is ``ntl.sum(tile, 1)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninetoothed.evaluation import EVALUATOR
from ninetoothed.language import operations
from ninetoothed.language.promotion import refuse


def add_members(owner: type, kind: str) -> None:
    """Gives a class of values the functions that are members of such, called with the value first."""
    for name in operations.names(lambda operation: operation.member_of == kind):
        if name not in vars(owner):
            setattr(owner, name, _member(name))


def refuse_members(owner: type, kind: str, reason: str) -> None:
    """Has the functions that are members of other values be an error that says why."""
    for name in operations.names(lambda operation: operation.member_of == kind):
        if not hasattr(owner, name):
            setattr(owner, name, _refused(name, reason))


def _refused(name: str, reason: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        raise refuse(f"`.{name}` is of a tile: {reason}")

    return call


def _member(name: str) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return EVALUATOR.function(name)(self, *arguments, **keywords)

    call.__name__ = call.__qualname__ = name
    return call
