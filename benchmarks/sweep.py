"""The tasks over their sizes: from launches that do next to nothing to tensors of several gigabytes.

    python -m benchmarks.sweep [--tasks mm,sdpa] [--match 4096] [--selection large,layers]
        [--dtype float16] [--seconds 280] [--rounds 3] [--effort none] [--configs RESULTS.json]
        [--output FOLDER]

Ours, idiomatic Triton (searched anew at every size) and PyTorch, in turns; with ``--contenders`` the
best Triton too, where it takes the size. A copy of as many bytes runs in turns with the memory-bound
tasks: the last column is the share of its bandwidth. Results are compared with float64 where that is
small enough, with PyTorch's elsewhere. Sizes that no time is left for are listed as such. A selection
is a few sizes that answer one question: ``large`` the memory-bound tasks on 2 GiB, ``layers`` the
products of an 8B Llama's layers, ``llama`` the same by the weights as they lie, from one row to 8,192,
``heads`` attention with heads of 64 and 128, causal and not.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import search
from benchmarks.common.inputs import Builder, normal, rotations
from benchmarks.common.measure import Timer, environment, num_turns
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.peers.contenders import BY_NAME, IDIOMATIC, NAMES, OURS, TORCH
from tests.examples.compare import assert_matches
from tests.examples.maker import Maker

COPY = "copy"

#: Results with more terms than this are not computed in float64.
_MOST_FLOAT64_WORK = 2**38


@dataclass(frozen=True)
class Point:
    """One task at one size.

    Attributes:
        task: the task's name.
        size: the size, in words.
        build: (maker) -> the arguments.
        moved: elements read and written, for a memory-bound task.
        operations: floating-point operations, for the others.
        options: keyword arguments of the contenders.
        reduction: the number of terms of the longest sum.
    """

    task: str
    size: str
    build: Builder
    moved: int = 0
    operations: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    reduction: int = 1

    @property
    def work(self) -> int:
        """Elements or operations: a measure of how long it takes."""
        return self.moved or self.operations


def _elementwise(task: str, inputs: int) -> Iterator[Point]:
    for exponent in (10, 14, 17, 20, 22, 24, 26, 28, 30):
        size = 2**exponent
        build = normal(*[(size,)] * inputs)
        yield Point(task, f"2^{exponent}", build, moved=(inputs + 1) * size)


def _rows(task: str) -> Iterator[Point]:
    shapes = [(rows, 4096) for rows in (1, 32, 512, 4096, 32768, 262144)]
    for shape in (*shapes, (65536, 256), (16384, 1000), (4096, 1024), (2048, 8192), (512, 32768)):
        build, elements = normal(shape), math.prod(shape)
        yield Point(task, f"{shape}", build, moved=2 * elements, reduction=shape[1])


def _rotations() -> Iterator[Point]:
    for shape in (
        (1, 1, 32, 128),
        (16, 1, 32, 128),
        (1, 512, 32, 128),
        (4, 1024, 48, 64),
        (2, 2048, 32, 128),
        (16, 4096, 32, 128),
        (64, 4096, 32, 128),
    ):
        yield Point("rope", f"{shape}", rotations(*shape), moved=2 * math.prod(shape))


def _products() -> Iterator[Point]:
    shapes = [(size, size, size) for size in (128, 256, 512, 1024, 2048, 4096, 8192)]
    # The layers of a Llama of eight billion parameters: attention's, and the feed-forward ones.
    layers = ((4096, 6144), (4096, 4096), (4096, 14336), (14336, 4096))
    shapes += [(tokens, k, n) for tokens in (1, 16, 2048) for k, n in layers]
    for m, k, n in (*shapes, (1000, 1000, 1000)):
        build = normal((m, k), (k, n))
        yield Point("mm", f"{m} × {k} × {n}", build, operations=2 * m * k * n, reduction=k)


def _llama_products() -> Iterator[Point]:
    for m in (1, 7, 16, 100, 512, 1000, 2048, 8192):
        for n, k in ((6144, 4096), (4096, 14336), (28672, 4096)):
            yield Point(
                "mm",
                f"{m} × {k} × {n}, transposed",
                functools.partial(_by_weight, m, n, k),
                operations=2 * m * k * n,
                reduction=k,
            )


def _by_weight(m: int, n: int, k: int, make: Maker) -> tuple[Any, ...]:
    """Rows and the transpose of a weight (n, k)."""
    return make(m, k), make(n, k).T


def _other_products() -> Iterator[Point]:
    for size in (512, 2048, 4096):
        build = normal(*[(size, size)] * 3)
        yield Point("addmm", f"{size}³", build, operations=2 * size**3, reduction=size)
    for batch, size in ((64, 128), (32, 512), (4, 2048), (32, 2048)):
        build = normal(*[(batch, size, size)] * 2)
        operations = 2 * batch * size**3
        yield Point("bmm", f"{batch} × {size}³", build, operations=operations, reduction=size)


def _convolutions() -> Iterator[Point]:
    for batch, channels, size in (
        (1, 64, 58),
        (1, 512, 9),
        (4, 512, 14),
        (32, 64, 58),
        (32, 128, 30),
        (32, 256, 16),
        (32, 512, 9),
    ):
        shapes = (batch, channels, size, size), (channels, channels, 3, 3)
        terms = channels * 9
        operations = 2 * batch * channels * (size - 2) ** 2 * terms
        size_ = f"{shapes[0]} * {shapes[1]}"
        yield Point("conv2d", size_, normal(*shapes), operations=operations, reduction=terms)


def _attentions() -> Iterator[Point]:
    for size, heads in ((64, 32), (128, 16)):
        for is_causal in (False, True):
            for length in (1024, 2048, 4096, 8192, 16384):
                shape = (16384 // length, heads, length, size)
                seen = length * (length + 1) // 2 if is_causal else length * length
                yield Point(
                    "sdpa",
                    f"{shape}{', causal' if is_causal else ''}",
                    normal(*[shape] * 3),
                    operations=4 * math.prod(shape[:2]) * seen * size,
                    options={"is_causal": True} if is_causal else {},
                    reduction=length,
                )


POINTS: tuple[Point, ...] = (
    *_elementwise("add", 2),
    *_elementwise("silu", 1),
    *_rows("softmax"),
    *_rows("rms_norm"),
    *_rotations(),
    *_products(),
    *_llama_products(),
    *_other_products(),
    *_convolutions(),
    *_attentions(),
)

#: Points that together answer a question, as patterns of a task's name and its size.
SELECTIONS = {
    "large": r"(add|silu) 2\^30|(softmax|rms_norm) \(262144,|rope \(64,",
    "layers": r"mm (1|16|2048) × (4096|14336) × \d+$",
    "llama": r"mm .*transposed",
    "heads": r"sdpa \(\d+, \d+, (1024|4096|16384), (64|128)\)",
}


def selected(selections: Sequence[str]) -> Sequence[Point]:
    """The points of some selections; all there are where none is named."""
    pattern = "|".join(f"(?:{SELECTIONS[name]})" for name in selections)
    return [point for point in POINTS if re.match(pattern, f"{point.task} {point.size}")]


def check(point: Point, name: str, result: torch.Tensor, arguments: Any, reference: Any) -> None:
    """Compare a result with float64, or where that is too large, with PyTorch's own."""
    task = BY_NAME[point.task]
    rounds = task.rounds_intermediates or name == TORCH
    if point.work <= _MOST_FLOAT64_WORK and point.moved <= 2**28:
        expected = task.reference(*(a.double() for a in arguments), **point.options)
        assert_matches(result, expected, point.reduction, rounds)
        return
    # Both are rounded once; the norm of their difference is a matter of the element type.
    error = (result - reference).float().norm() / reference.float().norm()
    allowed = 4 * torch.finfo(result.dtype).eps
    assert float(error) <= allowed, f"relative norm of the difference {error:.3e} > {allowed:.3e}"


