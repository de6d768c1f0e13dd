"""Comprehensions and generators over what is known at compile time: tuples of values."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ninetoothed.parsing.assignments import AssignmentFrame
from ninetoothed.parsing.values import Cell, Group, Runtime, Tile, Value


class ComprehensionFrame(AssignmentFrame):
    """A frame that evaluates comprehensions, whose variables are their own."""

    def _evaluate_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        targets = [generator.target for generator in node.generators]
        names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        outer = {name: self.cells.get(name) for name in names}
        for name in sorted(names):
            self.cells[name] = Cell(self.state.fresh(name))
        try:
            return Group(tuple(self._elements_of(node.elt, node.generators)))
        finally:
            for name, cell in outer.items():
                if cell is None:
                    del self.cells[name]
                else:
                    self.cells[name] = cell

    _evaluate_GeneratorExp = _evaluate_ListComp

    def _elements_of(
        self, element: ast.expr, generators: Sequence[ast.comprehension]
    ) -> list[Value]:
        if not generators:
            return [self._held(self.evaluate(element), element)]
        (generator, *inner), found = generators, list[Value]()
        items = self.elements(self._loaded(generator.iter), generator.iter)
        self.count_copies(len(items), generator.iter)
        for item in items:
            self.assign(generator.target, item, generator.target, holds=True)
            if all(self._is_taken(condition) for condition in generator.ifs):
                found += self._elements_of(element, inner)
        return found

    def _is_taken(self, condition: ast.expr) -> bool:
        truth = self.truth(self._loaded(condition))
        if truth is None:
            raise self.error(
                condition,
                "How many elements there are is needed at compile time, and so is this condition; "
                "`ntl.where` chooses in the running kernel.",
            )
        return truth

    def _held(self, value: Value, node: ast.AST) -> Value:
        """A value as a variable holds it."""
        if isinstance(value, Tile) and value.is_complete:
            value = Runtime(self.expression(value, node))
        if isinstance(value, Runtime) and not isinstance(value.node, ast.Name | ast.Constant):
            return Runtime(self.saved(value.node, node, "item"))
        return value
