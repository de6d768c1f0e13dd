"""Tunes hand-written Triton kernels: compiles in many processes at a time and drops losers early.

`autotune` reads as `triton.autotune` does and chooses from all the configurations it is given, but
a search of 200 takes seconds on 16 cores where Triton's own takes minutes. What was chosen is kept
with the results, and can be read from there instead of being searched again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.errors import OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.common.measure import Timer

#: So many of the quickest after the first look are timed again, longer and in turns.
_FINALISTS = 16
_FIRST_LOOK, _LONGER_LOOK = 6, 60

#: What takes so many times as long as the best so far is not looked at again.
_HOPELESS = 2.0

#: So many sets of arguments are used in turns: what is marked to stay in the L2 cache survives a
#: flush, and must not be there when the same arguments come again.
_TURNS = 3


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


#: What a process needs to know to compile one kernel: the module and the file it is in, its name,
#: its types and constants as Triton writes them down, and the target.
Job = tuple[str, str, str, str, dict[str, Any]]

#: Every choice of this process, by the kernel's name and key; `recall` fills it beforehand.
CHOICES: dict[str, Choice] = {}


def recall(choices: Mapping[str, Mapping[str, Any]]) -> None:
    """Use what an earlier run chose, given as it was written among its results."""
    CHOICES.update({name: Choice(**choice) for name, choice in choices.items()})


# Compiling in other processes.


class Compilers:
    """Processes that compile into Triton's disk cache, where this process then finds the kernels.

    They are children of a process that imports what they need and nothing else: a copy of this one
    could be made while a framework's thread holds a lock.
    """

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.peers.contenders"])
        self._pool = ProcessPoolExecutor(processes, context)
        # It begins to import now, while this process goes on.
        self._pool.submit(len, ())

    def compile(self, jobs: Sequence[Job]) -> list[str]:
        """Compile them; gives what failed."""
        return [failure for failure in self._pool.map(_compile, jobs) if failure]

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


_compilers: list[Compilers] = []


def start_compilers(processes: int) -> None:
    """From now on searches compile in so many processes."""
    _compilers.append(Compilers(processes))


def stop_compilers() -> None:
    """End the processes that `start_compilers` started."""
    while _compilers:
        _compilers.pop().close()


@contextlib.contextmanager
def collected() -> Iterator[list[Job]]:
    """While it lasts, what would be compiled and launched is only listed."""
    jobs: list[Job] = []

    def collect(*, fn: Any, compile: Any, **_: Any) -> bool:
        target = triton.runtime.driver.active.get_current_target()
        file = fn.jit_function.fn.__code__.co_filename
        jobs.append((fn.module, file, fn.name, compile["specialization_data"], vars(target)))
        return True

    before = triton.knobs.runtime.jit_cache_hook
    triton.knobs.runtime.jit_cache_hook = collect
    try:
        yield jobs
    finally:
        triton.knobs.runtime.jit_cache_hook = before


@functools.cache
def _function(module: str, file: str, name: str) -> Any:
    """The `triton.jit` function, of an importable module or of a generated file."""
    try:
        home = importlib.import_module(module)
    except ImportError:
        triton.autotune = autotune  # Triton's own would ask for the device.
        spec = importlib.util.spec_from_file_location(module, file)
        assert spec is not None and spec.loader is not None
        home = sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(home)
    function = getattr(home, name)
    return function.kernel if isinstance(function, Tuned) else function


def _compile(job: Job) -> str:
    """Compile one kernel; gives the failure, in words, or nothing."""
    module, file, name, specialization, target = job
    function = _function(module, file, name)
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
            ASTSource(function, data["signature"], constants, attributes),
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


def fastest(launches: Mapping[Any, Sequence[Callable[[], object]]]) -> tuple[Any, list[float], int]:
    """The key of the quickest launch, the finalists' times, and how many could be timed.

    Each launch is given several times, with arguments of its own, which are used in turns.
    """
    timer, times, reason = _timer(), {}, None
    for key, turns in launches.items():
        try:
            timer.forget_kept()
            turns[0]()
            times[key] = timer.milliseconds(turns, 1)
            if times[key] < _HOPELESS * min(times.values()):
                times[key] = timer.milliseconds(turns, _FIRST_LOOK)
        except Exception as error:  # It does not fit the device, or does not compile.
            reason = error
    if not times:
        raise RuntimeError("no configuration can be run on this device") from reason
    finalists = sorted(times, key=times.__getitem__)[:_FINALISTS]
    found: dict[Any, list[float]] = {key: [] for key in finalists}
    # There and back, as in `Timer.rounds`.
    for key in finalists + finalists[::-1]:
        timer.forget_kept()
        found[key].append(timer.milliseconds(launches[key], _LONGER_LOOK))
    means = {key: statistics.mean(values) for key, values in found.items()}
    return min(means, key=means.__getitem__), sorted(means.values()), len(times)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, which were given as numbers; `clone` closes what gaps there are."""
    if tensor.numel() == 0:
        return tensor.clone()
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    return tensor.as_strided((extent,), (1,)).clone().as_strided(tensor.shape, tensor.stride())


