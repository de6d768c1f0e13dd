"""Tunes hand-written Triton kernels: compiles in many processes at a time and drops losers early.

`autotune` reads as `triton.autotune` does and chooses from all the configurations it is given, but
a search of 200 takes seconds on 16 cores where Triton's own takes minutes. What was chosen is kept
with the results, and can be read from there instead of being searched again.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from benchmarks.measure import Timer

#: So many of the quickest after the first look are timed again, longer and in turns.
_FINALISTS = 8
_FIRST_LOOK, _LONGER_LOOK = 3, 15


@dataclass
class Choice:
    """What one search found.

    Attributes:
        config: the meta-parameters, ``num_warps`` and ``num_stages`` among them, or a name.
        tried: how many configurations were timed.
        given: how many there were to choose from; the others did not compile or did not fit.
        seconds: what the search took.
        milliseconds: the finalists' times, the quickest first.
    """

    config: Any
    tried: int = 0
    given: int = 0
    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)


#: Every choice of this process, by the kernel's name and key; `recall` fills it beforehand.
CHOICES: dict[str, Choice] = {}


def recall(choices: Mapping[str, Mapping[str, Any]]) -> None:
    """Use what an earlier run chose, given as it was written among its results."""
    CHOICES.update({name: Choice(**choice) for name, choice in choices.items()})


# Compiling in other processes.


class Compilers:
    """Processes that compile into Triton's disk cache, where this process then finds the kernels.

    They must be started before this process touches a device.
    """

    def __init__(self, processes: int) -> None:
        self._pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"))
        # The first task starts all the processes.
        self._pool.submit(os.getpid).result()

    def compile(self, jobs: Sequence[tuple[str, str, str, Any]]) -> list[str]:
        """Compile (module, name, specialization, target); gives what failed."""
        return [failure for failure in self._pool.map(_compile, jobs) if failure]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


_compilers: list[Compilers] = []


def start_compilers(processes: int) -> None:
    """From now on searches compile in so many processes. Call it before CUDA is touched."""
    _compilers.append(Compilers(processes))


def stop_compilers() -> None:
    """End the processes that `start_compilers` started."""
    while _compilers:
        _compilers.pop().close()


@contextlib.contextmanager
def collected() -> Iterator[list[tuple[str, str, str, Any]]]:
    """While it lasts, what would be compiled and launched is only listed."""
    jobs: list[tuple[str, str, str, Any]] = []

    def collect(*, fn: Any, compile: Any, **_: Any) -> bool:
        target = triton.runtime.driver.active.get_current_target()
        jobs.append((fn.module, fn.name, compile["specialization_data"], vars(target)))
        return True

    before = triton.knobs.runtime.jit_cache_hook
    triton.knobs.runtime.jit_cache_hook = collect
    try:
        yield jobs
    finally:
        triton.knobs.runtime.jit_cache_hook = before


def _compile(job: tuple[str, str, str, Any]) -> str:
    """Compile one kernel; gives the failure, in words, or nothing."""
    module, name, specialization, target = job
    function = getattr(importlib.import_module(module), name)
    data = json.loads(specialization)
    constants = {
        tuple(key): triton.language.dtype(value)
        if triton.language.dtype.is_dtype(value)
        else triton.language.constexpr(value["constexpr"])
        if isinstance(value, dict)
        else value
        for key, value in zip(data["constant_keys"], data["constant_vals"], strict=True)
    }
    attributes = {
        tuple(key): value for key, value in zip(data["attrs_keys"], data["attrs_vals"], strict=True)
    }
    options = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in data["options"].items()
    }
    gpu = GPUTarget(**target)
    try:
        triton.compile(
            ASTSource(
                getattr(function, "kernel", function), data["signature"], constants, attributes
            ),
            target=gpu,
            options=vars(make_backend(gpu).parse_options(options)),
        )
    except Exception as error:  # A configuration that does not compile is none to choose.
        return f"{name}: {type(error).__name__}: {error}"

    return ""


# Choosing.


@functools.cache
def _timer() -> Timer:
    return Timer()


def fastest(launches: Mapping[Any, Callable[[], object]]) -> tuple[Any, list[float], int]:
    """The key of the quickest launch, the finalists' times, and how many could be timed."""
    timer, times, reason = _timer(), {}, None
    for key, launch in launches.items():
        try:
            launch()
            times[key] = timer.milliseconds(launch, _FIRST_LOOK)
        except Exception as error:  # It does not fit the device, or does not compile.
            reason = error
    if not times:
        raise RuntimeError("no configuration can be run on this device") from reason
    finalists = sorted(times, key=times.__getitem__)[:_FINALISTS]
    best: dict[Any, float] = dict.fromkeys(finalists, math.inf)
    for _ in range(2):
        for key in finalists:
            best[key] = min(best[key], timer.milliseconds(launches[key], _LONGER_LOOK))
    return min(best, key=best.__getitem__), sorted(best.values()), len(times)


