"""The text of what a Program is made of, for reading: Python, with ``store x = value`` for what is stored."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.program import nodes
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.types import ValueType, type_of
from ninetoothed.tensors.views import Fixed, Run


def text_of_node(node: ast.AST) -> str:
    """One expression or statement as text."""
    return ast.unparse(_Lowering().visit(nodes.clone(node)))


def parameter_text(parameter: Any) -> str:
    """A parameter with its levels, outermost first."""
    if parameter.kind == "tensor":
        levels = " of ".join(_shape(level) for level in parameter.levels)
        return f"{parameter.name}: {levels}"
    if parameter.kind == "constant":
        return f"{parameter.name}: constant {parameter.value!r}"
    return f"{parameter.name}: {parameter.kind}"


def _shape(level: tuple[Any, ...]) -> str:
    sizes = ", ".join(str(size) for size in level)
    return f"({sizes},)" if len(level) == 1 else f"({sizes})"


def block_text(body: list[ast.stmt], shows_types: bool = False) -> str:
    """Statements as text, indented; with the types of the variables that they assign."""
    lowering = _Lowering(shows_types)
    lowered = [lowering.visit(nodes.clone(statement)) for statement in body]
    text = ast.unparse(ast.Module(body=lowered, type_ignores=[])) or "pass"
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Name(id=name), args=list(arguments), keywords=[])


def _subscript(base: str, indices: list[ast.expr]) -> ast.expr:
    if not indices:
        return ast.Name(id=base)
    index = indices[0] if len(indices) == 1 else ast.Tuple(elts=indices)
    return ast.Subscript(value=ast.Name(id=base), slice=index)


def _literal(value: Any) -> ast.expr:
    return ast.Name(id=repr(value))


def _symbol(node: nodes.SymbolValue) -> ast.expr:
    text = str(node.symbol)
    return ast.Name(id=text if text.isidentifier() or text.isdigit() else f"({text})")


def _offsets(node: nodes.Offsets) -> ast.expr:
    arguments = [] if node.dim is None else [_literal(node.dim)]
    tile = _subscript(node.tile.parameter, node.tile.indices)
    function = ast.Attribute(value=tile, attr="offsets")
    return ast.Call(func=function, args=arguments, keywords=[])


def _elements(
    node: nodes.ElementLoad | nodes.ElementStore | nodes.ElementRef | nodes.ElementPlace,
) -> ast.expr:
    count = len(node.indices) - node.view.chosen
    chosen = iter(node.indices[count:])
    entries: list[ast.expr] = []
    for entry in node.view.entries:
        if isinstance(entry, Run):
            end = f"{entry.start} + {entry.count} * {entry.step}"
            entries.append(ast.Name(id=f"{entry.start}:{end}:{entry.step}"))
        else:
            entries.append(_literal(entry.position) if isinstance(entry, Fixed) else next(chosen))
    tile = ast.unparse(_subscript(node.parameter, node.indices[:count]))
    return _subscript(tile, entries)


def _store(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Expr(value=ast.Name(id=f"store {ast.unparse(target)} = {ast.unparse(value)}"))


def with_bare_targets(node: ast.Assign) -> ast.Assign:
    """Tuples of targets without parentheses, which Python 3.10 would write."""
    targets = [
        ast.Name(id=", ".join(map(ast.unparse, target.elts)))
        if isinstance(target, ast.Tuple) and len(target.elts) > 1
        else target
        for target in node.targets
    ]
    return ast.copy_location(ast.Assign(targets=targets, value=node.value), node)


_PLAIN: dict[type, Callable[[Any], ast.AST]] = {
    ast.Assign: with_bare_targets,
    nodes.TileRef: lambda node: _subscript(node.parameter, node.indices),
    nodes.Load: lambda node: node.tile,
    nodes.Store: lambda node: _store(node.tile, node.value),
    nodes.Forwarded: lambda node: _call("forwarded", node.tile, node.value),
    nodes.Offsets: _offsets,
    nodes.SymbolValue: _symbol,
    nodes.SequenceLength: lambda node: ast.Name(id=f"{node.parameter}.source.shape[{node.dim}]"),
    nodes.SourcePointer: lambda node: ast.Name(id=f"{node.parameter}.data_ptr()"),
    nodes.ElementType: lambda node: ast.Name(id=f"{node.parameter}.dtype"),
    nodes.SourceLoad: lambda node: _subscript(f"{node.parameter}.source", node.indices),
    nodes.SourceStore: lambda node: _store(
        _subscript(f"{node.parameter}.source", node.indices), node.value
    ),
    nodes.ElementLoad: lambda node: _elements(node),
    nodes.ElementStore: lambda node: _store(_elements(node), node.value),
    nodes.ElementRef: lambda node: _elements(node),
    nodes.ElementPlace: lambda node: _elements(node),
    nodes.SourcePlace: lambda node: _subscript(f"{node.parameter}.source", node.indices),
    nodes.DTypeRef: lambda node: ast.Name(id=node.dtype.name),
    nodes.NumberType: lambda node: ast.Name(id="float" if node.dtype.is_floating() else "int"),
    nodes.LanguageRef: lambda node: ast.Name(id=f"ntl.{node.name}"),
    nodes.ExternRef: lambda node: ast.Name(id=node.name),
    nodes.Rounded: lambda node: ast.BinOp(left=node.left, op=node.op, right=node.right),
    nodes.Logical: lambda node: ast.BoolOp(op=node.op, values=node.values),
    nodes.Padded: lambda node: _call("padded", node.value),
    nodes.Mask: lambda node: _call("mask", node.tile, _literal(node.layout)),
    nodes.Within: lambda node: _call("within", node.size, _literal(node.layout)),
    nodes.Held: lambda node: _call("holds", ast.Name(id=node.name), _literal(node.layout)),
    nodes.Exists: lambda node: _call("exists", node.value, *node.masks),
    nodes.Kept: lambda node: _call("kept", node.value, node.before, *node.masks),
    nodes.Flipped: lambda node: _call("flipped", node.value, _literal(node.dim), *node.masks),
    nodes.AllHold: lambda node: _call("all", *node.masks),
    nodes.Masked: lambda node: _call("masked", node.value, *node.masks, _literal(node.identity)),
}


def _validity(value: ValueType) -> str:
    """Where a value holds an element, as far as masks that can be had say it."""
    masks = [text_of_node(mask.node()) for mask in value.validity if mask.wanted is None]
    return f" where {' and '.join(masks)}" if masks else ""


class _Lowering(ast.NodeTransformer):
    """The Program's own nodes as plain Python, from the leaves up."""

    def __init__(self, shows_types: bool = False) -> None:
        self._shows_types = shows_types

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if not self._shows_types or not isinstance(target, ast.Name):
            return self.generic_visit(node)
        shown = ast.Name(id=str(type_of(target)) + _validity(type_of(target)))
        return ast.AnnAssign(
            target=target, annotation=shown, value=self.visit(node.value), simple=1
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, nodes.Offsets | nodes.Mask):
            # Their tile is printed as a part of them.
            for index in range(len(node.tile.indices)):
                node.tile.indices[index] = self.visit(node.tile.indices[index])
            if isinstance(node, nodes.Mask):
                node.tile = self.visit(node.tile)
        else:
            super().generic_visit(node)
        lower = _PLAIN.get(kind_of(node))
        return node if lower is None else lower(node)
