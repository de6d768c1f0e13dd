"""How many bits there are to sizes, to positions that a program asks for, and to what a loop counts."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.trees import assign, element, language, name
from ninetoothed.backends.triton.printers.emission import is_large
from ninetoothed.backends.triton.printers.operator_lowering import OperatorLowering
from ninetoothed.backends.triton.specialization.size_arithmetic import end_of
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.language import dtypes
from ninetoothed.program import nodes
from ninetoothed.program.types import type_of
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.access import reads_sequences


class IntegerLowering(OperatorLowering):
    """The part of lowering that knows integers of 32 and of 64 bits."""

    def visit_SymbolValue(self, node: nodes.SymbolValue) -> ast.expr:
        value = self._emission.tree(node.symbol)
        return value if self._emission.is_known(as_symbol(node.symbol)) else self._narrow(value)

    def visit_GivenSize(self, node: nodes.GivenSize) -> ast.expr:
        value = self.visit_SymbolValue(node)
        if not self._emission.is_known(as_symbol(node.symbol)):
            return value
        return nodes.at(self._emission.call("given_size", value), node)

    def _narrow(self, value: ast.expr) -> ast.expr:
        """A value of the type that one of 32 bits has as an argument, where all fit."""
        facts = self._emission.facts
        if not (facts.wide and facts.narrow_values) or isinstance(value, ast.Constant):
            return value
        return language("cast", value, element(dtypes.int32))

    def visit_Offsets(self, node: nodes.Offsets) -> ast.expr:
        name, facts = node.tile.parameter, self._emission.facts
        offset = self._addresses.offset(self._tile(node.tile), node.dim)
        access = self._emission.kernel.arrangement.accesses[name]
        asked = access.of(node.dim)
        # Where a sequence begins has 64 bits, and so has the program's position, where offsets have.
        of_64_bits = {*as_symbol(asked).leaves()} & {*access.programs} if facts.wide else ()
        if reads_sequences(asked) or isinstance(offset, ast.Constant):
            return offset
        if (name, node.dim) in facts.far:
            return offset if of_64_bits else language("cast", offset, element(dtypes.int64))
        may_be_wide = facts.wide or facts.magnitudes or any(map(is_large, as_symbol(asked).walk()))
        return language("cast", offset, element(dtypes.int32)) if may_be_wide else offset

    # Loops, whose compiler counts in the type that the bounds have together.

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
        unsigned = [self._may_be_unsigned(bound) for bound in node.iter.args]
        self.generic_visit(node)
        for number, bound in enumerate(node.iter.args):
            if number == place or (unsigned[number] and isinstance(bound, ast.Constant)):
                node.iter.args[number] = language("cast", bound, element(dtypes.int64))
            elif unsigned[number]:
                node.iter.args[number] = self._emission.call("as_position", bound)
        return node

    def _may_be_unsigned(self, bound: ast.expr) -> bool:
        """Whether the compiler may take a bound for unsigned, and count up to it as if it were not."""
        known = type_of(bound)
        if isinstance(known.number, int):
            return known.number > LARGEST_INT32
        if known.dtype is None:
            return not known.kind and self._emission.facts.has_unsigned
        return known.dtype in (dtypes.uint32, dtypes.uint64)
