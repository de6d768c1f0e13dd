"""One function being evaluated: its variables, its errors, and the statements that come of it."""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from ninetoothed.errors import ApplicationError, location_of, near
from ninetoothed.language import LanguageFunction
from ninetoothed.language.dtypes import NAMES, element_type
from ninetoothed.parsing import values
from ninetoothed.parsing.compile_time import Decisions, symbols_of
from ninetoothed.parsing.holds import Holds, Loan
from ninetoothed.parsing.objects import (
    comes_from,
    is_inlined,
    is_triton_function,
    literal,
    value_of,
)
from ninetoothed.program import nodes
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.names import unused
from ninetoothed.records import dataclass

#: What generated sources call the modules that they import.
MODULE_NAMES = frozenset({"gl", "libdevice", "tl", "triton"})

#: Names that the Program itself may use for Python's own functions, and printers of it for others.
RESERVED = frozenset({"float", "len", "range"}) | MODULE_NAMES

#: How many copies of statements one kernel takes: a call of a helper, a round of an unrolled loop, or a statement
#: behind an `if` that returns in places each.
MOST_COPIES = 4096


@dataclass
class State:
    """What all frames of one application share.

    Attributes:
        block: where statements go at the moment.
        names: every name of the Program so far.
        constants: names that the running kernel knows at compile time.
        may_be_none: names that stand for None in a way of a condition that a compiler knows.
        helpers: functions that the language calls back, by name.
        helper_names: by function, what it saw around it and the name of the helper made of that.
        frames: the frames at work, the innermost last.
        loops: how many loops are around the current statement.
        effects: how many calls had an effect so far.
        atomic: the statement that names what the last atomic operation gave.
        joining: what makes the second operand of an ``and`` or ``or`` where the first one does not decide.
        copies: how many calls of helpers and rounds of loops were put in one by one so far.
        given: see `OperatorFrame.given_by`, by the condition, with how it came out.
        decisions: what constexpr symbols decide.
        parameters: the application's, by name.
        rebound: see `Program`.
        holds: which names stand for tiles, and what they read.
        choices_of_tiles: variables that stand for a tile which only the running kernel chooses.
        loaded: variables that hold what a tile is, and nothing computed of it.
        left: of what gives its items once, the variables that hold which are left.
    """

    block: list[ast.stmt] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    may_be_none: set[str] = field(default_factory=set)
    externs: dict[str, Any] = field(default_factory=dict)
    helpers: dict[str, ast.FunctionDef] = field(default_factory=dict)
    helper_names: dict[object, list[tuple[dict[str, Any], str]]] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    loops: int = 0
    effects: int = 0
    atomic: ast.stmt | None = None
    joining: list[ast.If] = field(default_factory=list)
    given: dict[ast.expr, tuple[bool, dict[values.Cell, values.Value]]] = field(
        default_factory=dict
    )
    copies: int = 0
    decisions: Decisions = field(default_factory=Decisions)
    parameters: dict[str, Any] = field(default_factory=dict)
    rebound: dict[str, str] = field(default_factory=dict)
    holds: Holds = field(default_factory=Holds)
    choices_of_tiles: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    left: list[values.Cell] = field(default_factory=list)

    def fresh(self, *wishes: str) -> str:
        """A name not used so far: the first wish that is free, else the last one numbered."""
        free = (wish for wish in wishes if wish not in self.names)
        name = next(free, "") or unused(wishes[-1], self.names)
        self.names.add(name)
        return name

    @contextlib.contextmanager
    def captured(self) -> Iterator[list[ast.stmt]]:
        """Statements made within go to the list that is given, not to the current block."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def cells(self) -> dict[values.Cell, values.Value | None]:
        """All variables of all frames at work, with what they hold, and what iterators have left."""
        named = (cell for frame in self.frames for cell in frame.cells.values())
        return {cell: cell.value for cells in (named, self.left) for cell in cells}


class Frame:
    """The evaluation of one function: the application, or one call of a helper."""

    def __init__(
        self, state: State, function: values.Function, call: ast.AST | None = None
    ) -> None:
        self.state = state
        self.function = function
        self.file = function.file
        self.call = call
        self.caller = state.frames[-1] if state.frames else None
        self.cells: dict[str, values.Cell] = {}
        #: By parameter, what a helper that returns nothing was given.
        self.loans: dict[str, Loan] = {}
        #: The variables of the comprehensions at work, which a function defined there goes on seeing.
        self.own: dict[str, values.Cell] = {}
        self.is_isolated = False
        #: What is asked for no more than whether it is true.
        self.asked: set[ast.AST] = set()

    # Errors and positions.

    def error(
        self, node: ast.AST, message: str, kind: type[ApplicationError] = ApplicationError
    ) -> ApplicationError:
        """An error at ``node``; for a helper it also says where it was called from."""
        frame: Frame | None = self
        while frame is not None and frame.caller is not None and frame.call is not None:
            caller = frame.caller
            line = getattr(frame.call, "lineno", "?")
            message += (
                f"\n  (in {frame.function.name!r}, which {caller.function.name!r} calls at "
                f"{caller.file}:{line})"
            )
            frame = caller
        return kind(message, location_of(node, self.file))

    def count_copies(self, count: int, node: ast.AST) -> None:
        """Raise where so many more copies of statements are too many."""
        self.state.copies += count
        if self.state.copies > MOST_COPIES:
            raise self.error(
                node,
                f"More than {MOST_COPIES} calls of helpers, rounds of unrolled loops, and statements behind an `if` "
                "that returns in places are put into this application one by one. Loop with `range`; where helpers "
                "call helpers twice, which doubles at each step, keep what one returns in a variable; where an `if` "
                "within an `if` returns, assign to a variable, and return that at the end.",
            )

    def at(self, node: nodes.NodeT, origin: ast.AST) -> nodes.NodeT:
        """``node`` as the Program has it: at the place of ``origin``."""
        return nodes.at(node, origin, self.file)

    def name(self, text: str, origin: ast.AST, ctx: ast.expr_context | None = None) -> ast.Name:
        """A name of the Program."""
        return self.at(ast.Name(id=text, ctx=ctx or ast.Load()), origin)

    # Output.

    def emit(self, node: ast.stmt, origin: ast.AST) -> None:
        """Add a statement to the current block."""
        self.state.block.append(self.at(node, origin))

    def assignment(
        self, name: str, value: ast.expr, origin: ast.AST, constant: bool = False
    ) -> ast.stmt:
        """``name = value``, or ``name: constexpr = value``."""
        target = self.name(name, origin, ast.Store())
        if self.may_be_none(value):
            self.state.may_be_none.add(name)
        (self.state.loaded.add if self.is_loaded(value) else self.state.loaded.discard)(name)
        if not constant:
            return self.at(ast.Assign(targets=[target], value=value), origin)
        self.state.constants.add(name)
        annotation = self.at(nodes.LanguageRef(name="constexpr"), origin)
        return self.at(
            ast.AnnAssign(target=target, annotation=annotation, value=value, simple=1), origin
        )

    def is_loaded(self, node: ast.expr) -> bool:
        """Whether a value of the Program is what a tile is."""
        is_variable = isinstance(node, ast.Name) and node.id in self.state.loaded
        return is_variable or isinstance(node, nodes.Load)

    def may_be_none(self, node: ast.expr) -> bool:
        """Whether a value of the Program may be None: a constant, and what a condition on one chooses."""
        if isinstance(node, ast.Name):
            return node.id in self.state.may_be_none or self.is_constant(node)
        if isinstance(node, ast.IfExp):
            return self.may_be_none(node.body) or self.may_be_none(node.orelse)
        return isinstance(node, ast.Constant) and node.value is None

    def saved(self, node: ast.expr, origin: ast.AST, *wishes: str) -> ast.Name:
        """The name of a new variable that holds the value of ``node`` from here on."""
        name = self.state.fresh(*wishes)
        self.state.block.append(self.assignment(name, node, origin))
        return self.name(name, origin)

    # Variables.

    def lookup(self, name: str, node: ast.AST) -> values.Value | values.Cell:
        """The variable or the free name's value."""
        cell = self.cells.get(name)
        return self.function.resolve(name, node) if cell is None else cell

    def read(self, cell: values.Cell, name: str, node: ast.AST) -> values.Value:
        """What a variable holds."""
        value = cell.value
        if value is None:
            known = [key for key, other in self.cells.items() if other.value is not None]
            if any(_ended_before(node, loop, name) for loop in ast.walk(self.function.tree)):
                raise self.error(
                    node,
                    f"The variable {name!r} is that of a loop, and ends with the loop: to read it afterwards, "
                    "assign it to another one in each round, which has a value before the loop.",
                )
            raise self.error(
                node,
                f"The variable {name!r} is read before it is assigned.{near(name, known)} A "
                "variable that a loop or an if assigns needs a value before it.",
            )
        if isinstance(value, values.Undecided):
            raise self.error(node, f"The value of {name!r} is needed at compile time: {value.why}")
        self._check_captured(cell, name, node)
        self.state.holds.ask(cell)
        return values.copy_of(value)

    def _check_captured(self, cell: values.Cell, name: str, node: ast.AST) -> None:
        """A function that the language calls back sees nothing of the kernel around it."""
        frames = self.state.frames
        isolated = [index for index, frame in enumerate(frames) if frame.is_isolated]
        if isolated:
            inside = (other for frame in frames[isolated[-1] :] for other in frame.cells.values())
            if cell not in set(inside):
                self.check_constant(cell.value, name, node)

    def check_constant(self, value: values.Value | None, name: str, node: ast.AST) -> None:
        """Raise where a function that the language calls back would see a value of the running kernel."""
        constant = values.Known | values.Symbolic | values.Element | values.Function
        if not isinstance(value, constant):
            raise self.error(
                node,
                f"{name!r} is a value of the running kernel, and a function handed to the language "
                "can use its own parameters and compile-time constants only.",
            )

    # Values in the Program.

    def evaluate(self, node: ast.expr) -> values.Value:
        """What an expression stands for; may add statements to the block."""
        raise NotImplementedError

    def expression(self, value: values.Value, node: ast.AST) -> ast.expr:
        """The Program's expression for a value. A tile is loaded."""
        if isinstance(value, values.Runtime):
            if values.is_method(value.node):
                raise self.error(node, _no_value(values.Method(value, value.node.attr)))
            return value.node
        if isinstance(value, values.Known):
            return self._of_object(value.object, node)
        if isinstance(value, values.Tile):
            if value.held is not None:
                self.state.holds.read(value)
                if value.held.value is not None:
                    self.check_unchanged(value, node)
                    return nodes.clone(value.held.value)
            return self.at(nodes.Load(tile=self.reference(value, node)), node)
        if isinstance(value, values.Symbolic):
            return self.at(nodes.SymbolValue(symbol=value.symbol), node)
        if isinstance(value, values.Named):
            raise self.error(node, "A dictionary is no value of a running kernel: take one of its.")
        if isinstance(value, values.Group):
            items = [self.expression(item, node) for item in self.elements(value, node)]
            return self.at(ast.Tuple(elts=items, ctx=ast.Load()), node)
        if isinstance(value, values.Element):
            return self.at(nodes.ElementType(parameter=value.parameter.name), node)
        raise self.error(node, _no_value(value))

    def needed(self, value: values.Value, node: ast.AST) -> values.Value:
        """A value that is needed now: what constexpr symbols make is the number that a call has them make."""
        if isinstance(value, values.Known) and isinstance(value.object, slice):
            bounds = value.object.start, value.object.stop, value.object.step
            given = [values.to_python(self.needed(value_of(each), node), True) for each in bounds]
            return values.Known(slice(*(each.object for each in given if each is not None)))
        if not isinstance(value, values.Symbolic | values.Runtime):
            return value
        found = self.state.decisions.needed(self.expression(value, node))
        return value if found is None else values.Known(found)

    def bounds_of(self, value: values.Range, node: ast.AST, is_unrolled: bool) -> list[Any] | None:
        """The numbers that a loop over a range is given; None where they are not known, nor asked for so far."""
        decisions, bounds, symbols = self.state.decisions, list[Any](), set[Any]()
        for item in value.arguments:
            if isinstance(item, values.Known):
                bounds.append(item.object)
            elif isinstance(item, values.Symbolic | values.Runtime):
                made = self.expression(item, node)
                found = symbols_of(made)
                if not found:
                    return None
                symbols |= found
                bounds.append(decisions.known(made))
            else:
                return None
        if None not in bounds:
            return bounds
        if is_unrolled:
            decisions.unrolled |= symbols
        else:
            decisions.rounds[node] = symbols
        return None

    def rounds_of(self, node: ast.For | ast.While) -> list[Any]:
        """What a loop does in each round; nothing where it is left out."""
        decisions = self.state.decisions
        is_open = isinstance(node, ast.For) and node.iter in decisions.rounds
        return [] if decisions.leaves_out and is_open else list(node.body)

    def elements(self, value: values.Value, node: ast.AST) -> list[values.Value]:
        """The elements of something that is iterated over at compile time."""
        raise NotImplementedError

    def check_unchanged(self, tile: values.Tile, node: ast.AST) -> None:
        """Raise where a tile that a name stands for, and is loaded, was changed."""
        raise NotImplementedError

    def reference(self, tile: values.Tile, node: ast.AST) -> nodes.TileRef:
        """The node for a tile, which must be one, not several."""
        if not tile.is_complete:
            shape = shape_text(tile.parameter.levels[tile.selected_level])
            raise self.error(
                node,
                f"{tile.parameter.name!r} names {shape} tiles here, and one tile is needed. "
                f"Select it: `{tile.parameter.name}[...]` with "
                f"{count_text(len(tile.parameter.levels[tile.selected_level]), 'index', 'indices')}.",
            )
        indices = [nodes.clone(index) for index in tile.indices]
        return self.at(nodes.TileRef(parameter=tile.parameter.name, indices=indices), node)

    def is_constant(self, node: ast.expr) -> bool:
        """Whether the backend's compiler will know the value of ``node``."""
        return is_constant(node, self.state.constants)

    # Python objects in the Program.

    def _of_object(self, item: Any, node: ast.AST) -> ast.expr:
        item = literal(item)
        if isinstance(item, bool | str | None):
            return self.at(ast.Constant(value=item), node)
        if isinstance(item, int | float):
            return self._number(item, node)
        if item is Ellipsis:
            return self.at(ast.Constant(value=item), node)
        if (dtype := element_type(item)) is not None:
            return self.at(nodes.DTypeRef(dtype=dtype), node)
        if isinstance(item, LanguageFunction):
            return self.at(nodes.LanguageRef(name=item.name), node)
        if is_triton_function(item):
            return self.at(nodes.ExternRef(name=self._extern(item)), node)
        raise self.error(node, _no_value(values.Known(item)))

    def _number(self, number: int | float, node: ast.AST) -> ast.expr:
        """A literal; what Python has no literal for is called ``float("inf")`` and so on."""
        if isinstance(number, float) and not math.isfinite(number):
            text = self.at(ast.Constant(value=str(number)), node)
            function = self.name("float", node)
            return self.at(ast.Call(func=function, args=[text], keywords=[]), node)
        if number < 0 or (number == 0 and str(number).startswith("-")):
            positive = self.at(ast.Constant(value=-number), node)
            return self.at(ast.UnaryOp(op=ast.USub(), operand=positive), node)
        return self.at(ast.Constant(value=number), node)

    def _extern(self, item: Any) -> str:
        for name, known in self.state.externs.items():
            if known is item:
                return name
        name = self.state.fresh(getattr(item, "__name__", "function"))
        self.state.externs[name] = item
        return name


