"""What runs a function of the language called as Python: whoever can is given here, asked when needed.

The language stands below the backends and knows none, but ``ntl.exp(tile)`` means something outside
of a compiler too. Nothing is known here either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: From a name of the language to the function that runs it.
Find = Callable[[str], Callable[..., Any]]


class Evaluator:
    """Finds what runs a function of the language."""

    def __init__(self) -> None:
        self._ask: Callable[[], Find] | None = None
        self._find: Find | None = None

    def give(self, ask: Callable[[], Find]) -> None:
        """From now on ``ask`` tells what finds functions; it is called once, when one is needed."""
        self._ask, self._find = ask, None

    def function(self, name: str) -> Callable[..., Any]:
        """What runs the function ``name``, such as ``"exp"`` or ``"libdevice.tanh"``."""
        find = self._find
        if find is None:
            assert self._ask is not None
            find = self._find = self._ask()
        return find(name)


#: That of this process.
EVALUATOR = Evaluator()
