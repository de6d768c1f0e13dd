"""What one call costs the host on the tensors of each framework: add on 1024 elements.

Each frontend is measured in fresh processes of its own, in turns, so that none sees another's
allocator or threads. On the CPU no kernel is run: nothing is left of a call but the launch.

Beside each stands what the framework itself takes in the same process: for JAX a jitted addition of
its own; for the others the reading of three tensors' shape, strides, address, dtype and device
through its own attributes. A call may cost less: tensors that are like the last call's need not be read.

A call with JAX's arrays has a new array for its result. What JAX takes for one at the least, by any
way and without a kernel (`benchmarks.jax_arrays`), is told below the table. Where that alone is more
than a call may cost, no frontend could cost less, and JAX's is not judged. Within a jitted program a
call is a launch and nothing else: the second row of JAX's is what one more kernel costs there, a program
of 33 calls, each on what the one before gave, less one of a single call, over 32.

python -m benchmarks.frontends [cpu | cuda] [--path paddle=FOLDER:FOLDER]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import jax_arrays
from benchmarks.common.fresh import figures
from benchmarks.common.report import table
from benchmarks.common.spread import Spread

#: The most that a frontend's call may cost over one with PyTorch's tensors, in microseconds.
ALLOWED = 1.5

_CALLS = 500
_SIZE = 1024
_PROCESSES = 3

#: The calls in a longer program, and how often it is run before it is waited for: a device takes in so
#: many launches that it has not begun, and no more.
_LONG_PROGRAM = 33
_PROGRAMS = 15
_ROUNDS = 7
_PLUGINS = Path(__file__).resolve().parent.parent / "plugins"

#: The frontends, with the module and the folder of the plugin that some come with.
_FRONTENDS = {
    "torch": None,
    "paddle": None,
    "cupy": ("ninetoothed_cupy", "ninetoothed-cupy", "cupy"),
    "numpy": ("ninetoothed_numpy", "ninetoothed-numpy", "numpy-arrays"),
    "jax": ("ninetoothed_jax", "ninetoothed-jax", "jax"),
}

_PROGRAM = """
import json, sys
from benchmarks.frontends import measure
print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
"""

#: What the times of a new array are called, before the way in which it is made.
_NEW_ARRAY = "new array by "

#: What the times of one more call in a jitted program are called.
_IN_A_PROGRAM = "in a program"

#: For each frontend the microseconds of a call, of what its framework takes, and where a call makes a
#: new array of one, and of a further call in a program; a round each.
Times = dict[str, dict[str, list[float]]]


def measure(name: str, kind: str, rounds: int) -> dict[str, list[float]]:
    """Microseconds of the host's time, a round each; in a process of its own.

    Args:
        name: the frontend's name.
        kind: ``"cuda"`` or ``"cpu"``.

    Returns:
        of one call (``"call"``), of what the framework itself takes (``"own"``), and where a call's
        result is a new array, of one by each way (``"new array by …"``) and of one more call in a
        program (``"in a program"``).
    """
    from examples import add

    _register(name)
    if kind == "cpu":
        _run_nothing_on_the_cpu()
    call, own, synchronize = _MAKERS[name](add.kernel, kind, _SIZE)
    times: dict[str, list[float]] = {"call": [], "own": []}
    for function in (call, own):
        for _ in range(20):
            function()
    ways = _ways_to_an_array(kind) if name == "jax" else {}
    times |= {f"{_NEW_ARRAY}{way}": [] for way in ways}
    if name == "jax":
        times[_IN_A_PROGRAM] = _further_calls(add.kernel, kind, _SIZE, rounds)
    for _ in range(rounds):
        for way, make in ways.items():
            times[f"{_NEW_ARRAY}{way}"].append(jax_arrays.microseconds(make))
        for function, spent in ((call, times["call"]), (own, times["own"])):
            synchronize()
            start = time.perf_counter()
            for _ in range(_CALLS):
                function()
            spent.append(1e6 * (time.perf_counter() - start) / _CALLS)
    synchronize()
    return times


def available(kind: str, paths: Mapping[str, str] | None = None) -> list[str]:
    """The frontends whose framework is installed, and has tensors on such a device."""
    wrong = "numpy" if kind == "cuda" else "cupy"
    return [
        name
        for name in _FRONTENDS
        if name != wrong and (name in (paths or {}) or importlib.util.find_spec(name) is not None)
    ]


def compare(kind: str, names: Sequence[str], paths: Mapping[str, str] | None = None) -> Times:
    """The times of each frontend; its processes take turns with the others'.

    Args:
        kind: ``"cuda"`` or ``"cpu"``.
        names: the frontends.
        paths: folders that a frontend's processes search first, as in ``PYTHONPATH``: for a
            framework that is installed apart from the others.
    """
    times: Times = {name: {} for name in names}
    for _ in range(_PROCESSES):
        for name in names:
            path = (paths or {}).get(name, "")
            for what, rounds in figures(_PROGRAM, name, kind, str(_ROUNDS), path=path).items():
                times[name].setdefault(what, []).extend(rounds)
    return times


def report(times: Times) -> str:
    """A table of the times, each beside PyTorch's where that is among them."""
    spreads = {name: Spread.of(values["call"]) for name, values in times.items()}
    torch = spreads.get("torch")
    rows = []
    for name, spread in spreads.items():
        over = "-" if torch is None else f"{spread.median - torch.median:+.2f}"
        own = f"{Spread.of(times[name]['own']).median:.2f}"
        what = "a jitted addition" if name == "jax" else "reading three tensors"
        rows.append((name, f"{spread.median:.2f}", f"{spread.least:.2f}", over, own, what))
        if _IN_A_PROGRAM in times[name]:
            further = Spread.of(times[name][_IN_A_PROGRAM])
            over = "-" if torch is None else f"{further.median - torch.median:+.2f}"
            rows.append(
                (
                    f"{name}, {_IN_A_PROGRAM}",
                    f"{further.median:.2f}",
                    f"{further.least:.2f}",
                    over,
                    "-",
                    "one more kernel",
                )
            )
    header = ("tensors of", "median", "least", "over torch", "its own", "for")
    told = [table(header, rows)]
    for name in times:
        if (least := least_array(times, name)) is not None:
            way, spread = least
            told.append(
                f"{name} takes at least {spread.median:.2f} µs (least {spread.least:.2f}) for one new "
                f"array: {way}."
            )
    return "\n\n".join(told)


