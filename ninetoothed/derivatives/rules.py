"""What the gradient of an operation's result gives its operands.

Element-wise operations have their rules in ``language.derivatives``; those that change shapes, sum or
multiply have them here. Where an operand was broadcast, its gradient is summed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from ninetoothed.derivatives.arguments import argument, constant_of, permutation, reduced_axis
from ninetoothed.derivatives.tape import Dims, Gradient, Operand, Rule, Step, refused, way
from ninetoothed.language import derivatives
from ninetoothed.language.operations import Operation
from ninetoothed.program.effects import operation_of
from ninetoothed.program.nodes import LanguageRef, clone
from ninetoothed.program.operation_types import LEAST_DEPTH
from ninetoothed.program.types import broadcast

Parts = Iterator[tuple[int, Gradient]]


def template(text: str, **values: ast.expr) -> ast.expr:
    """An expression of the language, with values for its names; other names are functions."""

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            found = values.get(node.id)
            return LanguageRef(name=node.id) if found is None else clone(found)

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            text = ast.unparse(node)
            if text.startswith("libdevice."):
                return LanguageRef(name=text)
            return ast.Attribute(self.visit(node.value), node.attr, node.ctx)

    filled: ast.expr = Filled().visit(ast.parse(text, mode="eval").body)
    return filled


def names_of(text: str) -> set[str]:
    """The names in a rule's expression."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def elementwise(rule: derivatives.Rule) -> Rule:
    """What a row of ``language.derivatives`` gives."""

    def parts(step: Step, gradient: Gradient) -> Parts:
        operands = dict(zip("abc", step.operands))
        values = {"g": gradient.expression, "y": step.result}
        values |= {key: operand.expression for key, operand in operands.items()}
        for place, (text, operand) in enumerate(zip(rule, step.operands)):
            if text is None or operand.name is None:
                continue
            used = names_of(text)
            dims = [gradient.dims, *(operands[key].dims for key in "abc" if key in used)]
            whole = step.dims if "y" in used else broadcast(dims)
            assert whole is not None
            is_exact = gradient.is_exact or "y" in used
            found = Gradient(template(text, **values), whole, is_exact)
            yield place, narrowed(found, step.result, step.dims, operand)

    return parts


def rule_of(call: ast.Call) -> Rule | None:
    """The rule of a call of the language; None where there is none."""
    operation = operation_of(call)
    if operation is None:
        return None
    found = _BY_NAME.get(operation.name)
    if found is not None:
        return found(operation, call)
    if operation.derivative:
        return elementwise(operation.derivative)
    made = _BY_SHAPE.get(operation.shape) if operation.kind in ("rearrangement", "hint") else None
    return None if made is None else made(operation, call)


def has_no_slope(operation: Operation | None) -> bool:
    """Whether an operation's result does not change where its operands do by a little."""
    if operation is None:
        return False
    return operation.derivative == () or operation.gives_positions or operation.shape == "like"


def spread(gradient: Gradient, result: ast.expr, dims: Dims) -> Gradient:
    """A gradient in the whole shape of a value, which exists where the value does.

    Args:
        result: the value.
    """
    if gradient.is_exact and _is_whole(gradient.dims, dims):
        return gradient
    return existing_as(gradient, result, dims)


def existing_as(gradient: Gradient, result: ast.expr, dims: Dims) -> Gradient:
    """A gradient in the whole shape of a value, which does not exist where the value does not."""
    text = "where(y == y, g, g)"
    return Gradient(template(text, y=result, g=gradient.expression), dims, True)


def narrowed(gradient: Gradient, result: ast.expr, whole: Dims, operand: Operand) -> Gradient:
    """The gradient of an operand that was broadcast to the shape of a value: summed over it."""
    assert operand.dims is not None
    missing = len(whole) - len(operand.dims)
    padded = (1,) * missing + operand.dims
    axes = [axis for axis, size in enumerate(whole) if padded[axis] == 1 and size != 1]
    if not axes and not missing:
        return gradient
    if not axes and not gradient.dims:
        return gradient
    found = spread(gradient, result, whole)
    value = found.expression
    if not operand.dims:
        return Gradient(template("sum(g)", g=value), (), True)
    for axis in axes:
        if axis >= missing:
            value = template(f"sum(g, axis={axis}, keep_dims=True)", g=value)
    for _ in range(missing):
        value = template("sum(g, axis=0)", g=value)
    return Gradient(value, operand.dims, True)


