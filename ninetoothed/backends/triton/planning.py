"""From a kernel and a kind of call to a compiled kernel: configurations, search, launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ninetoothed import tuning
from ninetoothed.backends.base import Argument, Call, Plan, run_nothing
from ninetoothed.backends.triton import driver, options, versions
from ninetoothed.backends.triton.compile import Target, compile_source
from ninetoothed.backends.triton.facts import facts_of
from ninetoothed.backends.triton.runtime import runtime
from ninetoothed.backends.triton.specialize import (
    Specialized,
    check_tiles,
    environment_of,
    specialize,
)
from ninetoothed.cache import digest
from ninetoothed.costs import DeviceLimits, estimate
from ninetoothed.errors import ArgumentError, CompilationError
from ninetoothed.expr import as_symbol
from ninetoothed.program import SourcePointer, SourceStore, Store
from ninetoothed.tuning import Config

if TYPE_CHECKING:
    from ninetoothed.kernel import Kernel

#: So many elements of the largest tile for each thread, where nobody fixed the number of warps.
_ELEMENTS_PER_THREAD = 16

#: What tells a jagged tensor's offsets from its values.
_OFFSETS = " offsets"


@dataclass(frozen=True)
class _Candidate:
    """A compiled configuration: what runs it, and with what values."""

    specialized: Specialized
    launchable: driver.Launchable
    run: Callable[..., None]


@dataclass(frozen=True)
class _MetaSymbol:
    """A meta symbol as the tuner sees it."""

    name: str
    lower_bound: int
    upper_bound: int
    power_of_two: bool


class Planner:
    """Plans the calls of one key of one kernel."""

    def __init__(self, kernel: Kernel, call: Call) -> None:
        self._kernel = kernel
        self._call = call
        self._backend = call.device.kind
        self._index = call.device.index

    def plan(self, values: tuple[Any, ...] | None) -> Plan:
        """The plan; where there is a choice, tuned on ``values`` if they are given."""
        configs = self._ranked(configurations(self._kernel, self._call, self._limits))
        first = specialize(self._kernel, self._call, configs[0])
        if first.num_programs == 0:
            return Plan(run_nothing, {"source": first.emitted.text})
        candidate, config = self._chosen(configs, values)
        return Plan(
            self._guarded(candidate.run),
            {
                "source": candidate.specialized.emitted.text,
                "config": config,
                "launchable": candidate.launchable,
                "constants": candidate.specialized.constants,
            },
        )

    def _chosen(
        self, configs: list[Config], values: tuple[Any, ...] | None
    ) -> tuple[_Candidate, Config]:
        effort = tuning.effort()
        is_tuned = len(configs) > 1 and values is not None and effort.name != "none"
        if is_tuned and driver.is_capturing(values[0], self._backend):  # type: ignore[index]
            is_tuned = False
        if not is_tuned:
            config, candidate = tuning.first_working(self._kernel.name, configs, self._candidate)
            return candidate, config
        assert values is not None
        with self._restored(values) as restore:
            config = tuning.Search(
                self._kernel.name,
                configs,
                self._candidate,
                lambda candidate, budget: self._measured(candidate, values, budget, restore),
                tuning.Results(self._results_key()),
                effort,
            ).run()
        return self._candidate(config), config

    @functools.cached_property
    def _limits(self) -> DeviceLimits:
        return driver.device_limits(self._index, self._backend)

    def _ranked(self, configs: list[Config]) -> list[Config]:
        if len(configs) == 1:
            return configs

        def estimated(config: Config) -> float:
            return estimate(facts_of(self._kernel, self._call, config, self._limits))

        return tuning.rank(configs, estimated)

    def _candidate(self, config: Config) -> _Candidate:
        specialized = specialize(self._kernel, self._call, config)
        target = Target.parse((self._backend, self._limits.arch, self._limits.warp_size))
        key = (specialized.key, target, config.num_warps, config.num_stages, self._index)
        known: dict[Any, driver.Launchable] = self._kernel.memory.setdefault("launchables", {})
        if key not in known:
            compiled = compiled_for(self._kernel, specialized, target, config)
            known[key] = driver.Launchable(compiled, self._index)
        return _Candidate(specialized, known[key], self._runner(specialized, known[key]))

    def _runner(
        self, specialized: Specialized, launchable: driver.Launchable
    ) -> Callable[..., None]:
        """``run(stream, *values)``, generated: sizes and strides put in, the C launcher called."""
        # Not by the parameters' names: the C launcher's arguments have names too.
        values = {name: f"value_{place}" for place, name in enumerate(self._value_names())}
        arguments = []
        for parameter in specialized.run_time_parameters:
            if parameter.kind == "symbol":
                arguments.append(repr(specialized.integers[parameter.name]))
            else:
                suffix = _OFFSETS if parameter.kind == "offsets" else ""
                arguments.append(values[f"{parameter.parameter}{suffix}"])
        head = f"def run(stream, {', '.join(values.values())}):\n"
        grid = str(specialized.num_programs)
        namespace = launchable.names
        if launchable.scratch_size:
            namespace = {"launch_with_scratch": launchable.run}
            body = f"launch_with_scratch({grid}, stream, {', '.join(arguments)})"
        else:
            body = launchable.call(grid, "stream", arguments)
        exec(compile(f"{head}    {body}\n", f"<run of {self._kernel.name}>", "exec"), namespace)
        return namespace["run"]  # type: ignore[return-value]

    def _value_names(self) -> list[str]:
        """The names of what a plan is called with, after the stream."""
        names = []
        for parameter in self._kernel.parameters:
            if parameter.kind in ("tensor", "scalar"):
                names.append(parameter.name)
            if parameter.kind == "tensor" and parameter.source.jagged_dim is not None:
                names.append(f"{parameter.name}{_OFFSETS}")
        return names

    def _guarded(self, run: Callable[..., None]) -> Callable[..., None]:
        """Where there are several devices, the tensors' is made current around the launch."""
        frontend, index = self._call.frontend, self._index
        if frontend is None or runtime(self._backend).device_count() == 1:
            return run
        guard = frontend.device_guard

        def run_on_device(stream: int, *values: Any) -> None:
            with guard(index):
                run(stream, *values)

        return run_on_device

    # Measuring.

    def _measured(
        self,
        candidate: _Candidate,
        values: tuple[Any, ...],
        budget: float,
        restore: Callable[[], None] | None,
    ) -> float:
        return driver.measure(
            lambda: candidate.run(*values),
            values[0],
            self._index,
            backend=self._backend,
            budget_ms=budget,
            prepare=restore,
        )

    @contextmanager
    def _restored(self, values: tuple[Any, ...]) -> Iterator[Callable[[], None] | None]:
        """Keeps what trials overwrite; gives what restores it, or None where nothing need be."""
        library, stream = runtime(self._backend), values[0]
        pointers = dict(zip(self._value_names(), values[1:]))
        spans = [
            (pointers[name], _span(self._call.arguments[name]))
            for name in self._overwritten(pointers)
        ]
        with library.device(self._index):
            kept = []
            try:
                for address, size in spans:
                    copy = library.allocate(size)
                    kept.append((address, copy, size))
                    library.copy(copy, address, size, stream)

                def restore() -> None:
                    for address, copy, size in kept:
                        library.copy(address, copy, size, stream)

                yield restore if kept else None
                restore()
            finally:
                library.synchronize(stream)
                for _, copy, _ in kept:
                    library.free(copy)

    def _overwritten(self, pointers: Mapping[str, Any]) -> list[str]:
        """The tensors that the kernel may both read and write, in one trial or the next."""
        written = {
            node.tile.parameter if isinstance(node, Store) else node.parameter
            for node in self._kernel.optimized.nodes()
            if isinstance(node, (Store, SourceStore, SourcePointer))
        }
        spans = {
            name: (pointers[name], pointers[name] + _span(argument))
            for name, argument in self._call.arguments.items()
        }
        read = {
            getattr(getattr(node, "tile", node), "parameter", None)
            for node in self._kernel.optimized.nodes()
            if type(node).__name__ in ("Load", "SourceLoad", "SourcePointer")
        }
        return [
            name
            for name in sorted(written)
            if any(
                spans[name][0] < spans[other][1] and spans[other][0] < spans[name][1]
                for other in read
                if other in spans
            )
        ]

    def _results_key(self) -> str:
        call = self._call
        sizes = [
            (name, [tuning.bucket(size) for size in argument.shape], argument.dtype.name)
            for name, argument in call.arguments.items()
        ]
        units = [(n, [s == 1 for s in a.strides], a.aligned) for n, a in call.arguments.items()]
        return digest(
            self._kernel.source,
            versions.version(),
            self._limits.name,
            sizes,
            units,
            sorted((n, repr(v)) for n, v in call.constants.items()),
            repr((self._kernel.num_warps, self._kernel.num_stages, self._kernel.max_num_configs)),
        )


