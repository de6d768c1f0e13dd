"""The ten kernels of the paper on this machine, each compared with PyTorch: ``make demo``."""

from __future__ import annotations

import inspect
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

import torch
import torch.nn.functional as F

from examples import add, addmm, bmm, conv2d, mm, rms_norm, rope, sdpa, silu, softmax
from examples.side_by_side import side_by_side

#: How far a result may lie from the float64 reference, relative to the reference's largest element.
ALLOWED = {torch.float32: 1e-5, torch.float16: 5e-3}


@dataclass(frozen=True)
class Task:
    """A kernel, the shapes of what it is given, and what PyTorch makes of the same arguments."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    ours: Callable[..., torch.Tensor]
    reference: Callable[..., torch.Tensor]


def normalise(x: torch.Tensor) -> torch.Tensor:
    """Root-mean-square normalisation, with the epsilon of our own function."""
    return F.rms_norm(x, x.shape[-1:], eps=1e-6)


def rotate(x: torch.Tensor, sine: torch.Tensor, cosine: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding, interleaved: neighbours are turned as one complex number."""
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    angles = torch.complex(cosine, sine)[None, :, None, :]
    return torch.view_as_real(turned * angles).flatten(-2)


# Sizes that no block size divides, so that the masks are at work in every kernel.
TASKS = (
    Task("add", ((98_765,), (98_765,)), add.add, torch.add),
    Task("silu", ((98_765,),), silu.silu, F.silu),
    Task("softmax", ((130, 781),), softmax.softmax, lambda x: F.softmax(x, dim=-1)),
    Task("rms_norm", ((130, 781),), rms_norm.rms_norm, normalise),
    Task("rope", ((2, 50, 6, 64), (50, 32), (50, 32)), rope.rope, rotate),
    Task("mm", ((200, 300), (300, 170)), mm.mm, torch.mm),
    Task("addmm", ((200, 170), (200, 300), (300, 170)), addmm.addmm, torch.addmm),
    Task("bmm", ((3, 100, 150), (3, 150, 90)), bmm.bmm, torch.bmm),
    Task("conv2d", ((2, 8, 20, 20), (16, 8, 3, 3)), conv2d.conv2d, F.conv2d),
    Task(
        "sdpa",
        ((2, 4, 150, 64), (2, 4, 150, 64), (2, 4, 150, 64)),
        sdpa.sdpa,
        F.scaled_dot_product_attention,
    ),
)


@dataclass(frozen=True)
class Result:
    """What running a task gave: the errors relative to float64, and the seconds of two calls."""

    error: float
    error_of_torch: float
    first: float
    again: float
    allowed: float

    @property
    def right(self) -> bool:
        return self.error <= self.allowed  # False for a NaN too


def relative_error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """The largest difference, relative to the reference's largest element."""
    return float((result.double() - reference).abs().max() / reference.abs().max())


def timed(
    function: Callable[..., torch.Tensor], arguments: tuple[torch.Tensor, ...], device: str
) -> tuple[torch.Tensor, float]:
    """The function's result and the seconds until the device had it."""
    start = time.perf_counter()
    result = function(*arguments)
    if device == "cuda":
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def run(task: Task, device: str, dtype: torch.dtype) -> Result:
    """Run a task twice (the first call compiles) and PyTorch's own version once."""
    arguments = tuple(torch.randn(shape, device=device, dtype=dtype) for shape in task.shapes)
    reference = task.reference(*(argument.double() for argument in arguments))
    _, first = timed(task.ours, arguments, device)
    result, again = timed(task.ours, arguments, device)
    torchs = task.reference(*arguments)
    if result.shape != reference.shape:
        raise RuntimeError(f"{task.name}: {tuple(result.shape)}, not {tuple(reference.shape)}")
    return Result(
        relative_error(result, reference),
        relative_error(torchs, reference),
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


def machine(device: str) -> str:
    """The processor that the kernels run on, in words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU, {platform.machine()}, {os.cpu_count()} cores"


def paint(text: str, code: str) -> str:
    """``text`` in a terminal's colour, where the output is a terminal that wants it."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\033[{code}m{text}\033[0m"


def heading(device: str, dtype: torch.dtype) -> str:
    """What is run, where, by which backend, in which versions."""
    backend = "Triton" if device == "cuda" else "NumPy (no CUDA device here)"
    versions = ", ".join(map(version, ("ninetoothed", "torch", "triton", "numpy")))
    return "\n".join(
        [
            paint("NineToothed: the ten kernels of the paper, compared with PyTorch", "1"),
            f"  runs on   {machine(device)}",
            f"  backend   {backend}",
            f"  versions  Python {platform.python_version()}, {versions}",
            f"  elements  {str(dtype).removeprefix('torch.')}; errors are relative to float64",
        ]
    )


def show_source(width: int) -> str:
    """mm as its user wrote it beside the Triton source that came of it."""
    written = [
        ("What you write: the arrangement", inspect.getsource(mm.arrangement)),
        ("… and the application", inspect.getsource(mm.application)),
    ]
    return side_by_side([written, [("What runs on a GPU", mm.kernel.source)]], width)


ROW = "{:>5}  {:<9} {:<38} {:>9} {:>9} {:>9} {:>9}  {}"


def main() -> int:
    """Run everything; the number of kernels that were wrong."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.float32
    print(heading(device, dtype), end="\n\n")
    print(ROW.format("", "kernel", "shapes", "error", "PyTorch's", "1st call", "2nd call", ""))

    started, wrong = time.perf_counter(), 0
    for number, task in enumerate(TASKS, start=1):
        counter = f"{number}/{len(TASKS)}"
        shapes = " ".join("×".join(map(str, shape)) for shape in task.shapes)
        result = run(task, device, dtype)
        wrong += not result.right
        verdict = paint("ok", "32") if result.right else paint("WRONG", "31")
        print(
            ROW.format(
                counter,
                task.name,
                shapes,
                f"{result.error:.1e}",
                f"{result.error_of_torch:.1e}",
                f"{result.first * 1e3:.1f} ms",
                f"{result.again * 1e3:.1f} ms",
                verdict,
            ),
            flush=True,
        )

    print(f"\n{show_source(shutil.get_terminal_size((120, 40)).columns)}\n")
    took = time.perf_counter() - started
    outcome = "all right" if not wrong else f"{wrong} WRONG"
    print(f"{len(TASKS)} kernels, {outcome}, in {took:.1f} s on {machine(device)}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
