"""How `make` and the first compilation grow with the program: from one statement to 64.

    python -m benchmarks.host.compile_growth [--processes 3] [--output FOLDER]

Two programs grow: a chain of arithmetic on one tile, and a sum of shifted tiles, each of which is an
access of its own. Compilation is for compute capability 9.0, from an empty cache, and needs no
device; what Triton takes of it is told apart.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.fresh import environment, figures
from benchmarks.common.report import RESULTS, describe, table, write

SIZES = (1, 2, 4, 8, 16, 32, 64)

KINDS = {
    "statements": (
        "return x.tile((BLOCK_SIZE,)), y.tile((BLOCK_SIZE,)), output.tile((BLOCK_SIZE,))",
        "value = x",
        "value = value * {index}.5 + ntl.exp(y - value)",
    ),
    "accesses": (
        "x = x.tile((BLOCK_SIZE,)).tile(({count},), strides=(1,), floor_mode=True)\n"
        "    return x, y.tile((BLOCK_SIZE,))[: x.shape[0]], "
        "output.tile((BLOCK_SIZE,))[: x.shape[0]]",
        "value = y",
        "value = value + x[{index}]",
    ),
}

_MODULE = """
import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(x, y, output):
    {arranged}


def warm_up(x, y, output):
    output = y


def application(x, y, output):
    {first}
    {statements}
    output = value
"""

_PROGRAM = """
import importlib.util, json, os, pathlib, sys, tempfile, time
import numpy, torch, triton.compiler
import ninetoothed, ninetoothed.language

source = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    os.environ["NINETOOTHED_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
    path = pathlib.Path(folder, "grown.py")
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("grown", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tensors = tuple(ninetoothed.Tensor(1) for _ in range(3))
    x = torch.zeros(100 * 1024)
    # What happens once a process, imports above all, is not what grows.
    warm = ninetoothed.make(module.arrangement, module.warm_up, tensors)
    warm.compile(x, x, x, BLOCK_SIZE=1024, target=("cuda", 90))
    start = time.perf_counter()
    kernel = ninetoothed.make(module.arrangement, module.application, tensors)
    made = time.perf_counter()
    spent, real = [], triton.compiler.compile

    def timed(*arguments, **options):
        begin = time.perf_counter()
        result = real(*arguments, **options)
        spent.append(time.perf_counter() - begin)
        return result

    triton.compiler.compile = timed
    begun = time.perf_counter()
    kernel.compile(x, x, x, BLOCK_SIZE=1024, target=("cuda", 90))
    total = time.perf_counter() - begun
    print(json.dumps([1000 * (made - start), 1000 * (total - sum(spent)), 1000 * sum(spent)]))
"""


def program(kind: str, count: int) -> str:
    """The module of a kernel with so many statements."""
    arranged, first, statement = KINDS[kind]
    return _MODULE.format(
        arranged=arranged.format(count=count),
        first=first,
        statements="\n    ".join(statement.format(index=index) for index in range(count)),
    )


def measure(kind: str, count: int, processes: int) -> list[list[float]]:
    """Milliseconds of `make`, of our part of the first compilation and of Triton's, by process."""
    return [figures(_PROGRAM, program(kind, count)) for _ in range(processes)]


def as_table(runs: dict[str, dict[int, list[list[float]]]]) -> str:
    """The table of all kinds and sizes."""
    rows = [
        (
            f"{kind}: {count}",
            *(f"{statistics.median(run[column] for run in found):.1f}" for column in range(3)),
        )
        for kind, by_count in runs.items()
        for count, found in by_count.items()
    ]
    return table(("program", "make", "first compilation: ours", "Triton's"), rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.host.compile_growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "host")
    options = parser.parse_args(arguments)
    runs = {
        kind: {count: measure(kind, count, options.processes) for count in SIZES} for kind in KINDS
    }
    here = environment()
    text = "\n".join(
        (
            "# Compile time as the program grows",
            "",
            describe(here),
            "",
            f"Milliseconds, medians over {options.processes} fresh processes with empty caches.",
            "",
            as_table(runs),
        )
    )
    print(text)
    write("compile-growth", here, text, runs, options.output)


if __name__ == "__main__":
    main()
