"""What configurations take that the estimate ranks first, for `tests/tuning/rankings.json`.

    python -m benchmarks.tuner.rankings [--match REGEX] [--count 24] [--output FILE]

The most promising of each kind, that is of each tile with the same options, are compiled, then measured
one by one; then those that differ by a step from the fastest. A transposed argument is one of the shape
that is given, by columns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.measure import environment
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.planning.space import space_of
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.call_types import as_given
from ninetoothed.launch.arguments import described
from ninetoothed.launch.kernel import Kernel
from ninetoothed.tuning.space import Config, Space
from tests.golden.kernels import TEN

#: So many milliseconds of launches make one time.
_MILLISECONDS = 8.0

#: So many of the fastest have so many neighbours measured.
_FASTEST, _NEIGHBOURS = 3, 8

_WHAT = "microseconds of one launch, second-level cache cold, float16"


def _product(m: int, n: int, k: int) -> dict[str, Any]:
    shapes = {"input": [m, k], "other": [k, n], "output": [m, n]}
    return {"kernel": "mm", "arguments": shapes, "constants": {}, "transposed": ["other"]}


def _attention(batch: int, heads: int, length: int, size: int, is_causal: bool) -> dict[str, Any]:
    names = ("query", "key", "value", "output")
    shapes = {name: [batch, heads, length, size] for name in names}
    constants = {"is_causal": is_causal}
    return {"kernel": "sdpa", "arguments": shapes, "constants": constants, "transposed": []}


#: What is measured, by name.
TASKS: dict[str, dict[str, Any]] = {
    "conv2d": {
        "kernel": "conv2d",
        "arguments": {
            "input": [4, 512, 14, 14],
            "other": [512, 512, 3, 3],
            "output": [4, 512, 12, 12],
        },
        "constants": {},
        "transposed": [],
    },
    **{
        f"mm {m} {n} {k} transposed": _product(m, n, k)
        for m in (1, 7, 16, 100, 512, 1000, 2048, 8192)
        for n, k in ((6144, 4096), (4096, 14336), (28672, 4096))
    },
    **{
        f"sdpa {is_causal} {shape}": _attention(*shape, is_causal)
        for shape in ((4, 48, 1024, 64), (4, 16, 4096, 128))
        for is_causal in (False, True)
    },
}


def planned(kernel: Kernel, given: dict[str, Any]) -> tuple[Planner, Space, tuple[Any, ...]]:
    """What plans a call, what there is to choose, and what a launch is given."""
    bound = kernel.bind((), given)
    frontend = kernel.frontend_of(bound)
    definition = kernel.definition_of(bound, frontend)
    _, values = described(definition, frontend, bound)
    call = kernel.call_of(**given)
    definition = as_given(definition, call)
    planner = Planner(definition, call)
    space = space_of(definition, planner._decisive, planner._limits)
    return planner, space, (frontend.current_stream(0), *values)


def of_each_kind(space: Space, count: int) -> list[Config]:
    """The most promising, one of each tile and options."""
    kinds: dict[Any, Config] = {}
    for config in space.ranked:
        kinds.setdefault((config.values, tuple(name for name, _ in config.options)), config)
    return list(kinds.values())[:count]


def measured(task: dict[str, Any], count: int) -> list[list[Any]]:
    """Such as are most promising, with their microseconds; notes the symbols' names."""
    kernel = TEN[task["kernel"]]
    given: dict[str, Any] = dict(task["constants"])
    if task["kernel"] == "sdpa":
        given["scale"] = 1 / math.sqrt(task["arguments"]["query"][-1])
    for name, shape in task["arguments"].items():
        is_transposed = name in task["transposed"]
        made = torch.randn(shape[::-1] if is_transposed else shape, device="cuda").half()
        given[name] = made.T if is_transposed else made
    planner, space, values = planned(kernel, given)

    def compiled(config: Config) -> Any:
        try:
            return planner._candidate(config).run
        except NineToothedError:
            return None

    times: dict[Config, float] = {}

    def measure(configs: list[Config]) -> None:
        with ThreadPoolExecutor() as compilers:
            runs = list(compilers.map(compiled, configs))
        # Nothing compiles by now: a launch that waits for Python's lock is slow.
        with planner._benchmark(values).begun() as benchmark:
            for config, run in zip(configs, runs, strict=True):
                if run is not None:
                    times[config] = benchmark.measure(run, _MILLISECONDS)

    measure(of_each_kind(space, count))
    fastest = sorted(times, key=times.__getitem__)[:_FASTEST]
    near = [other for config in fastest for other in space.neighbours(config)[:_NEIGHBOURS]]
    measure([config for config in dict.fromkeys(near) if config not in times])
    names = task["symbols"] = [name for name, _ in fastest[0].values]
    return [
        [
            [config[name] for name in names],
            config.num_warps,
            config.num_stages,
            {name: value for name, value in config.options if name != "dependent_launch"},
            float(f"{1e3 * milliseconds:.4g}"),
        ]
        for config, milliseconds in sorted(times.items(), key=lambda item: item[1])
    ]


def as_text(here: dict[str, str], tasks: list[dict[str, Any]]) -> str:
    """The file: a line for each task's configurations, not one for each number."""
    head = {"device": here["device"], "date": here["date"][:10], "triton": here["triton"]}
    head |= {"torch": here["torch"], "what": _WHAT}
    lines = []
    for task in tasks:
        times = ", ".join(json.dumps(entry, separators=(",", ":")) for entry in task["times"])
        rest = json.dumps({name: value for name, value in task.items() if name != "times"})
        lines.append(f'  {rest[:-1]}, "times": [\n    {times}]}}')
    listed = ",\n".join(lines)
    return f'{json.dumps(head)[:-1]}, "tasks": [\n{listed}\n]}}\n'


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.tuner.rankings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--match", default="", help="of the tasks' names")
    parser.add_argument("--count", type=int, default=24, help="configurations of each")
    parser.add_argument("--most", type=float, default=math.inf, help="seconds of all")
    parser.add_argument("--output", type=Path, default=Path("rankings.json"))
    options = parser.parse_args()
    found, start = [], time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["NINETOOTHED_CACHE_DIR"] = folder
        for name, task in TASKS.items():
            if re.search(options.match, name) and time.perf_counter() - start < options.most:
                task = {"name": name, **task}
                task["times"] = measured(task, options.count)
                found.append(task)
                print(name, len(task["times"]), task["times"][:2], flush=True)
                # What was measured is there, should the next one not end.
                options.output.write_text(as_text(environment(), found))


if __name__ == "__main__":
    main()
