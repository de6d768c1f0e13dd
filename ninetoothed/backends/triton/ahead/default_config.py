"""Values of the meta symbols, warps, stages and options for calls that nobody has made yet: by the estimate.

Sizes that are not declared are taken to be large and alike. Where an arrangement refuses those, as one
whose sizes depend on each other may, each meta symbol gets a value in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ninetoothed.backends.triton.planning import space
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.ahead import Fixed
from ninetoothed.kernels.call import Argument, Call, Device
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.space import Config

#: The size of an undeclared dimension, by the tensor's rank and counted from the last; before them 4.
_SIZES = {1: (1 << 24,), 2: (4096, 4096), 3: (2048, 2048, 16), 4: (128, 2048, 16, 4)}
_OTHER_SIZE = 4

#: What a meta symbol is, as far as its bounds allow, where no estimate can be made.
_MIDDLE = 64

#: The options that a call's conditions can answer for, whatever its sizes.
_SERVED = {
    "cooperative_reduction",
    "dependent_launch",
    "descriptors",
    "eviction_policy",
    "loop_splitting",
    "partial_reduction_sinking",
    "persistent",
    "split_k",
    "swizzle",
    "tma_pipeline",
}


#: Where a device has it, and conditions have nothing to do with it.
_ALWAYS_ON = {("dependent_launch", 1)}


def choose(kernel: Definition, call: Call, limits: DeviceLimits) -> tuple[Config, float]:
    """A configuration for calls of any size, and the seconds that a large one is estimated to take."""
    try:
        estimator = Estimator(kernel, call, limits)
        (plain, *_), _ = space.plainly_ranked(kernel, call, estimator)
        costs = space.space_of(kernel, call, limits).costs
        possible = [config for config in costs if is_served(kernel, config)]
        # Of equals the one with what is always worth it: the estimate sees nothing of that.
        best = min(
            possible, key=lambda c: (costs[c], not {*c.options} >= _ALWAYS_ON), default=plain
        )
        return best, estimator.seconds(best)
    except (ArrangementError, ArgumentError):
        chosen = {kernel.names[symbol]: _middle(symbol) for symbol in kernel.meta_symbols}
        warps = space.usual_warps(kernel, call, chosen)
        return Config(tuple(chosen.items()), warps, space.usual_stages(kernel)), math.inf


def is_served(kernel: Definition, config: Config) -> bool:
    """Whether conditions can answer for a configuration's options."""
    return has_declared_sizes(kernel) or {name for name, _ in config.options} <= _SERVED


def has_declared_sizes(kernel: Definition) -> bool:
    """Whether every size of every tensor is declared."""
    return all(
        as_symbol(size).op == "const"
        for parameter in kernel.tensor_parameters
        for size in parameter.source.shape
    )


def _middle(symbol: Symbol) -> int:
    return min(max(_MIDDLE, symbol.lower_bound or 1), symbol.upper_bound or _MIDDLE)


def large_call(
    kernel: Definition, fixed: Fixed, sizes: Mapping[str, tuple[int, ...]] | None = None
) -> Call:
    """A call: contiguous, aligned.

    Args:
        sizes: of each tensor; by default undeclared ones are large, the same for tensors of one rank.
    """
    arguments: dict[str, Argument] = {}
    known: dict[Symbol, int] = {}
    for parameter in kernel.tensor_parameters:
        source = parameter.source
        usual = _SIZES.get(source.ndim, ())
        shape: list[int] = []
        for place, size in enumerate(source.shape):
            behind = source.ndim - 1 - place
            default = usual[behind] if behind < len(usual) else _OTHER_SIZE
            if sizes is not None:
                default = sizes[parameter.name][place]
            shape.append(_size(size, default, known, fixed, kernel))
        strides = [1] * source.ndim
        for place in reversed(range(source.ndim - 1)):
            strides[place] = strides[place + 1] * shape[place + 1]
        if source.jagged_dim is not None:
            # The offsets say where a sequence begins.
            strides[0] = 0
        dtype = fixed.dtypes.get(parameter.name, dtypes.int8)
        arguments[parameter.name] = Argument(tuple(shape), tuple(strides), dtype)
    scalars = {p.name: fixed.dtypes[p.name] for p in kernel.parameters if p.kind == "scalar"}
    return Call(arguments, scalars, fixed.constants, Device("cuda"))


def _size(
    size: object, default: int, known: dict[Symbol, int], fixed: Fixed, kernel: Definition
) -> int:
    symbol = as_symbol(size)
    if symbol.op == "leaf":
        leaf = symbol.leaf
        given = fixed.constants.get(kernel.names.get(symbol, ""), default)
        low, high = leaf.lower_bound or 0, leaf.upper_bound
        return known.setdefault(symbol, min(max(given, low), high or given))
    return int(symbol.evaluate(known))
