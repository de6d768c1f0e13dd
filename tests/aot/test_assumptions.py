"""What a variant assumes holds of every call that its guard lets through: facts found from numbers say so."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.aot.unit import Unit  # noqa: E402
from ninetoothed.backends.triton.ahead.assumptions import Assumption, Assumptions  # noqa: E402
from ninetoothed.backends.triton.ahead.choice import choose, large_call  # noqa: E402
from ninetoothed.backends.triton.ahead.devices import limits_of  # noqa: E402
from ninetoothed.backends.triton.ahead.levels import with_descriptors, with_likeness  # noqa: E402
from ninetoothed.backends.triton.ahead.variants import edition_of  # noqa: E402
from ninetoothed.backends.triton.analysis.boxes import box_of  # noqa: E402
from ninetoothed.backends.triton.analysis.program_order import are_inverses_exact  # noqa: E402
from ninetoothed.backends.triton.options.option import Case  # noqa: E402
from ninetoothed.backends.triton.specialization.call_facts import facts_of  # noqa: E402
from ninetoothed.backends.triton.translation import environment_of  # noqa: E402
from ninetoothed.errors import ArrangementError  # noqa: E402
from ninetoothed.kernels.ahead import Edition, Fixed  # noqa: E402
from ninetoothed.kernels.call import Argument, Call  # noqa: E402
from ninetoothed.kernels.definition import Definition  # noqa: E402
from ninetoothed.symbols.expr import Symbol  # noqa: E402
from tests.aot import calls  # noqa: E402
from tests.aot.kernels import PREMAKES, defined, defined_of  # noqa: E402
from tests.aot.reference import View, chosen, environment  # noqa: E402

#: Random calls of each kernel. That C chooses the same variant `test_launches` tests.
COUNT = int(os.environ.get("NINETOOTHED_AOT_CALLS", "1000"))


#: What is asked of a call here, and what depends on element types alone.
COMPARED = {
    *("holding", "unit_strides", "beyond", "wide", "is_long", "float8"),
    *("comparisons", "size_ratios"),
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


@pytest.mark.parametrize("name", PREMAKES)
def test_a_guard_that_holds_implies_what_the_variant_assumes(name: str) -> None:
    kernel, fixed = defined(name)
    edition = edition_of(kernel, fixed, "sm_90")
    unit = Unit(name, kernel, fixed, (edition,), ())
    assumptions = assumptions_of(kernel, fixed, edition)
    source, asked = random.Random(name), 0
    launched: set[str] = set()
    described: set[str] = set()
    for _ in range(COUNT):
        given = calls.random_call(name, unit, source)
        values = environment(unit, edition, given)
        try:
            if 0 in kernel.verified_grid(values):
                continue
        except ArrangementError:
            continue
        variant = edition.variants[chosen(edition, values, given)]
        launched.add(variant.name)
        assert breaches(assumptions[variant.name], unit, values, given) == [], given
        call = call_of(unit, given)
        for argument in variant.arguments:
            if argument.described is not None:
                # The copy engine takes this very tensor.
                assert box_of(kernel, argument.parameter, call, values) is not None, given
                described.add(variant.name)
        asked += 1
    assert asked > COUNT // 3
    if name == "sdpa":
        # Where keys fill blocks no comparison with their number is made.
        assert "alike" in launched and assumptions["alike"].facts.comparisons
    assert bool(described) == (name in ("mm", "addmm", "bmm", "sdpa"))


def test_a_call_that_a_guard_refuses_would_have_broken_what_it_assumes() -> None:
    """The comparison above can fail."""
    kernel, fixed = defined("mm")
    edition = edition_of(kernel, fixed, "sm_90")
    unit = Unit("mm", kernel, fixed, (edition,), ())
    strongest = Assumptions(kernel, edition.known, dict(fixed.dtypes)).chain()[-1]
    source = random.Random(0)
    refused = 0
    for _ in range(100):
        given = calls.random_call("mm", unit, source)
        values = environment(unit, edition, given)
        try:
            kernel.verified_grid(values)
        except ArrangementError:
            continue
        if edition.variants[chosen(edition, values, given)].name != "full":
            refused += bool(breaches(strongest, unit, values, given))
    assert refused > 30


def test_a_comparison_is_left_out_where_the_sizes_of_a_call_say_that_it_holds() -> None:
    def arrangement(input: Tensor, limit: Tensor, output: Tensor) -> tuple[Tensor, ...]:
        return input.tile((64,)), limit, output.tile((64,))

    def application(input: Any, limit: Any, output: Any) -> None:
        is_within = input.offsets(0) < limit.source.shape[0]
        output = ntl.where(is_within, input, -1.0)  # noqa: F841

    tensors = tuple(Tensor(1, dtype=ninetoothed.float16) for _ in range(3))
    kernel, fixed = defined_of(lambda: (arrangement, application, tensors), "limited")
    edition = edition_of(kernel, fixed, "sm_90")
    unit = Unit("limited", kernel, fixed, (edition,), ())

    def launched(count: int, limit: int) -> str:
        sizes = {"input": count, "limit": limit, "output": count}
        given = {name: View((size,), (1,), 0x7000_0000) for name, size in sizes.items()}
        values = environment(unit, edition, given)
        variant = edition.variants[chosen(edition, values, given)]
        assert ("limit_size_0" in variant.source) == (variant.name != "alike")
        return variant.name

    found = {limit: launched(4096, limit) for limit in (4096, 5000, 4095, 64)}
    assert found == {4096: "alike", 5000: "alike", 4095: "full", 64: "full"}
