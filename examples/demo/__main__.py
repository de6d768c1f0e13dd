"""The ten kernels of the paper on this machine, each beside the framework's own: ``make demo``.

Each result is compared with NumPy's in float64. ``python -m examples.demo paddle`` runs them on
PaddlePaddle's tensors; no other framework is imported then.
"""

from __future__ import annotations

import inspect
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy

from examples import add, addmm, bmm, conv2d, mm, rms_norm, rope, sdpa, silu, softmax
from examples.demo import in_numpy
from examples.demo.frameworks import FRAMEWORKS, Framework
from examples.demo.side_by_side import side_by_side

#: How far a result may lie from the float64 reference, relative to the reference's largest element.
ALLOWED = {"float32": 1e-5, "float16": 5e-3}


@dataclass(frozen=True)
class Task:
    """A kernel, the shapes of what it is given, and what NumPy makes of the same arguments."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    ours: Callable[..., Any]
    reference: Callable[..., numpy.ndarray]


# Sizes that no block size divides, so that the masks are at work in every kernel.
TASKS = (
    Task("add", ((98_765,), (98_765,)), add.add, numpy.add),
    Task("silu", ((98_765,),), silu.silu, in_numpy.silu),
    Task("softmax", ((130, 781),), softmax.softmax, in_numpy.softmax),
    Task("rms_norm", ((130, 781),), rms_norm.rms_norm, in_numpy.rms_norm),
    Task("rope", ((2, 50, 6, 64), (50, 32), (50, 32)), rope.rope, in_numpy.rope),
    Task("mm", ((200, 300), (300, 170)), mm.mm, numpy.matmul),
    Task("addmm", ((200, 170), (200, 300), (300, 170)), addmm.addmm, in_numpy.addmm),
    Task("bmm", ((3, 100, 150), (3, 150, 90)), bmm.bmm, numpy.matmul),
    Task("conv2d", ((2, 8, 20, 20), (16, 8, 3, 3)), conv2d.conv2d, in_numpy.conv2d),
    Task("sdpa", ((2, 4, 150, 64), (2, 4, 150, 64), (2, 4, 150, 64)), sdpa.sdpa, in_numpy.sdpa),
)


@dataclass(frozen=True)
class Result:
    """What running a task gave: the errors relative to float64, and the seconds of two calls."""

    error: float
    error_of_own: float
    first: float
    again: float
    allowed: float

    @property
    def right(self) -> bool:
        return self.error <= self.allowed  # False for a NaN too


def relative_error(result: numpy.ndarray, reference: numpy.ndarray) -> float:
    """The largest difference, relative to the reference's largest element."""
    return float(abs(result.astype(numpy.float64) - reference).max() / abs(reference).max())


def timed(
    function: Callable[..., Any], arguments: Sequence[Any], framework: Framework
) -> tuple[Any, float]:
    """The function's result and the seconds until the device had it."""
    start = time.perf_counter()
    result = function(*arguments)
    framework.synchronize()
    return result, time.perf_counter() - start


def run(task: Task, framework: Framework, dtype: str) -> Result:
    """Run a task twice (the first call compiles) and the framework's own version once."""
    random = numpy.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(dtype) for shape in task.shapes]
    reference = task.reference(*(array.astype(numpy.float64) for array in arrays))
    arguments = [framework.put(array) for array in arrays]
    _, first = timed(task.ours, arguments, framework)
    result, again = timed(task.ours, arguments, framework)
    found = framework.fetch(result)
    if found.shape != reference.shape:
        raise RuntimeError(f"{task.name}: {found.shape}, not {reference.shape}")
    own = framework.fetch(framework.own[task.name](*arguments))
    return Result(
        relative_error(found, reference),
        relative_error(own, reference),
        first,
        again,
        ALLOWED[dtype],
    )


def version(package: str) -> str:
    """The installed version of a package, or that there is none."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} absent"


def machine(framework: Framework) -> str:
    """The processor that the kernels run on, in words."""
    return framework.machine or f"CPU, {platform.machine()}, {os.cpu_count()} cores"


def paint(text: str, code: str) -> str:
    """``text`` in a terminal's colour, where the output is a terminal that wants it."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{code}m{text}\033[0m"


def heading(framework: Framework, dtype: str) -> str:
    """What is run, where, by which backend, in which versions."""
    backend = "Triton" if framework.device == "cuda" else "NumPy (no CUDA device here)"
    packages = dict.fromkeys(("ninetoothed", framework.package, "torch", "triton", "numpy"))
    versions = ", ".join(map(version, packages))
    title = f"NineToothed: the ten kernels of the paper, on tensors of {framework.title}"
    return "\n".join(
        [
            paint(title, "1"),
            f"  runs on   {machine(framework)}",
            f"  backend   {backend}",
            f"  versions  Python {platform.python_version()}, {versions}",
            f"  elements  {dtype}; errors are relative to NumPy's results in float64",
        ]
    )


def show_source(width: int) -> str:
    """mm as its user wrote it beside the Triton source that came of it."""
    written = [
        ("What you write: the arrangement", inspect.getsource(mm.arrangement)),
        ("… and the application", inspect.getsource(mm.application)),
    ]
    return side_by_side([written, [("What runs on a GPU", mm.kernel.source)]], width)


ROW = "{:>5}  {:<9} {:<38} {:>9} {:>14} {:>9} {:>9}  {}"


def main(arguments: Sequence[str] = ()) -> int:
    """Run everything on a framework's tensors, PyTorch's by default.

    Returns:
        the number of kernels that were wrong.
    """
    name = arguments[0] if arguments else "torch"
    if name not in FRAMEWORKS or len(arguments) > 1:
        raise SystemExit(f"usage: python -m examples.demo [{' | '.join(FRAMEWORKS)}]")
    try:
        framework = FRAMEWORKS[name]()
    except ModuleNotFoundError as error:
        raise SystemExit(f"the demo with {name!r} needs the module {error.name!r}") from None
    dtype = "float16" if framework.device == "cuda" else "float32"
    print(heading(framework, dtype), end="\n\n")
    own = f"{framework.title}'s"
    print(ROW.format("", "kernel", "shapes", "error", own, "1st call", "2nd call", ""))

    started, wrong = time.perf_counter(), 0
    for number, task in enumerate(TASKS, start=1):
        counter = f"{number}/{len(TASKS)}"
        shapes = " ".join("×".join(map(str, shape)) for shape in task.shapes)
        result = run(task, framework, dtype)
        wrong += not result.right
        verdict = paint("ok", "32") if result.right else paint("WRONG", "31")
        print(
            ROW.format(
                counter,
                task.name,
                shapes,
                f"{result.error:.1e}",
                f"{result.error_of_own:.1e}",
                f"{result.first * 1e3:.1f} ms",
                f"{result.again * 1e3:.1f} ms",
                verdict,
            ),
            flush=True,
        )

    print(f"\n{show_source(shutil.get_terminal_size((120, 40)).columns)}\n")
    took = time.perf_counter() - started
    outcome = "all right" if not wrong else f"{wrong} WRONG"
    print(f"{len(TASKS)} kernels, {outcome}, in {took:.1f} s on {machine(framework)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
