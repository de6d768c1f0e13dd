"""A loop that is split where Gluon is written: both parts as one, with the conditions of both.

Comparisons that hold in the first rounds for every lane are marked: who writes the loop decides
whether it becomes two loops, or one in which something is done under a condition.
"""

from __future__ import annotations

import ast

from ninetoothed.program.nodes import at

_MARK = "holds_at_first"


class MarkedLoop(ast.For):
    """A loop over a range; in its rounds before ``middle``, a name, the marked comparisons hold."""

    middle: str


def marked_loop(loop: ast.For, middle: str) -> MarkedLoop:
    """A loop whose first rounds end at ``middle``."""
    result = MarkedLoop(loop.target, loop.iter, loop.body, loop.orelse)
    result.middle = middle
    return at(result, loop)


def mark(comparison: ast.Compare) -> None:
    """Notes that a comparison holds in the first rounds. Copies of it are marked too."""
    setattr(comparison, _MARK, True)


def is_marked(value: ast.expr) -> bool:
    """Whether this is a comparison that holds in the first rounds."""
    return getattr(value, _MARK, False)
