"""The shape of every value of a program in Triton, each size as the text of an expression.

Which functions are understood stands here: `NotPossibleError` is raised for any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ninetoothed.backends.triton.printers.gluon.trees import NotPossibleError, called, text
from ninetoothed.language.operations import names

#: A value's sizes, each as the text of an expression; a number has none.
Shape = tuple[str, ...]

#: Under the same name in both languages.
ELEMENTWISE = frozenset(names(lambda each: each.is_in_gluon and each.kind == "element-wise"))
REDUCTIONS = frozenset(names(lambda each: each.is_in_gluon and each.kind == "reduction"))
_NUMBERS = frozenset({"next_power_of_2", "num_programs", "program_id"})

#: Python's own functions, of numbers, and those of ours.
_PYTHONS = frozenset({"float", "int", "max", "min"})
_LIBRARY = frozenset({"as_column", "partial_sums"})

#: Columns of a row that one group of threads holds next to each other.
_PARTS = 8


class Shapes:
    """The shapes of a kernel's values.

    Attributes:
        equal: sizes that must be the same.
    """

    def __init__(self) -> None:
        self._of_names: dict[str, Shape] = {}
        self._excluded: set[str] = set()
        self._same: dict[str, str] = {}
        self.equal: set[tuple[str, str]] = set()

    # Names.

    def note(self, name: str, shape: Shape) -> None:
        """Takes note of a name's shape."""
        self._of_names[name] = shape

    def forget(self) -> None:
        """Forgets all names' shapes; what sizes are the same stays."""
        self._of_names.clear()

    def exclude(self, name: str) -> None:
        """Takes note that a name stands for a tile in shared memory."""
        self._excluded.add(name)

    def of_name(self, name: str) -> Shape:
        """A name's shape."""
        if name in self._excluded:
            raise NotPossibleError(f"`{name}` is in shared memory only")
        return self._of_names.get(name, ())

    def of_names(self, names: Iterable[str]) -> dict[str, Shape]:
        """The shapes of those names that have a value, each size in one spelling."""
        return {n: self.spelled(self._of_names[n]) for n in names if n in self._of_names}

    # Sizes.

    @property
    def spellings(self) -> int:
        """How many sizes have another text that means the same."""
        return len(self._same)

    def note_same(self, one: str, other: str) -> None:
        """Takes note that two sizes must be the same."""
        if one != other:
            self.equal.add((one, other))
        one, other = self.same(one), self.same(other)
        if one != other:
            self._same[other] = one

    def same(self, size: str) -> str:
        """The first of all texts that mean the same size."""
        while size in self._same:
            size = self._same[size]
        return size

    def spelled(self, shape: Shape) -> Shape:
        """A shape with each size in the first of its spellings."""
        return tuple(map(self.same, shape))

    def are_same(self, one: Shape, other: Shape) -> bool:
        """Whether two shapes mean the same."""
        return self.spelled(one) == self.spelled(other)

    # Values.

    def of(self, value: ast.expr) -> Shape:
        """The shape of a value."""
        if isinstance(value, ast.Constant | ast.Attribute):
            return ()
        if isinstance(value, ast.Name):
            return self.of_name(value.id)
        if isinstance(value, ast.BinOp):
            return self._together(value.left, value.right)
        if isinstance(value, ast.UnaryOp):
            return self.of(value.operand)
        if isinstance(value, ast.Compare) and len(value.ops) == 1:
            return self._together(value.left, value.comparators[0])
        if isinstance(value, ast.Subscript):
            return self._expanded(value)
        if isinstance(value, ast.Call):
            return self._of_call(value)
        if isinstance(value, ast.BoolOp | ast.IfExp):
            return self._number(value)
        raise NotPossibleError(f"{type(value).__name__} has no layout")

    def _number(self, value: ast.expr) -> Shape:
        parts = [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]
        if any(self.of(part) for part in parts):
            raise NotPossibleError(f"{type(value).__name__} of tensors")
        return ()

    def _of_call(self, call: ast.Call) -> Shape:
        function = called(call)
        if isinstance(call.func, ast.Name):
            if function not in (*_PYTHONS, *_LIBRARY):
                raise NotPossibleError(f"`{function}` is not known")
            if function in _PYTHONS:
                return self._number(call)
        if function in ELEMENTWISE:
            return self._together(*elements(function, call))
        if function == "to":
            return self.of(method_of(call))
        if function == "arange":
            return (text(call.args[1]),)
        if function in ("zeros", "full"):
            return _tuple(call.args[0])
        if function in REDUCTIONS:
            shape, axis = self.of(call.args[0]), axis_of(call)
            if axis is None and len(shape) == 1:
                return ()
            if axis is None or not 0 <= axis < len(shape):
                raise NotPossibleError(f"a reduction of {shape}")
            return (*shape[:axis], *shape[axis + 1 :])
        if function == "broadcast_to":
            wanted, shape = _tuple(call.args[1]), self.of(call.args[0])
            if not self.are_same(wanted, shape):
                raise NotPossibleError(f"{shape} broadcast to {wanted}")
            return wanted
        if function == "as_column":
            shape = self.of(call.args[0])
            return (*shape, "1") if shape else ()
        if function == "partial_sums":
            rows, columns = self.of(call.args[0])
            return (rows, f"min({_PARTS}, {columns})")
        if function == "load":
            return self.of(call.args[0])
        if function in _NUMBERS:
            return ()
        raise NotPossibleError(f"`{function}` has no layout")

    def _together(self, *values: ast.expr) -> Shape:
        shapes = [self.of(value) for value in values]
        rank = max(map(len, shapes))
        result = ["1"] * rank
        for shape in shapes:
            for place, size in enumerate(shape, start=rank - len(shape)):
                if size == "1":
                    continue
                if result[place] == "1":
                    result[place] = size
                else:
                    self.note_same(result[place], size)
        return tuple(result)

    def _expanded(self, value: ast.Subscript) -> Shape:
        shape, axis = self.of(value.value), new_axis(value)
        if len(shape) != 1:
            raise NotPossibleError("a new dimension of a matrix")
        return ("1", *shape) if axis == 0 else (*shape, "1")


