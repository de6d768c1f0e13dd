"""Scans of tiles that may have dimensions of size 1, which Triton's own are not to be used for; what is in order;
gathers in several dimensions; and `softmax` along any dimension."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.trees import language
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.program.arguments import Given
from ninetoothed.program.nodes import clone
from ninetoothed.program.types import ValueType

#: What is done by functions of the library that take the same arguments.
_ORDERS = frozenset({"bitonic_merge", "histogram", "sort", "topk"})

NAMES = frozenset({"cumsum", "cumprod", "associative_scan", "gather", "softmax", *_ORDERS})


def lowered(node: ast.Call, called: str, scanned: ValueType, emission: Emission) -> ast.expr:
    """A scan whose operands are lowered: by the library's functions where it needs them.

    Args:
        scanned: the type of what is scanned.
    """
    if called == "softmax":
        return _softmax(node, emission)
    tile = scanned.items[0] if scanned.items else scanned
    if called == "gather" and tile.rank in (None, 1):
        # A descriptor has a method of this name.
        return node
    if called in _ORDERS or called == "gather":
        of_all = [*Given(node).all_from(0)] if isinstance(node.func, ast.Attribute) else node.args
        return ast.Call(emission.function(called), of_all, node.keywords)
    if tile.shape and all(isinstance(size, int) and size > 1 for size in tile.shape):
        return node
    given = Given(node)
    operand, *rest = [*given.all_from(0)]
    more = {key: value for key, value in given.keywords.items() if value is not operand}
    if called != "associative_scan":
        keywords = [ast.keyword(key, value) for key, value in more.items()]
        return ast.Call(emission.function(called), [operand, *rest], keywords)
    axis = more.pop("axis") if "axis" in more else rest.pop(0)
    value = emission.named("scanned", operand)
    along = [emission.call(name, clone(value), clone(axis)) for name in ("packed", "packed_axis")]
    found = emission.call("unpacked", language(called, *along, *rest, **more), clone(value))
    return ast.IfExp(emission.call("is_one_long", clone(value), clone(axis)), value, found)


def _softmax(node: ast.Call, emission: Emission) -> ast.Call:
    """Triton's own takes other arguments in each release, and does not keep the dimension in some."""
    given = Given(node)
    named = {"dim": given.node_of("dim", 1), "ieee_rounding": given.node_of("ieee_rounding", 3)}
    keywords = [ast.keyword(name, value) for name, value in named.items() if value is not None]
    return ast.Call(emission.function("softmax"), [*given.all_from(0)][:1], keywords)
