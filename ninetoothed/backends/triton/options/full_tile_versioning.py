"""Programs within which no tensor ends: there masks are left out.

A mask whose end is no multiple of what one access moves (`divisors`) takes accesses apart into single
elements, in every program, though it fails in the last one alone. Where only the end stands in the way,
a program asks once whether all its elements exist; its body is written without masks for the case that
they do, and with them for the other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.options import loop_splitting
from ninetoothed.backends.triton.printers.addresses import assign
from ninetoothed.backends.triton.specialization import offsets
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.nodes import TileRef
from ninetoothed.symbols.expr import Symbol

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.printers.triton import _Emitter
    from ninetoothed.kernels.definition import Definition

#: A condition of a tile's access: the parameter and the condition's number.
Condition = tuple[str, int]


@dataclass(frozen=True)
class Interior:
    """What holds while the body without masks is emitted; as `peel.Whole` for a loop's rounds."""

    conditions: frozenset[Condition]
    comparisons: frozenset[Symbol] = frozenset()

    def covers(self, tile: TileRef, number: int) -> bool:
        """Whether a condition of a tile's access holds."""
        return (tile.parameter, number) in self.conditions


def conditions(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> frozenset[Condition]:
    """The conditions to ask once for all of a program's elements; none where that gains nothing."""
    # It builds on what builds on this.
    from ninetoothed.backends.triton.planning.cost_features import bytes_at_once

    if kernel.optimized.has_loop or not kernel.optimized.body:
        return frozenset()
    adjacent = offsets.adjacent(kernel, environment)
    ends_early = any(
        bytes_at_once(kernel, parameter, call, environment, adjacent)
        < bytes_at_once(kernel, parameter, call, environment, adjacent, is_masked=False)
        for parameter in kernel.tensor_parameters
    )
    if not ends_early:
        return frozenset()
    first = {**environment, **dict.fromkeys(kernel.arrangement.programs, 0)}
    # What fails in the first program is no matter of the tensors' ends.
    return frozenset(key for key, excess in _excesses(kernel) if excess.evaluate(first) < 0)


@analysis
def _excesses(kernel: Definition) -> tuple[tuple[Condition, Symbol], ...]:
    """What is negative where a condition holds for all of a program's elements, for each condition."""
    programs = kernel.arrangement.programs
    return tuple(
        ((name, number), excess)
        for name, access in kernel.arrangement.accesses.items()
        for number, condition in enumerate(access.conditions)
        if (excess := loop_splitting.greatest_excess(condition, programs)) is not None
    )


def asked(emitter: _Emitter, label: str) -> list[ast.stmt]:
    """What finds out whether all elements of the program exist, under the name ``label``."""
    needed = emitter.variant.interior - emitter.variant.holding
    excesses = dict.fromkeys(excess for key, excess in _excesses(emitter.kernel) if key in needed)
    tests = [
        ast.Compare(emitter.position(excess), [ast.Lt()], [ast.Constant(0)]) for excess in excesses
    ]
    first, *others = tests
    target = ast.Name(label, ast.Store())
    return [assign(label, first), *(ast.AugAssign(target, ast.BitAnd(), test) for test in others)]
