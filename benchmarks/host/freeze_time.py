"""What it costs to freeze each Program once it is made: over `make` of every example, and over the passes.

python -m benchmarks.host.freeze_time [--rounds 40] [--output FOLDER]

Both ways in turn, in one process: as it is, and with nothing frozen.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import examples
import ninetoothed
from benchmarks.common.fresh import environment
from benchmarks.common.report import RESULTS, describe, table, write
from ninetoothed import passes
from ninetoothed.program import program

#: The two ways, by what freezes.
WAYS: dict[str, Callable[..., None]] = {"frozen": program.freeze, "not": lambda nodes: None}


@contextmanager
def timed(spent: dict[str, float]) -> Iterator[None]:
    """Has `make`, and the passes after it, add their seconds of work."""
    make = ninetoothed.make

    def made(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        kernel = make(*arguments, **options)
        parsed = time.process_time()
        passes.run(kernel.definition.program)
        spent["make"] += parsed - start
        spent["passes"] += time.process_time() - parsed
        return kernel

    ninetoothed.make = made
    try:
        yield
    finally:
        ninetoothed.make = make


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.host.freeze_time", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--output", type=Path, default=RESULTS / "host")
    options = parser.parse_args()
    names = [f"examples.{module.name}" for module in pkgutil.iter_modules(examples.__path__)]
    modules = list(map(importlib.import_module, names))
    runs: dict[str, dict[str, list[float]]] = {way: {"make": [], "passes": []} for way in WAYS}
    for _ in range(options.rounds):
        for way, freeze in WAYS.items():
            program.freeze = freeze  # type: ignore[assignment]
            spent = dict.fromkeys(("make", "passes"), 0.0)
            gc.collect()
            with timed(spent):
                for module in modules:
                    importlib.reload(sys.modules[module.__name__])
            for stage, seconds in spent.items():
                runs[way][stage].append(1000 * seconds)
    rows = []
    for stage in ("make", "passes"):
        frozen, plain = (statistics.median(runs[way][stage]) for way in WAYS)
        rows.append((stage, f"{frozen:.2f}", f"{plain:.2f}", f"{100 * (frozen / plain - 1):+.1f}%"))
    here = environment()
    lines = ["# Time of freezing Programs", "", describe(here), ""]
    lines += [
        f"Milliseconds of work for {len(names)} modules, medians of {options.rounds} rounds.",
        "",
    ]
    text = "\n".join([*lines, table(("stage", "frozen", "not", "more"), rows)])
    print(text)
    write("freeze", here, text, runs, options.output)


if __name__ == "__main__":
    main()
