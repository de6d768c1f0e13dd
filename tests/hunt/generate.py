"""Draws whole programs: each statement is tried by the reference before it is taken."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.hunt import dimensions, movements, places, probes  # noqa: F401
from tests.hunt.arrangements import USUAL, drawn, drawn_numbers
from tests.hunt.description import UNROLLED, Expression, Program, Statement
from tests.hunt.forms import FORMS, KINDS
from tests.hunt.reference import State, begun, evaluate, execute
from tests.hunt.values import WEAK, Ambiguous, Value, constant

#: How often one thing is tried before another is.
TRIES = 6

NUMBERS = (2, 3, -1, 0.5, -1.5, 2.0, -2, 0.25)


def program(seed: int, families: tuple[str, ...] = USUAL) -> Program:
    """A program, the same for the same seed."""
    choose = random.Random(seed)
    while True:
        family, parameters = drawn(choose, families)
        base = Program(seed, family, parameters, ())
        if (
            family not in ("chains", "biased-chains", "windows", "products")
            and choose.random() < 0.3
        ):
            sizes = {
                size
                for parameter in parameters
                for step in parameter.steps
                if step.name == "tile"
                for size in step.arguments[0]
                if size > 1
            }
            base = replace(base, symbols=frozenset(sizes))
        scalars, flags = drawn_numbers(choose, seed)
        base = replace(base, scalars=scalars, flags=flags)
        try:
            made = Maker(choose, begun(base)).program()
        except Ambiguous:
            continue
        # What floats are is known once it is known what is touched.
        if made is not None and made.is_wide == base.is_wide:
            made = _used(made)
            return replace(made, left_out=choose.choice((0, 0, 0, *range(len(made.numbers) + 1))))


def _used(made: Program) -> Program:
    """Without scalars and flags that nothing reads."""
    text = repr(made.body)
    return replace(
        made,
        scalars=tuple(item for item in made.scalars if f"'{item[0]}'" in text),
        flags=tuple(item for item in made.flags if f"'{item[0]}'" in text),
    )


class Maker:
    """Draws statements one after the other, beside the state in which they stand."""

    def __init__(self, choose: random.Random, state: State) -> None:
        self.choose = choose
        self.state = state
        self._program = state.program
        self._count = 0
        #: Loops' variables that index a level, by the parameter and the level's dimension.
        self.indices: dict[str, tuple[str, int]] = {}

    def program(self) -> Program | None:
        if designed := probes.DESIGNED.get(self._program.family):
            body = designed(self)
            return replace(self._program, body=body) if body else None
        body: list[Statement] = []
        for _ in range(self.choose.randint(1, 6)):
            if statement := self.taken(self._statement):
                body.append(statement)
        for _ in range(12):
            if statement := self.taken(self._last_store):
                return replace(self._program, body=(*body, statement))
        return None

    def taken(self, draw: Callable[[], Statement | None]) -> Statement | None:
        """A statement that the reference can execute where the program is now; it is executed."""
        for _ in range(TRIES):
            state = self.state.copy()
            indices = dict(self.indices)
            try:
                statement = draw()
                if statement is not None:
                    self.state = state.copy()
                    execute(self.state, statement)
                    return statement
            except Ambiguous:
                pass
            self.state, self.indices = state, indices
        return None

    # Statements.

    def _statement(self) -> Statement | None:
        kind = self.choose.choices(
            (
                *(self._let, self._loop, self._branch, self._store, self._augment),
                *(lambda: places.scattered(self), lambda: places.set_in_part(self)),
            ),
            (10, 4, 2, 2, 1, 2, 3),
        )[0]
        return kind()

    def fresh(self, letter: str = "v") -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _let(self) -> Statement:
        value = self.expression(self.choose.choice((1, 2, 2, 3)), "typed")
        return ("let", self.fresh(), value)

    def _variables(self, holds: Callable[[Value], bool] = lambda value: True) -> list[str]:
        scalars = dict(self._program.numbers)
        return [
            name
            for name, value in self.state.known.items()
            if name not in scalars
            and name not in self.indices
            and not name.startswith("k")
            and holds(value)
        ]

    def _augment(self) -> Statement | None:
        names = self._variables()
        if not names:
            return None
        operator = self.choose.choice(("+", "-", "*"))
        return ("augment", self.choose.choice(names), operator, self.expression(1, "any"))

    def _store(self) -> Statement | None:
        outputs = [
            parameter
            for parameter in self._program.parameters
            if parameter.name == "y" or self.choose.random() < 0.15
        ]
        parameter = self.choose.choice(outputs)
        indices = self.selection(parameter.name)
        if indices is None:
            return None
        value = self._stored(self.choose.choice((1, 2, 3)), "any")
        if self.choose.random() < 0.2:
            return ("add", parameter.name, indices, self.choose.choice(("+", "-", "*")), value)
        kind = "put" if self.choose.random() < 0.1 else "store"
        return (kind, parameter.name, indices, value)

    def _stored(self, depth: int, kind: str) -> Expression:
        """What is stored, which the store itself may choose."""
        if self.choose.random() > 0.1:
            return self.expression(depth, kind)
        return self._choice(depth)

    def _last_store(self) -> Statement | None:
        indices = self.selection("y")
        if indices is None:
            return self._loop_of_stores()
        return ("store", "y", indices, self._stored(self.choose.choice((1, 2, 3, 3)), "typed"))

    def _loop_of_stores(self) -> Statement | None:
        """A store to each tile of a level."""
        selections = self.state.tensors["y"].selections
        names = [self.fresh("k") for _ in selections]
        indices = tuple(("name", name) for name in names)

        def store() -> Statement:
            return ("store", "y", indices, self.expression(2, "typed"))

        return self.within(names, [("y", dim) for dim in range(len(names))], store)

    def within(self, names: list[str], counts: list[Any], draw: Callable[[], Statement]) -> Any:
        """Loops within each other around a statement."""
        state, self.state = self.state, self.state.copy()
        for name, count in zip(names, counts):
            self.state.known[name] = constant(0, (len(state.active),), "int32")
            if isinstance(count, tuple):
                self.indices[name] = count
        self.state.before = dict(state.known)
        try:
            statement = draw()
        finally:
            self.state = state
            for name in names:
                self.indices.pop(name, None)
        for name, count in zip(reversed(names), reversed(counts)):
            statement = ("for", name, count, (statement,))
        return statement

    def _loop(self) -> Statement | None:
        """A loop, and before it what it accumulates in."""
        if self.state.before is None and self.choose.random() < 0.1:
            return probes.passed_on(self)
        levels = [
            (name, dim)
            for name, tensor in self.state.tensors.items()
            for dim in range(len(tensor.selections))
        ]
        count: Any = self.choose.choice((2, 3, 6, "n", "n"))
        if levels and self.choose.random() < 0.8:
            count = self.choose.choice(levels)
        accumulators = self._variables(lambda value: value.data.dtype != bool)
        if self.state.before is None and (not accumulators or self.choose.random() < 0.7):
            # One that begins as something of the kind that is accumulated.
            return self.begun_loop(count)
        if not accumulators:
            return None
        return self._loop_over(self.choose.choice(accumulators), count)

    def begun_loop(self, count: Any) -> Statement | None:
        kind = self.choose.random()
        if kind < 0.5:
            parameter = self.choose.choice(self._program.parameters)
            start = self._filled(parameter.name)
        else:
            start = self.expression(1, "typed")
        name = self.fresh("a")
        execute(self.state, ("let", name, start))
        loop = self._loop_over(name, count)
        return None if loop is None else ("group", (("let", name, start), loop))

    def _loop_over(self, accumulator: str, count: Any) -> Statement | None:
        name, is_while = self.fresh("k"), self.choose.random() < 0.15
        body: list[Statement] = []

        def statement() -> Statement:
            kind = self.choose.random()
            old = ("name", accumulator)
            if kind < 0.3:
                operator = self.choose.choice(("+", "-", "+", "*"))
                return ("augment", accumulator, operator, self.expression(2, "any"))
            if kind < 0.7:
                form = self.choose.choice(("maximum", "minimum", "+", "-", "*", "%"))
                return ("let", accumulator, ("form", form, (), (old, self.expression(2, "number"))))
            if kind < 0.8:
                return ("let", accumulator, self.expression(2, "typed"))
            if kind < 0.9:
                condition = self._condition()
                return ("if", condition, (self._accumulate(accumulator),), ())
            where = (self.expression(1, "bool tile"), self.expression(1, "number tile"), old)
            return ("let", accumulator, ("form", "where", (), where))

        state = self.state
        self.state = inner = state.copy()
        inner.before = dict(state.known)
        inner.known[name] = constant(0, (len(state.active),), "int32")
        if isinstance(count, tuple):
            self.indices[name] = count
        if not is_while and self.choose.random() < 0.25:
            start, step = self.choose.choice(((1, 1), (2, 1), (0, 2), (1, 2), (0, -1), (1, -1)))
            count = ("range", start, step, count)
        if not is_while and self.choose.random() < 0.5:
            count = self._otherwise_written(count)
            if count[0] in UNROLLED:
                inner.known[name] = constant(0, (len(state.active),), "weak int")
        try:
            if self.choose.random() < 0.4:
                made = self.taken(self._let)
                if made:
                    body.append(made)
            made = self.taken(statement)
            if made is None:
                return None
            body.append(made)
            if self.choose.random() < 0.2 and (more := self.taken(self._statement)):
                body.append(more)
        finally:
            self.state = state
            self.indices.pop(name, None)
        return ("while" if is_while else "for", name, count, tuple(body))

    def _otherwise_written(self, count: Any) -> Any:
        if isinstance(count, int):
            return self.choose.choice(UNROLLED), count
        # Of a size that is known the rounds are unrolled, backwards.
        return ("reversed", count) if count[-1] == "n" else count

    def _accumulate(self, name: str) -> Statement:
        operator = self.choose.choice(("+", "-"))
        return ("augment", name, operator, self.expression(1, "any"))

    def _branch(self) -> Statement | None:
        names = self._variables()
        condition = self._condition()

        def inner() -> Statement | None:
            if names and self.choose.random() < 0.7:
                return ("let", self.choose.choice(names), self.expression(2, "typed"))
            return self._store() if self.choose.random() < 0.5 else places.set_in_part(self)

        state = self.state.copy()
        body = self.taken(inner)
        self.state = state
        if body is None:
            return None
        orelse: tuple[Statement, ...] = ()
        if self.choose.random() < 0.4:
            state = self.state.copy()
            other = self.taken(inner)
            self.state = state
            orelse = (other,) if other else ()
        return ("if", condition, (body,), orelse)

    def _condition(self) -> Expression:
        flags = [name for name, value in self._program.flags if isinstance(value, bool)]
        kind = self.choose.random()
        if flags and kind < 0.3:
            return ("flag", flags[0])
        operator = self.choose.choice(("<", ">", "==", ">=", "!="))
        if kind < 0.7:
            numbers = [name for name in self.state.known if name == "n" or name.startswith("k")]
            one = ("name", self.choose.choice(numbers))
            return ("form", operator, (), (one, ("number", self.choose.choice((0, 1, 2, 3)))))
        one = self.expression(2, "scalar")
        return ("form", operator, (), (one, ("number", self.choose.choice((0, 1, -2, 3)))))

    # Expressions.

    def selection(self, parameter: str) -> tuple[Expression, ...] | None:
        """Indices of one tile of a parameter that are known here."""
        tensor = self.state.tensors[parameter]
        indices: list[Expression] = []
        for dim, size in enumerate(tensor.selections):
            fitting = [
                name
                for name, (owner, place) in self.indices.items()
                if self.state.tensors[owner].selections[place] <= size
            ]
            exact = [name for name in fitting if self.indices[name] == (parameter, dim)]
            rounds = [n for n in self.state.known if n in self.indices or n.startswith("k")]
            if rounds and self.choose.random() < 0.12:
                indices.append(self._perhaps_beyond(rounds))
            elif fitting and self.choose.random() < 0.9:
                indices.append(("name", self.choose.choice(exact or fitting)))
            elif self.choose.random() < 0.3 and size:
                indices.append(("number", self.choose.randrange(size)))
            else:
                return None
        return tuple(indices)

    def _perhaps_beyond(self, rounds: list[str]) -> Expression:
        """An index that may leave any level: that of another loop, or beside it."""
        name = self.choose.choice(rounds)
        step = self.choose.choice((0, 1, 1, 2, -1))
        if step == 0:
            return ("name", name)
        operator = "+" if step > 0 else "-"
        return ("form", operator, (), (("name", name), ("number", abs(step))))

    def _leaf(self, kind: str) -> Expression | None:
        """A variable, a tile, a number."""
        holds = KINDS[kind]
        draw = self.choose.random()
        if draw < 0.15 and kind in ("any", "number", "integer"):
            numbers = [n for n in NUMBERS if kind != "integer" or isinstance(n, int)]
            return ("number", self.choose.choice(numbers))
        if draw < 0.45:
            names = [name for name, value in self.state.known.items() if holds(value)]
            if names:
                return ("name", self.choose.choice(names))
        if draw < 0.5:
            return self._filled(self.choose.choice(self._program.parameters).name)
        parameter = self.choose.choice(self._program.parameters)
        if draw > 0.97 and parameter.shape:
            return ("size", parameter.name, self.choose.randrange(len(parameter.shape)))
        if 0.92 < draw <= 0.97 and parameter.shape:
            return ("source", parameter.name, places.places(self, parameter))
        indices = self.selection(parameter.name)
        if indices is None:
            return None
        if 0.82 < draw <= 0.92 and self.state.tensors[parameter.name].tile:
            return ("part", parameter.name, indices, places.keys(self, parameter.name))
        is_vector = len(self.state.tensors[parameter.name].tile) == len(parameter.shape) == 1
        if draw < 0.54 and is_vector:
            return ("offsets", parameter.name, indices, self.choose.randrange(len(parameter.shape)))
        return ("load", parameter.name, indices)

    def _filled(self, parameter: str) -> Expression:
        dtype = self.choose.choice(("float32", "float32", "int32", "float64"))
        value = self.choose.choice((0, 0, -2, 3, 1)) * (1.0 if dtype.startswith("f") else 1)
        depth = int(bool(self.state.tensors[parameter].selections))
        return ("full", (parameter, depth), value, dtype)

    def expression(self, depth: int, kind: str) -> Expression:
        """An expression of a kind whose value the reference knows here."""
        for _ in range(4 * TRIES):
            try:
                tree = self._drawn(depth, kind)
                if tree is not None and KINDS[kind](evaluate(self.state, tree)):
                    return tree
            except Ambiguous:
                continue
        raise Ambiguous(f"nothing that is {kind}")

    def _drawn(self, depth: int, kind: str) -> Expression | None:
        if depth <= 0 or self.choose.random() < 0.15:
            return self._leaf(kind)
        if self.choose.random() < 0.03:
            return self._choice(depth)
        name = self.choose.choice(_BY_WEIGHT)
        form = FORMS[name]
        operands = tuple(self.expression(depth - 1, operand) for operand in form.kinds)
        values = [evaluate(self.state, operand) for operand in operands]
        if all(value.dtype in WEAK for value in values):
            return None
        if form.choose is None:
            return ("form", name, (), operands)
        if values[0].dtype in WEAK or not values[0].shape and "axis" in form.text:
            return None
        parameters = form.choose(self.choose, values)
        return None if parameters is None else ("form", name, tuple(parameters.items()), operands)

    def _choice(self, depth: int) -> Expression:
        one = self.expression(depth - 1, "typed")
        return ("choice", self._plain_condition(), one, self.expression(depth - 1, "typed"))

    def _plain_condition(self) -> Expression:
        return ("form", ">", (), (("name", "n"), ("number", 1)))


#: Reductions and moves come more often than their share.
_WEIGHTS = {
    "+": 4,
    "-": 3,
    "*": 4,
    "sum": 4,
    "max": 4,
    "min": 4,
    "flip": 3,
    "flip of the last": 2,
    "sort": 2,
    "maximum": 2,
    "minimum": 2,
    "exp": 2,
    "where": 3,
    "column": 2,
    "cumsum": 2,
    "//": 2,
    "%": 2,
}
_BY_WEIGHT = [name for name in FORMS for _ in range(_WEIGHTS.get(name, 1))]
