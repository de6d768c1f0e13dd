"""Finds the type of every value of a Program, each expression's and each variable's where it is assigned.

`typed` puts them on the nodes, where `types.type_of` reads them: copies of a node keep its type. What
cannot be, whatever the sizes, is an error with its place.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import Operation
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.expression_types import Expressions
from ninetoothed.program.frozen import rule_for
from ninetoothed.program.nodes import (
    ElementStore,
    ExternRef,
    LanguageRef,
    Load,
    SourceStore,
    Store,
    clone,
    walk,
)
from ninetoothed.program.typed_calls import (
    Call,
    element,
    is_of_bits,
    no_cast,
    not_held,
    not_stored,
    returned,
    retyped_by,
)
from ninetoothed.program.types import (
    COUNT,
    INTEGER,
    NOTHING,
    UNKNOWN,
    ValueType,
    held,
    leave,
    may_fit,
    met,
    type_of,
    unlike,
)
from ninetoothed.symbols.expr import Symbol

_MULTIPLYING = (ast.Mult, ast.LShift, ast.Pow)


class Inference(Expressions):
    """Walks statements in order, knowing what variables are.

    Args:
        parameters, given, is_checked, sizes: as of `Expressions`.
        helpers: functions that the language calls back.

    Attributes:
        called: what these are called with, whichever call it is.
        lasting: by loop, what it was asked of when it was walked last, and what its variables are then.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        given: Mapping[str, DType] | None = None,
        is_checked: bool = False,
        helpers: Mapping[str, ast.FunctionDef] | None = None,
        sizes: Mapping[Symbol, int] | None = None,
    ) -> None:
        super().__init__(parameters, given, is_checked, sizes)
        self.helpers = helpers or {}
        self.called: dict[str, tuple[ValueType, ...]] = {}
        self.lasting: dict[ast.stmt, tuple[Any, dict[str, ValueType]]] = {}

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            rule = rule_for(statement, _STATEMENTS)
            if rule is not None:
                rule(self, statement)
            else:
                self.parts(statement)

    def assign(self, target: ast.expr, value: ValueType) -> None:
        if isinstance(target, ast.Tuple):
            items = value.items
            if items is None and value.shape is not None:
                self.refuse(target, f"One value is given to {len(target.elts)} names.")
            if items is not None and len(items) != len(target.elts):
                self.refuse(target, f"{len(items)} values are given to {len(target.elts)} names.")
                items = None
            for index, element in enumerate(target.elts):
                self.assign(element, UNKNOWN if items is None else items[index])
        elif isinstance(target, ast.Name):
            self.known[target.id] = leave(target, value)

    def called_back(self, call: Call, operation: Operation) -> ValueType:
        """What a function of the user's returns; refuses one that a call cannot be made of."""
        is_mapped = operation.shape == "mapped"
        if not is_mapped and not operation.takes_function:
            return UNKNOWN
        function = call.node_of(*(("scalar_fn", 0) if is_mapped else ("combine_fn", 2)))
        if function is not None and not isinstance(function, ExternRef):
            call.refuse(
                f"`ntl.{operation.name}` takes a function of elements, written in Python: a `def` or a "
                "`lambda` that calls what is to be applied, as in `lambda a, b: ntl.maximum(a, b)`."
            )
        name = function.name if isinstance(function, ExternRef) else ""
        helper = self.helpers.get(name)
        if helper is None:
            return UNKNOWN
        value = call.type(0)
        items = tuple(map(type_of, call.all_from(1))) if is_mapped else (value.items or (value,))
        times: Any = 2
        if is_mapped:
            times = call.constant("pack", 1) if "pack" in call.keywords else 1
        if not isinstance(times, int) or (not is_mapped and value == UNKNOWN):
            return UNKNOWN
        elements = list(map(element, items))
        given = [each for each in elements for _ in range(times)] if is_mapped else elements * 2
        if len(given) != len(helper.args.args):
            call.refuse(
                f"`ntl.{operation.name}` calls its function with {len(given)} "
                f"value{'s' * (len(given) > 1)}, and it takes {len(helper.args.args)}."
            )
            return UNKNOWN
        earlier = self.called.get(name, given)
        self.called[name] = tuple(map(met, earlier, given))
        helper = clone(helper)
        inner = Inference(self.parameters, self.dtypes)
        inner.is_wide, inner.is_checked = self.is_wide, self.is_checked
        inner.helper(helper, [replace(each, shape=()) for each in given])
        if self.is_checked:
            self.check_called(call, operation, helper, elements)
        return returned(helper) if is_mapped and times == 1 else UNKNOWN

    def helper(self, helper: ast.FunctionDef, given: Iterable[ValueType]) -> None:
        """Types a function that the language calls back with these."""
        self.known.update(zip([each.arg for each in helper.args.args], given))
        self.block(helper.body)

    def check_called(
        self, call: Call, operation: Operation, helper: ast.FunctionDef, items: Sequence[ValueType]
    ) -> None:
        """Refuses a function that a device cannot call so.

        What it combines elements to it is given again, so it is of their types. Truth values are one bit
        wide there: numbers are not made of them.
        """
        is_mapped = operation.shape == "mapped"
        if is_mapped:
            self.check_mapped(call)
        for node in walk(helper):
            if isinstance(node, ast.Return) and node.value is not None and not is_mapped:
                self.check_count(operation, node.value, len(items))
            if isinstance(node, ast.For | ast.While) and not is_mapped:
                self.refuse(
                    node,
                    f"A function that `ntl.{operation.name}` combines elements with is one block of instructions "
                    "and has no loop of the running kernel: go over `ntl.static_range(...)`.",
                )
            elif isinstance(node, ast.IfExp) and is_mapped:
                one, other = type_of(node.body), type_of(node.orelse)
                if reason := unlike(one, other):
                    self.refuse(
                        node,
                        f"The values of this choice have {reason}, {one} and {other}, and one "
                        "element of a tile has one of these: cast one of them.",
                    )
        of_bits = "pack" not in call.keywords and any(item.kind == "bool" for item in items)
        retyped = [] if is_mapped else retyped_by(helper, items)
        of_truth = any(item.kind == "bool" for item, _ in retyped)
        if of_truth or (of_bits and any(map(is_of_bits, walk(helper)))):
            call.refuse(
                f"`ntl.{operation.name}` is given truth values, and its function makes numbers of them, which "
                "are one bit wide there: cast the tile first, as in `.to(ntl.int32)`."
            )
        for item, new in retyped:
            old, made = (each.dtype or each.kind for each in (item, new))
            call.refuse(
                f"`ntl.{operation.name}` is given {old}, and its function returns {made}, which it is given "
                f"again: cast the tile first, or what the function returns."
            )

    def check_mapped(self, call: Call) -> None:
        """Refuses what has no elements beside the others', and a call of which nothing has."""
        values = list(call.all_from(1))
        for node in values:
            if is_constant(node, self.constants) or type_of(node).number is not None:
                self.refuse(
                    node,
                    "`ntl.map_elementwise` goes over elements of tiles, and this is a number that a compiler "
                    "knows: write it into the function.",
                )
        if values and all(type_of(node).is_scalar for node in values):
            call.refuse("`ntl.map_elementwise` needs a tile. Call the function itself.")

    def check_count(self, operation: Operation, returned: ast.expr, count: int) -> None:
        """Refuses other than one value for each tile."""
        items = type_of(returned).items
        if items is None and type_of(returned) == UNKNOWN:
            return
        is_tuple, found = items is not None, 1 if items is None else len(items)
        if found != count or (is_tuple and count == 1):
            what = "a tuple" if is_tuple else "one value"
            self.refuse(
                returned,
                f"A function that `ntl.{operation.name}` combines {count} tile{'s' * (count > 1)} with returns "
                f"{f'a tuple of {count} values' if count > 1 else 'one value'}, and this one {what}"
                f"{f' of {found}' if is_tuple else ''}.",
            )

    def _assign(self, node: ast.Assign) -> None:
        self.assign(node.targets[0], held(self.of(node.value)))

    def _define(self, node: ast.AnnAssign) -> None:
        assert isinstance(node.target, ast.Name) and node.value is not None
        self.assign(node.target, self.of(node.value))
        if isinstance(node.annotation, LanguageRef) and node.annotation.name == "constexpr":
            self.constants.add(node.target.id)

    def _augment(self, node: ast.AugAssign) -> None:
        assert isinstance(node.target, ast.Name)
        old = node.__dict__["type"] = self.known.get(node.target.id, UNKNOWN)
        self.require_value(node.value)
        made = self.operated(old, node.op, self.of(node.value), node)
        self.assign(node.target, held(made))

    def _source_store(self, node: SourceStore) -> None:
        self.parts(node)
        if isinstance(node, ElementStore):
            shape, place = self.view_shape(node), f"elements of `{node.parameter}`"
        else:
            shape = self.chosen(node, list(map(type_of, node.indices)), "indices")
            place = f"elements of `{node.parameter}.source`"
        if not may_fit(type_of(node.value).shape, shape):
            self.refuse(node, not_stored(type_of(node.value), place, shape))
        self.require_fit(node, node.parameter)

    def require_fit(self, node: Store | SourceStore, parameter: str) -> None:
        """Refuses no value, and an integer that the tensor's type does not hold."""
        self.require_value(node.value)
        number, dtype = type_of(node.value).number, self.dtype_of(parameter)
        if type_of(node.value) == NOTHING:
            self.refuse(
                node,
                f"What is to be stored to {parameter!r} is a call that gives no value: make a statement of it.",
            )
        if reason := no_cast(type_of(node.value), dtype):
            self.refuse(node, reason)
        if reason := not_held(number, dtype, repr(parameter)):
            self.refuse(node, reason)

    def _store(self, node: Store) -> None:
        value = self.of(node.value)
        self.parts(node.tile)
        self.require_fit(node, node.tile.parameter)
        shape = self.held(self.parameters[node.tile.parameter].tile_shape)
        # Of two tiles' sizes the arrangement is to tell: where these do not match, neither do the grids.
        is_tile = isinstance(node.value, Load) and len(value.shape or ()) <= len(shape)
        is_tile &= not self.sizes
        if not is_tile and not may_fit(value.shape, shape):
            self.refuse(node, not_stored(value, f"`{node.tile.parameter}`", shape))

    def _if(self, node: ast.If) -> None:
        self.decided(node.test)
        before, is_checked = dict(self.known), self.is_checked
        # What a constant decides against is not compiled.
        self.is_checked &= not is_constant(node.test, self.constants)
        self.block(node.body)
        one, self.known = self.known, dict(before)
        self.block(node.orelse)
        other = self.known
        if self.is_checked:
            for name in sorted(names_assigned([node]) & one.keys() & other.keys()):
                if reason := unlike(one[name], other[name]):
                    self.refuse(
                        node,
                        f"The ways through this `if` give {name!r} {reason}: {one[name]} where its "
                        f"condition holds, {other[name]} where not. Give it one shape and element type.",
                    )
        self.is_checked = is_checked
        self.known = _both(one, other)

    def _loop(self, node: ast.For | ast.While) -> None:
        """A loop's variables are what they are before it and after each round: of one around it, found once."""
        constants, names = set(self.constants), names_read(node) | names_assigned([node])
        used = {name: self.known[name] for name in names & self.known.keys()}
        asked = used, names & constants, self.is_checked
        if node in self.lasting and self.lasting[node][0] == asked:
            self.known |= self.lasting[node][1]
            return
        if isinstance(node, ast.For):
            assert isinstance(node.iter, ast.Call)
            self.of(node.iter)
            for bound in node.iter.args:
                self.decided(bound)
                if type_of(bound).kind == "float":
                    self.refuse(bound, f"A range takes integers, but got {type_of(bound)}.")
        known = dict(self.known)
        while True:
            self.known, self.constants = dict(known), set(constants)
            is_unrolled = self.enter(node)
            self.block(node.body)
            if not is_unrolled:
                self.check_round(node, known)
                self.check_growth(node, known)
            lasting = _both(known, self.known)
            if lasting == known:
                break
            known = lasting
        self.known, self.constants = known, constants
        self.lasting[node] = asked, {name: known[name] for name in used}

    def enter(self, node: ast.For | ast.While) -> bool:
        """A round begins; whether the loop is none of the running kernel."""
        if isinstance(node, ast.While):
            self.decided(node.test)
            return False
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        self.parts(node.iter)
        self.assign(node.target, type_of_round(node.iter))
        if _is_static(node.iter):
            self.constants.add(node.target.id)
            return True
        return False

    def check_round(self, node: ast.For | ast.While, before: Mapping[str, ValueType]) -> None:
        for name in sorted(names_assigned(node.body) & before.keys()):
            if reason := unlike(before[name], self.known.get(name, UNKNOWN)):
                self.refuse(
                    node,
                    f"The loop changes what {name!r} is, which gets {reason}: {before[name]} before a "
                    f"round, {self.known[name]} after it. Give it the shape and the element type that it "
                    "has in the loop before it begins.",
                )

    def check_growth(self, node: ast.For | ast.While, before: Mapping[str, ValueType]) -> None:
        """Refuses what each round multiplies of a size: 32 bits, as the kernel has it in a loop, hold no such."""
        # What a condition asks for it bounds.
        asked = names_read(node.test) if isinstance(node, ast.While) else set()
        changed = names_assigned(node.body) - asked
        sizes = {name for name in changed & before.keys() if _is_size(before[name])}
        if not sizes or not self.is_checked:
            return
        for each in (part for statement in node.body for part in walk(statement)):
            if not isinstance(each, ast.Assign | ast.AugAssign):
                continue
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            if isinstance(target, ast.Name) and target.id in sizes and _grows(each, target.id):
                self.refuse(
                    each,
                    f"Each round multiplies {target.id!r}, which is made of sizes: in a loop it is an int32, and may "
                    f"grow beyond. Make it an int64 before the loop, by `{target.id} = "
                    f"ntl.cast({target.id}, ntl.int64)`.",
                )


