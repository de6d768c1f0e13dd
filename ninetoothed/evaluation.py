"""What the language asks of others: whoever knows is given here, and asked when needed.

The language stands below the backends and knows none, but ``ntl.exp(tile)`` means something outside
of a compiler too, and a framework's element type to its tensors. Nothing is known here either.
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


class ElementTypes:
    """Finds the element type that an object of somebody else's stands for."""

    def __init__(self) -> None:
        self._ask: Callable[[Any], Any] = lambda item: None

    def give(self, ask: Callable[[Any], Any]) -> None:
        """From now on ``ask`` tells which element type an object is, None where it is none."""
        self._ask = ask

    def of(self, item: Any) -> Any:
        """The element type that an object stands for; None where nobody knows it for one."""
        return self._ask(item)


#: Those of this process.
EVALUATOR = Evaluator()
ELEMENT_TYPES = ElementTypes()
