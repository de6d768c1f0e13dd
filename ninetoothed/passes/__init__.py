"""Passes: each makes a better Program of one, and never changes the one it is given.

One pass a file; each has ``run(program) -> program``. They run in the order of ``PASSES``.
"""

from __future__ import annotations

from ninetoothed.program import Program

PASSES: tuple = ()


def run(program: Program) -> Program:
    """The program after all passes."""
    for each in PASSES:
        program = each.run(program)
    return program