def run(point: Point, contenders: Sequence[str], dtype: torch.dtype, rounds: int) -> dict[str, Any]:
    """Verify and time one point; gives its raw figures."""
    maker = Maker(dtype, "cuda")
    arguments = point.build(maker)
    num_bytes = sum(argument.nbytes for argument in arguments)
    functions: dict[str, Callable[..., Any]] = {}
    wrong: dict[str, str] = {}

    def call(function: Callable[..., Any]) -> torch.Tensor:
        # A task that works in place gets arguments of its own.
        in_place = point.task.endswith("_")
        given = [argument.clone() for argument in arguments] if in_place else arguments
        return function(*given, **point.options)

    reference = call(BY_NAME[point.task].contenders[TORCH])
    for name in contenders:
        function = BY_NAME[point.task].contenders[name]
        try:
            call(function)  # Tunes it.
            check(point, name, call(function), arguments, reference)
        except NotImplementedError:
            continue  # The best Triton kernels take sizes that their blocks divide.
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error}"
        else:
            functions[name] = functools.partial(function, **point.options)
    del reference

    turns = [arguments, *(point.build(maker) for _ in range(num_turns(num_bytes) - 1))]
    calls = {name: [functools.partial(f, *a) for a in turns] for name, f in functions.items()}
    if point.moved:
        halves = torch.empty(2, max(point.moved // 2, 1), dtype=dtype, device="cuda").normal_()
        calls[COPY] = [functools.partial(halves[0].copy_, halves[1])]
    times = Timer().rounds(calls, rounds, budget=12.0)

    return {
        "task": point.task,
        "size": point.size,
        "dtype": str(dtype),
        "moved_bytes": point.moved * dtype.itemsize,
        "operations": point.operations,
        "milliseconds": times,
        "ratios": {
            name: asdict(ratios(times, OURS, name))
            for name in times
            if name not in (OURS, COPY) and OURS in times
        },
        "wrong": wrong,
    }


def as_table(results: Sequence[dict[str, Any]]) -> str:
    """The table of the points that ran."""
    peers = [peer for peer in NAMES[1:] if any(peer in result["ratios"] for result in results)]
    rows = []
    for result in results:
        times = {name: Spread.of(values).median for name, values in result["milliseconds"].items()}
        mine = times.get(OURS, math.nan)
        share = "–"
        if result["moved_bytes"]:
            rate = f"{result['moved_bytes'] / mine * 1e-9:.2f} TB/s"
            share = f"{times[COPY] / mine:.3f}"
        else:
            rate = f"{result['operations'] / mine * 1e-9:.0f} TFLOP/s"
        found = {peer: Spread(**spread) for peer, spread in result["ratios"].items()}
        rows.append(
            (
                f"{result['task']} {result['size']}",
                f"{1000 * mine:.1f}",
                *(str(found[peer]) if peer in found else "–" for peer in peers),
                rate,
                share,
            )
        )
    means = {
        peer: [r["ratios"][peer]["median"] for r in results if peer in r["ratios"]]
        for peer in peers
    }
    of = (f"{statistics.geometric_mean(m):.3f}, at most {max(m):.3f}" for m in means.values())
    rows.append(("geometric mean", "", *of, "", ""))
    header = ("task and size", "ours, µs", *(f"ours / {peer}" for peer in peers), "rate", "of copy")
    return table(header, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    names = list(dict.fromkeys(point.task for point in POINTS))
    commands = argparse.ArgumentParser(
        "python -m benchmarks.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands.add_argument("--tasks", default=",".join(names), help="names, separated by commas")
    commands.add_argument("--match", default="", help="a regular expression for the sizes")
    commands.add_argument("--selection", default="", help=f"some of {', '.join(SELECTIONS)}")
    commands.add_argument("--contenders", default=f"{OURS},{IDIOMATIC},{TORCH}")
    commands.add_argument("--dtype", default="float16", choices=("float16", "bfloat16", "float32"))
    commands.add_argument("--seconds", type=float, default=280.0, help="no point begins after them")
    commands.add_argument("--rounds", type=int, default=3)
    commands.add_argument("--effort", default="quick", help="of our tuner; none: the first choice")
    commands.add_argument("--configs", type=Path, help="results whose configurations to use again")
    commands.add_argument("--processes", type=int, default=os.cpu_count(), help="that compile")
    commands.add_argument("--output", type=Path, default=RESULTS / "sweeps")
    options = commands.parse_args(arguments)
    tasks, contenders = options.tasks.split(","), options.contenders.split(",")
    selections = options.selection.split(",") if options.selection else []
    for given, known in ((tasks, names), (contenders, list(NAMES)), (selections, list(SELECTIONS))):
        if unknown := [name for name in given if name not in known]:
            commands.error(f"{', '.join(unknown)} is none of {', '.join(known)}")
    if options.configs is not None:
        search.recall(json.loads(options.configs.read_text())["sweep"]["configurations"])
    search.start_compilers(options.processes)
    os.environ["NINETOOTHED_TUNE"] = options.effort

    try:
        points = [
            point
            for point in selected(selections)
            if point.task in tasks and re.search(options.match, point.size)
        ]
        return _run(points, contenders, options)
    finally:
        search.stop_compilers()


def _run(points: Sequence[Point], contenders: Sequence[str], options: argparse.Namespace) -> int:
    if not torch.cuda.is_available():
        print("The sweep is timed on a CUDA device, and PyTorch finds none here.")
        return 1

    here, start = environment(), time.perf_counter()
    results, wrong, left = [], [], []
    for point in points:
        if time.perf_counter() - start > options.seconds:
            left.append(f"{point.task} {point.size}")
            continue
        try:
            result = run(point, contenders, getattr(torch, options.dtype), options.rounds)
        except Exception as error:  # One point's failure is reported and does not hide the others.
            wrong.append(f"{point.task} {point.size}: {type(error).__name__}: {error}")
        else:
            results.append(result)
            failures = result["wrong"].items()
            wrong += [f"{point.task} {point.size}, {name}: {why}" for name, why in failures]
        torch.cuda.empty_cache()

    text = "\n".join(
        (
            f"# Sizes, {options.dtype}, effort {options.effort}",
            "",
            describe(here),
            "",
            f"Medians of {options.rounds} rounds; ratios with their least and greatest.",
            "",
            as_table(results) if results else "No point ran.",
            *(f"\nFAILED: {line}" for line in wrong),
            *((f"\nNo time was left for: {'; '.join(left)}",) if left else ()),
        )
    )
    print(text)
    configurations = {name: asdict(choice) for name, choice in sorted(search.CHOICES.items())}
    data = {"results": results, "left": left, "configurations": configurations}
    subjects = options.selection.split(",") if options.selection else [p.task for p in points]
    untuned = ["untuned"] if options.effort == "none" else []
    name = "-".join(("sweep", *dict.fromkeys(subjects), options.dtype, *untuned))
    write("sweep", here, text, data, options.output, label=name)

    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
