"""Derived backwards against PyTorch's: those that ``torch.compile`` makes, and cuBLAS' for products.

Only backward is timed, on a graph that is kept, the contenders in turns with a cold L2 cache.

python -m benchmarks.backward [--tasks rms_norm,mm] [--rounds 7] [--output FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

import ninetoothed
from benchmarks.common.measure import Timer, environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from examples import fused_rms_norm, layer_norm, mm, rope, softmax, swiglu
from ninetoothed import like

_ROWS = (8192, 4096)
_ELEMENTS = 8192 * 4096


def _derived(kernel: Any, outputs: dict[str, Any], constants: dict[str, Any] | None = None) -> Any:
    name = f"benchmarks_backward::{kernel.name}"
    return ninetoothed.op(name, kernel, outputs, backward="derive", constants=constants)


def _turned(input: Any, sin: Any, cos: Any) -> Any:
    first, second = input[..., ::2], input[..., 1::2]
    sin, cos = sin[:, None, :], cos[:, None, :]
    parts = first * cos - second * sin, first * sin + second * cos
    return torch.stack(parts, -1).flatten(-2)


def _tasks() -> dict[
    str, tuple[Callable[[], Any], Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]
]:
    """By name: what makes our operator, PyTorch's function, shapes with gradients, and what follows."""
    first, other = (tensor.shape for tensor in mm.tensors[:2])
    same = {"output": like("input")}
    blocks = {"BLOCK_SIZE": 1024}
    n = _ROWS[1]
    return {
        "rms_norm": (
            lambda: _derived(fused_rms_norm.kernel, same),
            lambda x, w, eps: F.rms_norm(x, (n,), w, eps),
            (_ROWS, (n,)),
            (1e-6,),
        ),
        "layer_norm": (
            lambda: _derived(layer_norm.kernel, same),
            lambda x, w, b, eps: F.layer_norm(x, (n,), w, b, eps),
            (_ROWS, (n,), (n,)),
            (1e-5,),
        ),
        "softmax": (lambda: _derived(softmax.kernel, same), lambda x: x.softmax(-1), (_ROWS,), ()),
        "swiglu": (
            lambda: _derived(swiglu.kernel, same, blocks),
            lambda a, b: a * F.silu(b),
            ((_ELEMENTS,), (_ELEMENTS,)),
            (),
        ),
        "rope": (
            lambda: _derived(rope.kernel, same),
            _turned,
            ((4, 2048, 32, 128), (2048, 64), (2048, 64)),
            (),
        ),
        "mm": (
            lambda: _derived(mm.kernel, {"output": ((first[0], other[1]), "input")}),
            torch.mm,
            ((4096, 4096), (4096, 4096)),
            (),
        ),
    }


def _contenders(name: str) -> dict[str, Callable[[], Any]]:
    making, reference, shapes, others = _tasks()[name]
    inputs = [
        torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for shape in shapes
    ]
    # Products are cuBLAS' as they are.
    peer = reference if name == "mm" else torch.compile(reference)
    outputs = {"ours": making()(*inputs, *others), "PyTorch": peer(*inputs, *others)}
    given = torch.randn_like(outputs["ours"])

    def backward(output: Any) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(output, inputs, given, retain_graph=True)

    found = {contender: backward(output) for contender, output in outputs.items()}
    for one, wanted in zip(found["ours"](), found["PyTorch"]()):
        error = (one.float() - wanted.float()).norm() / wanted.float().norm()
        if not error < 0.02:
            raise AssertionError(f"{name}: a gradient is {float(error):.3f} from PyTorch's")
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.backward", description=__doc__)
    parser.add_argument("--tasks", default="rms_norm,layer_norm,softmax,swiglu,rope")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args()
    timer = Timer()
    rows, raw = [], {}
    for name in options.tasks.split(","):
        found = _contenders(name)
        times: dict[str, list[float]] = {contender: [] for contender in found}
        for _ in range(options.rounds):
            for contender, function in found.items():
                times[contender].append(timer.milliseconds([function], options.repetitions))
        raw[name] = times
        ours, theirs = (f"{1000 * Spread.of(each).median:.1f}" for each in times.values())
        rows.append((name, ours, theirs, str(ratios(times, "ours", "PyTorch"))))
        torch.cuda.empty_cache()
    here = environment()
    text = "\n".join(
        [
            "# Derived backwards",
            "",
            describe(here),
            "",
            f"bfloat16, rows {_ROWS}; microseconds, medians of {options.rounds} rounds.",
            "",
            table(("backward of", "ours, µs", "PyTorch, µs", "ours over PyTorch"), rows),
        ]
    )
    print(text)
    write("backward", here, text, raw, options.output)


if __name__ == "__main__":
    main()
