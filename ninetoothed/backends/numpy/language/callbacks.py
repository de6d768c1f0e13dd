"""How a function of the user's is called back by the language, as ``ntl.reduce`` does.

What runs applications knows how, and says so here; a function is called as it is until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Adapt = Callable[[Any], Callable[..., Any]]


def _as_it_is(function: Any) -> Callable[..., Any]:
    return function  # type: ignore[no-any-return]


_adapt: Adapt = _as_it_is


def adapt_with(adapt: Adapt) -> None:
    """From now on ``adapt`` makes a user's function, or a ``triton.jit`` one, run on tiles."""
    global _adapt
    _adapt = adapt


def adapted(function: Any) -> Callable[..., Any]:
    """The user's function, or a ``triton.jit`` one, so that it runs on tiles."""
    return _adapt(function)