def _ended_before(node: ast.AST, loop: ast.AST, name: str) -> bool:
    """Whether ``loop`` is one of this variable, which was left where ``node`` stands."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    return loop.target.id == name and getattr(node, "lineno", 0) > (loop.end_lineno or 0)


def _no_value(value: values.Value) -> str:
    """Why a value cannot be one of the running kernel."""
    if isinstance(value, values.Level):
        return (
            f"The elements of {value.parameter.name!r} are tiles at this level, so its `.dtype` is "
            "that inner level and no element type. Take `.dtype` once more to get inside."
        )
    if isinstance(value, values.Source):
        return (
            f"`{value.parameter.name}.source` is the whole tensor; select elements with "
            f"`{value.parameter.name}.source[...]`."
        )
    if isinstance(value, values.Method):
        return f"`{value.name}` is a method: call it."
    if isinstance(value, values.Function) or (
        isinstance(value, values.Known) and is_inlined(value.object)
    ):
        return "A function is no value of a running kernel: call it."
    if isinstance(value, values.Range):
        return "A range is only for looping over: `for i in range(...)`."
    if isinstance(value, values.Known) and comes_from("ninetoothed", value.object):
        return (
            f"A {type(value.object).__name__} cannot be used inside of an application. Hand the "
            "tensor over as a parameter."
        )
    found = value.object if isinstance(value, values.Known) else value
    name = getattr(found, "__name__", str(found)).rpartition(".")[2]
    if name in NAMES:
        return f"{found!r} is another library's element type: write `ntl.{name}`."
    return (
        f"A {type(found).__name__} cannot be a value of a running kernel: {found!r:.80}. Numbers, "
        "element types, tiles and tuples of them can."
    )


def shape_text(shape: Sequence[Any]) -> str:
    return "×".join(f"({size})" if " " in str(size) else str(size) for size in shape)


def count_text(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
