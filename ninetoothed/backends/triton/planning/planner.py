"""From a kernel and a kind of call to a compiled kernel: configurations, search, launch."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from ninetoothed import __version__, threads
from ninetoothed.backends.base import Call, Plan, run_nothing
from ninetoothed.backends.triton.compiler import binaries, versions
from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.planning import binding, choices
from ninetoothed.backends.triton.planning import space as choosing
from ninetoothed.backends.triton.runtime import driver, ready
from ninetoothed.backends.triton.runtime.benchmark import Benchmark, NoRoomError
from ninetoothed.backends.triton.runtime.device_api import runtime
from ninetoothed.backends.triton.runtime.launch_record import launch_record_of
from ninetoothed.backends.triton.specialization import divisors
from ninetoothed.backends.triton.specialization.constant_sizes import multiplies_tiles
from ninetoothed.backends.triton.specialization.size_classes import (
    PARTS,
    classes_for,
    end_of,
    general_call,
)
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.backends.triton.translation import environment_of, source_of, specialize
from ninetoothed.bounded import keep
from ninetoothed.cache import digest
from ninetoothed.errors import ArgumentError, CompilationError, DeviceError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.assertions import check_assertions
from ninetoothed.kernels.call_sizes import explained
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.agreement import Refusal, check_meetings, guarded
from ninetoothed.kernels.steps import refused_steps
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.results import FORMAT, Results, Subject, arguments_text
from ninetoothed.tuning.search import Budget, Search, first_working
from ninetoothed.tuning.space import Config, Space, Tuned

#: So many seconds another process that searches for the same is waited for.
_PATIENCE = 60.0

#: About how many milliseconds a configuration is measured that has no rival.
_LONG = 20.0

#: So many choices and loaded binaries a kernel remembers, each.
_MOST_KNOWN = 1024

#: What all searches of this process share.
_BUDGET = Budget()


@dataclass(frozen=True)
class _Candidate:
    """A compiled configuration, and what launches it."""

    specialized: Specialized
    launchable: driver.Launchable
    binder: binding.Binder
    run: Callable[..., None]


@dataclass
class _Known:
    """What this process has of a kernel: the ranking's choice by bucket of sizes, what is loaded, and
    which classes of sizes are planned."""

    untuned: dict[str, Config] = field(default_factory=dict)
    launchables: dict[Any, driver.Launchable] = field(default_factory=dict)
    families: dict[Any, binding.Family] = field(default_factory=dict)


@analysis
def _known(kernel: Definition) -> _Known:
    return _Known()


class Planner:
    """Plans the calls of one key of one kernel."""

    def __init__(self, kernel: Definition, call: Call) -> None:
        self._kernel = kernel
        self._call = call
        self._general = general_call(kernel, call)
        # What decides: the call that stands for its class, where it shares one.
        self._decisive = self._general or call
        self._backend = call.device.kind
        self._index = call.device.index

    def plan(self, values: tuple[Any, ...] | None) -> Plan:
        """The plan; where there is a choice, tuned on ``values`` if they are given."""
        plainest, grid, refusals = self._checked_grid(values)
        if 0 in grid:
            source = specialize(self._kernel, self._call, plainest).emitted.text
            return Plan(run_nothing, {"source": source})
        config = self._chosen(values)
        candidate = self._candidate(config)
        details = {
            "source": candidate.specialized.emitted.text,
            "config": config,
            "launchable": candidate.launchable,
            "constants": candidate.specialized.constants,
        }
        run = self._guarded(candidate.binder, candidate.run)
        if refusals:
            # Each call is asked, so nobody launches without.
            return Plan(guarded(self._kernel, run, refusals), details)
        details["launch_record"] = functools.partial(
            launch_record_of,
            candidate.specialized,
            candidate.launchable,
            binding.value_names(self._kernel),
        )
        return Plan(run, details, self._family(candidate, config))

    def _family(self, candidate: _Candidate, config: Config) -> binding.Family | None:
        """What runs other sizes of the same class from now on."""
        classes = classes_for(self._kernel, self._call)
        if self._general is None or classes is None:
            return None
        known = self._constant(config)
        families = _known(self._kernel).families
        key = binding.families_key(self._kernel, self._call)
        family = families.get(key) or keep(
            families, key, binding.Family(self._kernel, self._call, classes), _MOST_KNOWN
        )
        arguments = [self._general.arguments[p.name] for p in self._kernel.tensor_parameters]
        numbers = tuple((argument.shape, argument.strides) for argument in arguments)
        finish = functools.partial(self._guarded, candidate.binder)
        family.add(numbers, candidate.binder, known, finish)
        return family

    def _constant(self, config: Config) -> dict[Symbol, int]:
        """The values of the symbols that are neither sizes nor strides."""
        environment = environment_of(self._kernel, self._call, config)
        numbers = {s for p in self._kernel.tensor_parameters for s in _numbers_of(p)}
        return {s: value for s, value in environment.items() if s not in numbers}

    def tune(self, values: tuple[Any, ...], effort: tuning.Effort) -> Tuned:
        """Searches with this effort, whatever was found before; see `ninetoothed.tune`."""
        if driver.is_capturing(values[0], self._backend):
            raise DeviceError(
                f"kernel `{self._kernel.name}` cannot be tuned while a graph is captured: its "
                "launches would be part of the graph. Tune it before."
            )
        self._checked_grid(values)
        _known(self._kernel).families.clear()
        results = self._results()
        config = self._searched(results, values, effort)
        if config not in results.times:
            with self._benchmark(values).begun() as benchmark:
                results.record(config, benchmark.measure(self._candidate(config).run, _LONG))
        return Tuned(self._kernel.name, self._limits.name, config, dict(results.times))

    def _checked_grid(
        self, values: tuple[Any, ...] | None
    ) -> tuple[Config, tuple[int, ...], list[Refusal]]:
        """The plainest configuration and its grid, where the sizes fit the kernel; whom they do not fit.

        Of ``values`` that they do not fit nothing is compiled or tuned: tuning stores.
        """
        plainest, grid = choosing.plainest(self._kernel, self._call)
        environment = environment_of(self._kernel, self._call, plainest)
        check_assertions(self._kernel, environment, grid)
        refusals = check_meetings(self._kernel, self._call, environment, grid)
        refusals += refused_steps(self._kernel, environment, grid)
        if values is not None:
            guarded(self._kernel, run_nothing, refusals)(*values)
        return plainest, grid, refusals

    def _chosen(self, values: tuple[Any, ...] | None) -> Config:
        """What was found before, what a search finds now, or what the estimate ranks first."""
        effort = tuning.effort()
        results = self._results()
        known = results.best(self._applies)
        if known is not None and results.serve(effort.name):
            return known
        if not self._may_search(values, effort):
            return known or self._untuned(results)
        assert values is not None
        start = time.monotonic()
        try:
            return self._searched(results, values, effort)
        except NoRoomError as error:
            warnings.warn(f"{error.message} It runs untuned.", RuntimeWarning, stacklevel=2)
            return known or self._untuned(results)
        finally:
            _BUDGET.pay(time.monotonic() - start)

    def _may_search(self, values: tuple[Any, ...] | None, effort: tuning.Effort) -> bool:
        if values is None or effort.name == "none":
            return False
        if driver.is_capturing(values[0], self._backend):
            return False
        if effort.name == "full" or _BUDGET.has(allowance := tuning.allowance()):
            return True
        if _BUDGET.is_first_refusal():
            warnings.warn(
                f"NineToothed has spent {allowance:g} s of this process on tuning and tunes no "
                f"further; kernel `{self._kernel.name}` and those that follow run untuned. Set "
                "NINETOOTHED_TUNE_SECONDS to allow more, or tune ahead with ninetoothed.tune.",
                RuntimeWarning,
                stacklevel=2,
            )
        return False

    def _searched(self, results: Results, values: tuple[Any, ...], effort: tuning.Effort) -> Config:
        space = self._space()
        if len(space) == 1:
            return first_working(self._kernel.name, space, self._candidate)[0]
        with results.alone(min(effort.budget_seconds, _PATIENCE)):
            known = results.best(self._applies)
            if known is not None and results.serve(effort.name):
                return known
            with self._benchmark(values).begun() as benchmark:
                return Search(
                    self._kernel.name,
                    space,
                    functools.partial(self._candidate, is_kept=False),
                    lambda candidate, budget: benchmark.measure(candidate.run, budget),
                    results,
                    effort,
                ).run()

    def _benchmark(self, values: tuple[Any, ...]) -> Benchmark:
        return Benchmark(self._kernel, self._call, values, binding.value_names(self._kernel))

    def _untuned(self, results: Results) -> Config:
        """The first of the ranking that compiles; ranked once for all sizes of a bucket, and kept."""
        known = _known(self._kernel).untuned
        key = self._results_key
        if key not in known or not self._applies(known[key]):
            space = self._space()
            config, _ = first_working(self._kernel.name, space, self._candidate)
            keep(known, key, config, _MOST_KNOWN)
            if results.finished is None:
                results.finish("none", config)
            return config
        return known[key]

    def _space(self) -> Space:
        limits = self._limits
        ready.begin(self._backend)
        return choosing.space_of(self._kernel, self._decisive, limits)

    def _applies(self, config: Config) -> bool:
        return choosing.applies(self._kernel, self._decisive, config, self._limits)

    @threads.cached_property
    def _limits(self) -> DeviceLimits:
        return driver.device_limits(self._index, self._backend)

    def _candidate(self, config: Config, is_kept: bool = True) -> _Candidate:
        specialized = specialize(self._kernel, self._call, config, self._general)
        target = Target.parse((self._backend, self._limits.arch, self._limits.warp_size))
        key = (specialized.key, target, config.num_warps, config.num_stages, self._index)
        known = _known(self._kernel).launchables
        launchable = known.get(key)
        if launchable is None:
            compiled = self._compiled(specialized, target, config, is_kept)
            ready.LAUNCHERS[self._backend].wait()
            launchable = driver.Launchable(compiled, self._index)
            if is_kept:
                keep(known, key, launchable, _MOST_KNOWN)
        environment = environment_of(self._kernel, self._call, config)
        fixed = environment if self._general is None else self._constant(config)
        binder = binding.binder_of(self._kernel, self._call, specialized, launchable, fixed)
        return _Candidate(specialized, launchable, binder, binder.run(environment))

    def _compiled(
        self, specialized: Specialized, target: Target, config: Config, is_kept: bool
    ) -> Any:
        """From the disk, or from Triton; what is of use to other processes is kept."""
        store = binaries.Binaries()
        key = binaries.key_of(
            specialized, self._kernel.name, target, config.num_warps, config.num_stages
        )
        compiled = store.get(key)
        if compiled is None:
            ready.begin(self._backend)
            ready.COMPILER.wait()
            with explained(self._kernel, environment_of(self._kernel, self._call, config)):
                compiled = compiled_for(self._kernel, specialized, target, config)
            if is_kept:
                store.put(key, compiled)
        return compiled

    def _guarded(self, binder: binding.Binder, run: Callable[..., None]) -> Callable[..., None]:
        """Where there are several devices, the tensors' is made current around what needs it."""
        frontend, index = self._call.frontend, self._index
        if binder.launches_alone or frontend is None or runtime(self._backend).device_count() == 1:
            return run
        guard = frontend.device_guard

        def run_on_device(stream: int, *values: Any) -> None:
            with guard(index):
                run(stream, *values)

        return run_on_device

    def _results(self) -> Results:
        arguments = [
            (name, [self._bucket(size) for size in argument.shape], argument.dtype.name)
            for name, argument in self._call.arguments.items()
        ]
        sizes = arguments_text(arguments, self._call.constants)
        compiler = "triton " + ".".join(map(str, versions.version()))
        subject = Subject(self._kernel.name, self._limits.name, compiler, sizes)
        return Results(self._results_key, subject)

    def _bucket(self, size: int) -> int:
        """The sizes that share what was tuned; products' stand for a class that is narrower."""
        if self._kernel.specialize == "sizes":
            return size
        if size and self._general is not None and multiplies_tiles(self._kernel):
            return end_of(size, PARTS)
        return tuning.bucket(size)

    @threads.cached_property
    def _results_key(self) -> str:
        """What the times depend on. Sizes count by their bucket, and by how wide they let accesses be."""
        call, kernel = self._decisive, self._kernel
        arguments = [
            (
                name,
                [self._bucket(size) for size in argument.shape],
                [stride == 1 for stride in argument.strides],
                argument.dtype.name,
                divisors.width_of(argument),
            )
            for name, argument in call.arguments.items()
        ]
        return digest(
            FORMAT,
            __version__,
            source_of(kernel),
            versions.version(),
            self._limits.name,
            arguments,
            sorted((n, repr(v)) for n, v in call.constants.items()),
            repr((kernel.num_warps, kernel.num_stages, kernel.max_num_configs)),
            sorted(choices.fixed().items()),
        )


