"""Backwards against PyTorch's: ``torch.compile``'s, cuBLAS' for products, SDPA's for attention.

Those of softmax, cross entropy and attention are written by hand (`examples/training/`), the others, and
softmax again, are derived. Only backward is timed, captured in a CUDA graph so that no host is waited for,
the contenders in turns: with a cold L2 cache, in a row, and in a chain, where each is given the gradient
that the last one wrote.

python -m benchmarks.backward [--tasks rms_norm,mm] [--settings cold,row,chain] [--rounds 7] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import ninetoothed
from benchmarks.common.measure import Timer, environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from examples import fused_rms_norm, layer_norm, mm, rope, softmax, swiglu, training
from ninetoothed import like

#: Attention has so many queries in all, of so many heads.
_QUERIES, _HEADS = 16384, 16

#: PyTorch's ways to compute attention.
_BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


#: So many follow one another in a chain.
_LINKS = 4

#: The flush of the cache before each backward, and how many are one graph, by setting.
SETTINGS = {"cold": ("write", 1), "row": ("none", 1), "chain": ("none", _LINKS)}


@dataclass(frozen=True)
class Task:
    """Whose backward is timed.

    Attributes:
        making: makes our operator.
        reference: PyTorch's function.
        shapes: of the inputs that have gradients.
        others: what follows them.
        peers: PyTorch's contenders, made of the reference.
    """

    making: Callable[[], Callable[..., Any]]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    others: tuple[Any, ...] = ()
    peers: Mapping[str, Callable[[Any], Any]] = field(
        default_factory=lambda: {"torch.compile": torch.compile}
    )


def _derived(kernel: Any, outputs: dict[str, Any], constants: dict[str, Any] | None = None) -> Any:
    name = f"benchmarks_backward::{kernel.name}"
    return ninetoothed.op(name, kernel, outputs, backward="derive", constants=constants)


def _turned(input: Any, sin: Any, cos: Any) -> Any:
    first, second = input[..., ::2], input[..., 1::2]
    sin, cos = sin[:, None, :], cos[:, None, :]
    parts = first * cos - second * sin, first * sin + second * cos
    return torch.stack(parts, -1).flatten(-2)


def _by(backend: SDPBackend) -> Callable[[Any], Any]:
    def peer(reference: Any) -> Any:
        def function(*inputs: Any) -> Any:
            with sdpa_kernel(backend):
                return reference(*inputs)

        return function

    return peer


def _attention(length: int, size: int, is_causal: bool) -> Task:
    def reference(*inputs: Any) -> Any:
        by_head = (tensor.transpose(1, 2) for tensor in inputs)
        return F.scaled_dot_product_attention(*by_head, is_causal=is_causal).transpose(1, 2)

    shape = (max(1, _QUERIES // length), length, _HEADS, size)
    return Task(
        lambda: lambda *inputs: training.attention(*inputs, is_causal=is_causal),
        reference,
        (shape,) * 3,
        peers={name: _by(backend) for name, backend in _BACKENDS.items()},
    )


def tasks(rows: int = 8192, columns: int = 4096, matrix: int = 4096) -> dict[str, Task]:
    """All tasks by name.

    Args:
        rows, columns: of what is computed by rows.
        matrix: the sizes of products.
    """
    first, other = (tensor.shape for tensor in mm.tensors[:2])
    same = {"output": like("input")}
    by_row, vector = (rows, columns), (columns,)
    classes = torch.arange(rows) * 7 % columns
    found = {
        "rms_norm": Task(
            lambda: _derived(fused_rms_norm.kernel, same),
            lambda x, w, eps: F.rms_norm(x, vector, w, eps),
            (by_row, vector),
            (1e-6,),
        ),
        "layer_norm": Task(
            lambda: _derived(layer_norm.kernel, same),
            lambda x, w, b, eps: F.layer_norm(x, vector, w, b, eps),
            (by_row, vector, vector),
            (1e-5,),
        ),
        "softmax": Task(lambda: training.softmax, lambda x: x.softmax(-1), (by_row,)),
        "softmax-derived": Task(
            lambda: _derived(softmax.kernel, same), lambda x: x.softmax(-1), (by_row,)
        ),
        "cross_entropy": Task(
            lambda: training.cross_entropy,
            lambda x, target: F.cross_entropy(x.float(), target),
            (by_row,),
            (classes,),
        ),
        "swiglu": Task(
            lambda: _derived(swiglu.kernel, same, {"BLOCK_SIZE": 1024}),
            lambda a, b: a * F.silu(b),
            ((rows * columns,),) * 2,
        ),
        "rope": Task(
            lambda: _derived(rope.kernel, same),
            _turned,
            ((4, rows // 4, columns // 128, 128),),
            (torch.randn(rows // 4, 64), torch.randn(rows // 4, 64)),
        ),
        "mm": Task(
            lambda: _derived(mm.kernel, {"output": ((first[0], other[1]), "input")}),
            torch.mm,
            ((matrix, matrix),) * 2,
            peers={"cuBLAS": lambda reference: reference},
        ),
    }
    for length in (1024, 4096, 16384):
        for size in (64, 128):
            for is_causal in (False, True):
                name = f"attention-{length}-{size}{'-causal' if is_causal else ''}"
                found[name] = _attention(length, size, is_causal)
    return found


def contenders(
    task: Task, device: str = "cuda", dtype: torch.dtype = torch.bfloat16
) -> dict[str, Callable[..., tuple[torch.Tensor, ...]]]:
    """Backward by each contender, ours first, of the result's gradient; those that cannot are left out.

    Raises:
        AssertionError: a gradient of ours is not PyTorch's.
    """
    inputs = [
        torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for shape in task.shapes
    ]
    others = [
        other.to(device, dtype if other.is_floating_point() else None)
        if torch.is_tensor(other)
        else other
        for other in task.others
    ]
    outputs = {"ours": task.making()(*inputs, *others)}
    given = torch.randn_like(outputs["ours"])

    def backward(output: Any) -> Callable[..., Any]:
        return lambda given=given: torch.autograd.grad(output, inputs, given, retain_graph=True)

    found: dict[str, Callable[..., Any]] = {"ours": backward(outputs["ours"])}
    ours = found["ours"]()
    apart: dict[str, list[float]] = {}
    for name, peer in task.peers.items():
        try:
            output = peer(task.reference)(*inputs, *others)
        except RuntimeError as error:
            print(f"{name} does not compute it: {str(error).splitlines()[0]}")
            continue
        found[name] = backward(output)
        pairs = [(one.float(), wanted.float()) for one, wanted in zip(ours, found[name]())]
        apart[name] = [float((one - wanted).norm() / wanted.norm()) for one, wanted in pairs]
    if not all(each < 0.02 for errors in apart.values() for each in errors):
        raise AssertionError(f"ours are so far from gradients of others: {apart}")
    return found


def captured(
    functions: Mapping[str, Callable[..., Any]], stream: torch.cuda.Stream, links: int
) -> dict[str, Callable[[], Any]]:
    """The contenders on a CUDA device, each a graph of so many, one on the gradient of the last."""
    graphs: dict[str, Callable[[], Any]] = {}
    # Backward runs on the stream of its forward.
    with torch.cuda.stream(stream):
        for name, function in functions.items():
            for _ in range(3):
                function()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                gradients = function()
                for _ in range(links - 1):
                    gradients = function(gradients[0])
            graphs[name] = _replaying(graph, function)
    return graphs


def _replaying(graph: torch.cuda.CUDAGraph, function: Callable[[], Any]) -> Callable[[], Any]:
    """Replays a graph, and keeps what it was captured of, whose memory it uses."""

    def replay(_: Any = function) -> None:
        graph.replay()

    return replay


def measured(task: Task, settings: Sequence[str], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of one backward in each round, by setting and contender.

    A chain is left out where the gradient of the first input is not as the result's.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        functions = contenders(task)
    found = {}
    for setting in settings:
        flush, links = SETTINGS[setting]
        try:
            graphs = captured(functions, stream, links)
        except RuntimeError as error:
            if links == 1 or "Mismatch in shape" not in str(error):
                raise
            continue
        times = Timer(flush).rounds({name: [graph] for name, graph in graphs.items()}, rounds)
        found[setting] = {name: [time / links for time in each] for name, each in times.items()}
    return found


def main() -> int:
    """Measure, print and write; 1 where gradients were wrong, which are told and left out."""
    parser = argparse.ArgumentParser("python -m benchmarks.backward", description=__doc__)
    parser.add_argument("--tasks", default="", help="names or beginnings of names; all by default")
    parser.add_argument("--settings", default=",".join(SETTINGS), help="separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "training")
    options = parser.parse_args()
    settings = options.settings.split(",")
    rows, raw = [], {}
    wrong: list[str] = []
    for name, task in tasks().items():
        if not name.startswith(tuple(options.tasks.split(","))):
            continue
        try:
            raw[name] = measured(task, settings, options.rounds)
        except AssertionError as error:
            wrong.append(name)
            print(f"{name}: {error}", flush=True)
            continue
        rows.append((name, *_row(raw[name], settings)))
        print(*rows[-1], flush=True)
        torch.cuda.empty_cache()
    here = environment()
    header = [cell for setting in settings for cell in (f"{setting}, µs", "peer, µs", "ratio")]
    text = "\n".join(
        [
            "# Backward",
            "",
            describe(here),
            "",
            f"bfloat16; microseconds, medians of {options.rounds} rounds; ours over the fastest peer, "
            "and the ratios' geometric mean.",
            "",
            table(("backward of", *header, "mean"), rows),
        ]
    )
    print(text)
    write("backward", here, text, raw, options.output)
    return 1 if wrong else 0


def _row(found: Mapping[str, Mapping[str, list[float]]], settings: Sequence[str]) -> list[str]:
    """The cells of a task: of each setting ours, the fastest peer and the ratio; their mean."""
    cells, means = [], []
    for setting in settings:
        if (times := found.get(setting)) is None:
            cells += ["–"] * 3
            continue
        medians = {each: Spread.of(values).median for each, values in times.items()}
        best = min((each for each in medians if each != "ours"), key=medians.__getitem__)
        spread = ratios(times, "ours", best)
        means.append(spread.median)
        cells += [
            f"{1000 * medians['ours']:.1f}",
            f"{1000 * medians[best]:.1f} {best}",
            str(spread),
        ]
    return [*cells, f"{statistics.geometric_mean(means):.3f}"]


if __name__ == "__main__":
    sys.exit(main())
