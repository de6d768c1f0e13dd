"""``reduce`` and ``associative_scan`` with a function of the user's: padding left out of them.

Where the function is one whose identity is known, that stands in the padding. Where not, each element
is accompanied by whether it is real, and the function only sees two elements that both are. Of no element
it makes nothing; where what that is may be stored it is 0, whichever function it is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ninetoothed.language import dtypes
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.moves import decided_together
from ninetoothed.passes.padding.validity import UNKNOWN, Known, reduced
from ninetoothed.passes.rewriting import assign, language, read
from ninetoothed.program import nodes
from ninetoothed.program.effects import operation_of
from ninetoothed.program.tile_masks import TileMask, may_be_stored

#: The identity of a function that only applies this to its two parameters.
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "zero",
    ast.Mult: "one",
    ast.BitOr: "zero",
    ast.BitXor: "zero",
    ast.BitAnd: "all_ones",
}


def call(
    analysis: Knowledge, node: ast.Call, arguments: Arguments, operation: Operation
) -> tuple[ast.expr, Known]:
    """The call with padding masked, and what is known of its result."""
    value = arguments.known(0)
    values = (value,) if value.items is None else value.items
    validity = list({mask.place: mask for item in values for mask in item.validity}.values())
    # An element of one exists where those of all do that it is combined with.
    together = tuple(replace(item, validity=tuple(validity)) for item in values)
    made = results(arguments, operation, together)
    result = made[0] if value.items is None else Known(items=made)
    if not validity:
        return node, result
    function = arguments.node_of("combine_fn", 2)
    assert isinstance(function, nodes.ExternRef)
    identity = _identity(analysis.helpers.get(function.name))
    if identity is not None and value.items is None and not any(map(may_be_stored, validity)):
        sizes = _sizes(analysis, validity, arguments, operation)
        if sizes is not None:
            arguments.mask(0, identity)
            return (node if identity == "zero" else _of_some(arguments, sizes)), result
    return _accompanied(analysis, node, arguments, validity, function, values), result


def _sizes(
    analysis: Knowledge, validity: list[TileMask], arguments: Arguments, operation: Operation
) -> list[ast.expr] | None:
    """How many elements there are along what is reduced, where that may be none; None where it is not known."""
    axis = arguments.constant("axis", 1)
    if operation.kind == "scan":
        return []
    sizes: list[ast.expr] = []
    for mask in validity:
        dims = mask.layout if axis is None else mask.layout[axis : axis + 1 or None]
        tile, node = mask.origin.tile, arguments.node
        for dim in dims:
            if dim is None:
                continue
            if isinstance(tile, nodes.Within):
                sizes.append(nodes.clone(tile.size))
            elif type(tile) is nodes.TileRef:
                size = analysis.draft.program.parameter(tile.parameter).levels[-1][dim]
                if not isinstance(size, int):
                    sizes.append(nodes.at(nodes.SymbolValue(symbol=size), node))
            else:
                return None
    return sizes


def _of_some(arguments: Arguments, sizes: list[ast.expr]) -> ast.expr:
    """The call, and 0 where there is no element."""
    node = arguments.node
    if not sizes:
        return node
    found = arguments.named_alone("reduced", node)
    count = sizes[0]
    for size in sizes[1:]:
        count = nodes.at(ast.BinOp(left=count, op=ast.Mult(), right=size), node)
    zero = nodes.at(ast.Constant(value=0), node)
    are_there = nodes.at(ast.Compare(left=count, ops=[ast.NotEq()], comparators=[zero]), node)
    nothing = language("zeros_like", [nodes.clone(found)], node)
    return language("where", [are_there, found, nothing], node)


def results(
    arguments: Arguments, operation: Operation, values: tuple[Known, ...]
) -> tuple[Known, ...]:
    """What is known of what comes out, by what is known of the values."""
    axis = arguments.constant("axis", 1)
    if axis is not None and not isinstance(axis, int):
        return tuple(UNKNOWN for _ in values)
    if operation.kind == "scan":
        return tuple(value.changed() for value in values)
    keep_dims = arguments.constant("keep_dims", 3) is True
    if axis is not None:
        decided = decided_together(arguments, 0, axis, values[0]).validity
        values = tuple(replace(value, validity=decided) for value in values)
    return tuple(reduced(value, axis, keep_dims) for value in values)


def _identity(helper: ast.FunctionDef | None) -> str | None:
    """The identity of a helper that is one known operation on its two parameters."""
    if helper is None or len(helper.body) != 1 or len(helper.args.args) != 2:
        return None
    returned = getattr(helper.body[0], "value", None)
    parts: list[ast.expr] = []
    found: str | None = None
    if isinstance(returned, ast.BinOp):
        parts, found = [returned.left, returned.right], _OPERATORS.get(type(returned.op))
    elif isinstance(returned, ast.Call) and isinstance(returned.func, nodes.LanguageRef):
        if not returned.keywords:
            parts, found = returned.args, _identity_of(returned)
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return found if names == {argument.arg for argument in helper.args.args} else None


def _identity_of(call: ast.Call) -> str | None:
    operation = operation_of(call)
    if operation is None or operation.kind != "element-wise":
        return None
    return operation.identity


def _accompanied(
    analysis: Knowledge,
    node: ast.Call,
    arguments: Arguments,
    validity: list[TileMask],
    function: nodes.ExternRef,
    values: tuple[Known, ...],
) -> ast.expr:
    """The call on the values and on whether each element is real."""
    given = arguments.get(0)
    assert given is not None
    is_tuple = isinstance(given, ast.Tuple)
    elements = given.elts if isinstance(given, ast.Tuple) else [given]
    real = is_real(analysis, nodes.clone(elements[0]), validity, node)
    if any(map(may_be_stored, validity)):
        elements = [_or_zero(analysis, element, validity) for element in elements]
    name = _real_helper(analysis, function, len(elements))
    arguments.put_named("combine_fn", 2, nodes.at(nodes.ExternRef(name=name), node))
    whole = nodes.at(ast.Tuple(elts=[*elements, real], ctx=ast.Load()), node)
    if isinstance(node.func, ast.Attribute):
        # As a method it could not take a tuple.
        function_ref = nodes.at(nodes.LanguageRef(name=node.func.attr), node)
        made: ast.Call = nodes.at(
            ast.Call(func=function_ref, args=[whole, *node.args], keywords=node.keywords), node
        )
    else:
        arguments.put(0, whole)
        made = node
    if not is_tuple:
        return item_of(made, 0, node)
    name = analysis.draft.fresh("results")
    analysis.draft.insert_before(analysis.statement, assign(name, made, node))
    items = [item_of(read(name, node), index, node) for index in range(len(elements))]
    return nodes.at(ast.Tuple(elts=items, ctx=ast.Load()), node)


def _or_zero(analysis: Knowledge, value: ast.expr, validity: list[TileMask]) -> ast.expr:
    """A value, and 0 where nothing is."""
    masks = analysis.masks(Known(validity=tuple(validity)), value)
    return nodes.at(nodes.Masked(value=value, masks=masks, identity="zero"), value)


def is_real(
    analysis: Knowledge, value: ast.expr, validity: Sequence[TileMask], origin: ast.AST
) -> ast.expr:
    """1 where an element of ``value`` is real, else 0."""
    integer = nodes.at(nodes.DTypeRef(dtype=dtypes.int32), origin)
    zeros = language("cast", [language("zeros_like", [value], origin), integer], origin)
    one = nodes.at(ast.Constant(value=1), origin)
    ones = nodes.at(ast.BinOp(left=zeros, op=ast.Add(), right=one), origin)
    masks = analysis.masks(Known(validity=tuple(validity)), origin)
    return nodes.at(nodes.Masked(value=ones, masks=masks, identity="zero"), origin)


def item_of(value: ast.expr, index: int, origin: ast.AST) -> ast.expr:
    place = nodes.at(ast.Constant(value=index), origin)
    return nodes.at(ast.Subscript(value=value, slice=place, ctx=ast.Load()), origin)


def _real_helper(analysis: Knowledge, function: nodes.ExternRef, count: int) -> str:
    """The name of a function that combines what is real of two sides."""
    if function.name in analysis.accompanied:
        return analysis.accompanied[function.name]
    name = analysis.accompanied[function.name] = analysis.draft.fresh(f"{function.name}_real")
    left = [f"left_{index}" for index in range(count)]
    right = [f"right_{index}" for index in range(count)]
    parameters = [*left, "left_is_real", *right, "right_is_real"]

    def local(text: str) -> ast.expr:
        return read(text, function)

    def holds(text: str) -> ast.expr:
        zero = nodes.at(ast.Constant(value=0), function)
        compare = ast.Compare(left=local(text), ops=[ast.NotEq()], comparators=[zero])
        return nodes.at(compare, function)

    def both(op: ast.operator) -> ast.expr:
        operands = local("left_is_real"), local("right_is_real")
        return nodes.at(ast.BinOp(left=operands[0], op=op, right=operands[1]), function)

    combined = nodes.at(
        ast.Call(
            func=nodes.clone(function), args=[local(item) for item in left + right], keywords=[]
        ),
        function,
    )
    body: list[ast.stmt] = [
        assign("combined", combined, function),
        assign("both_are_real", both(ast.BitAnd()), function),
    ]
    results: list[ast.expr] = []
    for index in range(count):
        value: ast.expr = local("combined")
        if count > 1:
            value = item_of(value, index, function)
        one = language(
            "where", [holds("left_is_real"), local(left[index]), local(right[index])], function
        )
        results.append(language("where", [holds("both_are_real"), value, one], function))
    results.append(both(ast.BitOr()))
    returned = nodes.at(ast.Tuple(elts=results, ctx=ast.Load()), function)
    body.append(nodes.at(ast.Return(value=returned), function))
    made = ast.arguments(
        posonlyargs=[],
        args=[nodes.at(ast.arg(arg=item), function) for item in parameters],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    analysis.helpers[name] = nodes.at(
        ast.FunctionDef(name=name, args=made, body=body, decorator_list=[]), function
    )
    return name
