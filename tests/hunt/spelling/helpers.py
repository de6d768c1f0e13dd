"""Rewritings that move what a program does into a helper."""

from __future__ import annotations

import ast
import copy

from tests.hunt.spelling.rewritings import either, expressions, rewriting, sure
from tests.hunt.spelling.scopes import (
    Application,
    Renamed,
    Run,
    assigned,
    counted_by,
    expression,
    parsed,
    reads,
    walked,
)


@rewriting
def helper_that_rebinds(app: Application) -> bool:
    """Statements in a helper that returns nothing: it stores, and rebinds what it is given."""
    # Of variables first: tensors are stored to by any name.
    for run, least in [*((run, 1) for run in app.runs()), *((run, 0) for run in app.runs())]:
        kept = set(assigned(run.body)) & run.known
        if len(kept - app.ranks.keys()) < least:
            continue
        if set(app.results(run)) - run.known or kept & {*app.numbers, *app.flags}:
            continue
        if all(app.is_computed(name) for name in kept - app.ranks.keys()):
            if helper := _Helper.of(app, run, copy.deepcopy(run.body), kept):
                helper.put([ast.Expr(helper.call)])
                return True
    return False


@rewriting
def helper_that_returns(app: Application) -> bool:
    """Statements in a helper that returns what they compute."""
    for run in app.runs():
        changed = set(assigned(run.body))
        results = app.results(run)
        given = {n for each in run.body if isinstance(each, ast.Assign) for n in assigned([each])}
        if not results or set(results) - run.known - given or changed & app.parameters:
            continue
        if set(results) & {n for each in walked(run.body) for n in counted_by(each)}:
            # A loop's variable ends with it.
            continue
        returned = parsed(f"return {', '.join(results)}")
        body = [*copy.deepcopy(run.body), *returned]
        if app.chance(0.2):
            condition = expression(sure(app) if app.chance(0.5) else either(app))
            body[-1:] = [ast.If(condition, copy.deepcopy(returned), []), *returned]
        if helper := _Helper.of(app, run, body, changed & run.known):
            helper.put(parsed(f"{', '.join(results)} = {ast.unparse(helper.call)}"))
            return True
    return False


@rewriting
def helper_for_an_expression(app: Application) -> bool:
    """What is computed in a helper, or in a function without a name."""
    for run, part, put in expressions(app, False):
        if app.chance(0.3):
            asked = [name for name in reads([part]) if name in run.known and app.chance(0.7)]
            name = app.fresh("f")
            text = f"{name} = lambda {', '.join(asked)}: {ast.unparse(part)}"
            put(expression(f"{name}({', '.join(asked)})"))
            run.replace([*parsed(text), *run.body])
            return True
        if helper := _Helper.of(app, run, [ast.Return(part)], set()):
            put(helper.call)
            helper.put(run.body)
            return True
    return False


class _Helper:
    """A function that is given what its statements ask for, or knows it from where it is defined."""

    def __init__(self, app: Application, run: Run, place: str) -> None:
        self.app, self.run, self.place = app, run, place
        self.name = app.fresh("h")
        self.definition: ast.stmt = ast.Pass()
        self.call = ast.Call(ast.Name(self.name, ast.Load()), [], [])

    @classmethod
    def of(cls, app: Application, run: Run, body: list[ast.stmt], kept: set[str]) -> _Helper | None:
        """One of these statements, which assign parameters; None where no helper can have them."""
        function = app.function
        own = {n.name for n in ast.walk(function) if isinstance(n, ast.FunctionDef)}
        missing = set(reads(body)) - run.known - set(assigned(body))
        if missing & set(assigned(function.body)) or app.is_known_within(body):
            return None
        places = ("module", "module", "application", "before")
        helper = cls(app, run, "before" if missing & own else app.choose.choice(places))
        asked = [n for n in dict.fromkeys((*reads(body), *sorted(kept))) if n in run.known]
        if helper.place != "module":
            asked = [n for n in asked if n in {*assigned(body)} or app.chance(0.5)]
        app.choose.shuffle(asked)
        helper.define(asked, body)
        return helper

    def define(self, asked: list[str], body: list[ast.stmt]) -> None:
        app = self.app
        renamed = {name: f"p{at}_" for at, name in enumerate(asked) if app.chance(0.5)}
        body = [Renamed(renamed).visit(each) for each in body]
        parameters = [renamed.get(name, name) for name in asked]
        if app.chance(0.4) and (numbers := _numbers(body)):
            operation, side = app.choose.choice(numbers)
            parameters.append(f"c_={ast.unparse(getattr(operation, side))}")
            setattr(operation, side, ast.Name("c_", ast.Load()))
        self.definition = parsed(f"def {self.name}({', '.join(parameters)}):\n    pass")[0]
        self.definition.body = body  # type: ignore[attr-defined]
        by_place = app.choose.randint(0, len(asked)) if app.chance(0.4) else len(asked)
        given = [
            name if at < by_place else f"{parameters[at]}={name}" for at, name in enumerate(asked)
        ]
        self.call = expression(f"{self.name}({', '.join(given)})")  # type: ignore[assignment]

    def put(self, statements: list[ast.stmt]) -> None:
        """The helper where it is defined, and what calls it in the place of what it does."""
        before = [self.definition] if self.place == "before" else []
        self.run.replace([*before, *statements])
        if self.place == "module":
            self.app.module.body.insert(-1, self.definition)
        elif self.place == "application":
            self.app.function.body.insert(0, self.definition)


def _numbers(body: list[ast.stmt]) -> list[tuple[ast.BinOp, str]]:
    """Where numbers stand in operations."""
    return [
        (node, side)
        for node in walked(body)
        if isinstance(node, ast.BinOp)
        for side in ("left", "right")
        if isinstance(getattr(node, side), ast.Constant)
    ]
