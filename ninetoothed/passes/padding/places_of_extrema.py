"""Where a greatest or a least element is, among those that there are: an element may be the identity too.

The identity in the padding is enough where elements come first: of equal ones the first is told. What was
selected by positions, or is reversed by an arrangement, may have padding before them. There each element is
accompanied by its place and by whether it is real.
"""

from __future__ import annotations

import ast

from ninetoothed.language import dtypes
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.custom_reductions import is_real, item_of
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.moves import is_first
from ninetoothed.passes.padding.validity import with_rank
from ninetoothed.passes.rewriting import assign, language, read, size_node
from ninetoothed.program import nodes


def find(arguments: Arguments, operation: Operation) -> bool:
    """Puts what finds a place among the real elements alone in the call's place, where that is needed."""
    names = operation.places
    is_pair = "return_indices" in names and arguments.constant("return_indices", 2) is True
    if not (operation.gives_positions or is_pair):
        return False
    analysis, node, value = arguments.analysis, arguments.node, with_rank(arguments.known(0))
    given, axis = arguments.get(0), arguments.constant("axis", names["axis"])
    if given is None or not isinstance(axis, int) or not value.shape:
        return False
    axis %= len(value.shape)
    along = [mask for mask in value.validity if mask.layout[axis] is not None]
    size = value.shape[axis]
    if size is None or all(is_first(arguments, mask, axis) for mask in along):
        return False
    keeps = nodes.at(
        ast.Constant(value=arguments.constant("keep_dims", names["keep_dims"]) is True), node
    )
    if value.type.dtype is dtypes.bfloat16:
        given = language("cast", [given, _type(dtypes.float32, node)], node)
    name = analysis.draft.fresh("searched")
    # First, since an index may be given a name for its masks, which is then read where the tile is loaded.
    real = is_real(analysis, read(name, node), value.validity, node)
    analysis.draft.insert_before(analysis.statement, assign(name, given, node))
    arguments.put(0, read(name, node))
    given = read(name, node)
    whole = [given, _places(given, axis, len(value.shape), size), real]
    function = nodes.at(
        nodes.ExternRef(name=_helper(analysis, operation.identity == "lowest", node)), node
    )
    found = language(
        "reduce",
        [
            nodes.at(ast.Tuple(elts=whole, ctx=ast.Load()), node),
            nodes.at(ast.Constant(value=axis), node),
            function,
            keeps,
        ],
        node,
    )
    if is_pair:
        name = analysis.draft.fresh("found")
        analysis.draft.insert_before(analysis.statement, assign(name, found, node))
        pair = [item_of(read(name, node), place, node) for place in (0, 1)]
        arguments.become(nodes.at(ast.Tuple(elts=pair, ctx=ast.Load()), node))
    else:
        arguments.become(item_of(found, 1, node))
    return True


def _places(value: ast.expr, axis: int, rank: int, size: object) -> ast.expr:
    """The place of each element along a dimension."""
    zero = nodes.at(ast.Constant(value=0), value)
    places: ast.expr = language("arange", [zero, size_node(size, value)], value)
    if rank > 1:
        parts: list[ast.expr] = [
            nodes.at(ast.Slice() if dim == axis else ast.Constant(value=None), value)
            for dim in range(rank)
        ]
        chosen = nodes.at(ast.Tuple(elts=parts, ctx=ast.Load()), value)
        places = nodes.at(ast.Subscript(value=places, slice=chosen, ctx=ast.Load()), value)
    none = language("zeros_like", [nodes.clone(value)], value)
    none = language("cast", [none, _type(dtypes.int32, value)], value)
    return nodes.at(ast.BinOp(left=none, op=ast.Add(), right=places), value)


def _type(dtype: dtypes.DType, origin: ast.AST) -> ast.expr:
    return nodes.at(nodes.DTypeRef(dtype=dtype), origin)


def _helper(analysis: Knowledge, is_greatest: bool, origin: ast.AST) -> str:
    """The name of a function that takes one of two elements, each with its place and whether it is real."""
    sign, wish = (">", "greater_real") if is_greatest else ("<", "less_real")
    if sign in analysis.accompanied:
        return analysis.accompanied[sign]
    name = analysis.accompanied[sign] = analysis.draft.fresh(wish)
    text = f"""
def {name}(left, left_place, left_is_real, right, right_place, right_is_real):
    is_better = (left {sign} right) | ((left == right) & (left_place < right_place))
    is_left = (left_is_real != 0) & ((right_is_real == 0) | is_better)
    return (
        where(is_left, left, right),
        where(is_left, left_place, right_place),
        left_is_real | right_is_real,
    )
"""
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.FunctionDef)
    analysis.helpers[name] = _Located(origin).visit(made)
    return name


class _Located(ast.NodeTransformer):
    """Puts nodes at a place of the user's source, the language's functions among them."""

    def __init__(self, origin: ast.AST) -> None:
        self.origin = origin

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "where":
            return nodes.at(nodes.LanguageRef(name="where"), self.origin)
        return nodes.at(node, self.origin)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return nodes.at(super().generic_visit(node), self.origin)
