"""Draws expressions of a type, as text, from the variables that are known where they stand.

A type is ``"int32"``, ``"float32"`` or ``"float64"`` for a tile; ``"int"``, ``"float"`` or ``"bool"`` for a
number; ``("tuple", types)``, ``("list", types)`` or ``("dict", types)``, whose keys are ``a``, ``b`` and so
on; ``("function", parameters, how many have no default, result)``; ``"range"``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.hunt.variables.tiles import ORDER

Type = Any

TILES = ORDER[1:]

KEYS = "abcdef"


@dataclass
class Scope:
    """What is known where an expression stands.

    Attributes:
        types: of each variable that has a value there.
        own: those that an assignment there gives a value to, and not a variable of the same name.
        binds: whether a variable may begin there: what is drawn is evaluated, once.
    """

    types: dict[str, Type]
    own: set[str] = field(default_factory=set)
    binds: bool = True

    def within(self, own: dict[str, Type]) -> Scope:
        """A function's scope."""
        return Scope({**self.types, **own}, set(own), binds=False)


class Expressions:
    """Draws expressions; `Statements` draws what they stand in."""

    def __init__(self, choose: random.Random, is_wide: bool, divides: bool) -> None:
        self.choose = choose
        self.scope = Scope({})
        self._count = 0
        #: Whether numbers that float32 does not hold stand beside float64 alone, and `zeros` in blocks that are full.
        self.is_wide, self.divides = is_wide, divides
        #: Parameters of a helper that may be tiles which it stores to.
        self.stored: list[str] = []

    def fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def chance(self, share: float) -> bool:
        return self.choose.random() < share

    # What is known.

    def paths(self, wanted: Type) -> list[str]:
        """Variables, items of theirs and calls of functions that have a type."""
        found: list[str] = []
        for name, kind in self.scope.types.items():
            found += [text for text, other in self._reached(name, kind, 2) if other == wanted]
        return found

    def _reached(self, text: str, kind: Type, depth: int) -> Iterator[tuple[str, Type]]:
        yield text, kind
        if not isinstance(kind, tuple) or not depth:
            return
        if kind[0] == "function":
            result = kind[3]
            # Its arguments are drawn where it is chosen.
            yield from self._reached(f"\0{text}\0", result, depth - 1)
            return
        for place, item in enumerate(kind[1]):
            key = f'"{KEYS[place]}"' if kind[0] == "dict" else str(place)
            if kind[0] != "dict" and self.chance(0.3):
                key = str(place - len(kind[1]))
            yield from self._reached(f"{text}[{key}]", item, depth - 1)

    def _called(self, text: str, depth: int) -> str:
        """A path with the arguments of its call."""
        before, name, *after = text.split("\0")
        return before + self.call(name, depth) + "".join(after)

    def call(self, name: str, depth: int) -> str:
        _, parameters, least, _ = self.scope.types[name]
        count = self.choose.randint(least, len(parameters))
        first_named = self.choose.randint(0, count) if self.chance(0.3) else count
        texts = []
        for at, (parameter, kind) in enumerate(parameters[:count]):
            text = self.expression(kind, depth - 1)
            texts.append(f"{parameter}={text}" if at >= first_named else text)
        if first_named < count and self.chance(0.5) and ":=" not in "".join(texts):
            texts[first_named:] = reversed(texts[first_named:])
        return f"{name}({', '.join(texts)})"

    def known(self, wanted: Type, depth: int) -> str | None:
        paths = self.paths(wanted)
        if depth <= 0:
            paths = [path for path in paths if "\0" not in path]
        if not paths:
            return None
        # What the program made, more often than what it was given.
        paths += [path for path in paths if path.strip("\0")[1:2].isdigit()] * 3
        path = self.choose.choice(paths)
        return self._called(path, depth) if "\0" in path else path

    # Expressions.

    def expression(self, wanted: Type, depth: int) -> str:
        """An expression of a type."""
        if depth <= 0 or self.chance(0.25):
            if text := self.known(wanted, depth):
                return text
        if depth > 0 and self.chance(0.06) and (text := self._bound(wanted, depth)):
            return text
        # Which tuple or function it is, a running kernel does not choose.
        if depth > 0 and self.chance(0.01 if isinstance(wanted, tuple) else 0.12):
            return self._chosen(lambda: self.expression(wanted, depth - 1), depth)
        if depth > 0 and self.chance(0.05):
            return self._item_of_display(wanted, depth)
        if isinstance(wanted, tuple):
            return self._compound(wanted, depth)
        drawn = {"int": self._int, "float": self._float, "bool": self._bool}.get(wanted)
        return drawn(depth) if drawn else self._tile(wanted, depth)

    def _bound(self, wanted: Type, depth: int) -> str | None:
        """An assignment in an expression."""
        scope = self.scope
        # What a helper stores to, an expression does not.
        names = [
            n for n in sorted(scope.own) if scope.types.get(n) == wanted and n not in self.stored
        ]
        value = self.expression(wanted, depth - 1)
        if scope.binds and (not names or self.chance(0.5)):
            name = self.fresh("a")
            scope.types[name] = wanted
            scope.own.add(name)
        elif names:
            name = self.choose.choice(names)
        else:
            return None
        return f"({name} := {value})"

    def _chosen(self, draw: Callable[[], str], depth: int) -> str:
        condition = self.expression("bool", depth - 1)
        one, other = self.aside(draw), self.aside(draw)
        return f"({one} if {condition} else {other})"

    def aside(self, draw: Callable[[], str]) -> str:
        """What may not be evaluated, or not once: no variable begins in it."""
        scope = self.scope
        self.scope = replace(scope, types=dict(scope.types), binds=False)
        try:
            return draw()
        finally:
            self.scope = scope

    def all_known(self, kind: Type) -> list[str]:
        """What the program made that has a type."""
        paths = self.paths(kind)
        return [path for path in paths if "\0" not in path and path[1:2].isdigit()]

    def _item_of_display(self, wanted: Type, depth: int) -> str:
        """An item of a list that is written there."""
        kind = self.choose.randrange(3)
        if kind == 0:
            items = [self.expression(wanted, depth - 1) for _ in range(2)]
            open_, close = self.choose.choice(("()", "[]"))
            return f"{open_}{', '.join(items)}{close}[{self.choose.choice((0, 1, -1))}]"
        items = [self.expression(wanted, depth - 1) for _ in range(2)]
        name = self.fresh("c")
        body = self.aside(lambda: self._over(name, wanted, depth))
        if kind == 1 or wanted not in (*TILES, "int"):
            return f"[{body} for {name} in ({', '.join(items)})][{self.choose.choice((0, 1, -1))}]"
        return f"sum([{body} for {name} in [{', '.join(items)}]])"

    def _over(self, name: str, wanted: Type, depth: int) -> str:
        self.scope.types[name] = wanted
        self.scope.own = set()
        return self.expression(wanted, depth - 1)

    def _compound(self, wanted: Type, depth: int) -> str:
        kind, items = wanted[0], wanted[1]
        if kind == "function":
            return self.lambda_of(wanted, depth)
        if kind != "dict" and self.chance(0.15):
            whole = self.known((kind, tuple(reversed(items))), 0)
            if whole:
                return f"{whole}[::-1]"
        if (
            kind != "dict"
            and len(set(items)) == 1
            and self.chance(0.15)
            and not isinstance(items[0], tuple)
        ):
            return self._comprehended(kind, items, depth)
        texts = [self.expression(item, depth - 1) for item in items]
        if kind == "dict":
            return "{" + ", ".join(f'"{KEYS[at]}": {text}' for at, text in enumerate(texts)) + "}"
        if kind == "list":
            return f"[{', '.join(texts)}]"
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"

    def _comprehended(self, kind: str, items: tuple[Type, ...], depth: int) -> str:
        name = self.fresh("c")
        over = ", ".join(self.expression(items[0], depth - 1) for _ in items)
        body = self.aside(lambda: self._over(name, items[0], depth))
        text = f"{body} for {name} in ({over},)"
        return f"[{text}]" if kind == "list" else f"tuple([{text}])"

    def lambda_of(self, wanted: Type, depth: int) -> str:
        _, parameters, least, result = wanted
        defaults = [self.aside(lambda k=k: self.expression(k, 1)) for _, k in parameters[least:]]
        scope = self.scope
        self.scope = scope.within(dict(parameters))
        body = self.expression(result, depth)
        self.scope = scope
        names = [name for name, _ in parameters]
        texts = names[:least] + [f"{n}={d}" for n, d in zip(names[least:], defaults)]
        return f"(lambda {', '.join(texts)}: {body})"

    # Tiles.

    def _tile(self, dtype: str, depth: int) -> str:
        if depth <= 0:
            return self._converted(dtype)
        kind = self.choose.randrange(10)
        if kind < 5:
            return self._arithmetic(dtype, depth)
        if kind == 5:
            one, other = (self.expression(dtype, depth - 1) for _ in range(2))
            return f"ntl.{self.choose.choice(('maximum', 'minimum'))}({one}, {other})"
        if kind == 6:
            condition = self.comparison(self.expression(dtype, depth - 1), "float", depth)
            return f"ntl.where({condition}, {self.expression(dtype, depth - 1)}, {self.expression(dtype, depth - 1)})"
        if kind == 7 and self.divides and (known := self.known(dtype, 0)) and known.isalnum():
            return f"ntl.full({known}.shape, {self.choose.choice((0, 1, 2, 0.5) if dtype != 'int32' else (0, 1, 2))}, ntl.{dtype})"
        if kind == 8:
            return f"(-{self.expression(dtype, depth - 1)})"
        return self.known(dtype, depth) or self._converted(dtype)

    def _arithmetic(self, dtype: str, depth: int) -> str:
        one = self.expression(dtype, depth - 1)
        sort = self.choose.randrange(3)
        if sort == 0:
            others = TILES[: TILES.index(dtype) + 1]
            other = self.expression(self.choose.choice((dtype, dtype, *others)), depth - 1)
        else:
            other = self.expression("int" if dtype == "int32" or sort == 1 else "float", depth - 1)
            if sort == 2 and dtype == "float64" and self.chance(0.5):
                other = self.choose.choice(("0.1", "1.3", "-0.7", "0.3"))
        operator = self.choose.choice("++--*")
        if self.chance(0.3) and ":=" not in one + other:
            one, other = other, one
        return f"({one} {operator} {other})"

    def _converted(self, dtype: str) -> str:
        for other in TILES:
            if text := self.known(other, 0):
                return text if other == dtype else f"{text}.to(ntl.{dtype})"
        return self.expression("int" if dtype == "int32" else "float", 0)

    # Numbers.

    def _int(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.3):
            return (self.chance(0.6) and self.known("int", depth)) or self.literal("int")
        one, other = (lambda: self.expression("int", depth - 1) for _ in range(2))
        kind = self.choose.randrange(8)
        if kind < 3:
            return f"({one()} {self.choose.choice('+-*')} {other()})"
        if kind == 3:
            return f"({one()} {self.choose.choice(('//', '%'))} {self.choose.choice((2, 3, -2))})"
        if kind == 4:
            return f"{self.choose.choice(('max', 'min'))}({one()}, {other()})"
        if kind == 5:
            return f"({one()} {self.choose.choice(('and', 'or'))} {self.aside(other)})"
        if kind == 6 and (tile := self.known("int32", 0)):
            return self._of_tile(tile)
        return f"abs({one()})"

    def _of_tile(self, tile: str) -> str:
        # An element that is not there is none of what is chosen, though Python may not ask for it.
        if self.chance(0.5) or not self.scope.binds:
            return f"ntl.{self.choose.choice(('sum', 'max', 'min'))}({tile})"
        # What is computed has no elements that could be picked.
        parameters = [name for name in self.scope.types if name in "xzyv"]
        if parameters and self.chance(0.95):
            tile = self.choose.choice(parameters)
        places = [
            place for place in ("0", "0", "1", "n", "m") if place in self.scope.types or place < "a"
        ]
        return f"{tile}[{self.choose.choice(places)}]"

    def _float(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.3):
            return (self.chance(0.6) and self.known("float", depth)) or self.literal("float")
        one, other = (lambda: self.expression("float", depth - 1) for _ in range(2))
        kind = self.choose.randrange(6)
        if kind < 2:
            first = one()
            second = other() if self.chance(0.5) else self.expression("int", depth - 1)
            return f"({first} {self.choose.choice('+-*')} {second})"
        if kind == 2:
            # Of integers it is a float32, which does not hold what is beside float64.
            sort = "float" if self.is_wide else self.choose.choice(("int", "float"))
            return f"({self.expression(sort, depth - 1)} / {self.choose.choice((2, 4))})"
        if kind == 3:
            return f"({one()} {self.choose.choice(('and', 'or'))} {self.aside(other)})"
        if kind == 4 and (tile := self.known("float32", 0)):
            return self._of_tile(tile)
        return (
            f"w[{self.position(depth - 1)}]"
            if self.scope.types.get("w") == "float32 row"
            else one()
        )

    def position(self, depth: int) -> str:
        """Of an element of `w`."""
        if self.chance(0.4):
            return str(self.choose.randrange(4))
        return f"({self.expression('int', depth - 1)}) % 4"

    def literal(self, kind: str) -> str:
        if kind == "int":
            return str(self.choose.choice((0, 1, 2, 3, -1)))
        if self.is_wide and self.chance(0.5):
            return self.choose.choice(("0.1", "1.3", "-0.7"))
        return self.choose.choice(("0.5", "1.5", "2.0", "-0.25"))

    def comparison(self, one: str, kind: str, depth: int) -> str:
        operator = self.choose.choice(("<", "<=", ">", ">=", "==", "!="))
        return f"({one} {operator} {self.expression(kind, depth - 1)})"

    def _bool(self, depth: int) -> str:
        if depth <= 0:
            number = self.known("int", 0) or "1"
            return f"({number} {self.choose.choice(('<', '>', '>=', '!='))} {self.choose.randrange(3)})"
        kind = self.choose.randrange(7)
        if kind < 3:
            sort = self.choose.choice(("int", "int", "float"))
            return self.comparison(self.expression(sort, depth - 1), sort, depth)
        if kind == 3:
            one = self.expression("bool", depth - 1)
            second = self.aside(lambda: self.expression("bool", depth - 1))
            return f"({one} {self.choose.choice(('and', 'or'))} {second})"
        if kind == 4:
            return f"(not {self.expression(self.choose.choice(('bool', 'int')), depth - 1)})"
        if kind == 5:
            first, second, third = (self.expression("int", depth - 1) for _ in range(3))
            return f"({first} {self.choose.choice(('<', '<='))} {second} {self.choose.choice(('<', '!='))} {third})"
        return self.known("bool", depth) or self.expression("bool", depth - 1)
