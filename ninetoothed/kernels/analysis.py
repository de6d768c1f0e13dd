"""Questions about a kernel that are answered once: an analysis is a function with a cache of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from ninetoothed.bounded import keep
from ninetoothed.kernels.definition import Definition

#: So many answers that depend on arguments a kernel remembers.
_MOST_FURTHER = 2048

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def analysis(
    function: Callable[Concatenate[Definition, Asked], Answer],
) -> Callable[Concatenate[Definition, Asked], Answer]:
    """``function(kernel, *arguments)``, computed once for each kernel and arguments, which are hashable.

    The answers live as long as the kernel; of those that depend on arguments, as calls have ever new
    ones, the oldest go. Two threads that ask at once get the same answer.
    """

    @functools.wraps(function)
    def answered(kernel: Definition, *arguments: Asked.args, **keywords: Asked.kwargs) -> Answer:
        if arguments or keywords:
            return _further(kernel, function, arguments, keywords)
        try:
            return kernel.answers[function]  # type: ignore[no-any-return]
        except KeyError:
            return kernel.answers.setdefault(function, function(kernel, *arguments, **keywords))  # type: ignore[no-any-return]

    return answered


def _further(
    kernel: Definition,
    function: Callable[..., Answer],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
) -> Answer:
    asked = (function, *arguments, *keywords.items())
    known = kernel.further_answers
    try:
        return known[asked]  # type: ignore[no-any-return]
    except KeyError:
        return keep(known, asked, function(kernel, *arguments, **keywords), _MOST_FURTHER)  # type: ignore[no-any-return]
