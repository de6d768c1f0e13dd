"""Whether a program can be written in Gluon, and what must hold of a call then.

A closed list of functions and forms is understood. It is asked of the lowered program, by the types of
its values: nothing is written here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ninetoothed.backends.triton.ir.nodes import DescriptorStore, PointedType
from ninetoothed.backends.triton.ir.products import Needs, Product
from ninetoothed.backends.triton.printers.gluon.forms import (
    Dot,
    Form,
    NotPossibleError,
    Tile,
    dot_of,
)
from ninetoothed.backends.triton.printers.gluon.layouts import assigned
from ninetoothed.backends.triton.printers.gluon.sizes import (
    ELEMENTWISE,
    NUMBERS,
    REDUCTIONS,
    Sizes,
    is_matrix,
)
from ninetoothed.backends.triton.printers.gluon.trees import (
    axis_of,
    called,
    cast_value,
    elements,
    given_of,
    new_axis,
)
from ninetoothed.language import dtypes
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import DTypeRef, LanguageRef
from ninetoothed.program.types import Shape, is_one, type_of
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

#: What has no elements.
_PLAIN = (ast.Constant, DTypeRef, LanguageRef)


@dataclass(frozen=True)
class Operand:
    """A tile in shared memory, as a product takes it."""

    tile: Tile
    is_turned: bool = False

    @property
    def shape(self) -> Shape:
        return self.tile.shape[::-1] if self.is_turned else self.tile.shape


@dataclass(frozen=True)
class Multiplication:
    """A statement that multiplies.

    Attributes:
        dot: it.
        left: its left operand, where that is in shared memory; else it is in registers.
        right: its right operand.
        product: the sizes.
    """

    dot: Dot
    left: Operand | None
    right: Operand
    product: Product


class Legality:
    """Asks the statements of a program, in the order in which they are written.

    Args:
        form: the program.
        sizes: of its values. Those that meet must be the same, which is noted there.

    Attributes:
        multiplications: what the statements multiply that have been asked.
    """

    def __init__(self, form: Form, sizes: Sizes) -> None:
        self._form = form
        self._sizes = sizes
        self._shared: dict[str, Tile] = {}
        #: What has 32 bits, as sums of products have.
        self._sums: set[str] = set()
        self.multiplications: dict[ast.stmt, Multiplication] = {}
        self._columns: list[Any] = []
        self._changing = names_assigned(form.body)
        self._shapes: dict[str, Shape] = {}

    def needs(self) -> Needs:
        """What must hold of a call.

        Raises:
            NotPossibleError: nothing does, for a reason.
        """
        form = self._form
        for statement in form.before:
            self.statement(statement)
        for number in (form.end, *(each for tile in form.tiles.values() for each in tile.corner)):
            self._number(number)
        before = dict(self._shapes)
        for statement in form.body:
            self.statement(statement)
        for name, shape in before.items():
            if self._same(shape) != self._same(self._shapes[name]):
                raise NotPossibleError(f"the loop changes the shape of `{name}`")
        for statement in form.after:
            self.statement(statement)
        if not self.multiplications:
            raise NotPossibleError("a program without a product")
        products = dict.fromkeys(each.product for each in self.multiplications.values())
        columns = dict.fromkeys(map(self._sizes.same, self._columns))
        return Needs(tuple(products), tuple(columns), frozenset(self._sizes.equal))

    def _same(self, shape: Shape) -> Shape:
        return tuple(map(self._sizes.same, shape))

    def statement(self, statement: ast.stmt) -> None:
        """Asks one statement."""
        tile, dot = self._form.tiles.get(statement), dot_of(statement)
        if tile is not None:
            self._shared[tile.name] = tile
        elif dot is not None:
            self.multiplications[statement] = self._multiplication(dot)
        elif isinstance(statement, DescriptorStore):
            self._result(statement)
        elif isinstance(statement, ast.Expr) and called(statement.value) == "store":
            assert isinstance(statement.value, ast.Call)
            pointer, *values = statement.value.args[:2]
            values += [keyword.value for keyword in statement.value.keywords]
            rank = len(self._value(pointer))
            if any(len(self._value(value)) not in (0, rank) for value in values):
                raise NotPossibleError("a store of what has fewer dimensions")
        elif isinstance(statement, ast.Assign | ast.AugAssign):
            self._assignment(statement)
        else:
            raise NotPossibleError(f"a statement that is no assignment: {type(statement).__name__}")

    def _assignment(self, statement: ast.Assign | ast.AugAssign) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if not isinstance(targets[0], ast.Name):
            raise NotPossibleError("several values at once")
        target, value = assigned(statement)
        self._shapes[target] = self._value(value)
        if len(self._shapes[target]) > 2:
            raise NotPossibleError("a tensor of three dimensions")
        if type_of(targets[0]).dtype is dtypes.float32:
            self._sums.add(target)
        elif target not in names_read(value):
            self._sums.discard(target)

    def _multiplication(self, dot: Dot) -> Multiplication:
        right, left = self._operand(dot.right), self._operand(dot.left)
        if right is None:
            raise NotPossibleError("a right operand that is not loaded by descriptor")
        shape = left.shape if left else self._value(dot.left)
        if len(shape) != 2:
            raise NotPossibleError("a left operand that is no matrix")
        (rows, inner), columns = shape, right.shape[1]
        if dot.is_added and dot.target not in self._sums:
            raise NotPossibleError("a sum of products that is not float32")
        for known, size in zip(self._shapes.get(dot.target, ()), (rows, columns)):
            self._sizes.meet(known, size)
        self._shapes[dot.target] = rows, columns
        self._sums.add(dot.target)
        self._columns.append(columns)
        kind = left.tile.parameter if left else _element_type(dot.left)
        is_kept = left is None and names_read(dot.left).isdisjoint(self._changing)
        product = Product(rows, inner, columns, kind, right.tile.parameter, is_kept)
        return Multiplication(dot, left, right, product)

    def _operand(self, value: ast.expr) -> Operand | None:
        """A tile in shared memory, turned or not."""
        inner = _turned(value)
        if inner is not None:
            found = self._operand(inner)
            return found and Operand(found.tile, not found.is_turned)
        tile = self._shared.get(value.id) if isinstance(value, ast.Name) else None
        return None if tile is None else Operand(tile)

    def _result(self, statement: DescriptorStore) -> None:
        """What is stored by descriptor."""
        value = statement.value
        if called(value) == "reshape":
            value = value.args[0]  # type: ignore[attr-defined]
        if not isinstance(value, ast.Name):
            raise NotPossibleError("a result that lies otherwise than its tile")
        if len(self._value(value)) != 2:
            raise NotPossibleError("a result that is no matrix")
        for index in statement.corner.elts:
            self._number(index)

    # Values.

    def _number(self, value: ast.expr) -> None:
        if self._value(value):
            raise NotPossibleError("a tensor where a number is needed")

    def _value(self, value: ast.expr) -> Shape:
        """A value's shape, where it is understood."""
        is_member = isinstance(value, ast.Attribute) and not type_of(value).shape
        if is_member or isinstance(value, _PLAIN) or isinstance(type_of(value).number, Symbol):
            return ()
        if isinstance(value, ast.Name):
            if value.id in self._shared:
                raise NotPossibleError(f"`{value.id}` is in shared memory only")
        elif isinstance(value, ast.BinOp):
            self._together(value.left, value.right)
        elif isinstance(value, ast.UnaryOp):
            self._together(value.operand)
        elif isinstance(value, ast.Compare) and len(value.ops) == 1:
            self._together(value.left, value.comparators[0])
        elif isinstance(value, ast.Subscript):
            if len(self._value(value.value)) != 1 or new_axis(value) is None:
                raise NotPossibleError("a subscript that is no new dimension of a vector")
        elif isinstance(value, ast.Call):
            self._call(value)
        elif isinstance(value, ast.BoolOp | ast.IfExp):
            for part in ast.iter_child_nodes(value):
                if isinstance(part, ast.expr):
                    self._number(part)
        else:
            raise NotPossibleError(f"{type(value).__name__} has no layout")
        shape = type_of(value).shape
        if shape is None or None in shape:
            raise NotPossibleError("a value whose shape is not known")
        if is_matrix(shape) or (len(shape) == 2 and is_one(shape[0])):
            self._columns.append(shape[1])
        return self._sizes.shape(value)

    def _together(self, *values: ast.expr) -> None:
        """Values that meet element by element: their sizes must be the same, or 1."""
        met: dict[int, object] = {}
        for value in values:
            for place, size in enumerate(reversed(self._value(value))):
                if not is_one(size):
                    self._sizes.meet(met.setdefault(place, size), size)

    def _call(self, call: ast.Call) -> None:
        function, cast = called(call), cast_value(call)
        is_ours = isinstance(call.func, ast.Name)
        rule = (_OURS if is_ours else _OF_LANGUAGE).get(function)
        if cast is not None:
            self._value(cast)
        elif rule is None:
            why = "is not known" if is_ours else "has no layout"
            raise NotPossibleError(f"`{function}` {why}")
        else:
            rule(self, call)

    def _of_numbers(self, call: ast.Call) -> None:
        for each in call.args:
            self._number(each)

    def _of_rows(self, call: ast.Call) -> None:
        (shape,) = map(self._value, call.args)
        if len(shape) != (1 if called(call) == "as_column" else 2):
            raise NotPossibleError(f"`{called(call)}` of {len(shape)} dimensions")

    def _elementwise(self, call: ast.Call) -> None:
        if call.keywords:
            raise NotPossibleError(f"`{called(call)}` with keywords")
        self._together(*elements(call))

    def _created(self, call: ast.Call) -> None:
        first = 0 if called(call) == "arange" else 1
        for each in [call.args[0], *given_of(call)][first:]:
            self._number(each)

    def _broadcast(self, call: ast.Call) -> None:
        if self._value(call.args[0]) != self._sizes.shape(call):
            raise NotPossibleError("a broadcast to another shape")

    def _loaded(self, call: ast.Call) -> None:
        for each in (call.args[0], *(keyword.value for keyword in call.keywords)):
            self._value(each)

    def _reduction(self, call: ast.Call) -> None:
        given, shape = given_of(call), self._value(call.args[0])
        is_plain = all(keyword.arg == "axis" for keyword in call.keywords)
        if len(given) > 1 or not is_plain or not all(isinstance(e, ast.Constant) for e in given):
            raise NotPossibleError("a reduction with more than an axis")
        if len(shape) != 1 and not (is_matrix(shape) and axis_of(call) in (0, 1)):
            raise NotPossibleError(f"a reduction of {len(shape)} dimensions to {called(call)}")