def is_matrix(shape: Shape) -> bool:
    """Whether this has rows and columns, so that its shape says how it lies."""
    return len(shape) == 2 and "1" not in shape


# What calls and subscripts are made of.


def method_of(call: ast.Call) -> ast.expr:
    """The value whose method is called."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def elements(function: str, call: ast.Call) -> list[ast.expr]:
    """The arguments that have elements."""
    if call.keywords:
        raise NotPossibleError(f"`{function}` with keywords")
    return call.args[:1] if function == "cast" else call.args


def given_of(call: ast.Call) -> list[ast.expr]:
    """The arguments besides the first, whether they are named or not."""
    return [*call.args[1:], *(keyword.value for keyword in call.keywords)]


def axis_of(call: ast.Call) -> int | None:
    """The dimension that a reduction is over; None where it does not say."""
    given = given_of(call)
    if not given:
        return None
    is_axis = all(keyword.arg == "axis" for keyword in call.keywords)
    if len(given) > 1 or not is_axis or not isinstance(given[0], ast.Constant):
        raise NotPossibleError("a reduction with more than an axis")
    return given[0].value  # type: ignore[return-value]


def new_axis(value: ast.Subscript) -> int:
    """The place of the dimension that a subscript adds to a vector."""
    if text(value.slice) == "(:, None)" or text(value)[-9:] == "[:, None]":
        return 1
    if text(value)[-9:] == "[None, :]":
        return 0
    raise NotPossibleError(f"the subscript of `{text(value)}`")


def _tuple(value: ast.expr) -> Shape:
    if not isinstance(value, ast.Tuple):
        raise NotPossibleError("a shape that is no tuple")
    return tuple(map(text, value.elts))
