"""Questions about a kernel that are answered once: an analysis is a function with a cache of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def analysis(
    function: Callable[Concatenate[Definition, Asked], Answer],
) -> Callable[Concatenate[Definition, Asked], Answer]:
    """``function(kernel, *arguments)``, computed once for each kernel and arguments, which are hashable.

    The answers live as long as the kernel. Two threads that ask at once get the same answer.
    """

    @functools.wraps(function)
    def answered(kernel: Definition, *arguments: Asked.args, **keywords: Asked.kwargs) -> Answer:
        asked = (function, *arguments, *keywords.items())
        try:
            return kernel.answers[asked]  # type: ignore[no-any-return]
        except KeyError:
            return kernel.answers.setdefault(  # type: ignore[no-any-return]
                asked, function(kernel, *arguments, **keywords)
            )

    return answered
