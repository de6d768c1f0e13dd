"""The arguments of a call, by place and by name, and what is known of each."""

from __future__ import annotations

import ast
from dataclasses import replace

from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.validity import UNKNOWN, Known, with_rank
from ninetoothed.passes.rewriting import assign, read
from ninetoothed.program.arguments import FIRST, Given
from ninetoothed.program.nodes import Masked, Padded, SymbolValue, at
from ninetoothed.program.tile_masks import to_be_masked


class Arguments(Given):
    """The arguments of a call, a method's own value first, and what is known of each."""

    def __init__(self, analysis: Knowledge, node: ast.Call) -> None:
        self.analysis = analysis
        #: What stands in the call's place.
        self.result: ast.expr = node
        self.values: dict[int, Known] = {}
        if isinstance(node.func, ast.Attribute):
            node.func.value, self.values[0] = analysis.visit(node.func.value)
        first = len(self.values)
        for index, item in enumerate(node.args):
            node.args[index], self.values[index + first] = analysis.visit(item)
        self.named: dict[str, Known] = {}
        for keyword in node.keywords:
            keyword.value, known = analysis.visit(keyword.value)
            if keyword.arg is not None:
                self.named[keyword.arg] = known
        super().__init__(node)
        #: By what its arguments are now: rules put others in their place.
        self.type = analysis.types.typed(node)
        if 0 not in self.values:
            for key in FIRST:
                if key in self.named:
                    self.values[0] = self.named[key]

    def become(self, node: ast.expr) -> None:
        """Puts another expression in the place of the call."""
        self.result = at(node, self.node)

    def known(self, index: int) -> Known:
        return self.values.get(index, UNKNOWN)

    def put(self, index: int, value: ast.expr) -> None:
        if isinstance(self.node.func, ast.Attribute) and index == 0:
            self.node.func.value = value
        elif index - self.first < len(self.node.args):
            self.node.args[index - self.first] = value
        else:
            for keyword in self.node.keywords:
                if keyword.arg in FIRST:
                    keyword.value = value

    def put_named(self, name: str, index: int, value: ast.expr) -> None:
        """Replace an argument that is given by name or place."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                keyword.value = value
                return
        self.put(index, value)

    def hold(self, wish: str, *indices: int) -> None:
        """Gives arguments a name where they have none: what is computed once is read twice."""
        for index in indices:
            operand = self.get(index)
            if operand is not None and not isinstance(operand, ast.Tuple):
                self.put(index, self.named_alone(wish, operand))

    def named_alone(self, wish: str, value: ast.expr) -> ast.expr:
        """A value by a name, which it is given where it has none. A size stays: by a name it is no constant."""
        if isinstance(value, ast.Name) or _is_of_sizes(value):
            return value
        draft = self.analysis.draft
        name = draft.fresh(wish)
        draft.insert_before(self.analysis.statement, assign(name, value, self.node))
        return read(name, self.node)

    def take_part(self, mask: ast.expr) -> None:
        """Has elements take part only where a mask holds, besides the third argument, which is one."""
        node, given = self.node, self.node_of("mask", 2)
        if given is not None:
            mask = at(ast.BinOp(left=mask, op=ast.BitAnd(), right=given), node)
        keywords = [item for item in node.keywords if item.arg != "mask"]
        node.keywords = [*keywords, at(ast.keyword(arg="mask", value=mask), node)]
        del node.args[2 - self.first :]

    def mask(self, index: int, identity: str, axis: int | None = None, name: str = "") -> None:
        """Put the identity into the padding of an argument; of masks that depend on ``axis`` alone."""
        node, value = self.node_of(name, index), self.named.get(name, self.known(index))
        value = with_rank(value)
        validity = to_be_masked(value.validity, identity, axis)
        masks = self.analysis.masks(replace(value, validity=tuple(validity)), self.node)
        if node is not None and masks:
            masked = Masked(value=node, masks=masks, identity=identity)
            self.put_named(name, index, at(masked, node))


def _is_of_sizes(value: ast.expr) -> bool:
    """Whether an expression is made of constants, sizes and values' shapes."""
    if isinstance(value, ast.UnaryOp):
        return _is_of_sizes(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_of_sizes(value.left) and _is_of_sizes(value.right)
    if isinstance(value, ast.Subscript):
        return _is_of_sizes(value.value)
    is_shape = isinstance(value, ast.Attribute) and value.attr == "shape"
    return is_shape or isinstance(value, ast.Constant | SymbolValue | Padded)
