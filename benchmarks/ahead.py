"""Kernels compiled ahead of time beside the same kernels compiled at their call: the device's time.

    python -m benchmarks.ahead [--tasks mm,sdpa] [--tuned] [--rounds 7] [--output FOLDER]

Each of the ten tasks is built for this device by the estimate alone, as where there is none, or with
the results of the calls' own search (``--tuned``), compiled by ``cc``, and launched through C. The
kernel at the call is the tuner's choice after a search (``--effort``). Results are compared with float64 first. Beside the ratio
stand the size and the seconds of the build, and its configuration.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.measure import Timer, environment, num_turns
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.peers.contenders import OURS, TASKS, Task
from ninetoothed.aot.build import Built, build
from ninetoothed.tuning.results import export_results
from tests.aot.kernels import PREMAKES
from tests.aot.reference import DLDataType, DLDevice, DLTensor
from tests.examples.compare import assert_matches
from tests.examples.maker import Maker

AHEAD = "ahead"

#: What of the declaration is the task's: the columns that decide a tile.
_DECLARED: dict[str, dict[str, Any]] = {
    "softmax": {"columns": 4096},
    "rms_norm": {"columns": 4096},
    "rope": {"heads": 48},
    "sdpa": {"is_causal": False},
    # At the call its sizes are constants too.
    "conv2d": {"input_shape": (4, 512, 14, 14), "filters": (512, 512)},
}

#: (arguments) -> what a call in C is given: tensors, numbers, and the result's shape.
_CALLS: dict[str, Callable[..., tuple[list[torch.Tensor], list[float], tuple[int, ...]]]] = {
    "add": lambda x, y: ([x, y], [], x.shape),
    "silu": lambda x: ([x], [], x.shape),
    "softmax": lambda x: ([x], [], x.shape),
    "rms_norm": lambda x: ([x], [1e-6], x.shape),
    "rope": lambda x, sin, cos: ([x, sin, cos], [], x.shape),
    "mm": lambda a, b: ([a, b], [], (len(a), b.shape[1])),
    "addmm": lambda c, a, b: ([c, a, b], [1.0, 1.0], (len(a), b.shape[1])),
    "bmm": lambda a, b: ([a, b], [], (len(a), a.shape[1], b.shape[2])),
    "conv2d": lambda x, w: (
        [x, w],
        [],
        (len(x), len(w), x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1),
    ),
    "sdpa": lambda q, k, v: ([q, k, v], [q.shape[-1] ** -0.5], q.shape),
}


def described(tensor: torch.Tensor) -> DLTensor:
    """A tensor of half-precision numbers in DLPack's terms."""
    rank = tensor.ndim
    sizes = (ctypes.c_int64 * rank)(*tensor.shape), (ctypes.c_int64 * rank)(*tensor.stride())
    made = DLTensor(tensor.data_ptr(), DLDevice(2, 0), rank, DLDataType(2, 16, 1), *sizes, 0)
    made.kept = sizes  # type: ignore[attr-defined]
    return made


class Ahead:
    """A task's kernel, built into a library, as a function of the task's arguments."""

    def __init__(self, name: str, folder: Path, target: str, tuned: Path | None) -> None:
        self._name = name
        begin = time.monotonic()
        premake = functools.partial(PREMAKES[name], **_DECLARED.get(name, {}))
        self.built: Built = build(
            premake,
            [((), {}, {})],
            kernel_name=name,
            output_dir=folder,
            targets=(target,),
            tuned=tuned,
        )
        self.seconds = time.monotonic() - begin
        library = folder / f"lib{name}.so"
        sources = map(str, folder.glob("*.c"))
        command = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", *sources, "-o", str(library)]
        subprocess.run([*command, "-ldl", "-lpthread"], check=True)
        self._library = ctypes.CDLL(str(library))
        self._library.nt_error_message.restype = ctypes.c_char_p
        self._launch = getattr(self._library, f"{name}_launch")

    @property
    def num_bytes(self) -> int:
        """Of the binaries."""
        return sum(
            len(image.data)
            for unit in self.built.units
            for each in unit.binaries
            for image in each.images
        )

    @property
    def configuration(self) -> str:
        """What the estimate chose."""
        *_, edition = self.built.units[0].editions
        values = ", ".join(f"{symbol}={value}" for symbol, value in edition.known.items())
        return f"{values} {edition.num_warps} warps, {edition.num_stages} stages".strip()

    def __call__(self, *arguments: torch.Tensor) -> torch.Tensor:
        tensors, numbers, shape = _CALLS[self._name](*arguments)
        output = torch.empty(shape, dtype=arguments[0].dtype, device=arguments[0].device)
        given: list[Any] = [ctypes.byref(described(tensor)) for tensor in tensors]
        given += [ctypes.c_double(number) for number in numbers]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if self._launch(stream, *given, ctypes.byref(described(output))):
            raise RuntimeError(self._library.nt_error_message().decode())
        return output