def _is_size(value: ValueType) -> bool:
    """Whether this is one integer of those that sizes, and what loops count, are."""
    return value.is_scalar and value.kind == "int" and value.dtype is None and value.least_bits > 0


def _grows(node: ast.AST, name: str) -> bool:
    """Whether what a statement assigns to a variable is a multiple of what it was."""

    def has_it(part: ast.AST) -> bool:
        return any(isinstance(each, ast.Name) and each.id == name for each in walk(part))

    if isinstance(node, ast.Assign):
        return _grows(node.value, name)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, _MULTIPLYING) or has_it(node.value)
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, _MULTIPLYING):
        return has_it(node)
    sides = has_it(node.left), has_it(node.right)
    return isinstance(node.op, ast.Add) and (
        all(sides) or _grows(node.left, name) or _grows(node.right, name)
    )


def type_of_round(bounds: ast.Call) -> ValueType:
    """The type of a loop's own variable, by its bounds, which are typed."""
    types = list(map(type_of, bounds.args))
    first = types[0] if len(types) > 1 else COUNT
    step = types[2] if len(types) > 2 else COUNT
    # What counts down ends where its second bound says.
    natural = first.is_natural and (step.is_natural or types[1].is_natural)
    return replace(COUNT if natural else INTEGER, least_bits=0 if _is_static(bounds) else 32)


