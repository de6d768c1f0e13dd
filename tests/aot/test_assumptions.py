"""What a variant assumes holds of every call that its guard in C lets through: facts found from numbers say so."""

from __future__ import annotations

import ctypes
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.aot.unit import Unit  # noqa: E402
from ninetoothed.backends.triton.ahead.assumptions import Assumption, Assumptions  # noqa: E402
from ninetoothed.backends.triton.ahead.default_config import choose, large_call  # noqa: E402
from ninetoothed.backends.triton.ahead.devices import limits_of  # noqa: E402
from ninetoothed.backends.triton.ahead.levels import with_descriptors, with_likeness  # noqa: E402
from ninetoothed.backends.triton.analysis.boxes import box_of  # noqa: E402
from ninetoothed.backends.triton.analysis.program_order import are_inverses_exact  # noqa: E402
from ninetoothed.backends.triton.options.option import Case  # noqa: E402
from ninetoothed.backends.triton.specialization.call_facts import facts_of  # noqa: E402
from ninetoothed.backends.triton.specialization.selections import positions  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of  # noqa: E402
from ninetoothed.kernels.ahead import Edition, Fixed  # noqa: E402
from ninetoothed.kernels.call import Argument, Call  # noqa: E402
from ninetoothed.kernels.definition import Definition  # noqa: E402
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.program import nodes  # noqa: E402
from ninetoothed.symbols.bounds import interval  # noqa: E402
from ninetoothed.symbols.expr import Symbol, evaluated  # noqa: E402
from ninetoothed.symbols.simplify import simplify  # noqa: E402
from tests.aot import calls  # noqa: E402
from tests.aot.kernels import PREMAKES, Premade  # noqa: E402
from tests.aot.making import Loaded, built_of, driver, library, needs_cc  # noqa: E402
from tests.aot.reference import View, environment  # noqa: E402

pytestmark = needs_cc

#: Random calls of each kernel that its library launches.
COUNT = int(os.environ.get("NINETOOTHED_AOT_CALLS", "1000"))


#: What is asked of a call here, and what depends on element types alone.
COMPARED = {
    *("holding", "unit_strides", "beyond", "wide", "is_long", "float8"),
    *("comparisons", "size_ratios", "narrow_values", "narrowest"),
}


def breaches(
    assumption: Assumption, unit: Unit, values: Mapping[Symbol, int], given: Mapping[str, Any]
) -> list[str]:
    """What a variant takes for granted and a call's numbers deny."""
    kernel, assumed = unit.kernel, assumption.facts
    known = facts_of(kernel, values, kernel.verified_grid(values))
    found = [f"condition {each} fails" for each in assumed.holding - known.holding]
    found += [f"{slack} is not negative" for slack in assumed.comparisons - known.comparisons]
    found += [f"{ratio} is not {n}" for ratio, n in assumed.size_ratios - known.size_ratios]
    found += [f"{stride} is not 1" for stride in assumed.unit_strides if values[stride] != 1]
    found += [f"{each} leaves its level" for each in known.beyond - assumed.beyond]
    if known.wide and not assumed.wide:
        found.append("a number needs 64 bits")
    if assumed.narrow_values and largest_value(kernel, values) > LARGEST_INT32:
        found.append("a value needs 64 bits")
    if assumption.by_inverses and not are_inverses_exact(kernel.verified_grid(values)):
        found.append("inverses are not exact")
    # Of a jagged tensor's sequences, which are refused.
    assert not known.is_long
    found += [
        f"{symbol} is no multiple of {by}"
        for symbol, by in assumption.divisors.items()
        if values[symbol] % by
    ]
    found += [
        f"{parameter.name} is not aligned"
        for parameter in kernel.tensor_parameters
        if given[parameter.name].address % assumption.alignment
    ]
    others = {entry.name for entry in fields(assumed)} - COMPARED
    found += [f"nothing here compares {name}" for name in others if getattr(assumed, name)]
    return found


