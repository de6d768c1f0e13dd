"""What is known of the values of a program besides their shapes, so that less is computed.

Vectors that count up from a number, conditions that hold everywhere, and products, in which such a
condition need not choose. In the first rounds of a split loop (`MarkedLoop`) more is known.
"""

from __future__ import annotations

import ast
from dataclasses import field

from ninetoothed.backends.triton.ir.nodes import is_marked
from ninetoothed.backends.triton.ir.trees import element
from ninetoothed.backends.triton.ir.trees import language as triton
from ninetoothed.backends.triton.printers.gluon.sizes import Sizes
from ninetoothed.backends.triton.printers.gluon.trees import called, elements, given_of, new_axis
from ninetoothed.language import dtypes
from ninetoothed.program.effects import names_read
from ninetoothed.program.nodes import DTypeRef, clone
from ninetoothed.program.types import type_of
from ninetoothed.records import dataclass


@dataclass
class _Known:
    """Names of what is true everywhere, and of products."""

    true: set[str] = field(default_factory=set)
    products: set[str] = field(default_factory=set)

    def forget(self, names: set[str]) -> None:
        self.true -= names
        self.products -= names


class KnownValues:
    """What is known of a kernel's values at one of its statements.

    Args:
        sizes: of the values.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        #: What vectors that count up from a number begin with.
        self._begins: dict[str, ast.expr] = {}
        #: In all rounds, and in the first ones.
        self._always, self._at_first = _Known(), _Known()

    def forget(self) -> None:
        """Forgets all."""
        self._begins.clear()
        self._always, self._at_first = _Known(), _Known()

    def change(self, names: set[str]) -> None:
        """Takes note that names have other values from here on."""
        kept = self._begins.items()
        self._begins = {n: b for n, b in kept if n not in names and not names & names_read(b)}
        self._always.forget(names)
        self._at_first.forget(names)

    def note_product(self, name: str) -> None:
        """Takes note that a name stands for a product from here on."""
        self.change({name})
        self._always.products.add(name)
        self._at_first.products.add(name)

    def note(self, target: str, value: ast.expr) -> None:
        """Takes note of an assignment."""
        begin = self.begin_of(value)
        found = [
            (
                known,
                self._is_true(value, known),
                self._is_product(self._plainer(value, known), known),
            )
            for known in (self._always, self._at_first)
        ]
        self.change({target})
        if begin is not None and target not in names_read(begin):
            self._begins[target] = begin
        for known, is_true, is_product in found:
            known.true |= {target} if is_true else set()
            known.products |= {target} if is_product else set()

    # Vectors that count up.

    def begin_of(self, value: ast.expr) -> ast.expr | None:
        """What a vector begins with that counts up by one; None of any other value."""
        if isinstance(value, ast.Name):
            return self._begins.get(value.id)
        if called(value) == "arange":
            return value.args[0]  # type: ignore[attr-defined, no-any-return]
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            for number, vector in ((value.left, value.right), (value.right, value.left)):
                begin = self.begin_of(vector) if not self._sizes.shape(number) else None
                if begin is not None:
                    return _plus(begin, number)
        return None

    def extreme(self, call: ast.Call) -> ast.expr | None:
        """The least or greatest element of a vector that counts up by one; None of any other."""
        vector = call.args[0]
        begin = self.begin_of(vector)
        if begin is None or called(call) == "sum":
            return None
        if called(call) == "min":
            return clone(begin)
        (size,) = self._sizes.shape(vector)
        return _plus(begin, ast.BinOp(self._sizes.tree(size), ast.Sub(), ast.Constant(1)))

    def limit_of(self, value: ast.Compare) -> ast.expr | None:
        """What a column's number less a row's must not exceed; None of any other comparison."""
        (op,), left, right = value.ops, value.left, value.comparators[0]
        if isinstance(op, ast.Gt | ast.GtE):
            op, left, right = ast.Lt() if isinstance(op, ast.Gt) else ast.LtE(), right, left
        if not isinstance(op, ast.Lt | ast.LtE):
            return None
        begins = []
        for side, axis in ((left, 0), (right, 1)):
            if not isinstance(side, ast.Subscript) or new_axis(side) != axis:
                return None
            begin = self.begin_of(side.value)
            if begin is None:
                return None
            begins.append(begin)
        limit: ast.expr = ast.BinOp(clone(begins[1]), ast.Sub(), clone(begins[0]))
        return limit if isinstance(op, ast.LtE) else ast.BinOp(limit, ast.Sub(), ast.Constant(1))

    # Conditions that hold.

    def plainer(self, value: ast.expr) -> ast.expr:
        """The same value, without a condition that holds everywhere."""
        return self._plainer(value, self._always)

    def at_first(self, value: ast.expr) -> ast.expr:
        """What is the same in the first rounds; ``value`` itself where nothing is known of them."""
        filled = _Filled(self)
        copy = filled.visit(clone(value))
        return self._plainer(copy, self._at_first) if filled.is_changed else value

    def filler_of(self, condition: ast.expr) -> ast.expr | None:
        """Something true of a condition's shape, where that holds in the first rounds alone."""
        if self._is_true(condition, self._always) or not self._is_true(condition, self._at_first):
            return None
        shape = ast.Tuple([*map(self._sizes.tree, self._sizes.shape(condition))], ast.Load())
        filler = triton("full", shape, ast.Constant(True), element(dtypes.bool))
        filler.__dict__["type"] = type_of(condition)
        return filler

    def _is_true(self, value: ast.expr, known: _Known) -> bool:
        """Whether this is known to be true everywhere."""
        if isinstance(value, ast.Name):
            return value.id in known.true
        if isinstance(value, ast.Subscript):
            return self._is_true(value.value, known)
        if isinstance(value, ast.BinOp):
            both = self._is_true(value.left, known) and self._is_true(value.right, known)
            return isinstance(value.op, ast.BitAnd) and both
        if known is self._at_first and is_marked(value):
            return True
        return isinstance(value, ast.Call) and called(value) == "full" and _is_filled_true(value)

    def _plainer(self, value: ast.expr, known: _Known) -> ast.expr:
        shorter: ast.expr | None = None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitAnd):
            # Of integers it would be another.
            if self._is_true(value.left, known) and isinstance(value.right, ast.Compare):
                shorter = value.right
        elif called(value) == "where":
            assert isinstance(value, ast.Call)
            condition, chosen, other = elements(value)
            # What had a wider type than a product would give it to the result.
            is_plain = isinstance(other, ast.Constant) or called(other) == "float"
            is_true = self._is_true(condition, known)
            if is_true and self._is_product(chosen, known) and is_plain:
                shorter = chosen
        shape = self._sizes.shape
        return value if shorter is None or shape(shorter) != shape(value) else shorter

    def _is_product(self, value: ast.expr, known: _Known) -> bool:
        return isinstance(value, ast.Name) and value.id in known.products


class _Filled(ast.NodeTransformer):
    """Puts what is true for the conditions that choose, where they hold in the first rounds."""

    def __init__(self, known: KnownValues) -> None:
        self._known = known
        self.is_changed = False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        filler = self._known.filler_of(node.args[0]) if called(node) == "where" else None
        if filler is not None:
            node.args[0] = filler
            self.is_changed = True
        return node


def _plus(begin: ast.expr, number: ast.expr) -> ast.expr:
    """Their sum, which is a number where the vector begins with 0."""
    if isinstance(begin, ast.Constant) and begin.value == 0:
        return clone(number)
    return ast.BinOp(clone(begin), ast.Add(), clone(number))


def _is_filled_true(call: ast.Call) -> bool:
    """Whether `full` makes a tensor of truth values that are all true."""
    value, dtype = [*given_of(call), None, None][:2]
    is_true = isinstance(value, ast.Constant) and value.value is True
    return is_true and isinstance(dtype, DTypeRef) and dtype.dtype is dtypes.bool
