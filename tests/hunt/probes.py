"""Programs that show much of little: tiles that are not full, and many numbers that each leaves.

Each number is what a form, or a loop, gives, reduced so that a lane without an element would show: negative
elements to their maximum, positive ones to their minimum, others to a sum of something that is nowhere 0.
The forms come in turn. Beside them are programs to which options apply that change what is done.
"""

from __future__ import annotations

import random
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tests.hunt import places
from tests.hunt.description import Expression, Parameter, Statement, Step
from tests.hunt.forms import FORMS, KINDS
from tests.hunt.reference import evaluate, execute
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
    two_tiles, begun_loop = partial(_of_two_tiles, maker), partial(maker.begun_loop, ("x", 0))
    for place in range(COUNT):
        if choose.random() < (0.5 if are_one else 0.15):
            body += filter(None, [maker.taken(lambda: _stored(maker, has_rounds))])
        value: Expression | None = None
        if choose.random() < 0.15 and (made := maker.taken(lambda: _stored_again(maker))):
            body.append(made)
            value = ("name", made[1][0][1])
        elif has_rounds:
            is_of_two = choose.random() < 0.3
            draw, at = (two_tiles, -1) if is_of_two else (begun_loop, 0)
            if (made := maker.taken(draw)) is None:
                continue
            body.append(made)
            value = ("name", made[1][at][1])

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


def _of_two_tiles(maker: Maker) -> Statement:
    """A sum of what a tensor's last tile makes with its first, or with all in a loop, as they are or moved."""
    choose = maker.choose
    name = choose.choice([parameter.name for parameter in maker.state.program.parameters[:-1]])
    sizes = maker.state.tensors[name].selections

    def moved(at: Expression) -> Expression:
        load = ("load", name, (at, *(("number", 0) for _ in sizes[1:])))
        move = choose.choice(("flip of the last", "flip of the last", "+", "-"))
        return ("form", move, (), (load, *[("number", 2)] * (move in "+-")))

    one, index, operator = maker.fresh("a"), maker.fresh("k"), choose.choice("+-*")
    is_loop = choose.random() < 0.5
    begun = ("let", one, moved(("number", sizes[0] - 1)))
    other = moved(("name", index) if is_loop else ("number", 0))
    both = ("let", one, ("form", operator, (), (("name", one), other)))
    value = ("form", "+", (), (("name", one), ("number", 3)))
    total = ("let", maker.fresh("a"), ("form", "sum", (("axis", None),), (value,)))
    return ("group", (begun, ("for", index, (name, 0), (both,)) if is_loop else both, total))


@cache
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
    operands = tuple(_operand(maker, kind) for kind in form.kinds)
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


# Programs that options are for: sums over rounds, windows, tiles that take turns, products of boxes.

_LENGTHS = (4, 5, 8, 11, 16, 17)


def offered(choose: random.Random) -> list[Parameter]:
    """What is read as one of the kinds has it, and what is stored."""
    return choose.choice((_rounds, _rounds, _windows, _turns, _boxes))(choose)


def _rounds(choose: random.Random) -> list[Parameter]:
    """Blocks of each row, in turn."""
    height, width = choose.choice((1, 2, 3)), choose.choice((2, 4, 5, 8))
    shape = (choose.choice((1, 3, 4, 7)), choose.choice(_LENGTHS) * choose.choice((1, 3)))
    steps = (
        Step(0, "tile", ((height, width),)),
        Step(0, "tile", ((1, -1),)),
        Step(0, "squeeze", (1,)),
        Step(1, "squeeze", (0,)),
    )
    names = ("x", "z") if choose.random() < 0.6 else ("x",)
    left = (Step(0, "tile", ((height, width),)), Step(0, "squeeze", (1,)))
    return [
        *(Parameter(name, shape, "float32", steps) for name in names),
        Parameter("y", (shape[0], width), "float32", left),
    ]


