"""What a lowered program's nodes are in the text of Triton, or of Gluon."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.backends.triton.ir import nodes
from ninetoothed.backends.triton.ir.trees import attribute, method, name
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.nodes import DTypeRef, NodeT, NumberType, at


class Spelling:
    """Puts plain Python for each node.

    Args:
        language: the name of the language's module.
    """

    def __init__(self, language: str) -> None:
        self._language = language

    def of(self, tree: NodeT) -> NodeT:
        """The tree, changed in place."""
        rule = _RULES.get(kind_of(tree))
        if rule is not None:
            tree = rule(self, tree)
        fields = tree.__dict__
        for field in tree._fields:
            value = fields.get(field)
            if isinstance(value, list):
                value[:] = [self.of(item) if isinstance(item, ast.AST) else item for item in value]
            elif isinstance(value, ast.AST) and value._fields:
                fields[field] = self.of(value)
        return tree

    def _function(self, node: nodes.TritonRef) -> ast.expr:
        head, *rest = node.name.split(".")
        if head == "libdevice":
            return attribute(name(head), *rest)
        return attribute(name(self._language), head, *rest)

    def _dtype(self, node: DTypeRef) -> ast.expr:
        return attribute(name(self._language), node.dtype.triton_name)

    def _pointed(self, node: nodes.PointedType) -> ast.expr:
        return attribute(node.pointer, "dtype", "element_ty")

    def _load(self, node: nodes.DescriptorLoad) -> ast.expr:
        return method(node.descriptor, "load", node.corner)

    def _store(self, node: nodes.DescriptorStore) -> ast.stmt:
        return at(ast.Expr(method(node.descriptor, "store", node.corner, node.value)), node)


_RULES: dict[type, Callable[[Spelling, Any], Any]] = {
    nodes.TritonRef: Spelling._function,
    DTypeRef: Spelling._dtype,
    NumberType: Spelling._dtype,
    nodes.PointedType: Spelling._pointed,
    nodes.DescriptorLoad: Spelling._load,
    nodes.DescriptorStore: Spelling._store,
}