def _numbers_of(parameter: Parameter) -> set[Symbol]:
    """The sizes and strides of a tensor."""
    source = parameter.source
    return {as_symbol(number) for number in (*source.shape, *source.strides)}


def compiled_for(
    kernel: Definition, specialized: Specialized, target: Target, config: Config | None
) -> Any:
    """Triton's compiled kernel, for a device that need not be there."""
    emitted = specialized.emitted
    try:
        return compile_source(
            emitted.text,
            kernel.name,
            dict(specialized.signature),
            dict(specialized.constants),
            specialized.divisors,
            target,
            num_warps=config.num_warps if config else None,
            num_stages=config.num_stages if config else None,
            externs=emitted.externs,
            most_registers=specialized.most_registers,
            waits=emitted.waits,
        )
    except CompilationError as error:
        line = error.location.line if error.location else None
        where = emitted.lines.get(line) if line is not None else None
        if where is None:
            raise
        # The generated line is part of the message; the place is the user's.
        raise CompilationError(f"{error.message}\n{error.location}", where) from error


def compile_for_target(
    kernel: Definition,
    call: Call,
    target: Any,
    configuration: Mapping[str, int] | None,
    num_warps: int | None,
    num_stages: int | None,
) -> Any:
    """See `Kernel.compile`."""
    names = {kernel.names[symbol] for symbol in kernel.meta_symbols}
    unknown = set(configuration or {}) - names
    if unknown:
        raise ArgumentError(
            f"kernel `{kernel.name}` has no meta symbol {', '.join(sorted(unknown))}; it has "
            f"{', '.join(sorted(names)) or 'none'}"
        )
    chosen = dict(configuration or {})
    if names - set(chosen):
        chosen = {**dict(choosing.plainest(kernel, call)[0].values), **chosen}
    warps = num_warps or choosing.usual_warps(kernel, call, chosen)
    config = Config(tuple(chosen.items()), warps, num_stages or choosing.usual_stages(kernel))
    target = Target.parse(target)
    first, *_ = choices.choices(kernel, call, environment_of(kernel, call, config), target)
    config = choosing.settled(replace(config, options=first))
    with explained(kernel, environment_of(kernel, call, config)):
        return compiled_for(kernel, specialize(kernel, call, config), target, config)
