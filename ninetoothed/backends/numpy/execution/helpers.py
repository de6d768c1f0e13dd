"""What is known of the functions that a function calls, each looked at once however many ways lead to it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.numpy.execution.functions import is_direct, is_user_function
from ninetoothed.backends.numpy.execution.rewrite_expressions import FIXED
from ninetoothed.bounded import keep
from ninetoothed.parsing import source as sources
from ninetoothed.parsing.objects import is_triton_function
from ninetoothed.parsing.source import FunctionSource

if TYPE_CHECKING:
    from ninetoothed.backends.numpy.execution.rewrite_calls import CallRewriter

#: How many answers about functions are kept.
_KEPT = 4096

#: By what was asked and the function's key: what was found.
_found: dict[Any, Any] = {}


class Helpers:
    """The functions that one function calls, and those that these call.

    Args:
        kind: what looks at a function.
    """

    def __init__(self, kind: type[CallRewriter]) -> None:
        self._kind = kind
        self._answers: dict[tuple[str, types.FunctionType], Any] = {}
        #: Those that are being looked at for what they assign, callers first.
        self._open: dict[types.FunctionType, CallRewriter] = {}

    def assigned(self, source: FunctionSource) -> frozenset[str]:
        """The parameters that a function assigns, by calls of itself too."""
        # Of one that comes to call itself it is nothing, to begin with.
        return self._answer("assigned", source, frozenset(), lambda: self._find_assigned(source))

    def does_more(self, source: FunctionSource) -> bool:
        """Whether a function does more than return an expression, as one does that comes to call itself."""
        asked = "does more"
        return self._answer(asked, source, True, lambda: self._look(source).has_statements())

    def call_does_more(self, function: Any) -> bool:
        """Whether a call of a function, whatever it is, does more than return an expression."""
        if is_direct(function):
            return False
        plain = function.fn if is_triton_function(function) else function
        return not isinstance(plain, types.FunctionType) or self.does_more(sources.read(plain))

    def has_effect(self, source: FunctionSource) -> bool:
        """Whether a function that returns an expression does more than read."""
        asked = "has an effect"
        return self._answer(
            asked, source, True, lambda: not self._look(source).is_harmless(source.tree)
        )

    def _answer(
        self, asked: str, source: FunctionSource, meanwhile: Any, find: Callable[[], Any]
    ) -> Any:
        """What is known, or else found. Who asks while it is being found is told ``meanwhile``."""
        place = asked, source.function
        if place not in self._answers:
            key = asked, key_of(source.function)
            if key in _found:
                self._answers[place] = _found[key]
            else:
                self._answers[place] = meanwhile
                self._answers[place] = find()
                if not self._open:
                    keep(_found, key, self._answers[place], _KEPT)
        return self._answers[place]

    def _find_assigned(self, source: FunctionSource) -> frozenset[str]:
        is_first = not self._open
        looked = self._open[source.function] = self._look(source)
        found = looked.assigned()
        if not is_first:
            return found
        self._answers["assigned", source.function] = found
        while self._is_more_assigned():
            pass
        for function in self._open:
            key = "assigned", key_of(function)
            keep(_found, key, self._answers["assigned", function], _KEPT)
        self._open.clear()
        return self._answers["assigned", source.function]

    def _is_more_assigned(self) -> bool:
        """Asks all functions that may call each other once more, by what is known of them now."""
        is_more = False
        for function, looked in reversed(self._open.items()):
            found = looked.assigned()
            is_more |= found != self._answers["assigned", function]
            self._answers["assigned", function] = found
        return is_more

    def _look(self, source: FunctionSource) -> CallRewriter:
        return self._kind(source, {}, self)


def key_of(function: types.FunctionType) -> tuple[Any, ...]:
    """What rewritten code depends on: the code, and what of its free names is looked at.

    Of what is a user's function that is its code and its free names again: each function stands there once.
    """
    numbers, functions = {function: 0}, [function]

    def kept(value: Any) -> Any:
        if not isinstance(value, types.FunctionType):
            return value if isinstance(value, FIXED) else type(value)
        if not is_user_function(value):
            return value.__code__
        plain = sources.own_function(value)
        if plain not in numbers:
            numbers[plain] = len(functions)
            functions.append(plain)
        return (numbers[plain],)

    parts: list[Any] = []
    for each in functions:
        parts.append(each.__code__)
        for cell in each.__closure__ or ():
            parts.append(kept(cell.cell_contents) if sources.is_filled(cell) else None)
        known = each.__globals__
        for name in sorted(sources.names_in(each.__code__) & known.keys()):
            parts.append((name, kept(known[name])))
    return tuple(parts)
