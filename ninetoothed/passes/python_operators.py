"""Operators mean what they mean in Python, where a backend's own would mean something else.

``//`` and ``%`` of what may be negative, or by what may be 0, become `Rounded`, ``and`` and ``or`` of what may be more than
truth values that are single numbers `Logical`; ``not`` of what may be a tile compares it with 0. Truth
values count where they are added or shifted, by functions too, and what is stored as one is whether it is
not 0. What is loaded through a pointer behind ``and`` or ``or`` of numbers is read where Python would. Sizes
that meet elements are integers that a call gives (`GivenSize`), though a compiler may know them. Where what a
backend has is right, nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TypeGuard

from ninetoothed.language import dtypes
from ninetoothed.passes.rewriting import Draft, language
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.constancy import is_constant, is_constant_symbol, is_nonzero
from ninetoothed.program.effects import called_name, has_effect, operation_of
from ninetoothed.program.inference import infer
from ninetoothed.program.operands import may_differ_in_sign
from ninetoothed.program.program import Program
from ninetoothed.program.types import ValueType, are_unlike, type_of

_DIVISIONS = (ast.FloorDiv, ast.Mod)
_SHIFTS = (ast.LShift, ast.RShift)

#: The types that are the same beside a number and beside an integer of 32 bits or a float32.
_WIDE = (dtypes.float32, dtypes.bool, dtypes.int32, dtypes.int64)

#: The operators under which truth values count as integers; a quotient of two is a float anyway.
_COUNTING = (ast.Add, ast.Sub, ast.Mult, *_SHIFTS, *_DIVISIONS)

#: The functions under which they do.
_COUNTING_FUNCTIONS = frozenset({"add", "sub", "mul"})

_SUMMING = frozenset({"sum", "cumsum"})

#: The reductions that are of bits.
_OF_BITS = frozenset({"xor_sum", "reduce_or"})


def run(program: Program, booleans: Collection[str] = (), has_unsigned: bool = False) -> Program:
    """The program with Python's operators.

    Args:
        booleans: tensors and scalars that hold truth values in a call, besides those declared to.
        has_unsigned: whether some tensor or scalar of the call is of unsigned integers.
    """
    draft = Draft(program)
    infer(draft, booleans=booleans)
    declared = {p.name for p in program.parameters if p.dtype is dtypes.bool}
    constants = {p.name for p in program.parameters if p.kind == "constexpr"}
    for body in (draft.body, *(helper.body for helper in draft.helpers.values())):
        _Rewriter({*booleans, *declared}, constants, has_unsigned).block(body)
    return draft.finished(helpers=draft.helpers)


class _Rewriter(ast.NodeTransformer):
    """Walks statements in order, knowing what is constant; expressions from the leaves up."""

    def __init__(
        self, booleans: Collection[str], constants: Collection[str], has_unsigned: bool
    ) -> None:
        self.booleans = booleans
        self.has_unsigned = has_unsigned
        self.constants = set(constants)

    # Statements.

    def block(self, body: list[ast.stmt]) -> None:
        for index, statement in enumerate(body):
            body[index] = self.statement(statement)

    def statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.If):
            node.test = _asked(self.visit(node.test))
            self.block(node.body)
            self.block(node.orelse)
        elif isinstance(node, ast.For | ast.While):
            self.loop(node)
        elif isinstance(node, ast.AugAssign):
            return self.augmented(node)
        else:
            self.simple(node)
        return node

    def simple(self, node: ast.stmt) -> None:
        if isinstance(node, nodes.Store | nodes.SourceStore):
            name = node.tile.parameter if isinstance(node, nodes.Store) else node.parameter
            is_truth = type_of(node.value).kind == "bool"
            self.generic_visit(node)
            if name in self.booleans and not is_truth:
                # What does not exist is left out by the store itself.
                owner = node.value if _leaves_out(node.value) else node
                owner.value = _compared(owner.value, ast.NotEq())
            return
        self.generic_visit(node)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self.constants.add(node.target.id)

    def augmented(self, node: ast.AugAssign) -> ast.stmt:
        assert isinstance(node.target, ast.Name)
        left = nodes.at(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        # Of the statement it is what the variable held before it.
        left.__dict__["type"] = type_of(node)
        made = self.visit(nodes.at(ast.BinOp(left=left, op=node.op, right=node.value), node))
        is_same = type(made) is ast.BinOp and made.left is left
        if is_same:
            node.value = made.right
            return node
        return nodes.at(ast.Assign(targets=[node.target], value=made), node)

    def loop(self, node: ast.For | ast.While) -> None:
        constants = set(self.constants)
        if isinstance(node, ast.While):
            node.test = self.condition(_asked(self.visit(node.test)))
        else:
            assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
            node.iter.args = [self.visit(argument) for argument in node.iter.args]
            function = node.iter.func
            if isinstance(function, nodes.LanguageRef) and function.name == "static_range":
                self.constants.add(node.target.id)
        self.block(node.body)
        self.constants = constants

    def condition(self, test: ast.expr) -> ast.expr:
        """What a ``while`` asks as one truth value of the kernel, which a compiler makes of nothing else."""
        if is_constant(test, self.constants):
            return test
        known = type_of(test)
        if isinstance(test, ast.BoolOp) and any(
            is_constant(v, self.constants) for v in test.values
        ):
            test = nodes.at(nodes.Logical(op=test.op, values=test.values), test)
        return test if known.kind == "bool" else _compared(test, ast.NotEq())

    # Expressions.

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = type_of(node.left), type_of(node.right)
        is_quotient = isinstance(node.op, ast.Div)
        node.left, node.right = (
            _given(node.left, node.right, is_quotient),
            _given(node.right, node.left, is_quotient),
        )
        self.generic_visit(node)
        if is_constant(node, self.constants):
            return node
        are_truth = left.kind == right.kind == "bool"
        is_shift = isinstance(node.op, _SHIFTS)
        if left.kind == "bool" and (is_shift or (are_truth and isinstance(node.op, _COUNTING))):
            node.left = _counted(node.left)
        if are_truth and isinstance(node.op, (*_DIVISIONS, *_SHIFTS)):
            node.right = _counted(node.right)
        if isinstance(node, nodes.Rounded) or self.is_plain(node, left, right):
            return node
        is_float = "float" in (left.kind, right.kind)
        # What is of a kind that is not known may be a float, which a device's own operators do not divide.
        is_known = bool(left.kind and right.kind)
        is_natural = left.is_natural and right.is_natural
        is_rounded = isinstance(node.op, _DIVISIONS) and "bool" not in (left.kind, right.kind)
        if is_rounded and is_natural and is_known and not is_float and is_nonzero(node.right):
            return node
        return nodes.at(nodes.Rounded(left=node.left, op=node.op, right=node.right), node)

    def is_plain(self, node: ast.BinOp, left: ValueType, right: ValueType) -> bool:
        """Whether an operator is a backend's own, once truth values beside numbers count."""
        if isinstance(node.op, _SHIFTS):
            return _is_within(right.number, left)
        if isinstance(node.op, ast.Div):
            is_float = "float" in (left.kind, right.kind)
            are_unlike = may_differ_in_sign(left, right, self.has_unsigned)
            return is_float or not (are_unlike or _is_truths(left, right))
        return not isinstance(node.op, _DIVISIONS)

    #: Whether truth values are divided shows with a call's tensors.
    visit_Rounded = visit_BinOp

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = type_of(node.operand)
        self.generic_visit(node)
        if isinstance(node.op, ast.UAdd):
            return node.operand
        if isinstance(node.op, ast.USub) and operand.kind == "bool":
            node.operand = _counted(node.operand)
        if not isinstance(node.op, ast.Not) or _is_truth(operand):
            return node
        if is_constant(node.operand, self.constants):
            return node
        return _compared(node.operand, ast.Eq())

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Where a compiler wants both values in one type and shape, the choice brings them there."""
        one, other = type_of(node.body), type_of(node.orelse)
        self.generic_visit(node)
        # Literals become numbers of the kernel, of the other one's type if that is none; Triton's interpreter would
        # leave the one that it chooses a literal. Of an undeclared scalar a call decides the kind.
        is_open = any(each.number is not None or not each.kind for each in (one, other))
        are_open = one.is_scalar and other.is_scalar and is_open
        node.test = _asked(node.test)
        if is_constant(node.test, self.constants) or not (are_unlike(one, other) or are_open):
            return node
        if has_effect(node.body) or has_effect(node.orelse):
            return node
        _guard(node.body, [node.test], True)
        _guard(node.orelse, [node.test], False)
        test = _truth(node.test, True)
        return _chosen(language("where", [test, node.body, node.orelse], node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        operation = operation_of(node)
        is_counting = operation is not None and operation.name in _COUNTING_FUNCTIONS
        are_truth = [type_of(each).kind == "bool" for each in _two(node)]
        is_condition = called_name(node) != "where" or type_of(node.args[0]).kind == "bool"
        self.through_pointers(node)
        self.generic_visit(node)
        if not is_condition:
            node.args[0] = _compared(node.args[0], ast.NotEq())
        if operation is not None and operation.name in _SUMMING and are_truth[0]:
            # Beside a mask they would be integers, and without one have no sign.
            if isinstance(node.func, ast.Attribute):
                node.func.value = _counted(node.func.value)
            else:
                node.args[0] = _counted(node.args[0])
        if operation is not None and operation.name in _OF_BITS and are_truth[0]:
            # Beside a mask they would be integers: what is found of truth values is one.
            return language("cast", [node, nodes.at(nodes.DTypeRef(dtype=dtypes.bool), node)], node)
        if is_counting and all(are_truth):
            return language(called_name(node), [_counted(x) for x in _two(node)], node)
        return _chosen(node) if called_name(node) == "where" else node

    def through_pointers(self, node: ast.Call) -> None:
        """What is stored where truth values are, or stands where none are read, is whether it is not 0."""
        named = {"store": ("value", 1), "load": ("other", 2)}.get(called_name(node) or "")
        given = Given(node)
        pointer = given.node_of("pointer", 0)
        if named is None or pointer is None or type_of(pointer).pointed is not dtypes.bool:
            return
        value = given.node_of(*named)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            return
        if type_of(value).kind == "bool":
            return
        truth = _compared(value, ast.NotEq())
        node.args = [truth if each is value else each for each in node.args]
        for keyword in node.keywords:
            keyword.value = truth if keyword.value is value else keyword.value

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        types = [type_of(value) for value in node.values]
        if not isinstance(node, nodes.Logical):
            for place in range(1, len(node.values)):
                _guard(node.values[place], node.values[:place], isinstance(node.op, ast.And))
        self.generic_visit(node)
        if isinstance(node, nodes.Logical):
            return node
        is_plain = all(
            is_constant(value, self.constants) or _is_truth(known)
            for value, known in zip(node.values, types)
        )
        return node if is_plain else nodes.at(nodes.Logical(op=node.op, values=node.values), node)


def _is_truths(left: ValueType, right: ValueType) -> bool:
    """Whether one of two values is made of truth values, and the other not."""
    are_truth = [each.kind == "bool" and each.number is None for each in (left, right)]
    return are_truth[0] is not are_truth[1]


def _is_within(count: object, value: ValueType) -> bool:
    """Whether a value has so many bits, of which 8 are there in any."""
    bits = 8 if value.dtype is None else 32 if value.dtype is dtypes.bool else value.dtype.bits
    return isinstance(count, int) and 0 <= count < bits


def _two(call: ast.Call) -> list[ast.expr]:
    """The operands of a function of two."""
    given = Given(call)
    return [each for each in (given.get(0), given.get(1)) if each is not None]


def _chosen(node: ast.Call) -> ast.Call:
    """A call of ``where`` in which a size has a type beside elements."""
    if len(node.args) == 3:
        test, one, other = node.args
        node.args = [test, _given(one, other, False), _given(other, one, False)]
    return node


class _Giving(ast.NodeTransformer):
    """Gives the sizes of an expression their types."""

    def visit_SymbolValue(self, node: nodes.SymbolValue) -> ast.expr:
        if is_constant_symbol(node.symbol):
            return node
        given = nodes.at(nodes.GivenSize(symbol=node.symbol), node)
        given.__dict__["type"] = type_of(node)
        return given


def _given(node: ast.expr, other: ast.expr, is_quotient: bool) -> ast.expr:
    """What is made of numbers and sizes, beside elements to whose type a number would yield."""
    if not _is_number(node) or _is_number(other) or isinstance(node, ast.Constant):
        return node
    is_whole = type_of(node).kind == "int"
    met = type_of(other)
    if (is_whole and is_quotient) or (met.dtype is None and met.kind in ("int", "bool")):
        return node
    if met.dtype in _WIDE or (is_whole and met.dtype in (dtypes.float16, dtypes.float64)):
        return node
    made: ast.expr = _Giving().visit(node)
    return made


def _is_number(node: ast.expr) -> bool:
    """Whether this is made of sizes, strides and literals alone."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant | nodes.SymbolValue)