def _is_whole(dims: Dims, whole: Dims) -> bool:
    """Whether a shape that broadcasts to another is that already."""
    return len(dims) == len(whole) and all(n != 1 or m == 1 for n, m in zip(dims, whole))


def same(step: Step, gradient: Gradient) -> Parts:
    """The rule of what gives its first operand as it is."""
    yield 0, narrowed(gradient, step.result, step.dims, step.operands[0])


def quotient(step: Step, gradient: Gradient) -> Parts:
    """The rule of ``a / b`` where b is a number: what it gives is divided by b when it must be."""
    dividend, divisor = step.operands
    if dividend.name is not None:
        yield 0, replace(narrowed(gradient, step.result, step.dims, dividend), over=divisor.name)
    value = template("-g * y", g=gradient.expression, y=step.result)
    found = narrowed(Gradient(value, step.dims, True), step.result, step.dims, divisor)
    yield 1, replace(found, over=divisor.name)


def _same(operation: Operation, call: ast.Call) -> Rule:
    return same


def choice(test: ast.expr) -> Rule:
    """The rule of ``a if test else b``: the way not taken has no gradient, nor has what it is made of."""

    def parts(step: Step, gradient: Gradient) -> Parts:
        for place, is_body in enumerate((True, False)):
            if step.operands[place].name is not None:
                found = narrowed(gradient, step.result, step.dims, step.operands[place])
                yield place, replace(found, under=way(test, is_body))

    return parts


def _with_axis(value: ast.expr, dims: Dims, axis: int | None, keeps: bool, rank: int) -> ast.expr:
    """What was reduced along an axis, with a dimension of size 1 there."""
    if axis is None or keeps or not dims:
        return value
    entries = [":"] * (rank - 1)
    entries.insert(axis % rank, "None")
    return template(f"g[{', '.join(entries)}]", g=value)


def _kept(dims: Dims, axis: int | None, keeps: bool, rank: int) -> Dims:
    if axis is None or keeps or not dims:
        return dims
    axis %= rank
    return (*dims[:axis], 1, *dims[axis:])


def _sum(operation: Operation, call: ast.Call) -> Rule:
    axis, keeps = reduced_axis(operation, call)

    def parts(step: Step, gradient: Gradient) -> Parts:
        dims = step.operands[0].dims
        assert dims is not None
        value = _with_axis(gradient.expression, gradient.dims, axis, keeps, len(dims))
        yield 0, Gradient(value, _kept(gradient.dims, axis, keeps, len(dims)), False)

    return parts


def _extremum(operation: Operation, call: ast.Call) -> Rule:
    """Of several that are the largest, each has its share."""
    axis, keeps = reduced_axis(operation, call)

    def parts(step: Step, gradient: Gradient) -> Parts:
        operand = step.operands[0]
        dims = operand.dims
        assert dims is not None
        rank = len(dims)
        along = "" if axis is None else f", axis={axis}"
        kept = f"{along}, keep_dims=True" if keeps else along
        found = _with_axis(step.result, step.dims, axis, keeps, rank)
        values = {"a": operand.expression, "m": found, "g": gradient.expression}
        count = template(f"sum(where(a == m, 1.0, 0.0){kept})", **values)
        share = template("g / n", n=count, g=gradient.expression)
        share = _with_axis(share, step.dims, axis, keeps, rank)
        value = template("where(a == m, s, 0.0)", s=share, **values)
        yield 0, Gradient(value, dims, True)

    return parts


