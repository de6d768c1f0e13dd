"""Passes: each makes a better Program of one, and never changes the one it is given.

One pass a file; each has ``run(program) -> program``. They run in the order of ``PASSES``. `padding` has the
parts of ``mask_padding``, `in_place` is asked by ``order_memory``; `rewriting` is for all. What a backend runs
`float64_numbers` for shows with a call's tensors.
"""

from __future__ import annotations

from types import ModuleType

from ninetoothed.passes import (
    choose_ways,
    forward_stores,
    hoist_loads,
    mask_padding,
    order_memory,
    python_operators,
    remove_dead,
    rename_webs,
    reuse_loads,
)
from ninetoothed.program.inference import infer
from ninetoothed.program.program import Program

PASSES: tuple[ModuleType, ...] = (
    choose_ways,
    forward_stores,
    reuse_loads,
    hoist_loads,
    mask_padding,
    order_memory,
    remove_dead,
    python_operators,
    rename_webs,
)


def run(program: Program) -> Program:
    """The program after all passes, typed."""
    for each in PASSES:
        program = each.run(program)
    infer(program)
    return program
