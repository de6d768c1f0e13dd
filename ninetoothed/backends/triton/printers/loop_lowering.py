"""What loops of the running kernel count in: Triton's compiler takes the type that their bounds have together."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.trees import assign, element, language, name
from ninetoothed.backends.triton.printers.operator_lowering import OperatorLowering
from ninetoothed.backends.triton.specialization.selections import LARGEST_INT32
from ninetoothed.backends.triton.specialization.size_arithmetic import end_of
from ninetoothed.language import dtypes
from ninetoothed.program import nodes
from ninetoothed.program.types import type_of


class LoopLowering(OperatorLowering):
    """The part of lowering that knows bounds of loops."""

    def passed(self, loop: ast.For) -> int | None:
        """The place of the bound beyond which a counter of 32 bits would go; None where none is."""
        ends = self._emission.facts.passed
        found = end_of(self._emission.lowered.program, loop) if ends else None
        return found[0] if found and found[1] in ends else None

    def counted(self, loop: ast.For) -> ast.stmt:
        """What gives a loop's variable 32 bits, which hold each of its numbers."""
        assert isinstance(loop.target, ast.Name)
        number = language("cast", name(loop.target.id), element(dtypes.int32))
        return nodes.at(assign(loop.target.id, number), loop)

    def visit_For(self, node: ast.For) -> ast.stmt:
        assert isinstance(node.iter, ast.Call)
        place = self.passed(node)
        wide = [_is_unsigned(bound) for bound in node.iter.args]
        self.generic_visit(node)
        for number, bound in enumerate(node.iter.args):
            if wide[number] or number == place:
                node.iter.args[number] = language("cast", bound, element(dtypes.int64))
        return node


def _is_unsigned(bound: ast.expr) -> bool:
    """Whether the compiler takes a bound for unsigned, and counts up to it as if it were not."""
    known = type_of(bound)
    if isinstance(known.number, int):
        return known.number > LARGEST_INT32
    return known.dtype in (dtypes.uint32, dtypes.uint64)
