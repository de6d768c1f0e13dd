"""Where a greatest or a least element is, among the numbers that there are: in the padding, and beside NaN.

Triton's own compares values and places alone. Of integers whose padding comes last the identity there is
enough: of equal elements the first is told. Other padding may come before an element that is as the identity,
and of NaN, which is neither greater nor less, it would tell one place or another as threads come together.
There each element is accompanied by its precedence among what is no less: that of all numbers, the first one's
the greatest, before that of NaN, and 0 where nothing exists. So there is one order of all elements.
"""

from __future__ import annotations

import ast

from ninetoothed.language import dtypes
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.custom_reductions import item_of
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.moves import is_first
from ninetoothed.passes.padding.validity import Known, with_rank
from ninetoothed.passes.rewriting import assign, language, read, size_node
from ninetoothed.program import nodes
from ninetoothed.program.tile_masks import TileMask, follows, to_be_masked


def find(arguments: Arguments, operation: Operation) -> bool:
    """Puts what finds a place among the real elements alone in the call's place, where that is needed."""
    names = operation.places
    if not arguments.gives_positions(operation):
        return False
    is_pair = not operation.gives_positions
    analysis, node, known = arguments.analysis, arguments.node, with_rank(arguments.known(0))
    given, axis = arguments.get(0), arguments.constant("axis", names["axis"])
    if given is None or not isinstance(axis, int) or not known.shape:
        return False
    axis, dtype = axis % len(known.shape), known.type.dtype
    size, along = known.shape[axis], to_be_masked(known.validity, "", axis)
    if size is None or _is_told_by_triton(arguments, dtype, along, axis, is_pair):
        return False
    identity = operation.identity or ""
    # First, since an index may be given a name for its masks, which is then read where the tile is loaded.
    real, numbers = (
        analysis.masks(Known(validity=tuple(masks)), node)
        for masks in (along, to_be_masked(known.validity, identity, axis))
    )
    given = arguments.named_alone("searched", given)
    if dtype in (None, dtypes.bfloat16):
        # As `ntl.max` has them: a maximum of bfloat16 is in 32 bits, and that of one value the value.
        both = [given, nodes.clone(given)]
        given = arguments.named_alone("searched", language("maximum", both, node))
    precedence = _precedence(analysis, given, axis, len(known.shape), size)
    whole = [_masked(nodes.clone(given), numbers, identity), _masked(precedence, real, "zero")]
    function = nodes.at(nodes.ExternRef(name=_helper(analysis, identity == "lowest", node)), node)
    keeps = arguments.constant("keep_dims", names["keep_dims"]) is True
    found: ast.expr = language(
        "reduce",
        [
            nodes.at(ast.Tuple(elts=whole, ctx=ast.Load()), node),
            nodes.at(ast.Constant(value=axis), node),
            function,
            nodes.at(ast.Constant(value=keeps), node),
        ],
        node,
    )
    if is_pair:
        found = arguments.named_alone("found", found)
        value = item_of(found, 0, node)
        if dtype is not None:
            value = _cast(value, dtypes.float32 if dtype is dtypes.bfloat16 else dtype)
        pair = [value, _place(item_of(nodes.clone(found), 1, node), size)]
        arguments.become(nodes.at(ast.Tuple(elts=pair, ctx=ast.Load()), node))
    else:
        arguments.become(_place(item_of(found, 1, node), size))
    return True


def _is_told_by_triton(
    arguments: Arguments,
    dtype: dtypes.DType | None,
    along: list[TileMask],
    axis: int,
    is_pair: bool,
) -> bool:
    """Whether these are integers that come first, and of equal ones the first is asked for."""
    if dtype is None or dtype.kind == "float":
        return False
    name, place = ("return_indices_tie_break_left", 3) if is_pair else ("tie_break_left", 2)
    tells_first = arguments.constant(name, place) in (None, True)
    return not along or (
        tells_first
        and all(is_first(arguments, mask, axis) for mask in along if follows(mask, axis))
    )


def _masked(value: ast.expr, masks: list[ast.expr], identity: str) -> ast.expr:
    if not masks:
        return value
    return nodes.at(nodes.Masked(value=value, masks=masks, identity=identity), value)


def _precedence(
    analysis: Knowledge, value: ast.expr, axis: int, rank: int, size: object
) -> ast.expr:
    """How many places are from an element to the end, and of a number as many more as there are in all."""
    rest = _operation(size_node(size, value), ast.Sub(), _places(axis, rank, size, value))
    name = analysis.draft.fresh("precedence")
    analysis.draft.insert_before(analysis.statement, assign(name, rest, value))
    more = _operation(read(name, value), ast.Add(), size_node(size, value))
    is_number = ast.Compare(
        left=nodes.clone(value), ops=[ast.Eq()], comparators=[nodes.clone(value)]
    )
    return language("where", [nodes.at(is_number, value), more, read(name, value)], value)


def _place(precedence: ast.expr, size: object) -> ast.expr:
    """The place of an element that has this precedence; 0 where there was none."""
    none = nodes.at(ast.Constant(value=0), precedence)
    # Its type is said, since a function of anybody's may have given it.
    beyond = _operation(none, ast.Sub(), _cast(precedence, dtypes.int32))
    return _operation(beyond, ast.Mod(), size_node(size, precedence))


def _cast(value: ast.expr, dtype: dtypes.DType) -> ast.expr:
    return language("cast", [value, nodes.at(nodes.DTypeRef(dtype=dtype), value)], value)


def _operation(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    return nodes.at(ast.BinOp(left=left, op=op, right=right), left)


def _places(axis: int, rank: int, size: object, origin: ast.AST) -> ast.expr:
    """The places along a dimension, in one of so many dimensions."""
    zero = nodes.at(ast.Constant(value=0), origin)
    places: ast.expr = language("arange", [zero, size_node(size, origin)], origin)
    if rank == 1:
        return places
    parts: list[ast.expr] = [
        nodes.at(ast.Slice() if dim == axis else ast.Constant(value=None), origin)
        for dim in range(rank)
    ]
    chosen = nodes.at(ast.Tuple(elts=parts, ctx=ast.Load()), origin)
    return nodes.at(ast.Subscript(value=places, slice=chosen, ctx=ast.Load()), origin)


def _helper(analysis: Knowledge, is_greatest: bool, origin: ast.AST) -> str:
    """The name of a function that takes one of two elements, each with its precedence."""
    sign, other, wish = (">", "<", "greater") if is_greatest else ("<", ">", "less")
    if sign in analysis.accompanied:
        return analysis.accompanied[sign]
    name = analysis.accompanied[sign] = analysis.draft.fresh(f"{wish}_number")
    text = f"""
def {name}(left, left_precedence, right, right_precedence):
    precedes = (left_precedence > right_precedence) & ((left {other} right) == 0)
    is_left = (left {sign} right) | precedes
    return where(is_left, left, right), where(is_left, left_precedence, right_precedence)
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
