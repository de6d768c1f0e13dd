"""Reductions as Triton lowers them rightly, in the text of the program that it is about to lower.

What is reshaped for a reduction alone may come in any order, says Triton. Of several operands each comes in
its own, and an element meets another's place, or its mask (`argmax(ravel(x))`). There the order is kept.

The lanes along a dimension that a reshape made of several need be no neighbours: others' or copies may lie
between, as in a tile (2, 8, 8) that becomes (2, 64), or in what was gathered. 3.6 reduces over neighbours
all the same, and takes another row's elements (triton-lang/triton#9219 mends it, in 3.7). Of such a
reduction the operands are converted to a layout in which lanes and warps along each dimension are
neighbours, and its results back. Programs without one are left as they are.
"""

from __future__ import annotations

import itertools
import json
import re

_LAYOUT = re.compile(
    r"^(#\w+) = #ttg\.linear<\{register = (.*), lane = (.*), warp = (.*), block = (.*)\}>$", re.M
)
_FUNCTION = re.compile(r"^(?=  tt\.func )", re.M)
_REDUCTION = re.compile(
    r'^(?P<indent> *)(?P<name>%[\w.$-]+)(?P<several>:\d+)? = "tt\.reduce"\((?P<operands>.*?)\)'
    r"(?P<region> <\{axis = (?P<axis>\d+) : i32.*?^(?P=indent)\}\)) : \((?P<types>.*?)\) -> "
    r"\(?(?P<results>[^\n]*?)\)?(?P<location> loc\([^\n]*\))?$",
    re.M | re.S,
)
_NAME = re.compile(r"#\w+\b")
_SLICED = re.compile(r"#ttg\.slice<\{dim = (\d+)")


def in_order(text: str) -> str:
    """A program in MLIR's text whose reductions of several operands have all of them in order."""
    return "".join(map(_in_order, _FUNCTION.split(text)))


def _in_order(function: str) -> str:
    several = {
        name
        for operands in re.findall(r'"tt\.reduce"\((%[^)]*, [^)]*)\)', function)
        for name in operands.split(", ")
    }
    for name in several:
        reshaped = rf"^( *{re.escape(name)} = tt\.reshape %\S+) allow_reorder\b"
        function = re.sub(reshaped, r"\1", function, flags=re.M)
    return function


def rearranged(text: str) -> str:
    """A program in MLIR's text, tiles laid out, with its reductions so that 3.6 lowers them rightly."""
    layouts = {name: [json.loads(part) for part in parts] for name, *parts in _LAYOUT.findall(text)}
    if not layouts:
        return text
    rearranging = _Rearranging(layouts)
    found = "".join(map(rearranging.function, _FUNCTION.split(text)))
    added = "".join(f"{name} = {layout}\n" for layout, name in rearranging.added.items())
    return re.sub("^(?=module )", added, found, count=1, flags=re.M)


class _Rearranging:
    """Of one program.

    Args:
        layouts: by name, how far each bit of a register's, lane's, warp's and block's number moves along
            each dimension.

    Attributes:
        added: the names of the layouts that it needs as well.
    """

    def __init__(self, layouts: dict[str, list[list[list[int]]]]) -> None:
        self._layouts = layouts
        self.added: dict[str, str] = {}
        self._names = map("%grouped.{}".format, itertools.count())

    def function(self, text: str) -> str:
        done = ""
        while found := _REDUCTION.search(text):
            done += text[: found.start()]
            reduction, renamed = self._reduction(found)
            done, text = done + reduction, text[found.end() :]
            for name, other in renamed.items():
                text = re.sub(rf"{re.escape(name)}\b", other, text)
        return done + text

    def _reduction(self, found: re.Match[str]) -> tuple[str, dict[str, str]]:
        """A reduction, and what its results are called after it where that changes."""
        types, results = _types(found["types"]), _types(found["results"])
        axis = int(found["axis"])
        for dim in map(int, _SLICED.findall(types[0])):
            # Of what was sliced it is another dimension.
            axis += axis >= dim
        used = next((name for name in _NAME.findall(types[0]) if name in self._layouts), None)
        if used is None or _is_lowered_rightly(layout := self._layouts[used], axis):
            return found[0], {}
        name = self.added.setdefault(_grouped(layout, axis), f"#grouped{len(self.added)}")

        def grouped(type_: str) -> str:
            return re.sub(rf"{used}\b", name, type_)

        location = found["location"] or ""

        def converted(result: str, value: str, before: str, after: str) -> str:
            line = f"{result} = ttg.convert_layout {value} : {before} -> {after}"
            return f"{found['indent']}{line}{location}"

        values = [next(self._names) for _ in types]
        lines = [
            converted(result, value, type_, grouped(type_))
            for result, value, type_ in zip(values, found["operands"].split(", "), types)
        ]
        kept, are_tiles, is_one = found["name"], results[0].startswith("tensor<"), len(types) == 1
        made = next(self._names) if are_tiles else kept
        given = grouped(found["results"]) if is_one else f"({grouped(found['results'])})"
        lines.append(
            f'{found["indent"]}{made}{found["several"] or ""} = "tt.reduce"({", ".join(values)})'
            f"{found['region']} : ({grouped(found['types'])}) -> {given}{location}"
        )
        renamed = {}
        for place, type_ in enumerate(results if are_tiles else []):
            part, other = (made, kept) if is_one else (f"{made}#{place}", next(self._names))
            lines.append(converted(other, part, grouped(type_), type_))
            if not is_one:
                renamed[f"{kept}#{place}"] = other
        return "\n".join(lines), renamed


def _types(text: str) -> list[str]:
    return re.split(r", (?=tensor<)", text)


def _moved(bases: list[list[int]]) -> list[int | None]:
    """The dimension along which each bit moves; None of one by which copies differ."""
    return [next((dim for dim, by in enumerate(base) if by), None) for base in bases]


def _are_told_apart(dims: list[int | None]) -> bool:
    """Whether the bits of each dimension follow one another, copies' aside."""
    runs = [dim for dim, _ in itertools.groupby(dim for dim in dims if dim is not None)]
    return len(runs) == len(set(runs))


def _is_lowered_rightly(layout: list[list[list[int]]], axis: int) -> bool:
    _, lanes, warps, _ = map(_moved, layout)
    is_in_one_run = sum(dim == axis for dim, _ in itertools.groupby(lanes)) <= 1
    if axis not in warps:
        return is_in_one_run
    # What several warps have is put together by numbers along each dimension, of lanes and of warps.
    return is_in_one_run and _are_told_apart(lanes) and _are_told_apart(warps)


def _grouped(layout: list[list[list[int]]], axis: int) -> str:
    """A layout in which the bits of each dimension follow one another, the axis's first, copies' last."""

    def place(base: list[int]) -> tuple[bool, bool, int | None]:
        (dim,) = _moved([base])
        return dim is None, dim != axis, dim or 0

    register, lanes, warps, block = layout
    within = sorted(warps, key=place) if axis in _moved(warps) else warps
    parts = {"register": register, "lane": sorted(lanes, key=place), "warp": within, "block": block}
    return f"#ttg.linear<{{{', '.join(f'{name} = {bases}' for name, bases in parts.items())}}}>"
