"""A Program that does the work of several at a time: every value has one more dimension, in front.

Each statement keeps its place and meaning; what a value was for one program, its rows are for
several. Only what is understood is batched: a straight line of element-wise operations, reductions
and accesses.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ninetoothed.passes.rewriting import language
from ninetoothed.program.effects import called_name, operation_of
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementType,
    LanguageRef,
    Load,
    Mask,
    Masked,
    Padded,
    Store,
    SymbolValue,
    at,
    clone,
    walk,
)
from ninetoothed.program.program import Program
from ninetoothed.program.types import type_of

_NOT_OF_TILES = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_NUMBERS = (ast.Constant, SymbolValue, DTypeRef, ElementType, LanguageRef)


class _NotBatchable(Exception):
    """Something in the program is not understood."""


class _Value(NamedTuple):
    """An expression, batched, and what it was.

    Attributes:
        tree: the batched expression.
        rank: the number of dimensions for one program.
        is_batched: whether the value has the dimension in front; without, it is the same for all.
    """

    tree: ast.expr
    rank: int
    is_batched: bool


def batched(
    program: Program, parameters: tuple[Any, ...], followers: Collection[str]
) -> Program | None:
    """The program for several at a time, or None where that is not understood.

    Args:
        parameters: the parameters of the result, whose tiles have the dimension in front.
        followers: the parameters whose tile is another one for each program.
    """
    batching = _Batching(program, followers)
    try:
        body = [_placed(batching.statement(clone(s)), s) for s in program.body]
    except _NotBatchable:
        return None
    return dataclasses.replace(program, body=body, parameters=parameters)


class _Batching:
    def __init__(self, program: Program, followers: Collection[str]) -> None:
        self._program = program
        self._followers = followers
        self._batched: dict[str, bool] = {}

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, Store):
            rank = len(self._program.parameter(node.tile.parameter).tile_shape)
            if node.tile.parameter not in self._followers:
                raise _NotBatchable
            self._check_same(node.tile.indices)
            node.value = self._at_rank(self.value(node.value), rank)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = self.value(node.value)
            self._batched[node.targets[0].id] = value.is_batched
            node.value = value.tree
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            old = ast.Name(name, ast.Load())
            new = ast.BinOp(old, node.op, node.value)
            old.__dict__["type"], new.__dict__["type"] = type_of(node), type_of(node.target)
            value = self._operator(new)
            self._batched[name] = value.is_batched
            return ast.Assign([ast.Name(name, ast.Store())], value.tree)
        elif not isinstance(node, ast.Pass):
            raise _NotBatchable
        return node

    def value(self, node: ast.expr) -> _Value:
        """An expression, batched; ``node`` is changed in place."""
        for kind, rule in _RULES.items():
            if isinstance(node, kind):
                return rule(self, node)
        raise _NotBatchable

    def _check_same(self, nodes: Sequence[ast.expr]) -> None:
        """That expressions are numbers, the same for all programs."""
        for node in nodes:
            value = self.value(node)
            if value.is_batched or value.rank > 0:
                raise _NotBatchable

    def _number(self, node: ast.expr) -> _Value:
        return _Value(node, 0, False)

    def _name(self, node: ast.Name) -> _Value:
        return _Value(node, _rank(node), self._batched.get(node.id, False))

    def _padded(self, node: Padded) -> _Value:
        self._check_same([node.value])
        return _Value(node, 0, False)

    def _load(self, node: Load) -> _Value:
        self._check_same(node.tile.indices)
        return _Value(node, _rank(node), True)

    def _operator(self, node: ast.BinOp) -> _Value:
        (node.left, node.right), is_batched = self._aligned([node.left, node.right], _rank(node))
        return _Value(node, _rank(node), is_batched)

    def _sign(self, node: ast.UnaryOp) -> _Value:
        value = self.value(node.operand)
        if value.is_batched and isinstance(node.op, ast.Not):
            raise _NotBatchable
        node.operand = value.tree
        return value._replace(tree=node)

    def _comparison(self, node: ast.Compare) -> _Value:
        operands = [node.left, *node.comparators]
        (node.left, *node.comparators), is_batched = self._aligned(operands, _rank(node))
        if is_batched and (len(node.ops) > 1 or isinstance(node.ops[0], _NOT_OF_TILES)):
            raise _NotBatchable
        return _Value(node, _rank(node), is_batched)

    def _call(self, node: ast.Call) -> _Value:
        function, operation = called_name(node), operation_of(node)
        if isinstance(node.func, LanguageRef) and operation is not None:
            # What treats every element alike, whatever the shape.
            if operation.is_elementwise or operation.shape == "like":
                return self._elementwise(node)
            # One dimension after the other: of places within one there is no place within two.
            is_repeatable = not operation.takes_function and not operation.gives_positions
            if operation.kind == "reduction" and is_repeatable:
                return self._reduction(node, function)
            if function in ("zeros", "full"):
                return self._constant(node)
        elif isinstance(node.func, ast.Attribute) and function == "to":
            value = self.value(node.func.value)
            node.func.value = value.tree
            self._check_same([*node.args, *(keyword.value for keyword in node.keywords)])
            return value._replace(tree=node)
        raise _NotBatchable

    def _elementwise(self, node: ast.Call) -> _Value:
        operands = [*node.args, *(keyword.value for keyword in node.keywords)]
        trees, is_batched = self._aligned(operands, _rank(node))
        node.args = trees[: len(node.args)]
        for keyword, tree in zip(node.keywords, trees[len(node.args) :]):
            keyword.value = tree
        return _Value(node, _rank(node), is_batched)

    def _constant(self, node: ast.Call) -> _Value:
        """A tile with one value everywhere, the same for all programs."""
        shape, *rest = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not isinstance(shape, ast.Tuple):
            raise _NotBatchable
        self._check_same([*shape.elts, *rest])
        return _Value(node, _rank(node), False)

    def _reduction(self, node: ast.Call, function: str) -> _Value:
        given = dict(zip(("input", "axis"), node.args))
        given |= {keyword.arg or "": keyword.value for keyword in node.keywords}
        if not given.keys() <= {"input", "axis", "keep_dims"}:
            raise _NotBatchable
        keeps = _constant_of(given.get("keep_dims", ast.Constant(False)))
        axis = _constant_of(given.get("axis", ast.Constant(None)))
        value = self.value(given["input"])
        if not value.is_batched or value.rank == 0:
            raise _NotBatchable
        # One after the other from the last: the dimension in front is left.
        axes = range(value.rank) if axis is None else [axis % value.rank]
        tree = value.tree
        for each in reversed(axes):
            tree = language(function, [tree], node)
            tree.keywords = [ast.keyword("axis", ast.Constant(each + 1))]
            if keeps:
                tree.keywords.append(ast.keyword("keep_dims", ast.Constant(True)))
        return _Value(tree, _rank(node), True)

    def _masked(self, node: Masked) -> _Value:
        value = self.value(node.value)
        if not all(isinstance(mask, Mask) for mask in node.masks) or not value.is_batched:
            raise _NotBatchable
        if any(len(mask.layout) != value.rank for mask in node.masks):
            raise _NotBatchable
        node.value = value.tree
        node.masks = [
            Mask(tile=mask.tile, layout=(0, *(_next(dim) for dim in mask.layout)))
            for mask in node.masks
        ]
        return value._replace(tree=node)

    def _subscript(self, node: ast.Subscript) -> _Value:
        """Dimensions of one put between others: ``x[:, None]``."""
        value = self.value(node.value)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kept = [entry for entry in entries if ast.dump(entry) == _WHOLE]
        added = [entry for entry in entries if isinstance(entry, ast.Constant)]
        if len(kept) + len(added) < len(entries) or any(e.value is not None for e in added):
            raise _NotBatchable
        if len(kept) != value.rank:
            raise _NotBatchable
        if value.is_batched:
            entries = [ast.Slice(), *entries]
        slice_ = ast.Tuple(list(entries), ast.Load()) if len(entries) > 1 else entries[0]
        tree = ast.Subscript(value.tree, slice_, ast.Load())
        return _Value(tree, _rank(node), value.is_batched)

    def _aligned(self, nodes: Sequence[ast.expr], rank: int) -> tuple[list[ast.expr], bool]:
        """Operands of an element-wise operation of a rank, and whether the result is batched."""
        values = [self.value(node) for node in nodes]
        is_batched = any(value.is_batched for value in values)
        if not is_batched:
            return [value.tree for value in values], False
        return [self._at_rank(value, rank) for value in values], True

    def _at_rank(self, value: _Value, rank: int) -> ast.expr:
        """A value with dimensions of one put in, so that it goes with others of a higher rank."""
        missing = rank - value.rank
        if (value.rank == 0 and not value.is_batched) or (missing == 0 and value.is_batched):
            return value.tree
        ones = [ast.Constant(None) for _ in range(missing)]
        front = ast.Slice() if value.is_batched else ast.Constant(None)
        entries: list[ast.expr] = [front, *ones, *(ast.Slice() for _ in range(value.rank))]
        return ast.Subscript(value.tree, ast.Tuple(entries, ast.Load()), ast.Load())


_WHOLE = ast.dump(ast.Slice())

_RULES: dict[Any, Callable[[_Batching, Any], _Value]] = {
    _NUMBERS: _Batching._number,
    ast.Name: _Batching._name,
    Padded: _Batching._padded,
    Load: _Batching._load,
    ast.BinOp: _Batching._operator,
    ast.UnaryOp: _Batching._sign,
    ast.Compare: _Batching._comparison,
    ast.Call: _Batching._call,
    Masked: _Batching._masked,
    ast.Subscript: _Batching._subscript,
}


def _rank(node: ast.expr) -> int:
    """The number of dimensions that a value has for one program."""
    rank = type_of(node).rank
    if rank is None:
        raise _NotBatchable
    return rank


def _next(dim: int | None) -> int | None:
    return None if dim is None else dim + 1


def _constant_of(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _NotBatchable from None


def _placed(statement: ast.stmt, origin: ast.stmt) -> ast.stmt:
    """A statement whose new nodes stand where it does in the user's source."""
    for node in walk(statement):
        if "lineno" not in node.__dict__:
            at(node, origin)
    return statement
