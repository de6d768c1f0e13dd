"""How a function of the user's is called back by the language, as ``ntl.reduce`` does.

What runs applications knows how, and says so here; a function is called as it is until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Adapt = Callable[[Any], Callable[..., Any]]


_adapt: Adapt | None = None


def adapt_with(adapt: Adapt) -> None:
    """From now on ``adapt`` makes a user's function, or a ``triton.jit`` one, run on tiles."""
    global _adapt
    _adapt = adapt


def adapted(function: Any) -> Callable[..., Any]:
    """The user's function, or a ``triton.jit`` one, so that it runs on tiles."""
    return function if _adapt is None else _adapt(function)  # type: ignore[no-any-return]
