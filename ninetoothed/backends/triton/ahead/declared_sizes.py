"""The variant of a kernel whose sizes are all declared: for contiguous tensors, what the call itself gets.

All numbers of such a call are known when the kernel is built. So nothing is assumed fact by fact: that
the strides are these numbers is asked at the launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.translation import environment_of, specialize
from ninetoothed.kernels.ahead import Condition, Within
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol

if TYPE_CHECKING:
    from ninetoothed.kernels.call import Call
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.space import Config


def exact_call(
    kernel: Definition, call: Call, config: Config, weaker: Iterable[Condition]
) -> tuple[Specialized, tuple[Condition, ...]] | None:
    """What a call of contiguous, aligned tensors is compiled from, and the conditions that a call is one.

    Args:
        weaker: what is asked of a call before.

    Returns:
        them; None where what is asked before does not hold of it.
    """
    values = environment_of(kernel, call, config)
    if not all(_holds(asked, values) for asked in weaker if isinstance(asked, Within)):
        return None
    strides = dict.fromkeys(
        as_symbol(stride)
        for parameter in kernel.tensor_parameters
        for stride in parameter.source.strides
    )
    asked = tuple(
        Within(stride, values[stride], values[stride]) for stride in strides if stride.op == "leaf"
    )
    return specialize(kernel, call, config), asked


def _holds(asked: Within, values: Mapping[Symbol, int]) -> bool:
    ranges = {
        leaf: (v, v) for leaf in asked.expression.leaves() if (v := values.get(leaf)) is not None
    }
    for leaf, low, high in asked.positions:
        ranges[leaf] = (int(low.evaluate(values)), int(high.evaluate(values)))
    least, most = interval(asked.expression, ranges)
    return (asked.low is None or least >= asked.low) and (asked.high is None or most <= asked.high)