def compiled_for(
    kernel: Kernel, specialized: Specialized, target: Target, config: Config | None
) -> Any:
    """Triton's compiled kernel, for a device that need not be there."""
    emitted = specialized.emitted
    try:
        return compile_source(
            emitted.text,
            kernel.name,
            dict(specialized.signature),
            dict(specialized.constants),
            specialized.divisible,
            target,
            num_warps=config.num_warps if config else None,
            num_stages=config.num_stages if config else None,
            externs=emitted.externs,
        )
    except CompilationError as error:
        line = error.location.line if error.location else None
        where = emitted.lines.get(line) if line is not None else None
        if where is None:
            raise
        # The generated line is part of the message; the place is the user's.
        raise CompilationError(f"{error.message}\n{error.location}", where) from error


def compile_for_target(
    kernel: Kernel,
    call: Call,
    target: Any,
    configuration: Mapping[str, int] | None,
    num_warps: int | None,
    num_stages: int | None,
) -> Any:
    """See `Kernel.compile`."""
    chosen = {
        kernel.names[s]: (configuration or {}).get(kernel.names[s], s.lower_bound or 1)
        for s in kernel.meta_symbols
    }
    unknown = set(configuration or {}) - set(chosen)
    if unknown:
        raise ArgumentError(
            f"kernel `{kernel.name}` has no meta symbol {', '.join(sorted(unknown))}; it has "
            f"{', '.join(sorted(chosen)) or 'none'}"
        )
    warps = num_warps or _usual_warps(kernel, call, chosen)
    config = Config(tuple(chosen.items()), warps, num_stages or 3)
    target = Target.parse(target)
    first, *_ = options.choices(kernel, call, environment_of(kernel, call, config), target)
    config = replace(config, options=first)
    return compiled_for(kernel, specialize(kernel, call, config), target, config)


