"""What may be chosen for a call: meta symbols, warps, stages and options, ranked by the estimate."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.planning import choices
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.backends.triton.specialization.tiles import check_tiles
from ninetoothed.backends.triton.translation import environment_of
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.symbols.expr import evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.space import Config, Space

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.specialization.target import Target
    from ninetoothed.kernels.definition import Definition

#: So many elements of the largest tile for each thread, where nobody fixed the number of warps and
#: nothing is measured.
_ELEMENTS_PER_THREAD = 16

#: The warps to choose from where a program holds no products. Each thread has at most so many
#: elements of the largest tile, and at least one where there are more warps than a few.
_NUM_WARPS = (1, 2, 4, 8, 16, 32)
_MOST_ELEMENTS = 128
_FEW_WARPS = 4

#: Where it sorts them: one warp, which exchanges elements without a barrier, or few elements for each
#: thread. With more in several warps it is slower and takes seconds to compile (docs/tuning.md).
_MOST_SORTED_BY_ONE_WARP, _MOST_SORTED = 64, 4

#: The stages to choose from besides, where programs are few and small.
_MORE_STAGES = (6,)

#: The stages of a kernel without a loop that is pipelined.
_NUM_STAGES = 3

#: Options are tried on so many configurations, and on none that is estimated so much slower than
#: the best of them without options.
_MOST_PLAIN, _HOPELESS = 384, 4.0


def space_of(kernel: Definition, call: Call, limits: DeviceLimits) -> Space:
    """What may be chosen for a call on a device, ranked.

    Raises:
        ArgumentError: no value of the meta symbols makes tiles that any device could hold.
    """
    estimator = Estimator(kernel, call, limits)
    plain, others = plainly_ranked(kernel, call, estimator)
    found = _with_options(kernel, call, plain[:_MOST_PLAIN], limits)
    if kernel.num_stages is None:
        # Where nothing is loaded ahead the number of stages changes nothing.
        found = [
            config
            for config in found
            if config.num_stages == _NUM_STAGES or estimator.is_pipelined(config)
        ]
    if len(found) == 1:
        return Space({found[0]: 0.0}, others=others)
    costs = {config: estimator.seconds(config) for config in found}
    return Space(costs, kernel.max_num_configs, others)


def plainly_ranked(
    kernel: Definition, call: Call, estimator: Estimator
) -> tuple[list[Config], dict[Config, float]]:
    """The configurations without options that are not hopeless, the best by the estimate first; and the
    seconds of all, where there are several."""
    plain = _plain(kernel, call, estimator)
    if len(plain) == 1:
        return plain, {}
    costs = {config: estimator.seconds(config) for config in plain}
    most = _HOPELESS * min(costs.values())
    return sorted((c for c in plain if costs[c] <= most), key=costs.__getitem__), costs


def plainest(kernel: Definition, call: Call) -> tuple[Config, tuple[int, ...]]:
    """The least values of the meta symbols that fit and no options, and the grid.

    Raises:
        ArrangementError: the sizes do not fit the arrangement, whatever the meta symbols are.
    """
    first = Config(tuple((kernel.names[s], s.lower_bound or 1) for s in kernel.meta_symbols), 1, 1)
    try:
        grid = _grid(kernel, call, first)
    except ArrangementError:
        if not kernel.meta_symbols:
            raise
        check = functools.partial(_grid, kernel, call)
        first, *_ = tuning.fitting(tuning.values_of(kernel), check)
        grid = _grid(kernel, call, first)
    warps = usual_warps(kernel, call, dict(first.values))
    return replace(first, num_warps=warps, num_stages=usual_stages(kernel)), grid


def applies(kernel: Definition, call: Call, config: Config, device: DeviceLimits | Target) -> bool:
    """Whether a configuration that was found for another call may be chosen for this one."""
    names = {kernel.names[symbol] for symbol in kernel.meta_symbols}
    if {name for name, _ in config.values} != names or not _fits(kernel, call, config):
        return False
    environment = environment_of(kernel, call, config)
    return choices.are_right(kernel, call, environment, device, config.options)


def usual_warps(kernel: Definition, call: Call, chosen: Mapping[str, int] | None = None) -> int:
    """The number of warps that `make` was given, or one that gives each thread some elements."""
    if kernel.num_warps is not None:
        return _several(kernel.num_warps)[0]
    largest = _largest_tile(kernel, call, Config(tuple((chosen or {}).items()), 1, 1))
    warps = next_power_of_2(largest // (32 * _ELEMENTS_PER_THREAD))
    return min(max(warps, 4), 16)


def usual_stages(kernel: Definition) -> int:
    """The number of stages that `make` was given, or Triton's own."""
    return _NUM_STAGES if kernel.num_stages is None else _several(kernel.num_stages)[0]


