"""Which thread holds which element: Triton's statements with Gluon's layouts.

Gluon is Triton's language one level lower: each value of several elements says how they lie in the
registers of a program. Here that follows from shapes alone. A matrix lies as the matrix
unit gives products of so many columns; a vector is such a matrix's row or column, by what it is
combined with; where the two meet otherwise, it is converted.

What is not understood raises `NotPossibleError`: a closed list of functions and forms is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from ninetoothed.backends.triton.printers.gluon.known_values import KnownValues
from ninetoothed.backends.triton.printers.gluon.shapes import (
    ELEMENTWISE,
    REDUCTIONS,
    Shape,
    Shapes,
    axis_of,
    elements,
    given_of,
    is_matrix,
    method_of,
    new_axis,
)
from ninetoothed.backends.triton.printers.gluon.trees import (
    NotPossibleError,
    called,
    expression,
    language,
    library,
    parse,
    text,
)
from ninetoothed.program.nodes import clone


@dataclass(frozen=True)
class Layout:
    """How a value lies in registers.

    Attributes:
        columns: of the product that it lies as.
        axis: which dimension of that matrix is missing, for a vector.
    """

    columns: str
    axis: int | None = None


class Layouts:
    """A kernel's statements with layouts.

    Args:
        fresh: gives a name that nothing has.

    Attributes:
        shapes: of the kernel's values.
        library: the functions of `gluon_library` that are called.
    """

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._fresh = fresh
        self._layouts: dict[tuple[str, Shape], Layout] = {}
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self.library: set[str] = set()
        self.shapes = Shapes()
        self._known = KnownValues(self.shapes)
        self._first = ""
        self._is_firm = True

    # What the kernel begins with.

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of products that values lie as."""
        return tuple(columns for columns in self._names if columns in self._used)

    def constants(self) -> list[ast.stmt]:
        """The layouts that were used, each as a constant."""
        return [
            parse(
                f"{self._names[columns]}: gl.constexpr = gl.NVMMADistributedLayout("
                f"version=[3, 0], warps_per_cta=[gl.num_warps(), 1], instr_shape=[16, {columns}, 16])"
            )
            for columns in self.columns
        ]

    # How values lie.

    def _natural(self, value: ast.expr) -> Layout | None:
        """How a value lies if nobody says; None where it may be made to lie in any way."""
        shape = self.shapes.of(value)
        if is_matrix(shape):
            return self._of_columns(shape[1])
        if not shape:
            return None
        if isinstance(value, ast.Name):
            return self._layouts.get(self._key(value.id, shape))
        if isinstance(value, ast.Subscript):
            return _column_of(self._natural(value.value), new_axis(value))
        if isinstance(value, ast.BinOp):
            return self._first_natural(shape, value.left, value.right)
        if isinstance(value, ast.UnaryOp):
            return self._natural(value.operand)
        if isinstance(value, ast.Compare):
            return self._first_natural(shape, value.left, value.comparators[0])
        assert isinstance(value, ast.Call)
        function = called(value)
        if function in ELEMENTWISE:
            return self._first_natural(shape, *elements(function, value))
        if function in REDUCTIONS and is_matrix(self.shapes.of(value.args[0])):
            return self._of_columns(self.shapes.of(value.args[0])[1], axis_of(value))
        if function == "to":
            return self._natural(method_of(value))
        if function == "as_column":
            return _column_of(self._natural(value.args[0]), 1)
        if function in ("broadcast_to", "load"):
            return self._natural(value.args[0])
        return None

    def _first_natural(self, shape: Shape, *values: ast.expr) -> Layout | None:
        known = (self._natural(v) for v in values if len(self.shapes.of(v)) == len(shape))
        return next(filter(None, known), None)

    def _of_columns(self, columns: str, axis: int | None = None) -> Layout:
        return Layout(self.shapes.same(columns), axis)

    def _key(self, name: str, shape: Shape) -> tuple[str, Shape]:
        return name, self.shapes.spelled(shape)

    def _default(self, shape: Shape) -> Layout:
        if len(shape) == 2 and (is_matrix(shape) or shape[0] == "1"):
            return self._of_columns(shape[1])
        return Layout(self._first, 1 if len(shape) == 1 else None)

    def _written(self, layout: Layout) -> ast.expr:
        """A layout's expression."""
        self._used.add(layout.columns)
        if layout.columns not in self._names:
            words = re.sub(r"\W+", "_", layout.columns).strip("_")
            self._names[layout.columns] = self._fresh(f"columns_{words}")
        name = self._names[layout.columns]
        return expression(name if layout.axis is None else f"gl.SliceLayout({layout.axis}, {name})")

    # Statements.

    def settle(self, run: Callable[[], object]) -> None:
        """Finds how each vector lies: ``run`` is what writes the function, and is called anew until
        nothing changes any more."""
        for _ in range(8):
            layouts, spellings = dict(self._layouts), self.shapes.spellings
            self._forget()
            run()
            if spellings != self.shapes.spellings:
                self._layouts.clear()
            elif layouts == self._layouts:
                break
        self._forget()
        self._used.clear()
        self.library.clear()

    def _forget(self) -> None:
        self.shapes.forget()
        self._known.forget()

    def product(self, name: str, rows: str, columns: str) -> None:
        """Takes note of a product."""
        self._first = self._first or self.shapes.same(columns)
        for known, size in zip(self.shapes.of_names([name]).get(name, ()), (rows, columns)):
            self.shapes.note_same(known, size)
        self.shapes.note(name, (rows, columns))
        self._known.note_product(name)

    def change(self, names: set[str]) -> None:
        """Takes note that names have other values from here on."""
        self._known.change(names)

    def operand(self, value: ast.expr, columns: str) -> ast.expr:
        """A matrix as the left operand of a product of so many columns."""
        parent = text(self._written(self._of_columns(columns)))
        return expression(
            f"gl.convert_layout(value, gl.DotOperandLayout(0, {parent}, 2))",
            value=self.value(value),
        )

    def nothing(self, rows: str, columns: str) -> ast.expr:
        """What a product is added to that is not added to anything."""
        layout = text(self._written(self._of_columns(columns)))
        return expression(f"gl.zeros(({rows}, {columns}), gl.float32, {layout})")

    def statement(self, statement: ast.stmt) -> tuple[ast.Assign, ast.Assign]:
        """An assignment: in the first rounds of a split loop, and in the others.

        Both are the same one but where conditions that hold in the first rounds choose.
        """
        target: ast.expr | None = None
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AugAssign):
            target = statement.target
            value = ast.BinOp(ast.Name(text(target), ast.Load()), statement.op, statement.value)
        if not isinstance(target, ast.Name):
            raise NotPossibleError(f"`{text(statement)}`")
        shape = self.shapes.of(value)
        if len(shape) > 2:
            raise NotPossibleError("a tensor of three dimensions")
        wanted = None
        if shape and not is_matrix(shape):
            key = self._key(target.id, shape)
            wanted = self._layouts.get(key) or self._natural(value)
            if wanted is not None:
                self._layouts[key] = wanted
        store = ast.Name(target.id, ast.Store())
        at_first = self._known.at_first(value)
        usual = ast.Assign([store], self.value(value, wanted))
        first = usual if at_first is value else ast.Assign([store], self.value(at_first, wanted))
        self._known.note(target.id, value)
        self.shapes.note(target.id, shape)
        return first, usual

    def store(self, call: ast.Call) -> ast.expr:
        """``tl.store(...)``."""
        pointer, value = call.args[:2]
        shape = self.shapes.of(pointer)
        wanted = self._natural(value) if self.shapes.of(value) == shape else None
        wanted = wanted or self._natural(pointer) or (self._default(shape) if shape else None)
        given = [self.value(pointer, wanted), self._filled(value, shape, wanted)]
        keywords = [ast.keyword(k.arg, self._filled(k.value, shape, wanted)) for k in call.keywords]
        return language("store", *given, keywords=keywords)

    def _filled(self, value: ast.expr, shape: Shape, wanted: Layout | None) -> ast.expr:
        if len(self.shapes.of(value)) not in (0, len(shape)):
            raise NotPossibleError("a store of what has fewer dimensions")
        return self.value(value, wanted)

    # Values.

    def value(self, value: ast.expr, wanted: Layout | None = None) -> ast.expr:
        """A value, lying as ``wanted``."""
        value = self._known.plainer(value)
        shape = self.shapes.of(value)
        if not shape:
            return self._scalar(value)
        if is_matrix(shape):
            wanted = self._of_columns(shape[1])
        wanted = wanted or self._natural(value)
        if wanted is None:
            # No place says how; where another one does, this one must not.
            firm, self._is_firm = self._is_firm, False
            result = self.value(value, self._default(shape))
            self._is_firm = firm
            return result
        if isinstance(value, ast.Name):
            return self._named(value, shape, wanted)
        if isinstance(value, ast.Subscript):
            axis = new_axis(value)
            inner = self.value(value.value, Layout(wanted.columns, axis))
            return ast.Subscript(inner, clone(value.slice), ast.Load())
        if isinstance(value, ast.BinOp):
            left, right = self._operands(shape, wanted, value.left, value.right)
            if isinstance(value.op, ast.Div) and self._is_by_rows(value):
                return self._ours("divide_rows", left, right)
            return ast.BinOp(left, value.op, right)
        if isinstance(value, ast.UnaryOp):
            return ast.UnaryOp(value.op, self.value(value.operand, wanted))
        if isinstance(value, ast.Compare):
            limit = self._known.limit_of(value)
            if limit is not None:
                sizes = [expression(size) for size in shape]
                given = [self._scalar(limit), *sizes, self._written(wanted)]
                return self._ours("columns_within", *given)
            left, right = self._operands(shape, wanted, value.left, value.comparators[0])
            return ast.Compare(left, value.ops, [right])
        assert isinstance(value, ast.Call)
        return self._call(value, shape, wanted)

    def _named(self, value: ast.Name, shape: Shape, wanted: Layout) -> ast.expr:
        key = self._key(value.id, shape)
        if is_matrix(shape) or self._layouts.get(key, wanted) == wanted:
            if self._is_firm:
                self._layouts.setdefault(key, wanted)
            return clone(value)
        return self._converted(clone(value), wanted)

    def _is_by_rows(self, value: ast.BinOp) -> bool:
        """Whether a matrix and a column are combined."""
        right = self.shapes.of(value.right)
        return is_matrix(self.shapes.of(value.left)) and len(right) == 2 and right[1] == "1"

    def _call(self, call: ast.Call, shape: Shape, wanted: Layout) -> ast.expr:
        function = called(call)
        if function in ELEMENTWISE:
            of_elements = elements(function, call)
            rest = [self._scalar(each) for each in call.args[len(of_elements) :]]
            given = [*self._operands(shape, wanted, *of_elements), *rest]
            return language(function, *given, keywords=call.keywords)
        if function == "to":
            value = self.value(method_of(call), wanted)
            kind = [self._scalar(each) for each in call.args]
            return ast.Call(ast.Attribute(value, "to", ast.Load()), kind, [])
        if function == "arange":
            return language("arange", *map(self._scalar, call.args), self._written(wanted))
        if function in ("zeros", "full"):
            given = [clone(call.args[0]), *map(self._scalar, given_of(call))]
            return language(function, *given, self._written(wanted))
        if function in REDUCTIONS:
            return self._reduced(call, wanted)
        if function == "broadcast_to":
            return self.value(call.args[0], wanted)
        if function == "as_column":
            column = self.value(call.args[0], Layout(wanted.columns, 1))
            return expression("value[:, None]", value=column)
        if function == "partial_sums":
            return self._ours(function, self.value(call.args[0]), self._written(wanted))
        if function == "load":
            keywords = [ast.keyword(k.arg, self.value(k.value, wanted)) for k in call.keywords]
            return language("load", self.value(call.args[0], wanted), keywords=keywords)
        raise NotPossibleError(f"`{function}` has no layout")

    def _reduced(self, call: ast.Call, wanted: Layout) -> ast.expr:
        """A matrix's sums or extremes along an axis."""
        (inner, axis), function = (self.shapes.of(call.args[0]), axis_of(call)), called(call)
        if not is_matrix(inner):
            raise NotPossibleError(f"a reduction of {inner} to a vector")
        if function == "max" and axis == 1:
            return self._ours("row_max", self.value(call.args[0]), self._written(wanted))
        keyword = ast.keyword("axis", ast.Constant(axis))
        reduced = language(function, self.value(call.args[0]), keywords=[keyword])
        found = self._of_columns(inner[1], axis)
        return reduced if found == wanted else self._converted(reduced, wanted)

    def _ours(self, function: str, *arguments: ast.expr) -> ast.expr:
        """A call of a function of `gluon_library`."""
        self.library.add(function)
        return library(function, *arguments)

    def _operands(self, shape: Shape, wanted: Layout, *values: ast.expr) -> list[ast.expr]:
        found = []
        for value in values:
            rank = len(self.shapes.of(value))
            if rank == 1 and len(shape) == 2:
                inner = self.value(value, Layout(wanted.columns, 0))
                found.append(expression("value[None, :]", value=inner))
            else:
                found.append(self.value(value, wanted))
        return found

    def _converted(self, value: ast.expr, wanted: Layout) -> ast.expr:
        return language("convert_layout", value, self._written(wanted))

    def _scalar(self, value: ast.expr) -> ast.expr:
        """A number's expression; tensors within are reduced to numbers."""
        return _Numbers(self, self._known).visit(clone(value))


def _column_of(layout: Layout | None, axis: int) -> Layout | None:
    """How a vector's matrix of one row or column lies."""
    if layout is None or layout.axis != axis:
        return None
    return Layout(layout.columns)


class _Numbers(ast.NodeTransformer):
    """Rewrites what gives a number."""

    def __init__(self, layouts: Layouts, known: KnownValues) -> None:
        self._layouts = layouts
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "tl":
            return ast.Name("gl", ast.Load())
        if self._layouts.shapes.of(node):
            raise NotPossibleError("a tensor where a number is needed")
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if called(node) in REDUCTIONS and not isinstance(node.func, ast.Name):
            inner = self._layouts.shapes.of(node.args[0])
            known = self._known.extreme(node)
            if known is not None:
                return self.visit(known)
            if len(inner) == 1:
                axis = [ast.keyword("axis", ast.Constant(0))]
                return language(called(node), self._layouts.value(node.args[0]), keywords=axis)
        self._layouts.shapes.of(node)
        self.generic_visit(node)
        return node