def _windows(choose: random.Random) -> list[Parameter]:
    """Windows of a matrix, some to a program, as pooling has them."""
    high, wide = choose.choice(((2, 2), (2, 2), (2, 4), (4, 2), (2, 1), (2, 3)))
    strides = (high, wide) if choose.random() < 0.7 else (1, choose.choice((1, wide)))
    is_floor = choose.random() < 0.5
    shape = (choose.choice((4, 5, 7)), choose.choice((4, 5, 8)))
    block = choose.choice((2, 4, 5, 8))
    counts = [
        (size - window) // stride + 1 if is_floor else -(-max(size - window, 0) // stride) + 1
        for size, window, stride in zip(shape, (high, wide), strides)
    ]
    steps = (
        Step(0, "tile", ((high, wide),), (("strides", strides), ("floor_mode", is_floor))),
        Step(0, "ravel", ()),
        Step(0, "flatten", (), (("end_dim", 2),)),
        Step(0, "flatten", (), (("start_dim", 1),)),
        Step(0, "tile", ((block, -1),)),
    )
    left = (Step(0, "tile", ((block, 1),)),)
    return [
        Parameter("x", shape, "float32", steps),
        Parameter("y", (counts[0] * counts[1], 1), "float32", left),
    ]


def _turns(choose: random.Random) -> list[Parameter]:
    """Two tiles of each row, or three, whose elements take turns."""
    count, half = choose.choice((2, 2, 2, 3)), choose.choice((1, 2, 3, 4, 5, 8))
    shape = (choose.choice((1, 3, 4)), count * half + choose.choice((0, 0, 1)))
    steps = (
        Step(0, "tile", ((1, half),), (("strides", (-1, 1)), ("dilation", (1, count)))),
        Step(0, "tile", ((1, choose.choice((2, -1))),)),
        Step(1, "squeeze", (0,)),
        Step(2, "squeeze", (0,)),
    )
    return [Parameter(name, shape, "float32", steps) for name in ("x", "y")]


