"""What must hold of every Program, between any two passes. A failure here is a bug of ours."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ninetoothed.program.arguments import Given
from ninetoothed.program.effects import operation_of
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import (
    IDENTITIES,
    AllHold,
    DTypeRef,
    ElementLoad,
    ElementPlace,
    ElementRef,
    ElementStore,
    ElementType,
    Exists,
    ExternRef,
    Flipped,
    Forwarded,
    Held,
    Kept,
    LanguageRef,
    Load,
    Mask,
    Masked,
    Offsets,
    Padded,
    SequenceLength,
    SourceLoad,
    SourcePlace,
    SourcePointer,
    SourceStore,
    Store,
    SymbolValue,
    TileRef,
    Within,
    clone,
)
from ninetoothed.program.printer import text_of_node
from ninetoothed.program.program import Program
from ninetoothed.program.tile_masks import asked_by_store, to_be_masked, with_dimensions
from ninetoothed.program.types import type_of, unlike

_STATEMENTS = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.If,
    ast.For,
    ast.While,
    ast.Pass,
    Store,
    SourceStore,
    ElementStore,
)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.Slice, ast.Attribute, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp),
    *(TileRef, Load, Forwarded, Offsets, SymbolValue, SourcePointer, ElementType),
    *(SequenceLength, SourceLoad, ElementLoad, ElementRef, SourcePlace, DTypeRef, LanguageRef),
    *(ExternRef, Padded, Mask, Masked, Within, Held, Exists, Kept, Flipped, AllHold),
)
_TOKENS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


class MalformedProgramError(ValueError):
    """A pass or the parser made a Program that breaks a rule of ``verify``."""


def verify(program: Program) -> None:
    """Check a Program.

    Raises:
        MalformedProgramError: saying which rule is broken, where.
    """
    known = {item.name for item in program.parameters if item.kind != "tensor"}
    _Verifier(program, known).block(program.body)
    _verify_types(program)
    _verify_padding(program)
    for name, helper in program.helpers.items():
        if not helper.body or not isinstance(helper.body[-1], ast.Return):
            raise MalformedProgramError(f"helper {name!r} does not end in a return")
        parameters = {argument.arg for argument in helper.args.args}
        verifier = _Verifier(program, parameters)
        verifier.block(helper.body[:-1])
        verifier.expression(helper.body[-1].value)


def _verify_types(program: Program) -> None:
    """That the types which nodes bring along are those that follow from what the program is now."""
    nodes = [node for node in program.nodes() if "type" in node.__dict__]
    before = [type_of(node) for node in nodes]
    infer(program)
    for node, old in zip(nodes, before):
        if reason := unlike(old, type_of(node)):
            raise MalformedProgramError(
                f"{type(node).__name__} `{text_of_node(node)}` has {reason}: it was {old}, and what it is "
                f"made of now gives {type_of(node)}"
            )


def _verify_padding(program: Program) -> None:
    """That what takes elements alone is given no others, by the validity of what it is given."""
    for node in program.nodes():
        for operand, identity, axis in _of_elements(node):
            value, masks = operand, []
            if isinstance(operand, Masked) and operand.identity == identity:
                value, masks = operand.value, operand.masks
            known = type_of(value)
            is_whole = isinstance(node, ElementStore) and node.view.is_by_element
            asked = asked_by_store(known.validity, is_whole)
            validity = [with_dimensions(mask, known.rank or 0) for mask in asked]
            expected = Counter(
                _kind(mask.node())
                for mask in to_be_masked(validity, identity, axis)
                if mask.wanted is None
            )
            if expected - Counter(map(_kind, masks)):
                raise MalformedProgramError(
                    f"`{text_of_node(node)}` takes elements that do not exist: of "
                    f"{expected.total()} masks of its argument {len(masks)} are there"
                )


def _of_elements(node: ast.AST) -> Iterator[tuple[ast.expr, str, int | None]]:
    """What takes no part in a node where it does not exist, the identity that stands there, and an axis."""
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    if operation is not None:
        assert isinstance(node, ast.Call)
        given = Given(node)
        for index, identity, axis in given.left_out(operation):
            operand = given.get(index)
            if operand is not None:
                yield operand, identity, axis
    elif isinstance(node, ElementLoad | ElementStore | ElementPlace):
        yield from (
            (index, "nowhere", None)
            for index in node.indices[len(node.indices) - node.view.chosen :]
        )
    elif isinstance(node, SourceLoad | SourceStore | SourcePlace):
        yield from ((index, "nowhere", None) for index in node.indices)
    if isinstance(node, SourceStore):
        yield node.value, "nowhere", None


def _kind(mask: Any) -> tuple[Any, ...]:
    """The same for masks of one tensor's tiles, whichever these are, or of one variable."""
    tile = getattr(mask, "tile", None)
    return kind_of(mask), getattr(tile, "parameter", None), getattr(mask, "name", None), mask.layout


