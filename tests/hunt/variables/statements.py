"""Draws statements, each with the statements in it, as the lines of a text."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.hunt.variables.expressions import TILES, Expressions, Scope, Type

INDENT = "    "

#: How many branches and loops stand in each other at most.
MOST_DEPTH = 2


class Statements(Expressions):
    """Draws statements, one after the other, where they stand."""

    def __init__(self, choose: random.Random, is_wide: bool, divides: bool) -> None:
        super().__init__(choose, is_wide, divides)
        #: Helpers that return nothing, by name: the types of their parameters, the assigned ones first.
        self.procedures: dict[str, tuple[tuple[Type, ...], int]] = {}
        #: The parameters that are stored to.
        self.outputs: dict[str, str] = {}
        #: The element types that there are.
        self.tiles: tuple[str, ...] = ()
        #: Whether tiles have elements that do not exist.
        self.is_padded = False
        self.depth = 0
        self.is_function = False

    def block(self, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            lines += self.statement()
        return lines or ["pass"]

    def statement(self) -> list[str]:
        draws: list[tuple[int, Callable[[], list[str]]]] = [
            (6, self._assign),
            (3, self._reassign),
            (2, self._several),
            (2, self._starred),
            (2, self._augment),
            (2, self._swap),
            (2, self._chained),
        ]
        if self.outputs and not self.is_function:
            draws += [(3, self._store), (2, self._call_procedure), (1, self._function)]
        if self.depth < MOST_DEPTH:
            draws += [(3, self._branch)]
            # What a round has no element for stays what it was, which Python does not know.
            loops = [(2, self._unrolled), (3, self._loop), (1, self._while)]
            draws += loops * (not self.is_padded)
        weights, functions = zip(*draws)
        return self.choose.choices(functions, weights)[0]()

    # Variables.

    def type(self, depth: int = 2) -> Type:
        """A type of a variable."""
        if depth and self.chance(0.35):
            kind = self.choose.choice(("tuple", "tuple", "list", "dict"))
            items = [self.type(depth - 1) for _ in range(self.choose.randint(1, 3))]
            if self.chance(0.6):
                items = items[:1] * self.choose.randint(2, 3)
            return kind, tuple(items)
        if depth == 2 and self.chance(0.15):
            return self.function_type()
        return self.choose.choice((*self.tiles * 2, "int", "float", "bool"))

    def function_type(self) -> Type:
        """Its first parameter is a tile, so that there is one whatever it returns."""
        count = self.choose.randint(1, 3)
        kinds = [self.choose.choice(self.tiles), *(self.type(1) for _ in range(count - 1))]
        parameters = tuple((self.fresh("p"), kind) for kind in kinds)
        return "function", parameters, self.choose.randint(1, count), self.type(1)

    def variables(self, holds: Callable[[Type], bool] = lambda kind: True) -> list[str]:
        """Local ones, which may be assigned."""
        return sorted(
            n for n in self.scope.own if n in self.scope.types and holds(self.scope.types[n])
        )

    def define(self, name: str, kind: Type) -> None:
        self.scope.types[name] = kind
        self.scope.own.add(name)

    def value(self, kind: Type) -> str:
        return self.expression(kind, self.choose.choice((1, 2, 2, 3)))

    def _assign(self) -> list[str]:
        kind = self.type()
        text = self.value(kind)
        name = self.fresh("a")
        self.define(name, kind)
        return [f"{name} = {text}"]

    def _reassign(self) -> list[str]:
        names = self.variables()
        if not names:
            return self._assign()
        name = self.choose.choice(names)
        kind = self.scope.types[name]
        if isinstance(kind, tuple) and kind[0] == "function":
            # One that calls itself never ends.
            del self.scope.types[name]
        text = self.value(kind)
        self.scope.types[name] = kind
        return [f"{name} = {text}"]

    def _chained(self) -> list[str]:
        kind = self.type()
        text = self.value(kind)
        names = [self.fresh("a") for _ in range(2)]
        if (old := self.variables(lambda other: other == kind)) and self.chance(0.5):
            names[0] = self.choose.choice(old)
        for name in names:
            self.define(name, kind)
        return [f"{' = '.join(names)} = {text}"]

    def _several(self) -> list[str]:
        kinds = [self.type(1) for _ in range(2)]
        texts = [self.value(kind) for kind in kinds]
        targets = []
        for kind in kinds:
            old = [n for n in self.variables(lambda other, k=kind: other == k) if n not in targets]
            if old and self.chance(0.5):
                targets.append(self.choose.choice(old))
            elif isinstance(kind, tuple) and kind[0] != "dict" and self.chance(0.5):
                names = [self.fresh("a") for _ in kind[1]]
                for name, item in zip(names, kind[1]):
                    self.define(name, item)
                targets.append(f"({', '.join(names)},)")
                continue
            else:
                targets.append(self.fresh("a"))
            self.define(targets[-1], kind)
        return [f"{', '.join(targets)} = {', '.join(texts)}"]

    def _starred(self) -> list[str]:
        items = tuple(self.type(1) for _ in range(self.choose.randint(2, 4)))
        text = self.value((self.choose.choice(("tuple", "list")), items))
        at = self.choose.randrange(3)
        at = min(at, len(items) - 1)
        after = self.choose.randint(0, len(items) - 1 - at)
        names = [self.fresh("a") for _ in range(at + 1 + after)]
        middle = items[at : len(items) - after]
        kinds = [*items[:at], ("list", middle), *items[len(items) - after :]]
        for name, kind in zip(names, kinds):
            self.define(name, kind)
        names[at] = f"*{names[at]}"
        return [f"{', '.join(names)}{',' * (len(names) == 1)} = {text}"]

    def _augment(self) -> list[str]:
        names = self.variables(lambda kind: kind in (*TILES, "int", "float"))
        if not names:
            return self._assign()
        name = self.choose.choice(names)
        return [f"{name} {self.choose.choice('+-*')}= {self.value(self.scope.types[name])}"]

    def _swap(self) -> list[str]:
        """Variables of one type, or items of a tuple, change places."""
        name = self.choose.choice(self.variables() or [""])
        kind = self.scope.types.get(name)
        if isinstance(kind, tuple) and kind[0] != "function" and len(set(kind[1])) == 1:
            count = len(kind[1])
            if kind[0] == "dict":
                keys = [repr("abcdef"[at]).replace("'", '"') for at in range(count)]
                items = [f"{key}: {name}[{other}]" for key, other in zip(keys, keys[1:] + keys[:1])]
                return [f"{name} = {{{', '.join(items)}}}"]
            items = [f"{name}[{(at + 1) % count}]" for at in range(count)]
            if self.chance(0.4):
                items[0] = self.expression(kind[1][0], 2)
            open_, close = "()" if kind[0] == "tuple" else "[]"
            return [
                f"{name} = {open_}{', '.join(items)}{',' * (count == 1 and open_ == '(')}{close}"
            ]
        names = self.variables(lambda other: other == kind)
        if len(names) < 2:
            return self._reassign()
        one, other = self.choose.sample(names, 2)
        last = one if self.chance(0.6) else self.expression(kind, 2)
        return [f"{one}, {other} = {other}, {last}"]

    # Stores.

    def _store(self) -> list[str]:
        name = self.choose.choice(list(self.outputs))
        kind = self.outputs[name]
        if self.chance(0.2):
            return [f"{name} {self.choose.choice('+-*')}= {self.value(kind)}"]
        return [f"{name} = {self.value(kind)}"]

    def last_stores(self) -> list[str]:
        """Stores that a good part of what the program made goes into."""
        lines = []
        for name, kind in self.outputs.items():
            terms = [self.expression(kind, 2)]
            for sort in (kind, "int") if kind == "int32" else (kind, "int", "float"):
                known = self.all_known(sort)
                terms += self.choose.sample(known, min(len(known), 3))
            known = self.all_known("bool")[:1]
            terms += [f"(2 if {text} else 3)" for text in known]
            lines.append(
                f"{name} = "
                + " ".join(
                    text if not at else f"{self.choose.choice('+-')} {at} * {text}"
                    for at, text in enumerate(terms)
                )
            )
        return lines

    def _call_procedure(self) -> list[str]:
        fitting = []
        for name, (kinds, count) in self.procedures.items():
            targets = [
                [n for n in (*self.outputs, *self.variables()) if self.scope.types[n] == kind]
                for kind in kinds[:count]
            ]
            if all(targets):
                fitting.append((name, targets, kinds[count:]))
        if not fitting:
            return self._store()
        name, targets, kinds = self.choose.choice(fitting)
        chosen = [self.choose.choice(names) for names in targets]
        if len(set(chosen)) < len(chosen):
            return self._store()
        values = [self.aside(lambda k=kind: self.value(k)) for kind in kinds]
        return [f"{name}({', '.join([*chosen, *values])})"]

    # What stands around statements.

    def inside(self, types: dict[str, Type], count: int) -> list[str]:
        """Statements of a block: what begins in it is not there after it."""
        scope = self.scope
        self.scope = Scope({**scope.types, **types}, {*scope.own}, scope.binds)
        self.depth += 1
        lines = self.block(count)
        self.depth -= 1
        self.scope = scope
        return [INDENT + line for line in lines]

    def _branch(self) -> list[str]:
        lines = [f"if {self.expression(self.choose.choice(('bool', 'bool', 'int')), 2)}:"]
        lines += self.inside({}, self.choose.randint(1, 2))
        if self.chance(0.25):
            condition = self.aside(lambda: self.expression("bool", 2))
            lines += [f"elif {condition}:", *self.inside({}, 1)]
        if self.chance(0.5):
            lines += ["else:", *self.inside({}, self.choose.randint(1, 2))]
        return lines

    def _range(self) -> str:
        stop = self.choose.choice(("n", "n", "m", "2", "3"))
        stop = stop if stop in self.scope.types else "2"
        kind = self.choose.randrange(6)
        if kind < 3:
            return f"range({stop})"
        if kind == 3:
            return f"range(1, {stop} + 1)"
        if kind == 4:
            return f"range({stop}, 0, -1)"
        return f"range({self.choose.choice(('m', '0')) if 'm' in self.scope.types else 0}, 4, 2)"

    def _loop(self) -> list[str]:
        before = []
        over = self._range()
        if self.chance(0.25):
            name = self.fresh("r")
            before = [f"{name} = {over}"]
            if self.chance(0.4) and (numbers := self.variables(lambda kind: kind == "int")):
                before.append(f"{self.choose.choice(numbers)} += 1")
            over = name
        target = self.fresh("i")
        if (
            not self.depth
            and self.chance(0.1)
            and (numbers := self.variables(lambda kind: kind == "int"))
        ):
            target = self.choose.choice(numbers)
        lines = self.inside({target: "int"}, self.choose.randint(1, 3))
        # A loop's variable has no value after it.
        self.scope.types.pop(target, None)
        return [*before, f"for {target} in {over}:", *lines]

    def _unrolled(self) -> list[str]:
        """A loop over what is written there, or over a variable."""
        kind = self.type(1)
        count = self.choose.randint(1, 3)
        over = self.expression((self.choose.choice(("tuple", "list")), (kind,) * count), 1)
        target = self.fresh("i")
        sort = self.choose.randrange(4)
        types: dict[str, Type] = {target: kind}
        if sort == 1:
            place = self.fresh("i")
            types[place] = "int"
            return [f"for {place}, {target} in enumerate({over}):", *self.inside(types, 2)]
        if sort == 2:
            other, second = self.fresh("i"), self.type(1)
            types[other] = second
            beside = self.expression(("tuple", (second,) * count), 1)
            return [f"for {target}, {other} in zip({over}, {beside}):", *self.inside(types, 2)]
        if sort == 3 and (names := self.variables(lambda other: other == kind)):
            target = self.choose.choice(names)
            types = {}
        return [f"for {target} in {over}:", *self.inside(types, self.choose.randint(1, 2))]

    def _while(self) -> list[str]:
        name = self.fresh("k")
        begins = self.choose.choice(("0", "m" if "m" in self.scope.types else "1"))
        condition = (
            f"{name} < {self.choose.choice(('n', 'm', '3')) if 'n' in self.scope.types else 3}"
        )
        if self.chance(0.3):
            condition += f" and {self.aside(lambda: self.expression('bool', 1))}"
        lines = self.inside({name: "int"}, self.choose.randint(1, 2))
        return [f"{name} = {begins}", f"while {condition}:", *lines, f"{INDENT}{name} += 1"]

    def _function(self) -> list[str]:
        """A function in the application, which knows its variables."""
        kind = self.function_type()
        name = self.fresh("g")
        lines = self.defined(name, kind, self.scope.types)
        self.scope.types[name] = kind
        return lines

    def defined(self, name: str, kind: Any, known: dict[str, Type]) -> list[str]:
        """The lines of a function that returns a value."""
        _, parameters, least, result = kind
        defaults = [self.aside(lambda k=k: self.default(k)) for _, k in parameters[least:]]
        scope, depth = self.scope, self.depth
        self.scope, self.is_function, self.depth = (
            Scope(dict(known)).within(dict(parameters)),
            True,
            1,
        )
        self.scope.binds = True
        lines = self.block(self.choose.randint(0, 2))
        lines = [
            *(line for line in lines if line != "pass"),
            f"return {self.expression(result, 2)}",
        ]
        self.scope, self.is_function, self.depth = scope, False, depth
        names = [parameter for parameter, _ in parameters]
        texts = names[:least] + [f"{n}={d}" for n, d in zip(names[least:], defaults)]
        return [f"def {name}({', '.join(texts)}):", *(INDENT + line for line in lines)]

    def default(self, kind: Type) -> str:
        """What a parameter has where it is not given: outside of the application a number."""
        if self.outputs or isinstance(kind, tuple):
            return self.expression(kind, 1)
        return "True" if kind == "bool" else self.literal(kind)

    def defined_procedure(self, name: str) -> list[str]:
        """The lines of a function that returns nothing and assigns its first parameters."""
        count = self.choose.choice((1, 1, 2))
        kinds = tuple(self.choose.choice(self.tiles) for _ in range(count))
        kinds += tuple(self.type(1) for _ in range(self.choose.randint(0, 2)))
        self.procedures[name] = kinds, count
        names = [self.fresh("p") for _ in kinds]
        scope = self.scope
        self.scope, self.is_function, self.depth = (
            Scope(dict(zip(names, kinds)), set(names[:count])),
            True,
            1,
        )
        self.stored = names[:count]
        lines = self.block(self.choose.randint(0, 1)) if self.chance(0.4) else []
        for target in names[:count]:
            lines += [f"{target} = {self.value(self.scope.types[target])}"]
            self.scope.own.add(target)
        self.scope, self.is_function, self.depth, self.stored = scope, False, 0, []
        return [f"def {name}({', '.join(names)}):", *(INDENT + line for line in lines)]
