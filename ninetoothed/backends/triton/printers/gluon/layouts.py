"""Which thread holds which element: a lowered program's statements with Gluon's layouts.

Gluon is Triton's language one level lower: each value of several elements says how they lie in the
registers of a program. Here that follows from shapes alone. A matrix lies as the matrix
unit gives products of so many columns; a vector is such a matrix's row or column, by what it is
combined with; where the two meet otherwise, it is converted.

What has no layout does not come here: `legality` knows a closed list of functions and forms.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from ninetoothed.backends.triton.ir.products import Needs
from ninetoothed.backends.triton.printers.gluon import trees
from ninetoothed.backends.triton.printers.gluon.known_values import KnownValues
from ninetoothed.backends.triton.printers.gluon.sizes import (
    ELEMENTWISE,
    REDUCTIONS,
    Sizes,
    is_matrix,
)
from ninetoothed.program.nodes import clone
from ninetoothed.program.types import Shape, is_one, type_of
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Layout:
    """How a value lies in registers.

    Attributes:
        columns: of the product that it lies as, a size.
        axis: which dimension of that matrix is missing, for a vector.
    """

    columns: Any
    axis: int | None = None


class Layouts:
    """A kernel's statements with layouts.

    Args:
        sizes: of the kernel's values.
        needs: what the kernel multiplies. As the first product lies what nobody combines.
        fresh: gives a name that nothing has.

    Attributes:
        library: the functions of `gluon_library` that are called.
    """

    def __init__(self, sizes: Sizes, needs: Needs, fresh: Callable[[str], str]) -> None:
        self._sizes = sizes
        self._fresh = fresh
        self._layouts: dict[tuple[str, Shape], Layout] = {}
        self._names: dict[Any, str] = {}
        self._used: set[Any] = set()
        self.library: set[str] = set()
        self._known = KnownValues(sizes)
        self._columns = needs.columns
        self._first = sizes.same(needs.products[0].columns)
        self._is_firm = True

    def constants(self) -> list[ast.stmt]:
        """The layouts that were used, each as a constant."""
        return [
            trees.statement(
                "layout: gl.constexpr = gl.NVMMADistributedLayout("
                "version=[3, 0], warps_per_cta=[gl.num_warps(), 1], instr_shape=[16, columns, 16])",
                layout=self._names[columns],
                columns=self._sizes.tree(columns),
            )
            for columns in self._columns
            if columns in self._used
        ]

    # How values lie.

    def _shape(self, value: ast.expr) -> Shape:
        return self._sizes.shape(value)

    def _natural(self, value: ast.expr) -> Layout | None:
        """How a value lies if nobody says; None where it may be made to lie in any way."""
        shape = self._shape(value)
        if is_matrix(shape):
            return self._of_columns(shape[1])
        if not shape:
            return None
        if isinstance(value, ast.Name):
            return self._layouts.get((value.id, shape))
        if isinstance(value, ast.Subscript):
            return _column_of(self._natural(value.value), trees.new_axis(value))
        if isinstance(value, ast.BinOp):
            return self._first_natural(shape, value.left, value.right)
        if isinstance(value, ast.UnaryOp):
            return self._natural(value.operand)
        if isinstance(value, ast.Compare):
            return self._first_natural(shape, value.left, value.comparators[0])
        assert isinstance(value, ast.Call)
        function, cast = trees.called(value), trees.cast_value(value)
        if cast is not None:
            return self._natural(cast)
        if function in ELEMENTWISE:
            return self._first_natural(shape, *trees.elements(value))
        if function in REDUCTIONS and is_matrix(self._shape(value.args[0])):
            return self._of_columns(self._shape(value.args[0])[1], trees.axis_of(value))
        if function == "as_column":
            return _column_of(self._natural(value.args[0]), 1)
        if function in ("broadcast_to", "load", "negative"):
            return self._natural(value.args[0])
        return None

    def _first_natural(self, shape: Shape, *values: ast.expr) -> Layout | None:
        known = (self._natural(v) for v in values if len(self._shape(v)) == len(shape))
        return next(filter(None, known), None)

    def _of_columns(self, columns: Any, axis: int | None = None) -> Layout:
        return Layout(self._sizes.same(columns), axis)

    def _default(self, shape: Shape) -> Layout:
        if len(shape) == 2 and (is_matrix(shape) or is_one(shape[0])):
            return self._of_columns(shape[1])
        return Layout(self._first, 1 if len(shape) == 1 else None)

    def _written(self, layout: Layout) -> ast.expr:
        """A layout's expression."""
        self._used.add(layout.columns)
        if layout.columns not in self._names:
            words = "_".join(_words(self._sizes.tree(layout.columns)))
            self._names[layout.columns] = self._fresh(f"columns_{words}")
        name = ast.Name(self._names[layout.columns], ast.Load())
        if layout.axis is None:
            return name
        return trees.language("SliceLayout", ast.Constant(layout.axis), name)

    # Statements.

    def settle(self, run: Callable[[], object]) -> None:
        """Finds how each vector lies: ``run`` is what writes the function, and is called anew until
        nothing changes any more."""
        for _ in range(8):
            layouts = dict(self._layouts)
            self._known.forget()
            run()
            if layouts == self._layouts:
                break
        self._known.forget()
        self._used.clear()
        self.library.clear()

    def product(self, name: str) -> None:
        """Takes note of a product."""
        self._known.note_product(name)

    def change(self, names: set[str]) -> None:
        """Takes note that names have other values from here on."""
        self._known.change(names)

    def operand(self, value: ast.expr, columns: Any) -> ast.expr:
        """A matrix as the left operand of a product of so many columns."""
        return trees.expression(
            "gl.convert_layout(value, gl.DotOperandLayout(0, parent, 2))",
            parent=self._written(self._of_columns(columns)),
            value=self.value(value),
        )

    def nothing(self, rows: Any, columns: Any) -> ast.expr:
        """What a product is added to that is not added to anything."""
        return trees.expression(
            "gl.zeros((rows, columns), gl.float32, layout)",
            rows=self._sizes.tree(rows),
            columns=self._sizes.tree(columns),
            layout=self._written(self._of_columns(columns)),
        )

    def assignment(self, statement: ast.stmt) -> tuple[ast.Assign, ast.Assign]:
        """An assignment: in the first rounds of a split loop, and in the others.

        Both are the same one but where conditions that hold in the first rounds choose.
        """
        target, value = assigned(statement)
        shape = self._shape(value)
        wanted = None
        if shape and not is_matrix(shape):
            wanted = self._layouts.get((target, shape)) or self._natural(value)
            if wanted is not None:
                self._layouts[target, shape] = wanted
        store = ast.Name(target, ast.Store())
        at_first = self._known.at_first(value)
        usual = ast.Assign([store], self.value(value, wanted))
        first = usual if at_first is value else ast.Assign([store], self.value(at_first, wanted))
        self._known.note(target, value)
        return first, usual

    def store(self, call: ast.Call) -> ast.expr:
        """``tl.store(...)``."""
        pointer, value = call.args[:2]
        shape = self._shape(pointer)
        wanted = self._natural(value) if self._shape(value) == shape else None
        wanted = wanted or self._natural(pointer) or (self._default(shape) if shape else None)
        given = [self.value(each, wanted) for each in (pointer, value)]
        keywords = [ast.keyword(k.arg, self.value(k.value, wanted)) for k in call.keywords]
        return trees.language("store", *given, keywords=keywords)

    # Values.

    def value(self, value: ast.expr, wanted: Layout | None = None) -> ast.expr:
        """A value, lying as ``wanted``."""
        value = self._known.plainer(value)
        shape = self._shape(value)
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
            inner = self.value(value.value, Layout(wanted.columns, trees.new_axis(value)))
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
                sizes = map(self._sizes.tree, shape)
                given = [self._scalar(limit), *sizes, self._written(wanted)]
                return self._ours("columns_within", *given)
            left, right = self._operands(shape, wanted, value.left, value.comparators[0])
            return ast.Compare(left, value.ops, [right])
        assert isinstance(value, ast.Call)
        return self._call(value, shape, wanted)

    def _named(self, value: ast.Name, shape: Shape, wanted: Layout) -> ast.expr:
        key = value.id, shape
        if is_matrix(shape) or self._layouts.get(key, wanted) == wanted:
            if self._is_firm:
                self._layouts.setdefault(key, wanted)
            return clone(value)
        return self._converted(clone(value), wanted)

    def _is_by_rows(self, value: ast.BinOp) -> bool:
        """Whether a matrix and a column are combined."""
        right = self._shape(value.right)
        return is_matrix(self._shape(value.left)) and len(right) == 2 and is_one(right[1])

    def _call(self, call: ast.Call, shape: Shape, wanted: Layout) -> ast.expr:
        function, cast = trees.called(call), trees.cast_value(call)
        if cast is not None:
            kind = [self._scalar(each) for each in call.args]
            return ast.Call(ast.Attribute(self.value(cast, wanted), "to", ast.Load()), kind, [])
        if function in ELEMENTWISE:
            of_elements = trees.elements(call)
            rest = [self._scalar(each) for each in call.args[len(of_elements) :]]
            return trees.language(function, *self._operands(shape, wanted, *of_elements), *rest)
        if function == "negative":
            return self._ours(function, self.value(call.args[0], wanted))
        if function == "arange":
            return trees.language("arange", *map(self._scalar, call.args), self._written(wanted))
        if function in ("zeros", "full"):
            given = [clone(call.args[0]), *map(self._scalar, trees.given_of(call))]
            return trees.language(function, *given, self._written(wanted))
        if function in REDUCTIONS:
            return self._reduced(call, wanted)
        if function == "broadcast_to":
            return self.value(call.args[0], wanted)
        if function == "as_column":
            column = self.value(call.args[0], Layout(wanted.columns, 1))
            return trees.expression("value[:, None]", value=column)
        if function == "partial_sums":
            return self._ours(function, self.value(call.args[0]), self._written(wanted))
        assert function == "load", function
        keywords = [ast.keyword(k.arg, self.value(k.value, wanted)) for k in call.keywords]
        return trees.language("load", self.value(call.args[0], wanted), keywords=keywords)

    def _reduced(self, call: ast.Call, wanted: Layout) -> ast.expr:
        """A matrix's sums or extremes along an axis."""
        function, axis = trees.called(call), trees.axis_of(call)
        if function == "max" and axis == 1:
            return self._ours("row_max", self.value(call.args[0]), self._written(wanted))
        keyword = ast.keyword("axis", ast.Constant(axis))
        reduced = trees.language(function, self.value(call.args[0]), keywords=[keyword])
        found = self._of_columns(self._shape(call.args[0])[1], axis)
        return reduced if found == wanted else self._converted(reduced, wanted)

    def _ours(self, function: str, *arguments: ast.expr) -> ast.expr:
        """A call of a function of `gluon_library`."""
        self.library.add(function)
        return trees.library(function, *arguments)

    def _operands(self, shape: Shape, wanted: Layout, *values: ast.expr) -> list[ast.expr]:
        found = []
        for value in values:
            rank = len(self._shape(value))
            if rank == 1 and len(shape) == 2:
                inner = self.value(value, Layout(wanted.columns, 0))
                found.append(trees.expression("value[None, :]", value=inner))
            else:
                found.append(self.value(value, wanted))
        return found

    def _converted(self, value: ast.expr, wanted: Layout) -> ast.expr:
        return trees.language("convert_layout", value, self._written(wanted))

    def _scalar(self, value: ast.expr) -> ast.expr:
        """A number's expression; tensors within are reduced to numbers."""
        return _Numbers(self, self._known).visit(clone(value))


