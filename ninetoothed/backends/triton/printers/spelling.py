"""What a lowered program's nodes are in the text of Triton, or of Gluon."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.nodes import (
    DescriptorLoad,
    DescriptorStore,
    PointedType,
    TritonRef,
)
from ninetoothed.backends.triton.ir.trees import attribute, method, name
from ninetoothed.program.nodes import DTypeRef, NodeT, at


class Spelling(ast.NodeTransformer):
    """Puts plain Python for each node.

    Args:
        language: the name of the language's module.
    """

    def __init__(self, language: str) -> None:
        self._language = language

    def of(self, tree: NodeT) -> NodeT:
        """The tree, changed in place."""
        return self.visit(tree)  # type: ignore[no-any-return]

    def visit_TritonRef(self, node: TritonRef) -> ast.expr:
        head, *rest = node.name.split(".")
        if head == "libdevice":
            return attribute(name(head), *rest)
        return attribute(name(self._language), head, *rest)

    def visit_DTypeRef(self, node: DTypeRef) -> ast.expr:
        return attribute(name(self._language), node.dtype.triton_name)

    def visit_PointedType(self, node: PointedType) -> ast.expr:
        return attribute(node.pointer, "dtype", "element_ty")

    def visit_DescriptorLoad(self, node: DescriptorLoad) -> ast.expr:
        return method(node.descriptor, "load", self.visit(node.corner))

    def visit_DescriptorStore(self, node: DescriptorStore) -> ast.stmt:
        value = self.visit(node.value)
        return at(ast.Expr(method(node.descriptor, "store", self.visit(node.corner), value)), node)