def _guard(node: ast.expr, tests: list[ast.expr], wanted: bool) -> None:
    """Has loads through pointers read only where numbers before them are as Python asks.

    A compiler evaluates what stands behind ``and``, ``or`` and ``else`` whatever stands before it.
    """
    for call in nodes.walk(node):
        if not isinstance(call, ast.Call) or called_name(call) != "load":
            continue
        given = Given(call)
        pointer, mask = given.node_of("pointer", 0), given.node_of("mask", 1)
        is_plain = pointer is not None and type_of(pointer).shape is not None
        if not is_plain or not all(type_of(t).is_scalar and not has_effect(t) for t in tests):
            continue
        holds = [_truth(nodes.clone(test), wanted) for test in tests]
        if mask is not None and not (isinstance(mask, ast.Constant) and mask.value is None):
            holds.append(mask)
        whole = holds[0]
        for each in holds[1:]:
            whole = nodes.at(ast.BinOp(left=whole, op=ast.BitAnd(), right=each), call)
        call.keywords = [item for item in call.keywords if item.arg != "mask"]
        if len(call.args) > 1:
            call.args[1] = whole
        else:
            call.keywords.append(nodes.at(ast.keyword(arg="mask", value=whole), call))


def _asked(test: ast.expr) -> ast.expr:
    """A test, in which a float is whether it is not 0: a compiler decides by none that it knows."""
    if isinstance(test, ast.BoolOp) and not isinstance(test, nodes.Logical):
        test.values = list(map(_asked, test.values))
    known = type_of(test)
    if isinstance(known.number, float):
        return nodes.at(ast.Constant(value=bool(known.number)), test)
    return test


def _truth(test: ast.expr, wanted: bool) -> ast.expr:
    """Whether a number is true, or is not."""
    if wanted and type_of(test).kind == "bool":
        return test
    return _compared(test, ast.NotEq() if wanted else ast.Eq())


def _leaves_out(node: ast.expr) -> TypeGuard[nodes.Masked]:
    """Whether this is a value of which a store leaves out what does not exist."""
    return isinstance(node, nodes.Masked) and node.identity == "nowhere"


def _is_truth(known: ValueType) -> bool:
    """Whether a value is known to be a single truth value."""
    return known.is_scalar and known.kind == "bool"


def _counted(node: ast.expr) -> ast.expr:
    """A truth value as an integer."""
    return language("cast", [node, nodes.at(nodes.DTypeRef(dtype=dtypes.int32), node)], node)


def _compared(node: ast.expr, op: ast.cmpop) -> ast.expr:
    zero = nodes.at(ast.Constant(value=0), node)
    return nodes.at(ast.Compare(left=node, ops=[op], comparators=[zero]), node)