def least_array(times: Times, name: str) -> tuple[str, Spread] | None:
    """The quickest way to a new array of a frontend's framework, where calls make one; its times."""
    ways = {
        what.removeprefix(_NEW_ARRAY): Spread.of(rounds)
        for what, rounds in times[name].items()
        if what.startswith(_NEW_ARRAY)
    }
    return min(ways.items(), key=lambda way: way[1].median, default=None)


def too_slow(times: Times) -> list[str]:
    """The frontends whose calls cost more over PyTorch's than is allowed, and could cost less."""
    if "torch" not in times:
        return []
    most = Spread.of(times["torch"]["call"]).median + ALLOWED
    found = []
    for name, values in times.items():
        least = least_array(times, name)
        is_in_reach = least is None or least[1].least <= most
        if is_in_reach and Spread.of(values["call"]).median > most:
            found.append(name)
        if _IN_A_PROGRAM in values and Spread.of(values[_IN_A_PROGRAM]).median > most:
            found.append(f"{name}, {_IN_A_PROGRAM}")
    return found


def paths_of(given: Sequence[str]) -> dict[str, str]:
    """``["paddle=FOLDER:FOLDER"]`` by the frontends' names."""
    found = {}
    for each in given:
        name, _, path = each.partition("=")
        if name not in _FRONTENDS or not path:
            raise SystemExit(
                f"--path takes FRONTEND=FOLDERS, of {', '.join(_FRONTENDS)}; got {each!r}"
            )
        found[name] = path
    return found


def _register(name: str) -> None:
    from ninetoothed import plugins

    plugin = _FRONTENDS[name]
    if plugin is None or plugin[2] in {listed.name for listed in plugins.listing()}:
        return
    sys.path.insert(0, str(_PLUGINS / plugin[1]))
    plugins.register(importlib.import_module(plugin[0]), plugin[2])


def _run_nothing_on_the_cpu() -> None:
    """The NumPy backend takes far longer than a launch, and is not what is measured."""
    from ninetoothed import plugins
    from ninetoothed.backends.base import Plan, run_nothing

    plugins.backend_for("cpu").plan = lambda *arguments: Plan(run_nothing)  # type: ignore[method-assign]


Made = tuple[Callable[[], object], Callable[[], object], Callable[[], object]]


def _torch(kernel: Any, kind: str, size: int) -> Made:
    import torch

    x, y = (torch.ones(size, dtype=torch.float16, device=kind) for _ in range(2))
    output = torch.empty_like(x)

    def read() -> object:
        return [(t.shape, t.stride(), t.data_ptr(), t.dtype, t.device) for t in (x, y, output)]

    synchronize = torch.cuda.synchronize if kind == "cuda" else _nothing
    return lambda: kernel(x, y, output, BLOCK_SIZE=1024), read, synchronize


