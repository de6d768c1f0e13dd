"""What says which elements exist, turned into plain Triton: nothing where all of them do."""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.backends.triton.ir.trees import all_of, arranged, language, name, spread
from ninetoothed.backends.triton.printers.element_lowering import ElementLowering
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program import nodes
from ninetoothed.program.types import Shape, type_of
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import is_power_of_two


class ValidityLowering(ElementLowering):
    """The part of lowering that knows of masks; what tiles and sizes become, the rest of it knows."""

    #: The variables of which all elements exist, by what would say which do.
    _everywhere: set[str]

    def visit_Padded(self, node: nodes.Padded) -> ast.expr:
        """The next power of two of a size."""
        raise NotImplementedError

    def visit_Masked(self, node: nodes.Masked) -> ast.expr:
        value = self.visit(node.value)
        mask = self._conjunction(node.masks)
        if mask is None:
            return value
        if node.identity == "zero" and not self._is_stored_truth(node.value):
            return language("where", mask, value, ast.Constant(0))
        function = f"exclude_{node.identity}"
        return self._emission.call(function, value, mask)

    def _is_stored_truth(self, node: ast.expr) -> bool:
        """Whether this is what a tensor of truth values holds, which ``where`` would widen."""
        types = [part for part in nodes.walk(node) if isinstance(part, nodes.ElementType)]
        return any(part.parameter in self._emission.facts.booleans for part in types)

    def visit_Kept(self, node: nodes.Kept) -> ast.expr:
        mask = self._conjunction(node.masks)
        value = self.visit(node.value)
        return value if mask is None else language("where", mask, value, self.visit(node.before))

    def visit_Flipped(self, node: nodes.Flipped) -> ast.expr:
        mask, value = self._conjunction(node.masks), self.visit(node.value)
        if mask is None:
            return self._emission.call("flip_whole", value, ast.Constant(node.dim))
        function = "flip_existing" if node.is_first else "flip_scattered"
        return self._emission.call(function, value, mask, ast.Constant(node.dim))

    def visit_Exists(self, node: nodes.Exists) -> ast.expr:
        mask = self._conjunction(node.masks)
        operands = [self.visit(node.value), ast.Constant(True) if mask is None else mask]
        return self._emission.call("existing", *operands)

    def visit_AllHold(self, node: nodes.AllHold) -> ast.expr:
        mask = self._conjunction(node.masks)
        return ast.Constant(True) if mask is None else mask

    def _condition(self, mask: Any) -> ast.expr | None:
        """Where a mask holds; None for everywhere."""
        if isinstance(mask, nodes.Mask):
            return self._mask(nodes.clone(mask))
        if isinstance(mask, nodes.Within):
            return self._within(mask)
        assert isinstance(mask, nodes.Held)
        if mask.name in self._everywhere or self._is_along_none(mask):
            return None
        return _followed(mask)

    def _is_along_none(self, mask: nodes.Held) -> bool:
        """Whether a dimension that is not followed has a size of 0: that no element is there says nothing of the rest."""
        empty = dict.fromkeys(self._emission.facts.empty, 0)
        if not empty:
            return False
        shape = _shapes(self._emission.kernel).get(mask.name, ())
        rest = (size for dim, size in enumerate(shape) if dim not in mask.layout)
        return any(isinstance(n, Symbol) and simplify(n.substitute(empty)) == 0 for n in rest)

    def _within(self, mask: nodes.Within) -> ast.expr | None:
        """Where positions are below a size; None where that is a power of two."""
        inner = mask.size
        size = known_size(inner.symbol) if isinstance(inner, nodes.SymbolValue) else None
        if isinstance(inner, ast.Constant):
            size = inner.value
        powers = self._emission.facts.powers_of_two
        if isinstance(size, Symbol) and (is_power_of_two(size) or size in powers):
            return None
        width = self.visit_Padded(nodes.at(nodes.Padded(value=nodes.clone(inner)), inner))
        lanes: ast.expr = language("arange", ast.Constant(0), width)
        if len(mask.layout) > 1:
            lanes = spread(lanes, mask.layout)
        tree = self.visit(nodes.clone(inner))
        if isinstance(size, Symbol):
            return self._emission.below(lanes, size, tree)
        return ast.Compare(lanes, [ast.Lt()], [tree])

    def _conjunction(self, masks: list[Any]) -> ast.expr | None:
        """Where all of them hold, by name; None for everywhere."""
        found = [self._condition(mask) for mask in masks]
        needed = [mask for mask in found if mask is not None]
        if not needed:
            return None
        first = masks[0]
        subject = first.tile.parameter if isinstance(first, nodes.Mask) else "element"
        return self._emission.named(f"{subject}_mask", all_of(needed))


@analysis
def _shapes(kernel: Definition) -> dict[str, Shape]:
    """The shapes of the variables of which one is known."""
    assigned = (node for node in kernel.optimized.nodes() if isinstance(node, ast.Assign))
    targets = (target for node in assigned for target in node.targets)
    return {
        target.id: shape
        for target in targets
        if isinstance(target, ast.Name) and (shape := type_of(target).shape) is not None
    }


def _followed(mask: nodes.Held) -> ast.expr:
    """Where a variable is not 0, over the dimensions of a layout."""
    value: ast.expr = name(mask.name)
    followed = [dim for dim in mask.layout if dim is not None]
    for dim in reversed(range(mask.rank)):
        if dim not in followed:
            value = language("max", value, axis=ast.Constant(dim))
    return ast.Compare(arranged(value, mask.layout), [ast.NotEq()], [ast.Constant(0)])


def known_size(symbol: Any) -> Any:
    """A size as a number where it is one, else as a symbol."""
    known = as_symbol(symbol)
    return known.operands[0] if known.op == "const" else known