def _dot(operation: Operation, call: ast.Call) -> Rule:
    named = {word.arg: word.value for word in call.keywords if word.arg != "acc"}
    precision = named.get("input_precision")

    def product(left: ast.expr, right: ast.expr) -> ast.expr:
        made = template("dot(a, b)", a=left, b=right)
        assert isinstance(made, ast.Call)
        if precision is not None:
            made.keywords = [ast.keyword("input_precision", clone(precision))]
        return made

    def turned(operand: Operand) -> ast.expr:
        if len(operand.dims or ()) == 3:
            return template("permute(a, (0, 2, 1))", a=operand.expression)
        return template("trans(a)", a=operand.expression)

    def parts(step: Step, gradient: Gradient) -> Parts:
        # Where a factor does not exist, a product leaves the other one out.
        is_whole = _is_whole(gradient.dims, step.dims)
        found = gradient if is_whole else spread(gradient, step.result, step.dims)
        left, right = step.operands[:2]
        for factor, place, lines in ((left, -1, "columns"), (right, -2, "rows")):
            size = step.dims[place]
            if factor.name is not None and isinstance(size, int) and size < LEAST_DEPTH:
                raise refused(
                    f"a gradient is a product over the {lines} of this one, which are {size}, and `ntl.dot` takes "
                    f"{LEAST_DEPTH} or more there. Tile with {LEAST_DEPTH}: what lies beyond a tensor is padding.",
                    step.node,
                )
        # The factors of a product have one element type, that which the forward product took.
        if left.name is not None:
            value = template("cast(g, b.dtype)", g=found.expression, b=right.expression)
            yield 0, Gradient(product(value, turned(right)), left.dims or (), found.is_exact)
        if right.name is not None:
            value = template("cast(g, a.dtype)", g=found.expression, a=left.expression)
            yield 1, Gradient(product(turned(left), value), right.dims or (), found.is_exact)
        if len(step.operands) > 2 and step.operands[2].name is not None:
            yield 2, gradient

    return parts


def _moved(forth: Callable[[Step], str]) -> Callable[[Operation, ast.Call], Rule]:
    """The rule of an operation that moves elements: they are moved back."""

    def made(operation: Operation, call: ast.Call) -> Rule:
        def parts(step: Step, gradient: Gradient) -> Parts:
            found = spread(gradient, step.result, step.dims)
            operand = step.operands[0]
            value = template(forth(step), g=found.expression, a=operand.expression)
            yield 0, Gradient(value, operand.dims or (), True)

        return parts

    return made


def _turned_back(step: Step) -> str:
    assert isinstance(step.expression, ast.Call)
    dims = permutation(step.expression, len(step.dims))
    return f"permute(g, {tuple(dims.index(dim) for dim in range(len(dims)))})"


def _flip(operation: Operation, call: ast.Call) -> Rule:
    """The elements that exist are reversed, so the gradient has to exist where they do, and nowhere else."""
    dim = constant_of(argument(call, 1, "dim"))
    text = "flip(g)" if dim is None else f"flip(g, dim={dim})"

    def parts(step: Step, gradient: Gradient) -> Parts:
        found = existing_as(gradient, step.result, step.dims)
        yield 0, Gradient(template(text, g=found.expression), step.dims, True)

    return parts


def _summed_back(step: Step) -> str:
    call = step.expression
    assert isinstance(call, ast.Call)
    axis = constant_of(argument(call, 1, "axis"), 0)
    is_reverse = constant_of(argument(call, 2, "reverse"), False)
    return f"cumsum(g, axis={axis}, reverse={not is_reverse})"


def without_axes(axes: tuple[int, ...]) -> Rule:
    """The rule of what gives a value dimensions of size 1."""

    def parts(step: Step, gradient: Gradient) -> Parts:
        operand = step.operands[0]
        if not gradient.dims:
            yield 0, gradient
            return
        value = spread(gradient, step.result, step.dims).expression
        for axis in sorted(axes, reverse=True):
            value = template(f"sum(g, axis={axis})", g=value)
        yield 0, Gradient(value, operand.dims or (), True)

    return parts


def _expand_dims(operation: Operation, call: ast.Call) -> Rule:
    found = constant_of(argument(call, 1, "axis"))
    axes = found if isinstance(found, tuple) else (found,)

    def parts(step: Step, gradient: Gradient) -> Parts:
        rank = len(step.dims)
        yield from without_axes(tuple(axis % rank for axis in axes))(step, gradient)

    return parts


#: Python's operators, by the rows of their rules.
OPERATORS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.USub: "neg",
}

_BY_NAME: dict[str, Callable[[Operation, ast.Call], Rule]] = {
    "cast": _same,
    "to": _same,
    "item": _same,
    "broadcast_to": _same,
    "sum": _sum,
    "max": _extremum,
    "min": _extremum,
    "dot": _dot,
    "cumsum": _moved(_summed_back),
    "flip": _flip,
    "expand_dims": _expand_dims,
}

_BY_SHAPE: dict[str, Callable[[Operation, ast.Call], Rule]] = {
    "transposed": _moved(_turned_back),
    "reshaped": _moved(lambda step: "reshape(g, a.shape)"),
    "raveled": _moved(lambda step: "reshape(g, a.shape)"),
    "first": _same,
}