def assigned(statement: ast.stmt) -> tuple[str, ast.expr]:
    """The name that gets a value, and the value."""
    if isinstance(statement, ast.Assign):
        (target,), value = statement.targets, statement.value
    else:
        assert isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
        target = statement.target
        old = ast.Name(target.id, ast.Load())
        value = ast.BinOp(old, statement.op, statement.value)
        old.__dict__["type"], value.__dict__["type"] = type_of(statement), type_of(target)
    assert isinstance(target, ast.Name)
    return target.id, value


def _words(tree: ast.AST) -> Iterator[str]:
    """The names and numbers of an expression, in order."""
    for part in ast.iter_child_nodes(tree):
        yield from _words(part)
    if isinstance(tree, ast.Name):
        yield tree.id
    elif isinstance(tree, ast.Attribute):
        yield tree.attr
    elif isinstance(tree, ast.Constant):
        yield str(tree.value)


def _column_of(layout: Layout | None, axis: int | None) -> Layout | None:
    """How a vector's matrix of one row or column lies."""
    if layout is None or layout.axis != axis:
        return None
    return Layout(layout.columns)


class _Numbers(ast.NodeTransformer):
    """Rewrites what gives a number."""

    def __init__(self, layouts: Layouts, known: KnownValues) -> None:
        self._layouts = layouts
        self._known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if trees.called(node) in ("floor_quotient", "negative"):
            return self._layouts._ours(trees.called(node), *map(self.visit, node.args))
        if trees.called(node) not in REDUCTIONS or isinstance(node.func, ast.Name):
            return self.generic_visit(node)
        known = self._known.extreme(node)
        if known is not None:
            return self.visit(known)  # type: ignore[no-any-return]
        axis = [ast.keyword("axis", ast.Constant(0))]
        return trees.language(trees.called(node), self._layouts.value(node.args[0]), keywords=axis)