def configurations(
    kernel: Kernel, call: Call, device: DeviceLimits | Target | None = None
) -> list[Config]:
    """What may be chosen for a call: values of the meta symbols, warps, stages and options."""
    symbols = [
        _MetaSymbol(kernel.names[s], s.lower_bound or 1, s.upper_bound or 1, s.power_of_two)
        for s in kernel.meta_symbols
    ]
    num_warps = kernel.num_warps
    num_stages = kernel.num_stages
    if not symbols and num_warps is None:
        num_warps = _usual_warps(kernel, call)
    if not symbols and num_stages is None:
        num_stages = 3
    configs = tuning.space(symbols, num_warps, num_stages, kernel.max_num_configs)
    fitting = [config for config in configs if _fits(kernel, call, config)]
    known: dict[Any, Any] = {}
    for config in fitting:
        if config.values not in known:
            environment = environment_of(kernel, call, config)
            known[config.values] = options.choices(kernel, call, environment, device)
    fitting = [
        replace(config, options=chosen) for config in fitting for chosen in known[config.values]
    ]
    if not fitting:
        # The first says what is too large.
        specialize(kernel, call, configs[0])
    return fitting


def _fits(kernel: Kernel, call: Call, config: Config) -> bool:
    try:
        check_tiles(kernel, environment_of(kernel, call, config))
    except ArgumentError:
        return False
    return True


def _usual_warps(kernel: Kernel, call: Call, chosen: Mapping[str, int] | None = None) -> int:
    """A number of warps that gives each thread some elements of the largest tile."""
    environment = kernel.environment(call)
    for symbol in kernel.meta_symbols:
        environment[symbol] = (chosen or {})[kernel.names[symbol]]
    largest = 1
    for parameter in kernel.tensor_parameters:
        sizes = [int(as_symbol(size).evaluate(environment)) for size in parameter.tile_shape]
        largest = max(largest, math.prod(sizes))
    warps = 1 << max(largest // (32 * _ELEMENTS_PER_THREAD) - 1, 0).bit_length()
    return min(max(warps, 4), 16)


def _span(argument: Argument) -> int:
    """How many bytes a tensor reaches over, from its first element."""
    if 0 in argument.shape:
        return 0
    reach = sum((size - 1) * abs(stride) for size, stride in zip(argument.shape, argument.strides))
    return (reach + 1) * argument.dtype.itemsize
