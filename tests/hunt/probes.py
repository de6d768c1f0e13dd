"""Programs that show much of little: tiles that are not full, and many numbers that each leaves.

Each number is what a form, or a loop, gives, reduced so that a lane without an element would show: negative
elements to their maximum, positive ones to their minimum, others to a sum of something that is nowhere 0.
The forms come in turn.
"""

from __future__ import annotations

import functools
import random
from typing import TYPE_CHECKING, Any

from tests.hunt import places
from tests.hunt.description import Expression, Parameter, Statement, Step
from tests.hunt.forms import FORMS, KINDS
from tests.hunt.reference import evaluate
from tests.hunt.values import WEAK, Ambiguous

if TYPE_CHECKING:
    from tests.hunt.generate import Maker

#: How many numbers each of a program's programs leaves.
COUNT = 12

SIZES = (3, 5, 6, 7, 9, 11, 13)


def parameters(choose: random.Random) -> list[Parameter]:
    """One, two or three tensors that are read, and the numbers."""
    kind = choose.choice(("vector", "matrix", "blocks", "rows", "rounds", "rounds"))
    first, second = choose.choice(SIZES), choose.choice(SIZES[:4])
    tile, programs = choose.choice((2, 3, 4, 5)), 1
    if kind == "vector":
        shape, sizes = (first,), (-1,)
    elif kind == "matrix":
        shape, sizes = (second, first), (-1, -1)
    elif kind in ("blocks", "rounds"):
        shape, sizes = (first,), (tile,)
        programs = -(-first // tile) if kind == "blocks" else 1
    else:
        shape, sizes = (first, second), (tile, -1)
        programs = -(-first // tile)
    steps: tuple[Step, ...] = (Step(0, "tile", (sizes,)),)
    if kind == "rounds":
        steps = (*steps, Step(0, "tile", ((-1,),)))
    names = ("x", "z") if choose.random() < 0.7 else ("x",)
    left = (Step(0, "tile", ((1,),)), Step(0, "tile", ((COUNT,),)))
    return [
        *(Parameter(name, shape, "float32", steps) for name in names),
        Parameter("y", (programs * COUNT,), "float32", left),
    ]


def statements(maker: Maker) -> tuple[Statement, ...]:
    """What computes the numbers and stores them."""
    body: list[Statement] = []
    choose, state = maker.choose, maker.state
    turn = state.program.seed * COUNT
    has_rounds = bool(state.tensors["x"].selections)
    are_one = any(parameter.same_as for parameter in state.program.parameters)
    for place in range(COUNT):
        if choose.random() < (0.5 if are_one else 0.15):
            body += filter(None, [maker.taken(lambda: _stored(maker, has_rounds))])
        value: Expression | None = None
        if choose.random() < 0.15 and (made := maker.taken(lambda: _stored_again(maker))):
            body.append(made)
            value = ("name", made[1][0][1])
        elif has_rounds:
            loop = maker.taken(lambda: maker.begun_loop(("x", 0)))
            if loop is None:
                continue
            body.append(loop)
            value = ("name", loop[1][0][1])

        def store(place: int = place, value: Expression | None = value) -> Statement:
            nonlocal turn
            tree = value
            if tree is None:
                turn += 1
                tree = _of_form(maker, _names()[turn % len(_names())])
            return ("store", "y", (("number", place),), _reduced(maker, tree))

        body += filter(None, [maker.taken(store)])
    return tuple(body)


def _stored(maker: Maker, has_rounds: bool) -> Statement | None:
    """A store to a tensor that is read, or to a part; to each of its tiles, where there are several."""
    names = [parameter.name for parameter in maker.state.program.parameters[:-1]]
    name = maker.choose.choice(names)
    if maker.choose.random() < 0.25:
        return places.set_in_part(maker)
    if not has_rounds:
        return ("store", name, (), maker.expression(1, "number tile"))
    index = maker.fresh("k")

    def store() -> Statement:
        return ("store", name, (("name", index),), maker.expression(1, "number tile"))

    return maker.within([index], [(name, 0)], store)


def _stored_again(maker: Maker) -> Statement:
    """A sum of what a tensor holds while it is stored to: in each round of a loop, or again where a condition
    holds."""
    choose, known = maker.choose, maker.state.tensors
    name = choose.choice([parameter.name for parameter in maker.state.program.parameters[:-1]])
    at = tuple(("number", 0) for _ in known[name].selections)
    total, load = maker.fresh("a"), ("load", name, at)

    def store() -> Statement:
        value = ("form", choose.choice("+-"), (), (load, ("number", choose.choice((2, 3)))))
        return ("store", name, at, value)

    def summed() -> Expression:
        return ("form", "sum", (("axis", None),), (load,))

    if choose.random() < 0.5:
        condition = ("form", choose.choice("<>"), (), (("name", "n"), ("number", 1)))
        steps = (("let", total, summed()), store(), ("if", condition, (store(),), ()))
        return ("group", (*steps, ("augment", total, "+", summed())))
    inner = (("augment", total, "+", summed()), store())
    loop = ("for", maker.fresh("k"), choose.choice((2, 3)), inner)
    return ("group", (("let", total, summed()), loop))


@functools.cache
def _names() -> tuple[str, ...]:
    """The forms but for those that are written in two ways, or of what is made positive first."""
    return tuple(
        name for name in FORMS if not name.endswith((" of a tile", " of what is positive"))
    )


def _operand(maker: Maker, kind: str) -> Expression:
    """Most often a tile, as it is or with a number or a size, which its padding then has too, or a comparison."""
    choose = maker.choose
    tiles = [p.name for p in maker.state.program.parameters[:-1]]
    name = choose.choice(tiles)
    tile: Expression = ("load", name, ())
    if choose.random() < 0.25:
        tile = ("part", name, (), places.keys(maker, name))
    if choose.random() < 0.5:
        beside: Expression = ("number", choose.choice((3, 5, 7)))
        if choose.random() < 0.3:
            beside = ("size", name, 0)
        tile = ("form", choose.choice("+-"), (), (tile, beside))
    if kind.startswith("bool"):
        tile = ("form", choose.choice("<>"), (), (tile, ("number", choose.choice((-1, 1, 2)))))
    if choose.random() < 0.7 and KINDS[kind](evaluate(maker.state, tile)):
        return tile
    return maker.expression(choose.choice((0, 1, 1)), kind)


def _of_form(maker: Maker, name: str) -> Expression:
    """A form of what is at hand."""
    form, choose = FORMS[name], maker.choose
    kinds = form.kinds
    if name in ("+", "-", "*") and choose.random() < 0.3:
        # Truth values count.
        kinds = ("bool tile", "bool tile")
    operands = tuple(_operand(maker, kind) for kind in kinds)
    if name == "histogram":
        operands = (("form", "to", (("dtype", "int32"),), operands),)
    values = [evaluate(maker.state, operand) for operand in operands]
    if values[0].dtype in WEAK or not values[0].shape and "axis" in form.text:
        raise Ambiguous("a number alone")
    given: dict[str, Any] | None = {} if form.choose is None else form.choose(choose, values)
    if given is None:
        raise Ambiguous("no parameters fit")
    return ("form", name, tuple(given.items()), operands)


def _reduced(maker: Maker, tree: Expression) -> Expression:
    """A value as one number, on which each of its lanes has an influence."""
    choose = maker.choose
    while (value := evaluate(maker.state, tree)).shape:
        if value.dtype == "bool":
            tree = ("form", "+", (), (tree, ("number", 0)))
            continue
        if choose.random() < 0.3:
            # How the elements are ordered has an influence.
            given = ("axis", choose.randrange(len(value.shape))), ("reverse", choose.random() < 0.5)
            tree = ("form", "cumsum", given, (tree,))
            value = evaluate(maker.state, tree)
        there = value.data[value.exists]
        draw = choose.random()
        if draw < 0.5 and (there < 0).all():
            name = "max"
        elif draw < 0.5 and (there > 0).all():
            name = "min"
        elif draw < 0.9:
            name, tree = "sum", ("form", "+", (), (tree, ("number", choose.choice((3, 5, 7)))))
        else:
            name = choose.choice(("max", "min", "sum"))
        axis = None
        if len(value.shape) > 1 and choose.random() < 0.6:
            axis = choose.randrange(len(value.shape))
        tree = ("form", name, (("axis", axis),), (tree,))
    return tree