def _plain(kernel: Definition, call: Call, estimator: Estimator) -> list[Config]:
    """The configurations without options that can be compiled."""
    check = functools.partial(_check, kernel, call)
    return [
        replace(config, num_warps=warps, num_stages=stages)
        for config in tuning.fitting(tuning.values_of(kernel), check)
        for warps in _warps(kernel, call, config, estimator)
        for stages in _stages(kernel, config, estimator)
    ]


def _warps(kernel: Definition, call: Call, config: Config, estimator: Estimator) -> list[int]:
    if kernel.num_warps is not None:
        return _several(kernel.num_warps)
    if estimator.has_products(config):
        return list(tuning.DEFAULT_NUM_WARPS)
    largest = _largest_tile(kernel, call, config)
    suited = [
        warps
        for warps in _NUM_WARPS
        if largest / (32 * warps) <= _MOST_ELEMENTS
        and (warps <= _FEW_WARPS or largest >= 32 * warps)
    ]
    if kernel.program.has_sort:
        suited = [
            warps
            for warps in suited
            if 1 < largest / (32 * warps) <= _MOST_SORTED
            or (warps == 1 and largest <= 32 * _MOST_SORTED_BY_ONE_WARP)
        ]
    return suited or [_NUM_WARPS[-1]]


def _stages(kernel: Definition, config: Config, estimator: Estimator) -> list[int]:
    if kernel.num_stages is not None:
        return _several(kernel.num_stages)
    if not estimator.has_pipeline(config):
        return [_NUM_STAGES]
    more = _MORE_STAGES if estimator.has_few_small_programs(config) else ()
    return [*tuning.DEFAULT_NUM_STAGES, *more]


def _several(given: Any) -> list[int]:
    return [given] if isinstance(given, int) else list(dict.fromkeys(given))


def _with_options(
    kernel: Definition, call: Call, configs: list[Config], device: DeviceLimits
) -> list[Config]:
    known: dict[tuple[tuple[str, int], ...], list[tuple[tuple[str, int], ...]]] = {}
    for config in configs:
        if config.values not in known:
            environment = environment_of(kernel, call, config)
            known[config.values] = choices.choices(kernel, call, environment, device)
    found = [
        replace(config, options=chosen) for config in configs for chosen in known[config.values]
    ]
    return list(dict.fromkeys(map(settled, found)))


def settled(config: Config) -> Config:
    """The configuration with what its options decide."""
    chosen = dict(config.options)
    for option in options.OPTIONS:
        if option.num_warps is not None and chosen.get(option.name, option.default) != option.off:
            config = replace(config, num_warps=option.num_warps, num_stages=_NUM_STAGES)
    return config


def _fits(kernel: Definition, call: Call, config: Config) -> bool:
    try:
        _check(kernel, call, config)
    except (ArgumentError, ArrangementError):
        return False
    return True


def _check(kernel: Definition, call: Call, config: Config) -> None:
    """Raises where Triton takes no such tiles, or the sizes do not fit the arrangement."""
    check_tiles(kernel, environment_of(kernel, call, config))
    _grid(kernel, call, config)


def _grid(kernel: Definition, call: Call, config: Config) -> tuple[int, ...]:
    return kernel.verified_grid(environment_of(kernel, call, config))


def _largest_tile(kernel: Definition, call: Call, config: Config) -> int:
    """The elements of the largest tile."""
    environment = environment_of(kernel, call, config)
    return max(
        (
            math.prod(evaluated(size, environment) for size in parameter.tile_shape)
            for parameter in kernel.arranged_parameters
        ),
        default=1,
    )
