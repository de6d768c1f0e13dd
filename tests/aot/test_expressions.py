"""Symbolic integers printed as C: each value is Python's, and no range is narrower than it is."""

from __future__ import annotations

import ctypes
import random

import pytest

from ninetoothed.aot import c_expressions
from ninetoothed.aot.packaging import RUNTIME
from ninetoothed.errors import DeviceError
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, make, maximum, minimum, padded
from tests.aot.making import WARNINGS, needs_cc, run

NAMES = [Symbol(name) for name in "abcd"]

OPERATORS = ("+", "-", "*", "//", "%", "min", "max", "neg", "padded")


def expression(source: random.Random, depth: int) -> Symbol:
    """A random one over `NAMES`."""
    if depth == 0 or source.random() < 0.15:
        return source.choice((*NAMES, as_symbol(source.randint(-9, 300))))
    op = source.choice(OPERATORS)
    count = 1 if op in ("neg", "padded") else 2
    return make(op, *(expression(source, depth - 1) for _ in range(count)))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Symbol], ctypes.CDLL]:
    source = random.Random(1)
    found = [expression(source, 4) for _ in range(150)]
    folder = tmp_path_factory.mktemp("expressions")
    lines = ['#include "ninetoothed_kernel.h"', "typedef const int64_t *numbers;"]
    for place, each in enumerate(found):
        value = c_expressions.number(each, lambda leaf: f"n[{NAMES.index(leaf)}]")
        lines.append(f"int64_t value_{place}(numbers n);")
        lines.append(f"int64_t value_{place}(numbers n) {{ (void)n; return {value}; }}")
        known = {leaf: f"r[{NAMES.index(leaf)}]" for leaf in NAMES}
        range_ = c_expressions.range_of(each, lambda leaf: "0", known)
        lines.append(f"void range_{place}(const nt_range *r, nt_range *result);")
        lines.append(
            f"void range_{place}(const nt_range *r, nt_range *result) {{ (void)r; *result = {range_}; }}"
        )
    (folder / "expressions.c").write_text("\n".join(lines) + "\n")
    library = folder / "expressions.so"
    flags = ("-fsanitize=undefined", "-fno-sanitize-recover=all", "-static-libubsan")
    run(
        *("cc", *WARNINGS, *flags, f"-I{RUNTIME[0].parent}", "-shared", "-fPIC"),
        *(folder / "expressions.c", "-o", library),
    )
    return found, ctypes.CDLL(str(library))


class Range(ctypes.Structure):
    _fields_ = (("low", ctypes.c_int64), ("high", ctypes.c_int64), ("is_unknown", ctypes.c_int))


@needs_cc
def test_a_value_is_python_s(compiled: tuple[list[Symbol], ctypes.CDLL]) -> None:
    found, library = compiled
    source, compared = random.Random(2), 0
    for place, each in enumerate(found):
        function = getattr(library, f"value_{place}")
        function.restype = ctypes.c_int64
        for _ in range(30):
            numbers = [source.randint(-50, 5000) for _ in NAMES]
            expected = each.evaluate(dict(zip(NAMES, numbers)))
            parts = [part.evaluate(dict(zip(NAMES, numbers))) for part in each.walk()]
            result = function((ctypes.c_int64 * 4)(*numbers))
            if all(abs(part) < 2**62 for part in parts):
                assert result == expected, (each, numbers)
                compared += 1
    assert compared > 3500


@needs_cc
def test_what_overflows_is_as_large_as_can_be(compiled: tuple[list[Symbol], ctypes.CDLL]) -> None:
    """No undefined behaviour is met, whatever the numbers: the sanitizer would end the process."""
    found, library = compiled
    extremes = (-(2**63), -(2**62), -1, 0, 1, 2**62, 2**63 - 1)
    source = random.Random(3)
    for place in range(len(found)):
        for _ in range(20):
            numbers = [source.choice(extremes) for _ in NAMES]
            getattr(library, f"value_{place}")((ctypes.c_int64 * 4)(*numbers))
            ranges = [Range(*sorted(source.choices(extremes, k=2)), 0) for _ in NAMES]
            getattr(library, f"range_{place}")((Range * 4)(*ranges), ctypes.byref(Range()))


@needs_cc
def test_a_range_is_that_of_the_bounds(compiled: tuple[list[Symbol], ctypes.CDLL]) -> None:
    found, library = compiled
    source, known = random.Random(4), 0
    for place, each in enumerate(found):
        for _ in range(30):
            lows = [source.randint(-20, 3000) for _ in NAMES]
            highs = [low + source.choice((0, 0, 1, 63, 1000)) for low in lows]
            result = Range()
            given = (Range * 4)(*(Range(low, high, 0) for low, high in zip(lows, highs)))
            getattr(library, f"range_{place}")(given, ctypes.byref(result))
            low, high = interval(each, dict(zip(NAMES, zip(lows, highs))))
            if not result.is_unknown:
                known += 1
                assert (result.low, result.high) == (low, high), (each, lows, highs)
    assert known > 1200


def test_what_c_has_not_is_refused_by_name() -> None:
    with pytest.raises(DeviceError, match=r"cannot be computed where there is no Python"):
        c_expressions.number(NAMES[0] & NAMES[1], str)
    text = c_expressions.number(minimum(maximum(padded(NAMES[0]), 2**40), 7), str)
    assert text == "nt_min(nt_max(nt_padded(a), INT64_C(1099511627776)), 7)"
