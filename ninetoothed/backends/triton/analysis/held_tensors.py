"""Tensors whose tiles a program keeps through its loop, for products and for nothing else."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Iterable

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import Load


@analysis
def multiplied_alone(kernel: Definition) -> frozenset[str]:
    """The tensors whose tiles are loaded before the loop and that products alone read."""
    program = kernel.optimized
    before = itertools.takewhile(lambda each: not isinstance(each, ast.For), program.body)
    loaded = loaded_names(before)
    nodes = list(program.nodes())
    reads = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    multiplied = Counter(
        operand.id
        for node in nodes
        if isinstance(node, ast.Call) and called_name(node) == "dot"
        for operand in map(unturned, node.args[:2])
        if isinstance(operand, ast.Name)
    )
    tiles = Counter(node.tile.parameter for node in nodes if isinstance(node, Load))
    return frozenset(
        parameter
        for name, parameter in loaded.items()
        if reads[name] == multiplied[name] and tiles[parameter] == 1
    )


def loaded_names(statements: Iterable[ast.AST]) -> dict[str, str]:
    """The names of tiles, each with the tensor."""
    return {
        target.id: each.value.tile.parameter
        for each in statements
        if isinstance(each, ast.Assign) and isinstance(each.value, Load)
        for target in each.targets
        if isinstance(target, ast.Name)
    }


def unturned(operand: ast.expr) -> ast.expr:
    """What an operand of a product is, or is the transpose of."""
    if isinstance(operand, ast.Call) and called_name(operand) == "trans" and operand.args:
        return operand.args[0]
    return operand
