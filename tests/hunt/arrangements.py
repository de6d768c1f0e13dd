"""Families of arrangements, drawn at random: parameters without an application yet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.hunt import probes
from tests.hunt.description import Parameter, Step, gathered
from tests.hunt.memory import LAYOUTS, OVERLAID
from tests.tensors import gather

#: Sizes around powers of two, 1, and now and then 0.
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17)
#: Sizes at the ends of what such a row, or such a tensor, is compiled for.
LONG = (255, 257, 320, 321, 383, 385, 448, 511, 513, 575, 577, 1000)
TILES = (1, 2, 3, 4, 4, 5, 7, 8, 8, 16)

#: At the ends of what integer types hold, and of what a call's integers are passed as.
LARGE_NUMBERS = tuple(
    sign * (2**bits + beside)
    for bits in (7, 8, 15, 16, 31, 32, 40, 62)
    for beside in (-1, 0, 1)
    for sign in (1, -1)
)

INPUT_TYPES = (
    *("float32",) * 8,
    *(
        "float64",
        "float16",
        "bfloat16",
        "int32",
        "int32",
        "int64",
        "int8",
        "int16",
        "uint8",
        "uint16",
        "uint32",
        "bool",
    ),
)
OUTPUT_TYPES = (
    *("float32",) * 8,
    *("float64", "float16", "int32", "int64", "int8", "int16", "bool", "uint8", "uint16", "uint32"),
)

#: What a tensor may be declared with: the type that it has, by its object or its name, or another one.
DECLARED = (*("ninetoothed.{}", "'{}'", "torch.{}") * 2, "ninetoothed.float16", "ninetoothed.int64")

NUMBER_TYPES = (*("float32",) * 3, "float64", "int32", "int64")


def _size(choose: random.Random, most: int = 17) -> int:
    if choose.random() < 0.02:
        return 0
    return choose.choice([size for size in SIZES if size <= most])


def _tile(choose: random.Random, most: int = 16) -> int:
    return choose.choice([size for size in TILES if size <= most])


def tiled(*sizes: int, depth: int = 0, **keywords: object) -> Step:
    return Step(depth, "tile", (sizes,), tuple(keywords.items()))


def squeezed(dim: int | tuple[int, ...], depth: int = 0) -> Step:
    return Step(depth, "squeeze", (dim,))


Family = Callable[[random.Random], list[Parameter]]


def _alike(
    choose: random.Random, shape: tuple[int, ...], steps: tuple[Step, ...]
) -> list[Parameter]:
    """Two or three tensors of one shape and one arrangement."""
    names = ("x", "z", "y") if choose.random() < 0.6 else ("x", "y")
    return [Parameter(name, shape, "float32", steps) for name in names]


def blocks(choose: random.Random) -> list[Parameter]:
    """Every tensor in blocks along all dimensions."""
    rank = choose.choice((1, 1, 2, 2, 3))
    shape = tuple(_size(choose, (17, 9, 5)[rank - 1]) for _ in range(rank))
    tile = tuple(_tile(choose, (16, 8, 4)[rank - 1]) for _ in range(rank))
    return _alike(choose, shape, (tiled(*tile),))


def whole(choose: random.Random) -> list[Parameter]:
    """Every tensor as one tile of one program."""
    rank = choose.choice((1, 1, 2, 2, 3))
    shape = tuple(_size(choose, (17, 9, 5)[rank - 1]) for _ in range(rank))
    parameters = _alike(choose, shape, (tiled(*(-1,) * rank),))
    if rank == 2 and choose.random() < 0.4:
        row = Parameter("w", shape[1:], "float32", (tiled(-1),))
        parameters.insert(1, row)
    if choose.random() < 0.5:
        one = (1,) * rank
        parameters[-1] = replace(parameters[-1], shape=one, steps=(tiled(*one),))
    return parameters


def rows(choose: random.Random) -> list[Parameter]:
    """A row of a matrix, or several of them, in each program."""
    shape = (_size(choose, 6), _size(choose))
    height = choose.choice((1, 1, 2, 3))
    steps: tuple[Step, ...] = (tiled(height, -1),)
    if height == 1 and choose.random() < 0.7:
        steps = (*steps, squeezed(1), squeezed(0, 1))
    parameters = _alike(choose, shape, steps)
    if choose.random() < 0.4:
        # One number for each row.
        single = (tiled(height, 1), squeezed(1)) if len(steps) == 1 else (tiled(1, 1), squeezed(1))
        parameters[-1] = replace(parameters[-1], shape=(shape[0], 1), steps=single)
    if choose.random() < 0.3:
        count = "x_arranged.shape[0]"
        tiles = -(-shape[0] // height)
        row = (tiled(-1), Step(0, "expand", ((tiles,),), written=f"({count},)"))
        parameters.insert(1, Parameter("w", shape[1:], "float32", row))
    return parameters


def loops(choose: random.Random) -> list[Parameter]:
    """Blocks of a vector, or of each row of a matrix, which a program visits in turn."""
    block = _tile(choose)
    if choose.random() < 0.5:
        size = _size(choose)
        steps: tuple[Step, ...] = (tiled(block), tiled(-1))
        shape: tuple[int, ...] = (size,)
        held, one = ((block,), (tiled(block),)), ((1,), (tiled(1),))
    else:
        shape = (_size(choose, 6), _size(choose))
        height = choose.choice((1, 2, 3))
        steps = (tiled(height, block), tiled(1, -1), squeezed(0, 1))
        held = (shape[0], block), (tiled(height, block),)
        one = (shape[0], 1), (tiled(height, 1),)
    parameters = _alike(choose, shape, steps)
    kind = choose.random()
    if kind < 0.45:
        parameters[-1] = replace(parameters[-1], shape=held[0], steps=held[1])
    elif kind < 0.8:
        parameters[-1] = replace(parameters[-1], shape=one[0], steps=one[1])
    return parameters


def groups(choose: random.Random) -> list[Parameter]:
    """Some blocks in each program: the last one may have too few."""
    steps = (tiled(_tile(choose, 8)), tiled(choose.choice((2, 3, 4))))
    return _alike(choose, (_size(choose),), steps)


def long(choose: random.Random) -> list[Parameter]:
    """Rows and blocks of some hundreds of elements: what is multiplied by 256 there, or ends in a quarter."""
    size = choose.choice((*LONG, *range(256, 1024, 256), choose.randint(200, 1100)))
    block = choose.choice((64, 100, 128, 256))
    kind = choose.random()
    if kind < 0.4:
        return _alike(choose, (size,), (tiled(block),))
    shape = (choose.choice((1, 2, 3)), size)
    if kind < 0.8:
        return _alike(choose, shape, (tiled(1, -1), squeezed(1), squeezed(0, 1)))
    steps = (tiled(1, block), tiled(1, -1), squeezed(1), squeezed(0, 1), squeezed(0, 2))
    parameters = _alike(choose, shape, steps)
    one = (tiled(1, 1), squeezed(1), squeezed(0, 1))
    parameters[-1] = replace(parameters[-1], shape=(shape[0], 1), steps=one)
    return parameters


def products(choose: random.Random) -> list[Parameter]:
    """Tiles as a matrix product takes them."""
    m, n, k = (choose.choice((1, 5, 8, 16, 17, 20)) for _ in range(3))
    height, width, depth = choose.choice((4, 5, 8, 16)), choose.choice((4, 5, 8, 16)), 16
    rows, columns = -(-m // height), -(-n // width)
    if choose.random() < 0.3:
        left: tuple[Step, ...] = (tiled(height, -1),)
        right: tuple[Step, ...] = (tiled(-1, width),)
    else:
        left = (tiled(height, depth), tiled(1, -1))
        right = (tiled(depth, width), tiled(-1, 1))
    left = (*left, Step(0, "expand", ((-1, columns),), written="(-1, y.tile((%s)).shape[1])"))
    right = (*right, Step(0, "expand", ((rows, -1),), written="(y.tile((%s)).shape[0], -1)"))
    if len(left) == 3:
        left, right = (*left, squeezed(0, 1)), (*right, squeezed(1, 1))
    tile = f"{height}, {width}"
    written = [
        tuple(replace(s, written=s.written % tile) if s.written else s for s in steps)
        for steps in (left, right)
    ]
    return [
        Parameter("x", (m, k), "float32", written[0]),
        Parameter("z", (k, n), "float32", written[1]),
        Parameter("y", (m, n), "float32", (tiled(height, width),)),
    ]


def windows(choose: random.Random) -> list[Parameter]:
    """Tiles that overlap, of a tensor that is padded by as much, on one side or on both."""
    size, block = max(_size(choose), 1), _tile(choose, 8)
    left, right = choose.choice(((1, 1), (2, 2), (1, 0), (0, 1), (2, 1), (1, 3), (0, 2)))
    reach = (
        Step(0, "pad", (((left, right),),)),
        Step(0, "tile", ((block + left + right,),), (("strides", (block,)),)),
    )
    x = Parameter("x", (size,), "float32", reach, other=choose.choice((None, 0, -3, 2)))
    return [x, Parameter("y", (size,), "float32", (tiled(block),))]


def chains(choose: random.Random, is_biased: bool = False) -> list[Parameter]:
    """A chain of meta-operations that may be any, the same for all tensors."""
    while True:
        shape, steps, found = gather.random_chain(choose.randrange(10**9), is_biased=is_biased)
        is_flat = len(found.ranks) == 2 or (len(found.ranks) == 3 and 0 < found.ranks[1] <= 2)
        if is_flat and shape and found.ranks[-1] <= 3:
            break
    described = tuple(
        Step(step.depth, step.name, step.arguments, tuple(step.keywords.items()), _symbolic(step))
        for step in steps
    )
    return _alike(choose, shape, described)


def biased_chains(choose: random.Random) -> list[Parameter]:
    """A chain most of whose operations flatten, pad, reverse, or count from the end."""
    return chains(choose, is_biased=True)


def parts(choose: random.Random) -> list[Parameter]:
    """Another family's tensors, of which a part is taken: of the source, of the tiles, of each tile."""
    while True:
        parameters = choose.choice((blocks, blocks, whole, rows, loops, loops, groups))(choose)
        # What is written of another tensor's shape is a number, which a part of that may not have.
        parameters = [
            replace(p, steps=tuple(replace(step, written=None) for step in p.steps))
            for p in parameters
        ]
        steps = parameters[0].steps
        place = choose.choice((0, *[len(steps)] * 2))
        found = gathered(replace(parameters[0], steps=steps[:place]))
        depth = choose.randrange(len(found.ranks))
        draw = choose.choice((gather.subscript, gather.subscript, gather.from_the_end))
        taken = Step(depth, "__getitem__", *draw(choose, found.shape(depth))[:1])
        parameters = [
            replace(p, steps=(*p.steps[:place], taken, *p.steps[place:]))
            if p.steps == steps or place == 0
            else p
            for p in parameters
        ]
        if place == 0 and gathered(replace(parameters[0], steps=(taken,))).ranks != found.ranks:
            # `tile` has an entry for each dimension.
            continue
        try:
            every = [gathered(parameter) for parameter in parameters]
        except (ValueError, IndexError):
            continue
        programs = [[size for size in each.shape(0) if size != 1] for each in every]
        if any(each != programs[0] for each in programs):
            continue
        ranks = {each.ranks for each in every}
        if all(len(r) in (2, 3) and r[-1] <= 3 and (len(r) == 2 or 0 < r[1] <= 2) for r in ranks):
            return parameters


