"""The conditions that a program may ask once for all of its elements."""

from __future__ import annotations

from collections.abc import Mapping

from ninetoothed.backends.base import Call
from ninetoothed.backends.triton.analysis import full_iterations
from ninetoothed.backends.triton.analysis.vector_width import bytes_at_once
from ninetoothed.backends.triton.specialization import offsets
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.expr import Symbol


def conditions(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, int]]:
    """The conditions to ask once for all of a program's elements; none where that gains nothing."""
    if kernel.optimized.has_loop or not kernel.optimized.body:
        return frozenset()
    adjacent = offsets.adjacent(kernel, environment)
    ends_early = any(
        bytes_at_once(kernel, parameter, call, environment, adjacent)
        < bytes_at_once(kernel, parameter, call, environment, adjacent, is_masked=False)
        for parameter in kernel.tensor_parameters
        if parameter.name in kernel.optimized.tiled
    )
    if not ends_early:
        return frozenset()
    first = {**environment, **dict.fromkeys(kernel.arrangement.programs, 0)}
    # What fails in the first program is no matter of the tensors' ends.
    return frozenset(key for key, slack in slacks(kernel) if slack.evaluate(first) < 0)


@analysis
def slacks(kernel: Definition) -> tuple[tuple[tuple[str, int], Symbol], ...]:
    """What is negative where a condition holds for all of a program's elements, for each condition."""
    return tuple(
        ((name, number), slack)
        for name, access in kernel.arrangement.accesses.items()
        if name in kernel.optimized.tiled
        for number, condition in enumerate(access.conditions)
        if (slack := full_iterations.greatest_slack(condition, name, kernel)) is not None
    )