class Tuned:
    """A kernel that chooses its configuration at the first call of each key, as Triton's tuner does.

    Attributes:
        kernel: the `triton.jit` function.
    """

    def __init__(
        self,
        kernel: Any,
        configs: Sequence[triton.Config],
        key: Sequence[str],
        restore_value: Sequence[str] = (),
    ) -> None:
        self.kernel = self.fn = kernel
        self.configs, self._key, self._restored = list(configs), key, restore_value
        self.__doc__, self.__name__ = kernel.__doc__, kernel.__name__

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid)

    def run(self, grid: Any, *arguments: Any, **options: Any) -> Any:
        """Launch with the configuration chosen for this key; choose it first if need be."""
        named = {**dict(zip(self.kernel.arg_names, arguments)), **options}
        name = self._name(named)
        if name not in CHOICES:
            if triton.knobs.runtime.interpret:  # There are no times to compare.
                CHOICES[name] = Choice(_as_dict(self.configs[0]))
            else:
                CHOICES[name] = self._search(grid, arguments, options, named)
        return self._launch(grid, arguments, options, named, CHOICES[name].config)

    def _name(self, named: Mapping[str, Any]) -> str:
        values = [f"{key}={named[key]}" for key in self._key]
        tensors = (getattr(value, "base", value) for value in named.values())
        types = [str(tensor.dtype) for tensor in tensors if hasattr(tensor, "dtype")]
        return f"{self.__name__}[{', '.join([*values, *dict.fromkeys(types)])}]"

    def _launch(
        self, grid: Any, arguments: Any, options: Any, named: Any, config: Mapping[str, Any]
    ) -> Any:
        hook = self.configs[0].pre_hook
        if hook is not None:
            hook({**named, **config})
        return self.kernel[grid](*arguments, **options, **config)

    def _search(self, grid: Any, arguments: Any, options: Any, named: Any) -> Choice:
        start = time.perf_counter()
        configs = [_as_dict(config) for config in self.configs]
        launches = {
            index: functools.partial(self._launch, grid, arguments, options, named, config)
            for index, config in enumerate(configs)
        }
        if _compilers:
            with collected() as jobs:
                for launch in launches.values():
                    launch()
            _compilers[-1].compile(jobs)
        kept = {name: named[name].clone() for name in self._restored}
        index, times, tried = fastest(launches)
        for name, value in kept.items():
            named[name].copy_(value)
        seconds = time.perf_counter() - start
        return Choice(configs[index], tried, len(configs), round(seconds, 2), times)


def autotune(
    configs: Sequence[triton.Config], key: Sequence[str], restore_value: Sequence[str] = ()
) -> Callable[[Any], Tuned]:
    """`triton.autotune`, with the search of this module."""
    return lambda kernel: Tuned(kernel, configs, key, restore_value)


def _as_dict(config: triton.Config) -> dict[str, Any]:
    return {
        **config.kwargs,
        "num_warps": config.num_warps,
        "num_stages": config.num_stages,
        **({"maxnreg": config.maxnreg} if config.maxnreg is not None else {}),
    }


def fastest_of(name: str, *ways: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function that takes, for arguments of these shapes, the quickest of several ways.

    Each way may raise `NotImplementedError` for arguments that are not for it.
    """
    by_name = {way.__name__: way for way in ways}

    def chosen(*arguments: Any, **options: Any) -> torch.Tensor:
        shapes = [tuple(a.shape) for a in arguments if isinstance(a, torch.Tensor)]
        dtype = next(a.dtype for a in arguments if isinstance(a, torch.Tensor))
        key = f"{name}{shapes}{dtype}{options or ''}"
        if key not in CHOICES:
            CHOICES[key] = _fastest_way(by_name, arguments, options)
        return by_name[CHOICES[key].config](*arguments, **options)

    chosen.__name__, chosen.__doc__ = name, f"The quickest way of {', '.join(by_name)}."
    chosen.ways = by_name  # type: ignore[attr-defined]
    return chosen


def _fastest_way(ways: Mapping[str, Callable[..., Any]], arguments: Any, options: Any) -> Choice:
    start, able = time.perf_counter(), {}
    for name, way in ways.items():
        try:
            way(*arguments, **options)
        except NotImplementedError:
            continue
        able[name] = functools.partial(way, *arguments, **options)
    if triton.knobs.runtime.interpret:
        return Choice(next(iter(able)))
    name, times, tried = fastest(able)
    return Choice(name, tried, len(ways), round(time.perf_counter() - start, 2), times)