def _is_static(bounds: ast.Call) -> bool:
    """Whether a loop's numbers are known when the kernel is compiled."""
    return isinstance(bounds.func, LanguageRef) and bounds.func.name == "static_range"


def _both(one: Mapping[str, ValueType], other: Mapping[str, ValueType]) -> dict[str, ValueType]:
    return {name: met(one[name], other[name]) for name in one if name in other}


_STATEMENTS: dict[type, Callable[[Inference, Any], None] | None] = {
    ast.Assign: Inference._assign,
    ast.AnnAssign: Inference._define,
    ast.AugAssign: Inference._augment,
    ast.If: Inference._if,
    ast.For: Inference._loop,
    ast.While: Inference._loop,
    Store: Inference._store,
    SourceStore: Inference._source_store,
}


def infer(
    program: Any,
    given: Mapping[str, DType] | None = None,
    is_checked: bool = False,
    booleans: Collection[str] = (),
    sizes: Mapping[Symbol, int] | None = None,
) -> None:
    """Types the nodes of a Program.

    Args:
        program: a Program, or a pass's draft of one.
        given: the element types of tensors and scalars that a call gives.
        is_checked: whether what cannot be, whatever the sizes, is an error; by what a call gives alone, not
            by what was declared.
        booleans: tensors that hold truth values.
        sizes: the values of symbols, where what cannot be with those of a call is asked.

    Raises:
        ApplicationError: located.
    """
    given = {**(given or {}), **dict.fromkeys(booleans, dtypes.bool)}
    parameters = {parameter.name: parameter for parameter in program.parameters}
    inference = Inference(parameters, given, is_checked, program.helpers, sizes)
    inference.block(program.body)
    for name, helper in program.helpers.items():
        elements = inference.called.get(name, ())
        Inference(parameters, given, sizes=sizes).helper(helper, elements)
