"""Statements: assignments that store or bind, and the ways that control may take."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ninetoothed.errors import NineToothedError, too_deep
from ninetoothed.parsing.assignments import AssignmentFrame
from ninetoothed.parsing.calls import gives_function
from ninetoothed.parsing.holds import CarryLater, lent_names
from ninetoothed.parsing.operators import set_cells
from ninetoothed.parsing.order import Bound, Rounds, Step, goes_on, takes_statements
from ninetoothed.parsing.syntax.walks import assigned_names, returns_of
from ninetoothed.parsing.values import (
    Cell,
    Evaluated,
    Known,
    Range,
    Runtime,
    Symbolic,
    Tile,
    Undecided,
    Value,
    in_rounds,
    same,
)
from ninetoothed.program.effects import statements_of
from ninetoothed.program.nodes import LanguageRef
from ninetoothed.symbols.simplify import is_nonnegative

_ADVICE = {
    ast.Break: "`break` is not supported: end the loop by its condition, as in `while k < n and not found`, or "
    "put the rest of the body under an `if`",
    ast.Continue: "`continue` is not supported: put the rest of the body under an `if`",
    ast.Try: "`try` is not supported: nothing is raised in a running kernel",
    ast.With: "`with` is not supported in an application",
    ast.Import: "An import is not supported here: import at the top of the module",
    ast.ImportFrom: "An import is not supported here: import at the top of the module",
    ast.ClassDef: "A class is not supported in an application",
    ast.AsyncFunctionDef: "`async` is not supported: a program is serial",
    ast.AsyncFor: "`async` is not supported: a program is serial",
    ast.AsyncWith: "`async` is not supported: a program is serial",
    ast.Global: "`global` is not supported: an application changes nothing but tiles",
    ast.Nonlocal: "`nonlocal` is not supported: return the value and assign it",
    ast.Delete: "`del` is not supported: a variable may simply be left alone",
    ast.Match: "`match` is not supported: use `if`",
    ast.Raise: "`raise` is reached here, and nothing is raised in a running kernel: use `assert`",
}


_NONE = "it is None before a loop that assigns it. Give it a number or a tile before the loop."


class StatementFrame(AssignmentFrame):
    """A frame that evaluates statements."""

    def run(self, statements: list[Step]) -> Value | None:
        """Evaluate statements; what they return, None where they fall through."""
        pending = list(reversed(statements))
        while pending:
            statement = pending.pop()
            try:
                returned = self._run_one(statement, pending)
            except RecursionError:
                place = statement if isinstance(statement, ast.stmt) else statement.node
                raise self.error(place, too_deep("This")) from None
            if returned is not None:
                return returned
        return None

    def _run_one(self, statement: Step, pending: list[Step]) -> Value | None:
        """Evaluate a statement; what is returned, None where it goes on with what is pending."""
        if isinstance(statement, Bound):
            self.assign(statement.target, statement.value, statement.target, holds=True)
        elif isinstance(statement, Rounds):
            self.next_round(statement)
        elif isinstance(statement, ast.Return):
            return Known(None) if statement.value is None else self.evaluate(statement.value)
        elif isinstance(statement, ast.If):
            condition = self.condition(statement.test)
            truth = self.truth(condition)
            if truth is not None:
                set_cells(self.given_by(statement.test)[truth])
                pending += reversed(statement.body if truth else statement.orelse)
            elif any(returns_of(statement)):
                rest = list(reversed(pending))
                pending.clear()
                return self._branch(statement, condition, rest)
            else:
                self._branch(statement, condition, None)
        elif isinstance(statement, ast.For):
            pending += reversed(self._for(statement))
        else:
            self._simple(statement)
        return None

    def _simple(self, node: ast.stmt) -> None:
        """A statement that always goes on to the next one."""
        method = getattr(self, f"_run_{type(node).__name__}", None)
        if method is None:
            advice = _ADVICE.get(type(node), f"{type(node).__name__} is not supported")
            raise self.error(node, f"{advice}.")
        method(node)

    def _run_Pass(self, node: ast.Pass) -> None:
        pass

    def _run_Expr(self, node: ast.Expr) -> None:
        self.asked.add(node.value)
        value = self.unnamed(self.evaluate(node.value))
        if isinstance(value, Runtime):
            self.emit(ast.Expr(value=value.node), node)

    def _run_Assert(self, node: ast.Assert) -> None:
        values = [self.condition(node.test)]
        truth = self.truth(values[0])
        if truth:
            return
        if node.msg is not None:
            values.append(self.evaluate(node.msg))
        if truth is False:
            self.asserted(values, node)
            return
        arguments = [self.expression(value, node) for value in values]
        name = "static_assert" if self.is_constant(arguments[0]) else "device_assert"
        if len(arguments) == 1:
            arguments.append(self.at(ast.Constant(value=ast.unparse(node.test)), node))
        function = self.at(LanguageRef(name=name), node)
        call = self.at(ast.Call(func=function, args=arguments, keywords=[]), node)
        self.emit(ast.Expr(value=call), node)

    def _run_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.error(node, "A decorated function is not supported inside an application.")
        self.bind(self.cells[node.name], self.local_function(node, node), node)

    # Ways.

    def _branch(self, node: ast.If, condition: Value, rest: list[Step] | None) -> Value | None:
        """An ``if`` that the running kernel decides.

        With ``rest``, the statements after it become part of both ways, since one of them returns;
        the result is what is returned.
        """
        test, named = self.expression(condition, node.test), self.given_by(node.test)
        before = self.state.cells()
        after = rest or []
        if after and goes_on(node.body) and goes_on(node.orelse):
            written = [step for step in after if isinstance(step, ast.stmt)]
            self.count_copies(sum(len(list(statements_of(step))) for step in written), node)
        with self.state.captured() as body:
            set_cells(named[True])
            one = self.run([*node.body, *after])
        ends = self.back(before)
        with self.state.captured() as orelse:
            set_cells(named[False])
            other = self.run([*node.orelse, *after])
        constant = self.is_constant(test)
        # After a return this function's own variables are of no use, but to a function that it gives.
        outer = self.state.frames[: self.state.frames.index(self)]
        given = gives_function(one) or gives_function(other)
        over = set(self.cells.values()) if rest is not None and not given else set()
        over -= {cell for frame in outer for cell in frame.cells.values()}
        results = (one or Known(None), other or Known(None))
        one, other = self.meet(before, ends, body, orelse, node, constant, results, over)
        result = None
        if rest is not None:
            result = self._returned((one, body), (other, orelse), node, constant)
        self.conditional(test, body, orelse, node)
        return result

    def _returned(
        self,
        one: tuple[Value, list[ast.stmt]],
        other: tuple[Value, list[ast.stmt]],
        node: ast.AST,
        constant: bool,
    ) -> Value:
        """What two ways return, as one value."""
        ways = [one, other]
        if same(ways[0][0], ways[1][0]):
            return ways[0][0]
        left, right = (
            (Runtime(self.expression(value, node)) if isinstance(value, Tile) else value, block)
            for value, block in ways
        )
        cell = Cell(self.state.fresh(f"{self.function.name}_result"))
        merged = self.merge(cell, left, right, node, constant)
        if merged is None or isinstance(merged, Undecided):
            raise self.error(
                node, "The ways through this function return different kinds of values."
            )
        return merged

    # Loops.

    def _for(self, node: ast.For) -> list[Step]:
        """A loop; where it is unrolled, the statements that it stands for are given back."""
        if node.orelse:
            raise self.error(node.orelse[0], "`else` after a loop is not supported.")
        value = self._loaded(node.iter)
        if isinstance(value, Range) and Known(0) in value.arguments[2:]:
            raise self.error(node.iter, "The step of a range cannot be 0.")
        if isinstance(value, Range) and value.left is not None:
            self.taken(value, node.iter)
        if not isinstance(value, Range) or self._is_unrolled(value, node.iter):
            steps: list[Step] = []
            items = self.elements(value, node.iter)
            self.count_copies(len(items), node)
            items[1:] = [self.as_it_is(item, node.iter) for item in items[1:]]
            items = [self.hold(item, node.iter, index) for index, item in enumerate(items)]
            if len(items) > 1:
                for cell in self._assigned_in([node]):
                    cell.is_stable = cell.stores
            rounds = self.rounds(self._assigned_in(node.body), self._assigned_in([node]), node)
            for item in items:
                steps += [rounds, Bound(node.target, item), *node.body]
            return [*steps, replace(rounds, is_last=True)]
        if len(value.arguments) == 3 and self._may_count_down(value.arguments[2], node):
            return self._counted(value, node)
        target = self._loop_variable(node)
        is_static = getattr(value.function.object, "name", "") == "static_range"
        if is_static:
            self.check_static(value, node.iter)
            self.state.constants.add(target.name)

        def enter() -> Cell:
            target.value = Runtime(self.name(target.name, node.target))
            return target

        carried = self._assigned_in(node.body) - {target}
        start = len(self.state.block)
        body = self._loop(node, carried, enter, is_static=is_static)
        iterated = self._iterated(self.kept(value, start, node.iter), node.iter)
        variable = self.name(target.name, node.target, ast.Store())
        self.emit(ast.For(target=variable, iter=iterated, body=body, orelse=[]), node)
        # In Triton it does not outlive the loop.
        target.value = None
        return []

    def _may_count_down(self, step: Value, node: ast.For) -> bool:
        """Whether only the running kernel knows that a step is negative, of which a compiler makes no rounds."""
        if isinstance(step, Symbolic) and is_nonnegative(step.symbol):
            return False
        return not (isinstance(step, Known) or self.is_constant(self.expression(step, node.iter)))

    def _counted(self, value: Range, node: ast.For) -> list[Step]:
        """The loop ``for i in range(start, stop, step)`` as one over its rounds."""
        target = self._loop_variable(node)
        bounds = [
            self.as_it_is(self.computed_once(item, node.iter, "bound"), node.iter)
            for item in value.arguments
        ]
        number = f"{target.name} "  # No name that is written.
        self.cells[number] = Cell(self.state.fresh(f"{target.name}_round"))
        rounds, loop = in_rounds(node, number, *bounds)
        loop.iter = Evaluated(Range(value.function, (self.evaluate(rounds),), value.keywords))
        self._for(ast.fix_missing_locations(ast.copy_location(loop, node)))
        target.value = None
        return []

    def _iterated(self, value: Range, node: ast.AST) -> ast.expr:
        """What a loop of the running kernel goes over."""
        called: ast.expr = (
            self.name("range", node)
            if value.function.object is range
            else self.expression(value.function, node)
        )
        self.check_bounds(value.known, node)
        arguments = [self.expression(item, node) for item in value.arguments]
        keywords = [
            self.at(ast.keyword(arg=key, value=self.expression(item, node)), node)
            for key, item in value.keywords.items()
        ]
        return self.at(ast.Call(func=called, args=arguments, keywords=keywords), node)

    def _is_unrolled(self, value: Range, node: ast.AST) -> bool:
        is_static = getattr(value.function.object, "name", "") == "static_range"
        bounds = self.bounds_of(value, node, is_static)
        # Nothing within a loop that has no round need make sense.
        return bounds is not None and (is_static or not self._python_range(bounds, node))

    def _loop_variable(self, node: ast.For) -> Cell:
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "A loop over a range has one variable.")
        cell = self.cells[node.target.id]
        if cell.stores:
            raise self.error(
                node.target, f"{node.target.id!r} is a tile: a loop needs a variable of its own."
            )
        return cell

    def _run_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "`else` after a loop is not supported.")
        tested = self._assigned_in([node.test])
        for cell in tested:
            # The test is made again after each round.
            cell.is_stable = False
        carried = self._assigned_in(node.body) | tested
        first: list[Value] = []
        before: list[ast.stmt] = []

        def enter() -> None:
            before.clear()
            with self.state.captured() as statements:
                first[:] = [self.condition(node.test)]
                set_cells(self.given_by(node.test)[True])
            before.extend(statements)

        saved: list[str] = []

        def leave() -> None:
            """Where the test takes statements, in a pass too, or loads, it is made again after each round."""
            test = first[0]
            if before or (isinstance(test, Runtime) and takes_statements(test.node)):
                if not saved:
                    saved.append(self.state.fresh("condition"))
                again = self.expression(self.condition(node.test), node.test)
                self.given_by(node.test)
                self.state.block.append(self.assignment(saved[0], again, node.test))

        start, held = len(self.state.block), self.state.cells()
        body = self._loop(node, carried, enter, leave)
        truth = self.truth(first[0])
        if truth is False:
            del self.state.block[start:]
            self.back(held)
            # It is asked once, for what it does.
            self.condition(node.test)
            set_cells(self.given_by(node.test)[False])
            return
        if truth is True:
            raise self.error(node.test, "This loop never ends: its condition is always true.")
        test = self.expression(first[0], node.test)
        self.state.block.extend(before)
        if saved:
            self.state.block.append(self.assignment(saved[0], test, node.test))
            test = self.name(saved[0], node.test)
        self.emit(ast.While(test=test, body=body or [self.at(ast.Pass(), node)], orelse=[]), node)

    def _loop(
        self,
        node: ast.For | ast.While,
        carried: set[Cell],
        enter: Callable[[], Cell | None],
        leave: Callable[[], None] = lambda: None,
        is_static: bool = False,
    ) -> list[ast.stmt]:
        """The body of a loop, evaluated once for all rounds.

        What it assigns has to be a variable of the running kernel from before the loop on. A helper
        may turn out to assign more than the body's own targets; then it is evaluated anew. What ``enter`` gives
        is the loop's own variable.
        """
        for statement in returns_of(node):
            raise self.error(
                statement,
                "`return` inside of a loop is not supported: assign to a variable and return it "
                "after the loop.",
            )
        start, before = len(self.state.block), self.state.cells()
        names, constants = set(self.state.names), set(self.state.constants)
        loaded, key = self.state.holds.loaded, (self.file, node.lineno, node.col_offset)
        lent = {each for each in lent_names(node.body) if self._variables([each]) - carried}
        if is_known := key in loaded.carried:
            carried |= self._variables(loaded.carried[key][0])
        while True:
            began = self.state.holds.now()
            for cell in carried:
                self._carry(cell, node)
            entry = self.state.cells()
            try:
                variable = enter()
                self.state.loops += 1
                with self.state.captured() as body:
                    self.run(self.rounds_of(node))
                    leave()
            except NineToothedError as error:
                if lent and not is_known:
                    raise CarryLater(key, frozenset(lent), error) from None
                raise
            self.state.loops -= 1
            # An evaluation before this one may have had cells of its own for loops within.
            changed = {cell for cell in before.keys() & entry if cell.value is not entry[cell]}
            more = changed - carried - {variable}
            if not more:
                break
            carried |= more
            del self.state.block[start:]
            _restore(self.state.names, {*names, *self.state.helpers, *self.state.externs})
            for cell in before:
                self.state.names |= {cell.name, *cell.item_names.values()}
            _restore(self.state.constants, constants)
            for cell, value in before.items():
                cell.value = value
        loaded.makes_sense(key, [each for each, cell in self.cells.items() if cell in changed])
        self.check_rounds(began)
        for cell in sorted(carried, key=lambda item: item.name):
            if before.get(cell) is None and not is_static:
                # After a loop of no rounds Python would raise, and Triton after any.
                cell.value = None
            self._close(cell, before.get(cell), entry.get(cell), body, node)
        return body or [self.at(ast.Pass(), node)]

    def _carry(self, cell: Cell, node: ast.AST) -> None:
        """Make a variable one of the running kernel before a loop that assigns it."""
        if cell.value is None or cell.stores:
            return
        is_none = isinstance(cell.value, Known) and cell.value.object is None
        settled = self.settle(cell, cell.value, self.state.block, node)
        cell.value = settled or Undecided(_NONE if is_none else "a loop assigns it.")

    def _close(
        self,
        cell: Cell,
        before: Value | None,
        entry: Value | None,
        body: list[ast.stmt],
        node: ast.AST,
    ) -> None:
        """At the end of a round a variable holds again what it held at the start of it."""
        if cell.stores:
            return
        if before is None:
            # No round may have run.
            cell.value = None
            return
        if isinstance(entry, Undecided):
            cell.value = before if same(cell.value, before) else entry
            return
        settled = self.settle(cell, cell.value, body, node)
        cell.value = settled if same(settled, entry) else Undecided("a loop changes what it is.")

    def _assigned_in(self, nodes: Sequence[ast.AST]) -> set[Cell]:
        """This function's variables that statements assign by themselves."""
        return self._variables(assigned_names(nodes))

    def _variables(self, names: Iterable[str]) -> set[Cell]:
        return {self.cells[name] for name in names if name in self.cells}


def _restore(names: set[str], earlier: set[str]) -> None:
    """Make a set what it was; others hold it too."""
    names.clear()
    names |= earlier
