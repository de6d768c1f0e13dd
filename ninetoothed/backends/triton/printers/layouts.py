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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ninetoothed import threads
from ninetoothed.language.operations import names
from ninetoothed.program.effects import names_read
from ninetoothed.program.nodes import clone

#: A value's sizes, each as the text of an expression; a number has none.
Shape = tuple[str, ...]

#: Under the same name in both languages.
_ELEMENTWISE = frozenset(names(lambda each: each.is_in_gluon and each.kind == "element-wise"))
_REDUCTIONS = frozenset(names(lambda each: each.is_in_gluon and each.kind == "reduction"))
_NUMBERS = frozenset({"next_power_of_2", "num_programs", "program_id"})

#: Python's own functions, of numbers, and those of ours.
_PYTHONS = frozenset({"float", "int", "max", "min"})
_LIBRARY = frozenset({"as_column", "partial_sums"})

#: What a matrix unit takes as its second operand at most.
MOST_COLUMNS = 256

#: Columns of a row that one group of threads holds next to each other.
_PARTS = 8


class NotPossibleError(Exception):
    """A program has no translation."""


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
        equal: sizes that must be the same.
        library: the functions of `gluon_library` that are called.
    """

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self._fresh = fresh
        self._shapes: dict[str, Shape] = {}
        self._layouts: dict[tuple[str, Shape], Layout] = {}
        self._names: dict[str, str] = {}
        self._used: set[str] = set()
        self._excluded: set[str] = set()
        #: What vectors that count up from a number begin with.
        self._begins: dict[str, ast.expr] = {}
        #: Names of what is true everywhere, and of products.
        self._true: set[str] = set()
        self._products: set[str] = set()
        self.library: set[str] = set()
        self._same: dict[str, str] = {}
        self.equal: set[tuple[str, str]] = set()
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
                f"{name}: gl.constexpr = gl.NVMMADistributedLayout("
                f"version=[3, 0], warps_per_cta=[gl.num_warps(), 1], instr_shape=[16, {columns}, 16])"
            )
            for columns, name in self._names.items()
            if columns in self._used
        ]

    # Shapes.

    def shape(self, value: ast.expr) -> Shape:
        """The shape of a value."""
        if isinstance(value, ast.Constant | ast.Attribute):
            return ()
        if isinstance(value, ast.Name):
            return self.shape_of(value.id)
        if isinstance(value, ast.BinOp):
            return self._together(value.left, value.right)
        if isinstance(value, ast.UnaryOp):
            return self.shape(value.operand)
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
        if any(self.shape(part) for part in parts):
            raise NotPossibleError(f"{type(value).__name__} of tensors")
        return ()

    def _of_call(self, call: ast.Call) -> Shape:
        function = called(call)
        if isinstance(call.func, ast.Name):
            if function not in (*_PYTHONS, *_LIBRARY):
                raise NotPossibleError(f"`{function}` is not known")
            if function in _PYTHONS:
                return self._number(call)
        if function in _ELEMENTWISE:
            return self._together(*_elements(function, call))
        if function == "to":
            return self.shape(_method_of(call))
        if function == "arange":
            return (text(call.args[1]),)
        if function in ("zeros", "full"):
            return _tuple(call.args[0])
        if function in _REDUCTIONS:
            shape, axis = self.shape(call.args[0]), _axis(call)
            if axis is None and len(shape) == 1:
                return ()
            if axis is None or not 0 <= axis < len(shape):
                raise NotPossibleError(f"a reduction of {shape}")
            return (*shape[:axis], *shape[axis + 1 :])
        if function == "broadcast_to":
            wanted, shape = _tuple(call.args[1]), self.shape(call.args[0])
            if not self._are_same(wanted, shape):
                raise NotPossibleError(f"{shape} broadcast to {wanted}")
            return wanted
        if function == "as_column":
            shape = self.shape(call.args[0])
            return (*shape, "1") if shape else ()
        if function == "partial_sums":
            rows, columns = self.shape(call.args[0])
            return (rows, f"min({_PARTS}, {columns})")
        if function == "load":
            return self.shape(call.args[0])
        if function in _NUMBERS:
            return ()
        raise NotPossibleError(f"`{function}` has no layout")

    def _together(self, *values: ast.expr) -> Shape:
        shapes = [self.shape(value) for value in values]
        rank = max(map(len, shapes))
        result = ["1"] * rank
        for shape in shapes:
            for place, size in enumerate(shape, start=rank - len(shape)):
                if size == "1":
                    continue
                if result[place] == "1":
                    result[place] = size
                else:
                    self._note_same(result[place], size)
        return tuple(result)

    def _note_same(self, one: str, other: str) -> None:
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

    def _expanded(self, value: ast.Subscript) -> Shape:
        shape, axis = self.shape(value.value), _new_axis(value)
        if len(shape) != 1:
            raise NotPossibleError("a new dimension of a matrix")
        return ("1", *shape) if axis == 0 else (*shape, "1")

    # Layouts.

    def _is_matrix(self, shape: Shape) -> bool:
        """Whether this has rows and columns, so that its shape says how it lies."""
        return len(shape) == 2 and "1" not in shape

    def _is_by_rows(self, value: ast.BinOp) -> bool:
        """Whether a matrix and a column are combined."""
        right = self.shape(value.right)
        return self._is_matrix(self.shape(value.left)) and len(right) == 2 and right[1] == "1"

    def _natural(self, value: ast.expr) -> Layout | None:
        """How a value lies if nobody says; None where it may be made to lie in any way."""
        shape = self.shape(value)
        if self._is_matrix(shape):
            return Layout(self.same(shape[1]))
        if not shape:
            return None
        if isinstance(value, ast.Name):
            return self._layouts.get(self._key(value.id, shape))
        if isinstance(value, ast.Subscript):
            return self._column_of(self._natural(value.value), _new_axis(value))
        if isinstance(value, ast.BinOp):
            return self._first_natural(shape, value.left, value.right)
        if isinstance(value, ast.UnaryOp):
            return self._natural(value.operand)
        if isinstance(value, ast.Compare):
            return self._first_natural(shape, value.left, value.comparators[0])
        assert isinstance(value, ast.Call)
        function = called(value)
        if function in _ELEMENTWISE:
            return self._first_natural(shape, *_elements(function, value))
        if function in _REDUCTIONS and self._is_matrix(self.shape(value.args[0])):
            return Layout(self.same(self.shape(value.args[0])[1]), _axis(value))
        if function == "to":
            return self._natural(_method_of(value))
        if function == "as_column":
            return self._column_of(self._natural(value.args[0]), 1)
        if function in ("broadcast_to", "load"):
            return self._natural(value.args[0])
        return None

    def _first_natural(self, shape: Shape, *values: ast.expr) -> Layout | None:
        known = (self._natural(v) for v in values if len(self.shape(v)) == len(shape))
        return next(filter(None, known), None)

    def _column_of(self, layout: Layout | None, axis: int) -> Layout | None:
        if layout is None or layout.axis != axis:
            return None
        return Layout(layout.columns)

    def _key(self, name: str, shape: Shape) -> tuple[str, Shape]:
        return name, tuple(map(self.same, shape))

    def _default(self, shape: Shape) -> Layout:
        if self._is_matrix(shape):
            return Layout(self.same(shape[1]))
        if len(shape) == 2 and shape[0] == "1":
            return Layout(self.same(shape[1]))
        return Layout(self._first, 1 if len(shape) == 1 else None)

    def written(self, layout: Layout) -> ast.expr:
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
            layouts, same = dict(self._layouts), dict(self._same)
            self._forget()
            run()
            if same != self._same:
                self._layouts.clear()
            elif layouts == self._layouts:
                break
        self._forget()
        self._used.clear()
        self.library.clear()

    def _forget(self) -> None:
        self._shapes.clear()
        self._begins.clear()
        self._true.clear()
        self._products.clear()

    def product(self, name: str, rows: str, columns: str) -> None:
        """Takes note of a product."""
        self._first = self._first or self.same(columns)
        for known, size in zip(self._shapes.get(name, ()), (rows, columns)):
            self._note_same(known, size)
        self.note(name, (rows, columns))
        self.change({name})
        self._products.add(name)

    def note(self, name: str, shape: Shape) -> None:
        """Takes note of a name's shape."""
        self._shapes[name] = shape

    def shape_of(self, name: str) -> Shape:
        """A name's shape."""
        if name in self._excluded:
            raise NotPossibleError(f"`{name}` is in shared memory only")
        return self._shapes.get(name, ())

    def shapes(self, names: Iterable[str]) -> dict[str, Shape]:
        """The shapes of those names that have a value, each size in one spelling."""
        return {
            name: tuple(map(self.same, self._shapes[name]))
            for name in names
            if name in self._shapes
        }

    def exclude(self, name: str) -> None:
        """Takes note that a name stands for a tile in shared memory."""
        self._excluded.add(name)

    def operand(self, value: ast.expr, columns: str) -> ast.expr:
        """A matrix as the left operand of a product of so many columns."""
        parent = text(self.written(Layout(self.same(columns))))
        return expression(
            f"gl.convert_layout(value, gl.DotOperandLayout(0, {parent}, 2))",
            value=self.value(value),
        )

    def nothing(self, rows: str, columns: str) -> ast.expr:
        """What a product is added to that is not added to anything."""
        layout = text(self.written(Layout(self.same(columns))))
        return expression(f"gl.zeros(({rows}, {columns}), gl.float32, {layout})")

    def statement(self, statement: ast.stmt) -> ast.Assign:
        """An assignment."""
        target: ast.expr | None = None
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AugAssign):
            target = statement.target
            value = ast.BinOp(ast.Name(text(target), ast.Load()), statement.op, statement.value)
        if not isinstance(target, ast.Name):
            raise NotPossibleError(f"`{text(statement)}`")
        return self.assign(target.id, value)

    def assign(self, target: str, value: ast.expr) -> ast.Assign:
        """``target = value``."""
        shape = self.shape(value)
        if len(shape) > 2:
            raise NotPossibleError("a tensor of three dimensions")
        wanted = None
        if shape and not self._is_matrix(shape):
            key = self._key(target, shape)
            wanted = self._layouts.get(key) or self._natural(value)
            if wanted is not None:
                self._layouts[key] = wanted
        new = self.value(value, wanted)
        self.note(target, shape)
        begin, is_true = self._begin_of(value), self._is_true(value)
        is_product = self._is_product(self._plainer(value))
        self.change({target})
        if begin is not None and target not in names_read(begin):
            self._begins[target] = begin
        if is_true:
            self._true.add(target)
        if is_product:
            self._products.add(target)
        return ast.Assign([ast.Name(target, ast.Store())], new)

    def change(self, names: set[str]) -> None:
        """Takes note that names have other values from here on."""
        kept = self._begins.items()
        self._begins = {n: b for n, b in kept if n not in names and not names & names_read(b)}
        self._true -= names
        self._products -= names

    def _begin_of(self, value: ast.expr) -> ast.expr | None:
        """What a vector begins with that counts up by one; None of any other value."""
        if isinstance(value, ast.Name):
            return self._begins.get(value.id)
        if isinstance(value, ast.Call) and called(value) == "arange":
            return value.args[0]
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            for number, vector in ((value.left, value.right), (value.right, value.left)):
                begin = self._begin_of(vector) if self.shape(number) == () else None
                if begin is not None:
                    return _plus(begin, number)
        return None

    def _is_true(self, value: ast.expr) -> bool:
        """Whether this is known to be true everywhere."""
        if isinstance(value, ast.Name):
            return value.id in self._true
        if isinstance(value, ast.Subscript):
            return self._is_true(value.value)
        if isinstance(value, ast.BinOp):
            both = self._is_true(value.left) and self._is_true(value.right)
            return isinstance(value.op, ast.BitAnd) and both
        return isinstance(value, ast.Call) and called(value) == "full" and _is_filled_true(value)

    def _plainer(self, value: ast.expr) -> ast.expr:
        """The same value, without a condition that holds everywhere."""
        shorter: ast.expr | None = None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitAnd):
            # Of integers it would be another.
            if self._is_true(value.left) and isinstance(value.right, ast.Compare):
                shorter = value.right
        elif isinstance(value, ast.Call) and called(value) == "where":
            condition, chosen, other = _elements("where", value)
            # What had a wider type than a product would give it to the result.
            is_plain = isinstance(other, ast.Constant) or text(other).startswith("float(")
            if self._is_true(condition) and self._is_product(chosen) and is_plain:
                shorter = chosen
        if shorter is None or not self._are_same(self.shape(shorter), self.shape(value)):
            return value
        return shorter

    def _is_product(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and value.id in self._products

    def _are_same(self, one: Shape, other: Shape) -> bool:
        return list(map(self.same, one)) == list(map(self.same, other))

    def value(self, value: ast.expr, wanted: Layout | None = None) -> ast.expr:
        """A value, lying as ``wanted``."""
        value = self._plainer(value)
        shape = self.shape(value)
        if not shape:
            return self._scalar(value)
        if self._is_matrix(shape):
            wanted = Layout(self.same(shape[1]))
        wanted = wanted or self._natural(value)
        if wanted is None:
            # No place says how; where another one does, this one must not.
            firm, self._is_firm = self._is_firm, False
            result = self.value(value, self._default(shape))
            self._is_firm = firm
            return result
        if isinstance(value, ast.Name):
            key = self._key(value.id, shape)
            if self._is_matrix(shape) or self._layouts.get(key, wanted) == wanted:
                if self._is_firm:
                    self._layouts.setdefault(key, wanted)
                return clone(value)
            return self._converted(clone(value), wanted)
        if isinstance(value, ast.Subscript):
            axis = _new_axis(value)
            inner = self.value(value.value, Layout(wanted.columns, axis))
            return ast.Subscript(inner, clone(value.slice), ast.Load())
        if isinstance(value, ast.BinOp):
            left, right = self._operands(shape, wanted, value.left, value.right)
            if isinstance(value.op, ast.Div) and self._is_by_rows(value):
                self.library.add("divide_rows")
                return ast.Call(ast.Name("divide_rows", ast.Load()), [left, right], [])
            return ast.BinOp(left, value.op, right)
        if isinstance(value, ast.UnaryOp):
            return ast.UnaryOp(value.op, self.value(value.operand, wanted))
        if isinstance(value, ast.Compare):
            limit = self._limit_of(value)
            if limit is not None:
                self.library.add("columns_within")
                sizes = [expression(size) for size in shape]
                given = [self._scalar(limit), *sizes, self.written(wanted)]
                return ast.Call(ast.Name("columns_within", ast.Load()), given, [])
            left, right = self._operands(shape, wanted, value.left, value.comparators[0])
            return ast.Compare(left, value.ops, [right])
        assert isinstance(value, ast.Call)
        return self._call(value, shape, wanted)

    def extreme(self, call: ast.Call) -> ast.expr | None:
        """The least or greatest element of a vector that counts up by one; None of any other."""
        vector = call.args[0]
        begin = self._begin_of(vector)
        if begin is None or called(call) == "sum":
            return None
        if called(call) == "min":
            return clone(begin)
        (size,) = self.shape(vector)
        return _plus(begin, expression(f"{size} - 1"))

    def _limit_of(self, value: ast.Compare) -> ast.expr | None:
        """What a column's number less a row's must not exceed; None of any other comparison."""
        (op,), left, right = value.ops, value.left, value.comparators[0]
        if isinstance(op, ast.Gt | ast.GtE):
            op, left, right = ast.Lt() if isinstance(op, ast.Gt) else ast.LtE(), right, left
        if not isinstance(op, ast.Lt | ast.LtE):
            return None
        begins = []
        for side, axis in ((left, 0), (right, 1)):
            if not isinstance(side, ast.Subscript) or _new_axis(side) != axis:
                return None
            begin = self._begin_of(side.value)
            if begin is None:
                return None
            begins.append(begin)
        limit: ast.expr = ast.BinOp(clone(begins[1]), ast.Sub(), clone(begins[0]))
        return limit if isinstance(op, ast.LtE) else ast.BinOp(limit, ast.Sub(), ast.Constant(1))

    def _call(self, call: ast.Call, shape: Shape, wanted: Layout) -> ast.expr:
        function = called(call)
        if function in _ELEMENTWISE:
            elements = _elements(function, call)
            rest = [clone(each) for each in call.args[len(elements) :]]
            rest = [self._scalar(each) for each in rest]
            given = [*self._operands(shape, wanted, *elements), *rest]
            return language(function, *given, keywords=call.keywords)
        if function == "to":
            value = self.value(_method_of(call), wanted)
            kind = [self._scalar(each) for each in call.args]
            return ast.Call(ast.Attribute(value, "to", ast.Load()), kind, [])
        if function == "arange":
            return language("arange", *map(self._scalar, call.args), self.written(wanted))
        if function in ("zeros", "full"):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            given = [clone(call.args[0]), *map(self._scalar, given[1:])]
            return language(function, *given, self.written(wanted))
        if function in _REDUCTIONS:
            inner = self.shape(call.args[0])
            if not self._is_matrix(inner):
                raise NotPossibleError(f"a reduction of {inner} to a vector")
            if function == "max" and _axis(call) == 1:
                self.library.add("row_max")
                given = [self.value(call.args[0]), self.written(wanted)]
                return ast.Call(ast.Name("row_max", ast.Load()), given, [])
            axis = ast.keyword("axis", ast.Constant(_axis(call)))
            reduced = language(function, self.value(call.args[0]), keywords=[axis])
            found = Layout(self.same(inner[1]), _axis(call))
            return reduced if found == wanted else self._converted(reduced, wanted)
        if function == "broadcast_to":
            return self.value(call.args[0], wanted)
        if function == "as_column":
            column = self.value(call.args[0], Layout(wanted.columns, 1))
            return expression("value[:, None]", value=column)
        if function == "partial_sums":
            self.library.add("partial_sums")
            given = [self.value(call.args[0]), self.written(wanted)]
            return ast.Call(ast.Name("partial_sums", ast.Load()), given, [])
        if function == "load":
            keywords = [
                ast.keyword(keyword.arg, self._spread(keyword.value, wanted))
                for keyword in call.keywords
            ]
            return language("load", self.value(call.args[0], wanted), keywords=keywords)
        raise NotPossibleError(f"`{function}` has no layout")

    def _spread(self, value: ast.expr, wanted: Layout) -> ast.expr:
        return self.value(value, wanted) if self.shape(value) else self._scalar(value)

    def _operands(self, shape: Shape, wanted: Layout, *values: ast.expr) -> list[ast.expr]:
        found = []
        for value in values:
            rank = len(self.shape(value))
            if rank == 1 and len(shape) == 2:
                inner = self.value(value, Layout(wanted.columns, 0))
                found.append(expression("value[None, :]", value=inner))
            else:
                found.append(self.value(value, wanted))
        return found

    def _converted(self, value: ast.expr, wanted: Layout) -> ast.expr:
        return language("convert_layout", value, self.written(wanted))

    def _scalar(self, value: ast.expr) -> ast.expr:
        """A number's expression; tensors within are reduced to numbers."""
        return _Numbers(self).visit(clone(value))

    def store(self, call: ast.Call) -> ast.expr:
        """``tl.store(...)``."""
        pointer, value = call.args[:2]
        shape = self.shape(pointer)
        wanted = self._natural(value) if self.shape(value) == shape else None
        wanted = wanted or self._natural(pointer) or (self._default(shape) if shape else None)
        given = [self.value(pointer, wanted), self._filled(value, shape, wanted)]
        keywords = [ast.keyword(k.arg, self._filled(k.value, shape, wanted)) for k in call.keywords]
        return language("store", *given, keywords=keywords)

    def _filled(self, value: ast.expr, shape: Shape, wanted: Layout | None) -> ast.expr:
        if len(self.shape(value)) not in (0, len(shape)):
            raise NotPossibleError("a store of what has fewer dimensions")
        return self.value(value, wanted)


class _Numbers(ast.NodeTransformer):
    """Rewrites what gives a number."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "tl":
            return ast.Name("gl", ast.Load())
        if self._layouts.shape(node):
            raise NotPossibleError("a tensor where a number is needed")
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if called(node) in _REDUCTIONS and not isinstance(node.func, ast.Name):
            inner = self._layouts.shape(node.args[0])
            known = self._layouts.extreme(node)
            if known is not None:
                return self.visit(known)
            if len(inner) == 1:
                axis = [ast.keyword("axis", ast.Constant(0))]
                return language(called(node), self._layouts.value(node.args[0]), keywords=axis)
        self._layouts.shape(node)
        self.generic_visit(node)
        return node


# Trees.


def parse(line: str) -> ast.stmt:
    """A statement from its text."""
    (statement,) = threads.parse(line).body
    return statement


def expression(line: str, **parts: ast.expr) -> ast.expr:
    """An expression from its text, with parts put in for names."""
    statement = parse(line)
    assert isinstance(statement, ast.Expr)
    return put(statement.value, parts)


def put(tree: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in the place of names."""
    return _Put(parts).visit(tree)  # type: ignore[no-any-return]


class _Put(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return clone(self._parts[node.id]) if node.id in self._parts else node


def text(tree: ast.AST) -> str:
    """A tree's text."""
    return ast.unparse(ast.fix_missing_locations(clone(tree)))


def language(function: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.expr:
    """A call of a function of Gluon's language."""
    attribute = ast.Attribute(ast.Name("gl", ast.Load()), function, ast.Load())
    return ast.Call(attribute, list(arguments), list(keywords))


def called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else text(call.func)


def _method_of(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _elements(function: str, call: ast.Call) -> list[ast.expr]:
    """The arguments that have elements."""
    if call.keywords:
        raise NotPossibleError(f"`{function}` with keywords")
    return call.args[:1] if function == "cast" else call.args


def _tuple(value: ast.expr) -> Shape:
    if not isinstance(value, ast.Tuple):
        raise NotPossibleError("a shape that is no tuple")
    return tuple(map(text, value.elts))


def _plus(begin: ast.expr, number: ast.expr) -> ast.expr:
    """Their sum, which is a number where the vector begins with 0."""
    if isinstance(begin, ast.Constant) and begin.value == 0:
        return clone(number)
    return ast.BinOp(clone(begin), ast.Add(), clone(number))


def _is_filled_true(call: ast.Call) -> bool:
    """Whether `full` makes a tensor of truth values that are all true."""
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    return list(map(text, given)) == ["True", "tl.int1"]


def _axis(call: ast.Call) -> int | None:
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    if not given:
        return None
    is_axis = all(keyword.arg == "axis" for keyword in call.keywords)
    if len(given) > 1 or not is_axis or not isinstance(given[0], ast.Constant):
        raise NotPossibleError("a reduction with more than an axis")
    return given[0].value  # type: ignore[return-value]


def _new_axis(value: ast.Subscript) -> int:
    if text(value.slice) == "(:, None)" or text(value)[-9:] == "[:, None]":
        return 1
    if text(value)[-9:] == "[None, :]":
        return 0
    raise NotPossibleError(f"the subscript of `{text(value)}`")