class _Verifier:
    """Walks statements in order, knowing the names assigned so far."""

    def __init__(self, program: Program, known: set[str]) -> None:
        self.program = program
        self.known = known | {"float", "len", "range"}
        #: By identity, which is theirs as long as they are kept.
        self.seen: dict[int, ast.AST] = {}
        self.tensors = {item.name: item for item in program.parameters if item.kind == "tensor"}
        self.parameters = {item.name for item in program.parameters}

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        self.require(isinstance(node, _STATEMENTS), node, "is no statement of a Program")
        self.once(node)
        # A loop's body may read what a later statement of it assigned in the round before.
        if isinstance(node, ast.For | ast.While):
            self.known |= set(_assigned(node))
        for child in _expressions(node):
            self.expression(child)
        self.targets(node)
        if isinstance(node, ast.If | ast.For | ast.While):
            self.require(bool(node.body), node, "has an empty body")
            self.block(node.body)
            self.block(node.orelse)

    def targets(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            self.require(len(node.targets) == 1, node, "has several targets")
        for target in _targets(node):
            self.require(isinstance(target, ast.Name), target, "is no name to assign to")
            self.require(target.id not in self.parameters, target, "assigns to a parameter's name")
            self.known.add(target.id)
        if isinstance(node, Store):
            self.expression(node.tile)

    def expression(self, node: ast.AST | None) -> None:
        if node is None:
            return
        if isinstance(node, ast.keyword):
            self.once(node)
            self.expression(node.value)
            return
        self.require(isinstance(node, _EXPRESSIONS), node, "is no expression of a Program")
        self.once(node)
        self.access(node)
        if isinstance(node, ast.Name):
            self.require(node.id in self.known, node, f"reads {node.id!r} before it is assigned")
        if isinstance(node, ExternRef):
            names = (*self.program.externs, *self.program.helpers)
            self.require(node.name in names, node, f"names no extern: {node.name!r}")
        if isinstance(node, Masked):
            self.require(node.identity in IDENTITIES, node, f"has identity {node.identity!r}")
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _TOKENS):
                self.expression(child)

    def access(self, node: ast.AST) -> None:
        name = getattr(node, "parameter", None)
        if name is None:
            if isinstance(node, Mask):
                self.mask(node)
            elif isinstance(node, Offsets) and node.dim is not None:
                ndim = self.tensors[node.tile.parameter].source.ndim
                self.require(0 <= node.dim < ndim, node, f"has no dimension {node.dim}")
            return
        self.require(name in self.tensors, node, f"names no tensor: {name!r}")
        parameter = self.tensors[name]
        if isinstance(node, TileRef | ElementLoad | ElementStore | ElementPlace):
            needed = sum(len(level) for level in parameter.levels[1:-1])
            view = getattr(node, "view", None)
            if view is not None:
                needed += view.chosen
                rank = len(view.entries)
                self.require(rank == _tile_rank(parameter), node, f"views {rank} dimensions")
            self.require(len(node.indices) == needed, node, f"needs {needed} indices")
        elif isinstance(node, SourceLoad | SourceStore | SourcePlace):
            needed = parameter.source.ndim
            self.require(len(node.indices) == needed, node, f"needs {needed} indices")

    def mask(self, node: Mask) -> None:
        if isinstance(node.tile, ElementRef):
            rank = node.tile.rank
        else:
            rank = _tile_rank(self.tensors[node.tile.parameter])
        dims = [dim for dim in node.layout if dim is not None]
        right = len(set(dims)) == len(dims) and all(0 <= dim < rank for dim in dims)
        self.require(right, node, f"has layout {node.layout} over a tile of rank {rank}")

    def once(self, node: ast.AST) -> None:
        self.require(id(node) not in self.seen, node, "appears twice in the tree")
        self.seen[id(node)] = node
        if isinstance(node, ast.expr | ast.stmt):
            placed = isinstance(getattr(node, "lineno", None), int)
            placed = placed and isinstance(getattr(node, "file", None), str)
            self.require(placed, node, "has no position")

    def require(self, condition: bool, node: ast.AST, problem: str) -> None:
        if condition:
            return
        try:
            text = text_of_node(node)
        except Exception:  # A malformed node may not print; its type has to do then.
            text = ""
        where = f"line {getattr(node, 'lineno', '?')}"
        raise MalformedProgramError(f"{type(node).__name__} `{text}` ({where}) {problem}")


def _tile_rank(parameter: Any) -> int:
    return len(parameter.levels[-1]) if len(parameter.levels) > 1 else 0


def _targets(node: ast.AST) -> Iterator[Any]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple) else [target]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For):
        yield node.target


def _assigned(loop: ast.AST) -> Iterator[str]:
    for node in ast.walk(loop):
        for target in _targets(node):
            if isinstance(target, ast.Name):
                yield target.id


def _expressions(node: ast.stmt) -> Iterator[ast.AST | None]:
    """The expressions that a statement itself evaluates."""
    if isinstance(node, ast.If | ast.While):
        yield node.test
    elif isinstance(node, ast.For):
        yield node.iter
    elif isinstance(node, SourceStore):
        yield from node.indices
        yield node.value
    elif isinstance(node, ast.AnnAssign):
        yield node.value
        yield node.annotation
    elif isinstance(node, ast.Assign | ast.Expr | Store):
        yield node.value
    elif isinstance(node, ast.AugAssign):
        yield clone(node.target)
        yield node.value