def _symbolic(step: gather.Step) -> str | None:
    return None if step.symbolic is None else ", ".join(map(repr, step.symbolic))


#: Each family with how often it is drawn; one that never is has to be asked for.
FAMILIES: dict[str, tuple[Family, int]] = {
    "blocks": (blocks, 4),
    "whole": (whole, 4),
    "rows": (rows, 4),
    "loops": (loops, 6),
    "groups": (groups, 1),
    "long": (long, 1),
    "products": (products, 1),
    "windows": (windows, 1),
    "chains": (chains, 3),
    "probes": (probes.parameters, 4),
    "parts": (parts, 2),
    "biased-chains": (biased_chains, 0),
    "offered": (probes.offered, 0),
}
USUAL = tuple(name for name, (_, weight) in FAMILIES.items() if weight)


def drawn_numbers(choose: random.Random, seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The arguments that are numbers, and the compile-time constants, each with its name."""
    scalars: tuple[Any, ...] = (("n", choose.choice((1, 2, 2, 3, 4, 0))),)
    if choose.random() < 0.3:
        scalars += (("f", choose.choice((0.5, -1.5, 2.0))),)
    if choose.random() < 0.2:
        scalars += (("b", choose.choice((True, False))),)
    # Drawn by itself, so that programs without it are what they were.
    large = random.Random(f"{seed}, large")
    if large.random() < 0.2:
        scalars += (("large", large.choice(LARGE_NUMBERS)),)
    flags: tuple[Any, ...] = ()
    if choose.random() < 0.3:
        flags += (("FLAG", choose.choice((True, False))),)
    if choose.random() < 0.3:
        flags += (("C", choose.choice((2, 3, -1, 0.5, 0))),)
    return scalars, flags


def drawn(choose: random.Random, families: tuple[str, ...]) -> tuple[str, tuple[Parameter, ...]]:
    """The parameters of some family, with types, layouts and signs."""
    weights = [FAMILIES[name][1] or 1 for name in families]
    family = choose.choices(families, weights)[0]
    parameters = FAMILIES[family][0](choose)
    is_known = choose.random() < 0.25
    common = choose.choice(INPUT_TYPES)
    result = []
    for parameter in parameters:
        is_output = parameter.name == "y"
        types = OUTPUT_TYPES if is_output else (common, common, *INPUT_TYPES)
        if family == "probes" and is_output:
            types = NUMBER_TYPES
        layouts = [name for name in LAYOUTS if name not in OVERLAID or not is_output]
        layout = "contiguous" if choose.random() < 0.5 else choose.choice(layouts)
        other = parameter.other
        if not is_output and other is None and choose.random() < 0.08:
            other = choose.choice((0, 2, 3))
        result.append(
            replace(
                parameter,
                dtype=choose.choice(types) if parameter.dtype == "float32" else parameter.dtype,
                layout=layout,
                sign=choose.choice(("negative", "positive", "mixed")),
                is_output=is_output and choose.random() < 0.8,
                is_known=is_known,
                other=other,
                declared=choose.choice(DECLARED) if choose.random() < 0.12 else None,
            )
        )
    if choose.random() < (0.3 if family == "probes" else 0.05) and len(result) == 3:
        first, second, *rest = result
        if first.shape == second.shape:
            result = [
                first,
                replace(second, dtype=first.dtype, layout=first.layout, same_as="x"),
                *rest,
            ]
    elif choose.random() < 0.06 and result[0].steps == result[-1].steps:
        last = replace(
            result[-1], dtype=result[0].dtype, layout="contiguous", same_as="x", is_output=False
        )
        result = [replace(result[0], layout="contiguous"), *result[1:-1], last]
    return family, tuple(result)