def _copies(values: Any) -> Any:
    """The same arguments on copies of the tensors; each tensor is copied once."""
    copied: dict[int, Any] = {}

    def copy(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return copied.setdefault(id(value), _copy(value))
        if isinstance(value, TensorDescriptor):
            return dataclasses.replace(value, base=copy(value.base))
        return value

    if isinstance(values, Mapping):
        return {name: copy(value) for name, value in values.items()}
    return tuple(copy(value) for value in values)


class Tuned:
    """A kernel that chooses its configuration at the first call of each key, as Triton's tuner does.

    Attributes:
        kernel: the `triton.jit` function.
    """

    def __init__(self, kernel: Any, configs: Sequence[triton.Config], key: Sequence[str]) -> None:
        self.kernel = self.fn = kernel
        self.configs, self._key = list(configs), key
        self.__doc__ = kernel.__doc__
        module = kernel.__module__.removeprefix("benchmarks.").removeprefix("peers.")
        self.__name__ = f"{module}.{kernel.__name__}"

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid)

    def run(self, grid: Any, *arguments: Any, **options: Any) -> Any:
        """Launch with the configuration chosen for this key; choose it first if need be."""
        named = self._named(arguments, options)
        name = self._name(named)
        if name not in CHOICES:
            if triton.knobs.runtime.interpret:  # There are no times to compare.
                CHOICES[name] = Choice(_as_dict(self.configs[0]))
            else:
                CHOICES[name] = self._search(grid, arguments, options)
        return self._launch(grid, arguments, options, CHOICES[name].config)

    def _named(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.kernel.arg_names, arguments)), **options}

    def _name(self, named: Mapping[str, Any]) -> str:
        values = [f"{key}={named[key]}" for key in self._key]
        bases = (getattr(value, "base", value) for value in named.values())
        tensors = [base for base in bases if hasattr(base, "dtype")]
        values += dict.fromkeys(str(tensor.dtype) for tensor in tensors)
        # What is quickest for a new tensor need not be so where one is overwritten.
        if len({id(tensor) for tensor in tensors}) < len(tensors):
            values.append("in place")
        return f"{self.__name__}[{', '.join(values)}]"

    def _launch(
        self, grid: Any, arguments: Any, options: Mapping[str, Any], config: Mapping[str, Any]
    ) -> Any:
        hook = self.configs[0].pre_hook
        if hook is not None:
            hook({**self._named(arguments, options), **config})
        return self.kernel[grid](*arguments, **options, **config)

    def _search(self, grid: Any, arguments: Any, options: Mapping[str, Any]) -> Choice:
        start = time.perf_counter()
        configs = [_as_dict(config) for config in self.configs]
        # What the kernel writes, it writes to copies.
        turns = [_copies(arguments) for _ in range(_TURNS)]
        launches = {
            index: [
                functools.partial(self._launch, grid, copies, options, config) for copies in turns
            ]
            for index, config in enumerate(configs)
        }
        if _compilers:
            with collected() as jobs:
                for launch, *_ in launches.values():
                    # What another size had compiled already is launched, and may not fit.
                    with contextlib.suppress(OutOfResources):
                        launch()
            _compilers[-1].compile(jobs)
        index, times, tried = fastest(launches)
        seconds = time.perf_counter() - start
        return Choice(configs[index], tried, len(configs), round(seconds, 2), times)


def autotune(configs: Sequence[triton.Config], key: Sequence[str]) -> Callable[[Any], Tuned]:
    """`triton.autotune`, with the search of this module; it never writes to the arguments."""
    return lambda kernel: Tuned(kernel, configs, key)


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
        able[name] = way
    if triton.knobs.runtime.interpret:
        return Choice(next(iter(able)))
    turns = [_copies(arguments) for _ in range(_TURNS)]
    launches = {
        name: [functools.partial(way, *copies, **options) for copies in turns]
        for name, way in able.items()
    }
    name, times, tried = fastest(launches)
    return Choice(name, tried, len(ways), round(time.perf_counter() - start, 2), times)
