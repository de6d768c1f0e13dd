"""From an application to a Program: names resolved, helpers inlined, positions kept."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ninetoothed.errors import NineToothedError
from ninetoothed.parsing import source
from ninetoothed.parsing.bindings import is_name
from ninetoothed.parsing.compile_time import Decisions
from ninetoothed.parsing.frames import RESERVED, State
from ninetoothed.parsing.holds import CarryLater, Loaded, Loan, ReadLater
from ninetoothed.parsing.language_calls import function_of
from ninetoothed.parsing.objects import is_inlined, unbound, value_of
from ninetoothed.parsing.statements import StatementFrame
from ninetoothed.parsing.syntax.walks import assigned_names, returns_value
from ninetoothed.parsing.values import Cell, Group, Known, Named, Runtime, Tile, Value, copy_of
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import Load, SourceLoad, at, walk
from ninetoothed.program.program import Program
from ninetoothed.program.types import type_of


def parse(
    application: Callable[..., Any],
    parameters: Sequence[Any],
    name: str,
    constants: Mapping[str, Any] | None = None,
    taken: Collection[str] = (),
    decisions: Decisions | None = None,
) -> Program:
    """The Program of an application.

    Args:
        application: a plain Python function about one program's tiles.
        parameters: the arranged parameters (``arrange.Parameter``), paired with the application's
            by their names; a starred parameter takes those that no other one is called.
        name: the kernel's name.
        constants: the values of constexpr parameters: they decide what they decide now.
        taken: names that no variable of the Program may have.
        decisions: what constexpr symbols decide; told of those that are missing, after an error too.

    Raises:
        ApplicationError: located; the application uses what cannot be compiled.
        UnresolvedNameError: a name is defined nowhere that Python would look.
    """
    decisions = decisions or Decisions()
    given = application, parameters, name, constants, taken
    try:
        return _with_names(functools.partial(_parsed, *given, decisions))
    except NineToothedError:
        if decisions.rounds:
            # What makes no sense may stand in loops that have no round.
            rest = Decisions(decisions.values, leaves_out=True)
            with contextlib.suppress(NineToothedError):
                _with_names(functools.partial(_parsed, *given, rest))
                decisions.missing.update(*decisions.rounds.values())
            decisions.missing |= rest.missing
        raise


def _with_names(parsed: Callable[[Loaded], Program]) -> Program:
    """What is parsed, after it is found which names are to be loaded at once, and what loops carry."""
    loaded = Loaded()
    while True:
        try:
            return parsed(loaded)
        except (ReadLater, CarryLater) as found:
            loaded.add(found)
        except NineToothedError:
            if (refusal := loaded.refusal()) is not None:
                raise refusal from None
            raise


def _parsed(
    application: Callable[..., Any],
    parameters: Sequence[Any],
    name: str,
    constants: Mapping[str, Any] | None,
    taken: Collection[str],
    decisions: Decisions,
    loaded: Loaded,
) -> Program:
    """The Program, with the names loaded at once of which that is known already."""
    function = function_of(source.read(application))
    state = State(names={*RESERVED, *taken, name, *(item.name for item in parameters)})
    state.holds.loaded = loaded
    state.decisions = decisions
    state.parameters = {item.name: item for item in parameters}
    frame = FunctionFrame(state, function)
    frame.enter_application([_with_value(item, constants or {}) for item in parameters])
    state.frames.append(frame)
    returned = frame.run(list(function.tree.body))
    if returned is not None and not (isinstance(returned, Known) and returned.object is None):
        raise frame.error(
            _first_return(function.tree),
            "An application returns nothing: it stores by assigning to its parameters.",
        )
    for lost in state.holds.lost.values():
        raise lost
    _join_tiles(state)
    program = Program(
        name=name,
        parameters=tuple(parameters),
        body=state.block,
        externs=state.externs,
        helpers=state.helpers,
        names=frozenset(state.names),
        rebound=state.rebound,
        viewed=frozenset(loaded.viewed),
    )
    infer(program, is_checked=True)
    return program


def _join_tiles(state: State) -> None:
    """Has both operands of ``and`` and ``or`` made where one is a tile: these go element by element."""
    parameters = list(state.parameters.values())
    while state.joining:
        infer(SimpleNamespace(parameters=parameters, helpers=state.helpers, body=state.block))
        choice = next(filter(_is_of_tiles, state.joining), None)
        if choice is None:
            return
        state.joining.remove(choice)
        _join(choice, state.block)


def _is_of_tiles(choice: ast.If) -> bool:
    """Whether one of two operands is a tile."""
    last: Any = choice.body[-1]
    return bool(type_of(choice.test).rank or type_of(last.value).rank)


def _join(choice: ast.If, block: list[ast.stmt]) -> None:
    """Puts what makes a second operand into the block where that stands, and joins it with the first one."""
    for place, statement in enumerate(block):
        if statement is choice:
            last: Any = choice.body[-1]
            op: ast.boolop
            test, op = choice.test, ast.And()
            if isinstance(test, ast.UnaryOp):
                test, op = test.operand, ast.Or()
            last.value = at(ast.BoolOp(op=op, values=[test, last.value]), last)
            block[place : place + 1] = choice.body
        elif isinstance(statement, ast.If | ast.For | ast.While):
            _join(choice, statement.body)
            _join(choice, statement.orelse)


#: How many values the language hands to a function at least where that has defaults: it combines two.
_HANDED = 2


class FunctionFrame(StatementFrame):
    """A frame that knows how a function begins and ends."""

    def enter_application(self, parameters: Sequence[Any]) -> None:
        """Bind the application's parameters to tiles, scalars and constants."""
        tree = self.function.tree
        by_name = {parameter.name: parameter for parameter in parameters}
        counts = assigned_names(tree.body)
        arguments = tree.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            key = argument.arg
            if key in by_name:
                cell = self._parameter(by_name.pop(key), counts)
            elif key in self.function.defaults:
                cell = Cell(self.state.fresh(key), self.function.defaults[key])
            else:
                raise self.error(
                    argument, f"The application's parameter {key!r} has no tensor to it."
                )
            self.cells[key] = cell
        if arguments.vararg is not None:
            rest = tuple(self._parameter(item, counts).value for item in by_name.values())
            items = tuple(item for item in rest if item is not None)
            self.cells[arguments.vararg.arg] = Cell(arguments.vararg.arg, Group(items))
        if arguments.kwarg is not None:
            self.cells[arguments.kwarg.arg] = Cell(arguments.kwarg.arg, Named(()))
        self._make_locals(counts)

    def _parameter(self, parameter: Any, counts: dict[str, int]) -> Cell:
        name = parameter.name
        stable = name not in counts
        if parameter.kind == "tensor":
            return Cell(name, Tile(parameter, (), 1), stores=True, is_stable=True)
        if parameter.kind == "constant":
            return Cell(name, value_of(parameter.value), is_stable=stable)
        if parameter.kind == "constexpr":
            self.state.constants.add(name)
        # What is assigned to it is another's: the parameter stays what the call gave.
        variable = self.state.fresh(name)
        self.state.rebound[variable] = name
        return Cell(variable, Runtime(self.name(name, self.function.tree)), is_stable=stable)

    def _make_locals(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            if name not in self.cells:
                wishes = (name,) if self.caller is None else (name, f"{self.function.name}_{name}")
                self.cells[name] = Cell(self.state.fresh(*wishes), is_stable=count == 1)
        held = {name for name, cell in self.cells.items() if not cell.stores}
        for name in self._handed_over(held):
            self.cells[name].is_stable = False

    def _handed_over(self, names: Container[str]) -> Iterator[str]:
        """Those of some variables that are given to helpers which return nothing: these may rebind them."""
        for call in walk(self.function.tree):
            if isinstance(call, ast.Call):
                items = (*call.args, *(keyword.value for keyword in call.keywords))
                given = [item.id for item in items if isinstance(item, ast.Name)]
                given = [name for name in given if name in names]
                if given and self._may_rebind(call.func):
                    yield from given

    def _may_rebind(self, called: ast.expr) -> bool:
        """Whether what is called may be a helper that returns nothing."""
        names: list[str] = []
        while isinstance(called, ast.Attribute):
            names.insert(0, called.attr)
            called = called.value
        if not isinstance(called, ast.Name):
            return True
        if called.id in self.cells:
            # A method of a tile rebinds nothing.
            return not names
        try:
            found = self.function.resolve(called.id, called)
            item = found.object if isinstance(found, Known) else None
            for name in names:
                item = getattr(item, name)
            item, _ = unbound(item)
            return item is None or (is_inlined(item) and not returns_value(source.read(item).tree))
        except (AttributeError, NineToothedError):
            # It is told of where it is called.
            return True

    # Helpers.

    def enter(
        self, arguments: list[Value | Cell], keywords: dict[str, Value | Cell], node: ast.AST
    ) -> None:
        counts = assigned_names(self.function.tree.body)
        rebinds = returns_value(self.function.tree)
        paired = self._paired(arguments, keywords)
        for name, item in paired.items():
            if isinstance(item, Cell) and not item.stores:
                if not rebinds and name in counts:
                    self.check_one_tile(name, item.value)
                    self.watch(item)
                if rebinds and name not in counts:
                    # Its own, which is named as soon as a helper that it calls may rebind it.
                    value = self._held_by(copy_of(item.value), name, node)
                    self.cells[name] = Cell("", value, is_stable=True)
                    continue
                if rebinds or (isinstance(item.value, Tile) and item.value.is_complete):
                    item = self._plain(item)
            elif isinstance(item, Cell):
                value = self._held_by(item.value, name, node)
                if rebinds and name in counts:
                    item = value
                else:
                    self.cells[name] = Cell(item.name, value, stores=True, is_stable=True)
                    continue
            elif not rebinds and name in counts:
                self.check_one_tile(name, item)
            if isinstance(item, Cell):
                # A variable handed over is the caller's own: assigning it rebinds it there.
                item.name = item.name or self.state.fresh(name)
                item.is_stable = item.is_stable and name not in counts
                self.cells[name] = item
                self._lend(name, item)
                continue
            cell = Cell(
                self.state.fresh(name, f"{self.function.name}_{name}"),
                stores=isinstance(item, Tile) and item.is_complete and not rebinds,
                is_stable=name not in counts,
            )
            assert self.caller is not None
            cell.value = self._held_by(self.caller_held(cell, item, node), name, node)
            self.cells[name] = cell
            if not (rebinds or cell.stores or isinstance(item, Known)):
                node_of = item.node if isinstance(item, Runtime) else None
                is_place = isinstance(node_of, ast.Name | Load | SourceLoad)
                self.loans[name] = Loan(self, name, cell, is_value=True, is_place=is_place)
        self._make_locals(counts)

    def _lend(self, name: str, cell: Cell) -> None:
        """Has a parameter stand for a variable of the caller's."""
        caller, refusal = self.caller, ""
        assert caller is not None
        if cell.is_former:
            refusal = (
                "gets a variable as it that a later argument assigns: assign that before the call"
            )
        elif cell in caller.own.values():
            refusal = "gets the variable of a comprehension as it: write a loop"
        elif cell not in caller.cells.values():
            refusal = (
                f"{caller.function.name!r} gives it a variable of the function around: return the value "
                "and assign it"
            )
        parent = next((loan for loan in caller.loans.values() if loan.cell is cell), None)
        cell.is_lent = True
        self.loans[name] = Loan(self, name, cell, cell.value, parent, refusal)

    def check_one_tile(self, name: str, item: Value | None) -> None:
        """Raise where a parameter that is assigned gets a tile that only the running kernel chooses."""
        if self.is_choice_of_tiles(item):
            raise self.mismatch(
                f"assigns {name!r}, and only the running kernel knows which tile is given: call it in "
                "both ways of an `if`"
            )

    def _held_by(self, value: Any, name: str, node: ast.AST) -> Any:
        """An argument that a parameter stands for from here on."""
        assert isinstance(self.caller, FunctionFrame)
        return self.caller.hold(value, node, name)

    def keep_variables(self, node: ast.AST) -> None:
        """Has this function's variables stay what they are, for a function that it gives back."""
        for cell in self.cells.values():
            value = cell.value
            if cell.stores or (isinstance(value, Runtime) and is_name(value.node, cell.name)):
                continue
            if isinstance(value, Runtime | Group):
                cell.name = cell.name or self.state.fresh(f"{self.function.name}_value")
                self.bind(cell, value, node)

    def caller_held(self, cell: Cell, value: Value, node: ast.AST) -> Value:
        """As ``held``, placed at the call in the caller's file."""
        caller = self.caller
        assert isinstance(caller, FunctionFrame)
        return caller.held(cell, value, node)

    def _paired(
        self, arguments: list[Value | Cell], keywords: dict[str, Value | Cell]
    ) -> dict[str, Value | Cell]:
        """Arguments by parameter name, as Python pairs them."""
        signature = self.function.tree.args
        positional = [item.arg for item in signature.posonlyargs + signature.args]
        names = [*positional, *(item.arg for item in signature.kwonlyargs)]
        only_positional = {item.arg for item in signature.posonlyargs}
        paired: dict[str, Value | Cell] = dict(zip(positional, arguments, strict=False))
        extra = arguments[len(positional) :]
        if signature.vararg is not None:
            paired[signature.vararg.arg] = Group(tuple(self._plain(item) for item in extra))
        elif extra:
            raise self.mismatch(
                f"takes {len(positional)} positional arguments, and {len(arguments)} are given"
            )
        others: dict[str, Value] = {}
        for key, item in keywords.items():
            if key not in names or key in only_positional:
                if signature.kwarg is not None:
                    others[key] = self._plain(item)
                    continue
                raise self.mismatch(f"has no parameter {key!r}")
            if key in paired:
                raise self.mismatch(f"is given {key!r} twice")
            paired[key] = item
        for name in names:
            if name not in paired:
                if name not in self.function.defaults:
                    raise self.mismatch(f"needs {name!r}, which is not given")
                paired[name] = self.function.defaults[name]
        if signature.kwarg is not None:
            paired[signature.kwarg.arg] = Named(tuple(others.values()), tuple(others))
        return paired

    def mismatch(self, problem: str) -> Exception:
        """The error, at the call, for a helper that cannot be called so."""
        assert self.caller is not None and self.call is not None
        return self.caller.error(self.call, f"The helper {self.function.name!r} {problem}.")

    def result(self) -> Value:
        returned = self.run(list(self.function.tree.body))
        return Known(None) if returned is None else returned

    def standalone(self, name: str) -> ast.FunctionDef:
        tree = self.function.tree
        signature = tree.args
        if signature.vararg or signature.kwarg or signature.kwonlyargs:
            raise self.error(
                tree, "A function handed to the language takes plain positional parameters."
            )
        counts = assigned_names(tree.body)
        arguments = []
        for place, argument in enumerate(signature.posonlyargs + signature.args):
            default = self.function.defaults.get(argument.arg)
            if default is not None and place >= _HANDED:
                self.cells[argument.arg] = Cell(argument.arg, default)
                self.check_constant(default, argument.arg, argument)
                continue
            cell = Cell(self.state.fresh(argument.arg, f"{name}_{argument.arg}"))
            cell.value = Runtime(self.name(cell.name, argument))
            self.cells[argument.arg] = cell
            arguments.append(self.at(ast.arg(arg=cell.name), argument))
        self._make_locals(counts)
        returned = self.run(list(tree.body))
        if returned is None:
            raise self.error(tree, f"{name!r} is handed to the language and returns nothing.")
        result = self.at(ast.Return(value=self.expression(returned, tree)), tree)
        made = ast.arguments(
            posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        definition = ast.FunctionDef(
            name=name, args=made, body=[*self.state.block, result], decorator_list=[]
        )
        return self.at(definition, tree)


def _with_value(parameter: Any, constants: Mapping[str, Any]) -> Any:
    """A constexpr parameter whose value is known, as a constant."""
    if parameter.name not in constants:
        return parameter
    return replace(parameter, kind="constant", value=constants[parameter.name])


def _first_return(tree: ast.FunctionDef) -> ast.AST:
    """The return with a value that the error is about."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            return node
    return tree
