"""What the tuner found on a device, for kernels that are built without one: an edition for each bucket of sizes."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ninetoothed.backends.triton.ahead.default_config import is_served, large_call
from ninetoothed.backends.triton.ahead.devices import device_named, limits_of
from ninetoothed.backends.triton.ahead.variants import edition_of
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.planning import space
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.ahead import Edition, Fixed, Within
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.naming import default_name
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.results import Entry, arguments_from
from ninetoothed.tuning.space import Config

#: A bucket: the largest sizes that are in it, a call of these, and what was found for it.
_Bucket = tuple[Mapping[Symbol, int], "Call", "Config"]


def editions_of(
    kernel: Definition, fixed: Fixed, target: str, found: Sequence[Entry], device: str | None
) -> tuple[Edition, ...]:
    """An edition for each bucket that was tuned on a device of the target, the smallest first.

    A call takes the first whose sizes are no smaller in any dimension, and else the last. Where nothing
    was found the estimate chooses one for all.
    """
    limits = _measured(limits_of(target, device), found, device is not None)
    buckets = sorted(
        _buckets(kernel, fixed, limits, found),
        key=lambda bucket: (math.prod(bucket[0].values()), tuple(bucket[0].values())),
    )
    if not buckets:
        return (edition_of(kernel, fixed, target, device),)
    made: list[Edition] = []
    for place, (most, call, config) in enumerate(buckets):
        is_last = place == len(buckets) - 1
        if not is_last and _is_within(most, config, buckets[place + 1]):
            continue
        edition = edition_of(kernel, fixed, target, limits.name, (call, config))
        no_larger = tuple(Within(symbol, None, size) for symbol, size in most.items())
        made.append(replace(edition, sizes=() if is_last else no_larger))
    return tuple(made)


def _measured(wanted: DeviceLimits, found: Sequence[Entry], is_named: bool) -> DeviceLimits:
    """The device whose results count: the wanted one, or where nobody named one and there are none of it
    another of its architecture."""
    devices = [device_named(entry.subject.device) for entry in found]
    alike = [d for d in devices if d and (d.backend, d.arch) == (wanted.backend, wanted.arch)]
    return wanted if is_named or wanted in alike or not alike else alike[0]


def _is_within(most: Mapping[Symbol, int], config: Config, other: _Bucket) -> bool:
    """Whether the next bucket has the same calls and more, and the same choice."""
    return config == other[2] and all(size <= other[0][symbol] for symbol, size in most.items())


def _buckets(
    kernel: Definition, fixed: Fixed, limits: DeviceLimits, found: Sequence[Entry]
) -> Iterator[_Bucket]:
    compiler = "triton " + ".".join(map(str, versions.version()))
    names = {kernel.name, default_name(kernel.application, kernel.application)}
    for entry in found:
        subject = entry.subject
        device = device_named(subject.device)
        if subject.kernel not in names or subject.compiler != compiler or device != limits:
            continue
        arguments, constants = arguments_from(subject.arguments)
        sizes = _sizes(kernel, fixed, arguments)
        if sizes is None or any(
            # What is a constant of a call only may be declared here.
            name in fixed.constants and repr(fixed.constants[name]) != value
            for name, value in constants.items()
        ):
            continue
        call = large_call(kernel, fixed, {name: shape for name, (shape, _) in arguments.items()})
        config = entry.best(functools.partial(_applies, kernel, call, limits))
        if config is not None:
            yield sizes, call, config


def _applies(kernel: Definition, call: Call, limits: DeviceLimits, config: Config) -> bool:
    try:
        return is_served(kernel, config) and space.applies(kernel, call, config, limits)
    except (ArgumentError, ArrangementError):
        return False


def _sizes(
    kernel: Definition, fixed: Fixed, arguments: Mapping[str, tuple[tuple[int, ...], str]]
) -> dict[Symbol, int] | None:
    """The undeclared sizes of a call, by its arguments; None where they are another kernel's."""
    found: dict[Symbol, int] = {}
    for parameter in kernel.tensor_parameters:
        shape, dtype = arguments.get(parameter.name, ((), ""))
        declared = fixed.dtypes.get(parameter.name)
        if len(shape) != parameter.source.ndim or (declared and declared.name != dtype):
            return None
        for size, given in zip(parameter.source.shape, shape, strict=True):
            symbol = as_symbol(size)
            if symbol.op == "const" or symbol in kernel.symbols:
                known = fixed.constants.get(kernel.names.get(symbol, ""), size)
                # Declared sizes are in a bucket as others are.
                if not given // 2 < evaluated(known, {}) <= given:
                    return None
            elif symbol.op == "leaf":
                found[symbol] = max(found.get(symbol, 0), given)
    return found