def largest_value(kernel: Definition, values: Mapping[Symbol, int]) -> float:
    """How far from 0 the sizes and the offsets that a program computes with may be."""
    found = [0.0]
    for node in kernel.optimized.nodes():
        if isinstance(node, nodes.SymbolValue):
            found.append(abs(evaluated(node.symbol, values)))
        elif isinstance(node, nodes.Offsets):
            parameter = kernel.program.parameter(node.tile.parameter)
            access = kernel.arrangement.accesses[parameter.name]
            ranges = positions(parameter, access, values, kernel.verified_grid(values))
            index = simplify(access.of(node.dim).substitute(values))
            found += map(abs, interval(index, ranges))
    return max(found)


def call_of(unit: Unit, given: Mapping[str, Any]) -> Call:
    """A call as the JIT sees it."""
    arguments = {
        p.name: Argument(
            given[p.name].shape,
            given[p.name].strides,
            unit.fixed.dtypes[p.name],
            alignment=min(given[p.name].address & -given[p.name].address, 16),
        )
        for p in unit.kernel.tensor_parameters
    }
    return Call(arguments, {}, unit.fixed.constants)


def assumptions_of(kernel: Definition, fixed: Fixed, edition: Edition) -> dict[str, Assumption]:
    """What each variant of an edition is made under, by its name."""
    tensors = {p.name: fixed.dtypes[p.name] for p in kernel.tensor_parameters}
    chain = Assumptions(kernel, edition.known, tensors).chain()
    call, limits = large_call(kernel, fixed), limits_of("sm_90")
    config, _ = choose(kernel, call, limits)
    case = Case(kernel, call, environment_of(kernel, call, config), limits)
    if "descriptors" in dict(config.options):
        chain = with_descriptors(chain, case, config, edition.known)
    return {a.name: a for a in with_likeness(chain, case, config, edition.known)}


def of_library(
    premake: Callable[..., Premade], name: str, folder: Path, weakened: str = ""
) -> tuple[Loaded, Unit]:
    """A kernel's library, in whose C text 1 stands in place of some of the guards' conditions.

    Args:
        weakened: what the conditions begin with.
    """
    made = built_of(premake, name, folder / name, targets=("sm_90",))
    if weakened:
        source = made.folder / f"{name}_0.c"
        text, count = re.subn(f"&& (?:{weakened}).*?(;?\n)", r"&& 1\1", source.read_text())
        assert count
        source.write_text(text)
    return Loaded(library(made), driver(folder / "driver")), made.units[0]


def launched(c: Loaded, unit: Unit, given: Mapping[str, Any]) -> str | None:
    """The variant that a library launches for a call, if it launches one."""
    passed = [
        ctypes.byref(value.dlpack()) if isinstance(value, View) else ctypes.c_double(value)
        for value in given.values()
    ]
    before = c.last().launches
    result = getattr(c.library, f"{unit.name}_launch")(None, *passed)
    # Sizes that do not fit each other or the arrangement, and too many programs, are refused.
    assert result in (0, -7, -10, -11), c.message()
    if c.last().launches == before:
        return None
    return c.last().label().strip("<>").split()[-1]


def launches(c: Loaded, unit: Unit) -> Iterator[tuple[Mapping[str, Any], str, list[str]]]:
    """Random calls that a library launches, the variant of each, and what of its assumptions they break."""
    (edition,) = unit.editions
    assumptions = assumptions_of(unit.kernel, unit.fixed, edition)
    variants = {variant.name: variant for variant in edition.variants}
    name, source = unit.kernel.name, random.Random(unit.kernel.name)
    given: Mapping[str, Any] = {}
    for _ in range(3 * COUNT):
        # Often the last call at other addresses: nothing but these is asked of it then.
        is_moved = given and source.random() < 0.3
        given = moved(given, source) if is_moved else calls.random_call(name, unit, source)
        chosen = launched(c, unit, given)
        if chosen is None:
            continue
        values, call = environment(unit, edition, given), call_of(unit, given)
        found = breaches(assumptions[chosen], unit, values, given)
        # The copy engine takes this very tensor.
        found += [
            f"{argument.parameter} has no descriptor"
            for argument in variants[chosen].arguments
            if argument.described and box_of(unit.kernel, argument.parameter, call, values) is None
        ]
        yield given, chosen, found