def _paddle(kernel: Any, kind: str, size: int) -> Made:
    import numpy as np
    import paddle

    place = paddle.CPUPlace() if kind == "cpu" else paddle.CUDAPlace(0)
    array = np.ones(size, np.float16)
    x, y, output = (paddle.to_tensor(array, place=place) for _ in range(3))

    def read() -> object:
        return [(t.shape, t.strides, t.data_ptr(), t.dtype, t.place) for t in (x, y, output)]

    synchronize = paddle.device.synchronize if kind == "cuda" else _nothing
    return lambda: kernel(x, y, output, BLOCK_SIZE=1024), read, synchronize


def _cupy(kernel: Any, kind: str, size: int) -> Made:
    import cupy

    x, y = (cupy.ones(size, cupy.float16) for _ in range(2))
    output = cupy.empty_like(x)

    def read() -> object:
        return [(t.shape, t.strides, t.data.ptr, t.dtype, t.data.device_id) for t in (x, y, output)]

    return lambda: kernel(x, y, output, BLOCK_SIZE=1024), read, cupy.cuda.Device().synchronize


def _numpy(kernel: Any, kind: str, size: int) -> Made:
    import numpy as np

    x, y = (np.ones(size, np.float16) for _ in range(2))
    output = np.empty_like(x)

    def read() -> object:
        return [(t.shape, t.strides, t.ctypes.data, t.dtype) for t in (x, y, output)]

    return lambda: kernel(x, y, output, BLOCK_SIZE=1024), read, _nothing


def _ways_to_an_array(kind: str) -> Mapping[str, Callable[[], object]]:
    import jax

    return jax_arrays.ways(jax.devices("cpu" if kind == "cpu" else "cuda")[0], _SIZE)


def _further_calls(kernel: Any, kind: str, size: int, rounds: int) -> list[float]:
    """The microseconds of one more call in a jitted program, a round each."""
    import jax
    import jax.numpy as jnp

    device = jax.devices("cpu" if kind == "cpu" else "cuda")[0]
    x = jax.device_put(jnp.zeros(size, jnp.float16), device)
    output = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def program(count: int) -> Callable[[Any], Any]:
        def chained(y: Any) -> Any:
            for _ in range(count):
                y = kernel(x, y, output, BLOCK_SIZE=1024)
            return y

        return jax.jit(chained)

    programs = program(1), program(_LONG_PROGRAM)
    found = []
    for each in (*programs, *programs):
        each(x).block_until_ready()
    for _ in range(rounds):
        spent = [0.0, 0.0]
        for _ in range(_CALLS // _PROGRAMS):
            for place, each in enumerate(programs):
                start = time.perf_counter()
                for _ in range(_PROGRAMS):
                    result = each(x)
                spent[place] += time.perf_counter() - start
                result.block_until_ready()
        runs = _CALLS // _PROGRAMS * _PROGRAMS
        found.append(1e6 * (spent[1] - spent[0]) / runs / (_LONG_PROGRAM - 1))
    return found


def _jax(kernel: Any, kind: str, size: int) -> Made:
    import jax
    import jax.numpy as jnp

    device = jax.devices("cpu" if kind == "cpu" else "cuda")[0]
    x, y = (jax.device_put(jnp.ones(size, jnp.float16), device) for _ in range(2))
    output = jax.ShapeDtypeStruct(x.shape, x.dtype)
    results: list[Any] = [x]
    jitted = jax.jit(lambda x, y: x + y)

    def call() -> None:
        results[0] = kernel(x, y, output, BLOCK_SIZE=1024)

    def add() -> None:
        results[0] = jitted(x, y)

    return call, add, lambda: results[0].block_until_ready()


def _nothing() -> None:
    """The CPU has nothing pending."""


_MAKERS = {"torch": _torch, "paddle": _paddle, "cupy": _cupy, "numpy": _numpy, "jax": _jax}


def main() -> int:
    """Measures what is installed here, on the CPU unless ``cuda`` is given; gives the status."""
    parser = argparse.ArgumentParser("python -m benchmarks.frontends", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--path", action="append", default=[], metavar="FRONTEND=FOLDERS")
    options = parser.parse_args()
    paths = paths_of(options.path)
    times = compare(options.kind, available(options.kind, paths), paths)
    print(report(times))
    for name in too_slow(times):
        print(f"{name} costs over {ALLOWED} µs more than torch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