_Rules = dict[str, Callable[[Legality, ast.Call], None]]

#: What may be called of the library and of Python, and of the language.
_OURS: _Rules = {
    **dict.fromkeys((*NUMBERS, "floor_quotient"), Legality._of_numbers),
    "negative": Legality._elementwise,
    **dict.fromkeys(("as_column", "partial_sums"), Legality._of_rows),
}
_OF_LANGUAGE: _Rules = {
    **dict.fromkeys(ELEMENTWISE, Legality._elementwise),
    **dict.fromkeys(REDUCTIONS, Legality._reduction),
    **dict.fromkeys(NUMBERS - REDUCTIONS, Legality._of_numbers),
    **dict.fromkeys(("arange", "zeros", "full"), Legality._created),
    "broadcast_to": Legality._broadcast,
    "load": Legality._loaded,
}


def _element_type(value: ast.expr) -> str:
    """The tensor of whose type the elements are that a value is cast to."""
    if called(value) == "cast" and isinstance(value.args[1], PointedType):  # type: ignore[attr-defined]
        return value.args[1].parameter  # type: ignore[attr-defined, no-any-return]
    raise NotPossibleError("a left operand whose type is not a tensor's")


def _turned(value: ast.expr) -> ast.expr | None:
    """What a matrix is the transpose of; None of any other value."""
    if called(value) == "trans" and len(value.args) == 1:  # type: ignore[attr-defined]
        return value.args[0]  # type: ignore[attr-defined, no-any-return]
    is_turned = isinstance(value, ast.Attribute) and value.attr == "T"
    return value.value if is_turned else None  # type: ignore[attr-defined]