def moved(given: Mapping[str, Any], source: random.Random) -> dict[str, Any]:
    """A call with its tensors elsewhere."""
    return {
        name: replace(value, address=0x7000_0000 + 2 * source.choice((0, 0, 0, 1, 8)))
        if isinstance(value, View)
        else value
        for name, value in given.items()
    }


@pytest.mark.parametrize("name", PREMAKES)
def test_a_guard_that_holds_implies_what_the_variant_assumes(name: str, tmp_path: Path) -> None:
    c, unit = of_library(PREMAKES[name], name, tmp_path)
    seen: list[str] = []
    for given, variant, found in islice(launches(c, unit), COUNT):
        assert found == [], (variant, given)
        seen.append(variant)
    assert len(seen) == COUNT
    (edition,) = unit.editions
    # But for what no call fulfils: test_launches says why.
    unfulfilled = {"full", "aligned"} if name == "conv2d" else set()
    names = {variant.name for variant in edition.variants}
    # Nor has one a size or an index that 32 bits do not hold.
    unfulfilled |= {"plain"} if "valued" in names else set()
    assert {*seen} == names - unfulfilled
    if name == "sdpa":
        # Where keys fill blocks no comparison with their number is made.
        assert assumptions_of(unit.kernel, unit.fixed, edition)["alike"].facts.comparisons
    has_described = any(a.described for variant in edition.variants for a in variant.arguments)
    assert has_described == (name in ("mm", "addmm", "bmm", "sdpa"))


@pytest.mark.parametrize(
    ("name", "condition", "breach"),
    [
        ("add", r".*n->input_stride_0.*2147483647\)|nt_is_narrow\(n->input_stride_0", "64 bits"),
        ("mm", "n->other_stride_1 == 1", "other_stride_1 is not 1"),
        ("mm", r"nt_is_aligned\(n->input,", "input is not aligned"),
        ("mm", r"nt_mod\(n->input_size_1, 8", "input_size_1 is no multiple of 8"),
        ("mm", r"nt_is_within\(nt_exact\(n->input_stride_0", "input has no descriptor"),
        ("add", r"nt_is_within\(nt_range_sub", "condition ('input', 0) fails"),
        ("sdpa", r".*n->key_size_1\)\), 1, 1\)", "query_size_1 // key_size_1 is not 1"),
    ],
    ids=["narrow", "contiguous", "aligned", "divisible", "described", "full", "alike"],
)
def test_a_guard_that_asks_less_lets_a_call_through_that_breaks_an_assumption(
    name: str, condition: str, breach: str, tmp_path: Path
) -> None:
    c, unit = of_library(PREMAKES[name], name, tmp_path, condition)
    assert any(breach in each for *_, found in launches(c, unit) for each in found)


def test_a_comparison_is_left_out_where_the_sizes_of_a_call_say_that_it_holds(
    tmp_path: Path,
) -> None:
    def arrangement(input: Tensor, limit: Tensor, output: Tensor) -> tuple[Tensor, ...]:
        return input.tile((64,)), limit, output.tile((64,))

    def application(input: Any, limit: Any, output: Any) -> None:
        is_within = input.offsets(0) < limit.source.shape[0]
        output = ntl.where(is_within, input, -1.0)  # noqa: F841

    tensors = tuple(Tensor(1, dtype=ninetoothed.float16) for _ in range(3))
    c, unit = of_library(lambda: (arrangement, application, tensors), "limited", tmp_path)
    (edition,) = unit.editions
    for variant in edition.variants:
        assert ("limit_size_0" in variant.source) == (variant.name != "alike")

    def given(limit: int) -> dict[str, View]:
        sizes = {"input": 4096, "limit": limit, "output": 4096}
        return {name: View((size,), (1,)) for name, size in sizes.items()}

    found = {limit: launched(c, unit, given(limit)) for limit in (4096, 5000, 4095, 64)}
    assert found == {4096: "alike", 5000: "alike", 4095: "full", 64: "full"}