def run(task: Task, target: str, rounds: int, is_tuned: bool) -> dict[str, Any]:
    """Builds, compares and times one task."""
    maker = Maker(torch.float16, "cuda")
    arguments = task.build(maker)
    folder, found = Path(tempfile.mkdtemp(prefix=f"{task.name}-")), None
    if is_tuned:
        # As on another machine: what the call's own search finds is carried in a file.
        task.contenders[OURS](*arguments)
        found = folder / "found.json"
        export_results(found)
    ahead = Ahead(task.name, folder, target, found)
    contenders = {AHEAD: ahead, OURS: task.contenders[OURS]}
    expected = task.reference(*(argument.double() for argument in arguments))
    for function in contenders.values():
        result = function(*arguments)
        assert_matches(result, expected, task.reduction, task.rounds_intermediates)
    num_bytes = sum(argument.nbytes for argument in arguments)
    turns = [arguments, *(task.build(maker) for _ in range(num_turns(num_bytes) - 1))]
    functions = {
        name: [functools.partial(function, *given) for given in turns]
        for name, function in contenders.items()
    }
    times = Timer("write").rounds(functions, rounds)
    return {
        "task": task.name,
        "size": task.size,
        "milliseconds": times,
        "ratio": asdict(ratios(times, AHEAD, OURS)),
        "configuration": ahead.configuration,
        "bytes": ahead.num_bytes,
        "build_seconds": ahead.seconds,
    }


def as_table(results: list[dict[str, Any]]) -> str:
    """A line for each task."""
    header = (
        "task",
        "ahead, µs",
        "at the call, µs",
        "ahead / at the call",
        "bytes",
        "built in",
        "by",
    )
    rows = [
        (
            result["task"],
            *(f"{1000 * Spread.of(result['milliseconds'][n]).median:.2f}" for n in (AHEAD, OURS)),
            str(Spread(**result["ratio"])),
            str(result["bytes"]),
            f"{result['build_seconds']:.1f} s",
            result["configuration"],
        )
        for result in results
    ]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=",".join(_CALLS))
    parser.add_argument(
        "--tuned", action="store_true", help="with the results of the calls, exported"
    )
    parser.add_argument("--effort", default="quick", help="of the search at the call")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "ahead")
    options = parser.parse_args()
    os.environ["NINETOOTHED_TUNE"] = options.effort
    major, minor = torch.cuda.get_device_capability()
    wanted = options.tasks.split(",")
    results = []
    for task in TASKS:
        if task.name in wanted and task.name in _CALLS:
            results.append(run(task, f"sm_{major}{minor}", options.rounds, options.tuned))
            print(
                json.dumps({k: v for k, v in results[-1].items() if k != "milliseconds"}),
                flush=True,
            )
    text = as_table(results)
    print(text)
    here = environment()
    heading = "Kernels compiled ahead of time beside those compiled at the call, float16"
    name = "ahead-tuned" if options.tuned else "ahead"
    write(name, here, f"# {heading}\n\n{describe(here)}\n\n{text}", results, options.output)


if __name__ == "__main__":
    main()