def _boxes(choose: random.Random) -> list[Parameter]:
    """The operands of a product, of such a type and size that the copy engine could move them."""
    rows, columns, depth = (choose.choice((8, 16, 24, 32)) for _ in range(3))
    tile = choose.choice((8, 16))
    left = (Step(0, "tile", ((tile, 16),)), Step(0, "tile", ((1, -1),)))
    right = (Step(0, "tile", ((16, tile),)), Step(0, "tile", ((-1, 1),)))
    across, down = f"y.tile(({tile}, {tile})).shape[1]", f"y.tile(({tile}, {tile})).shape[0]"
    left += (Step(0, "expand", ((-1, -(-columns // tile)),), written=f"(-1, {across})"),)
    right += (Step(0, "expand", ((-(-rows // tile), -1),), written=f"({down}, -1)"),)
    half = "float16"
    return [
        Parameter("x", (rows, depth), half, (*left, Step(1, "squeeze", (0,)))),
        Parameter("z", (depth, columns), half, (*right, Step(1, "squeeze", (1,)))),
        Parameter("y", (rows, columns), "float32", (Step(0, "tile", ((tile, tile),)),)),
    ]


def of_offered(maker: Maker) -> tuple[Statement, ...]:
    """What computes something of what is read and stores it."""
    tensors = maker.state.tensors
    if tensors["y"].selections:
        return _in_turns(maker)
    if tensors["x"].selections:
        return _passed(maker) if maker.choose.random() < 0.3 else _summed(maker)
    stored = maker.taken(lambda: ("store", "y", (), _of_windows(maker)))
    return (stored,) if stored else ()


def _of_windows(maker: Maker) -> Expression:
    """A reduction of each window, or of two that are computed place by place."""
    name = maker.choose.choice(("sum", "max", "min"))
    value = ("form", f"{name} kept", (("axis", 1),), (_of("x", (), maker),))
    if maker.choose.random() < 0.3:
        return ("form", "+", (), (value, _of_windows(maker)))
    return value


def _of(name: str, indices: tuple[Expression, ...], maker: Maker) -> Expression:
    """A tile, as it is or computed place by place, by some other value too."""
    choose, tree = maker.choose, ("load", name, indices)
    while choose.random() < 0.4:
        kind = choose.choice(("+", "-", "*", "maximum", "where", "any"))
        if kind == "any":
            tree = ("form", choose.choice("+-*"), (), (tree, maker.expression(2, "number")))
        elif kind == "where":
            limit = ("number", choose.choice((-1, 1, 2)))
            tree = ("form", "where", (), (("form", ">", (), (tree, limit)), tree, limit))
        else:
            tree = ("form", kind, (), (tree, ("number", choose.choice((2, 3, -2)))))
    return tree


def _summed(maker: Maker) -> tuple[Statement, ...]:
    """Sums of what rounds load, and what becomes of them."""
    choose, counter, body = maker.choose, maker.fresh("k"), []
    totals = [maker.fresh("a") for _ in range(choose.choice((1, 1, 2)))]
    has_product = any(step.name == "expand" for step in maker.state.program.parameter("x").steps)
    names = [p.name for p in maker.state.program.parameters[:-1]]
    for total in totals:
        start = ("let", total, ("full", ("y", 0), 0.0, "float32"))
        body.append(maker.taken(lambda start=start: start))

    def index() -> Expression:
        step = choose.choice((0, 0, 0, 0, 0, 1, 2))
        at = ("name", counter)
        return ("form", "+", (), (at, ("number", step))) if step else at

    def added() -> Expression:
        if has_product:
            return ("form", "dot", (), tuple(("load", name, (index(),)) for name in names))
        return _of(choose.choice(names), (index(),), maker)

    def loop() -> Statement:
        adding = [("augment", total, choose.choice("+-"), added()) for total in totals]
        return ("group", tuple(adding))

    body.append(maker.taken(lambda: maker.within([counter], [("x", 0)], loop)))
    if choose.random() < 0.3:
        body.append(maker.taken(maker._let))

    def stored() -> Statement:
        value: Expression = ("name", totals[0])
        for total in totals[1:]:
            value = ("form", choose.choice("+*"), (), (value, ("name", total)))
        if choose.random() < 0.5:
            value = ("form", choose.choice("+*"), (), (value, maker.expression(1, "number")))
        return ("store", "y", (), value)

    body.append(maker.taken(stored))
    return tuple(filter(None, body)) if body[-1] else ()


def _passed(maker: Maker) -> tuple[Statement, ...]:
    """What rounds take from each other, stored as it is: such a store asks no masks of what was loaded."""
    loop = maker.taken(lambda: passed_on(maker))
    if loop is None:
        return ()
    value = ("name", loop[1][0][1])
    stored = maker.taken(lambda: ("store", "y", (), value))
    return (loop, stored) if stored else ()


def _in_turns(maker: Maker) -> tuple[Statement, ...]:
    """Tiles that stand beside each other, loaded and stored in some order."""
    choose, body = maker.choose, []
    # What is beyond a level of known size is refused.
    x = maker.state.program.parameter("x")
    is_known = x.is_known or x.steps[1].arguments[0][1] > 0
    numbers = range(maker.state.tensors["x"].selections[0]) if is_known else range(3)
    for _ in range(choose.choice((2, 2, 3))):
        for place in choose.sample(numbers, choose.choice((1, len(numbers)))):
            if choose.random() < 0.5:
                load = _of("x", (("number", place),), maker)
                body.append(maker.taken(lambda load=load: ("let", maker.fresh(), load)))
            else:

                def store(place: int = place) -> Statement:
                    value = _of("x", (("number", choose.choice(numbers)),), maker)
                    return ("store", "y", (("number", place),), value)

                body.append(maker.taken(store))
    found = tuple(filter(None, body))
    return found if any(statement[0] == "store" for statement in found) else ()


def passed_on(maker: Maker) -> Statement | None:
    """A loop whose rounds take what the round before has loaded, and load what the next one takes."""
    choose, counter = maker.choose, maker.fresh("k")
    names = [name for name, tensor in maker.state.tensors.items() if all(tensor.selections)]
    names = [name for name in names if maker.state.tensors[name].selections]
    if not names:
        return None
    name = choose.choice(names)
    sizes = maker.state.tensors[name].selections
    places = [("number", choose.choice((0, size - 1))) for size in sizes]
    at = ("name", counter)
    last = ("number", sizes[0] - 1)
    index = choose.choice((at, ("form", "-", (), (last, at)), places[0]))
    taken, given = maker.fresh("a"), maker.fresh("a")
    first = ("load", name, tuple(places))
    begun = choose.choice(
        (first, ("form", "*", (), (first, ("number", 2))), maker.expression(1, "typed"))
    )
    before = (("let", taken, begun), ("let", given, first))
    for statement in before:
        execute(maker.state, statement)

    def body() -> Statement:
        value: Expression = ("name", given)
        if choose.random() < 0.8:
            form = choose.choice(("maximum", "minimum", "+", "-", "*"))
            value = ("form", form, (), (("name", taken), value))
        load = ("load", name, (index, *places[1:]))
        return ("group", (("let", taken, value), ("let", given, load)))

    loop = maker.within([counter], [(name, 0)], body)
    return ("group", (*before, loop))


#: What computes and stores, by the family; other families draw it at random.
DESIGNED = {"probes": statements, "offered": of_offered}
