"""How long `import ninetoothed` takes, beyond the interpreter's own start and NumPy.

python -m benchmarks.host.import_time [--processes 15] [--output FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.common.fresh import environment, figures
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread

_PROGRAM = """
import json, sys, time
import numpy
start = time.perf_counter()
import ninetoothed
bare = time.perf_counter()
import ninetoothed.language
for name in ninetoothed.__all__:
    getattr(ninetoothed, name)
end = time.perf_counter()
heavy = [name for name in ("torch", "paddle", "triton", "sympy", "matplotlib") if name in sys.modules]
print(json.dumps([1000 * (bare - start), 1000 * (end - start), heavy]))
"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.host.import_time", description=__doc__)
    parser.add_argument("--processes", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS / "host")
    options = parser.parse_args()
    runs = [figures(_PROGRAM) for _ in range(options.processes)]
    what = ("import ninetoothed", "import ninetoothed, with the language and every name")
    rows = []

    for index, label in enumerate(what):
        spread = Spread.of([run[index] for run in runs])
        rows.append(
            (label, f"{spread.median:.1f}", f"{spread.least:.1f}", f"{spread.greatest:.1f}")
        )

    here = environment()
    heavy = ", ".join(runs[0][2]) or "none"
    text = "\n".join(
        (
            "# Import time",
            "",
            describe(here),
            "",
            f"Milliseconds in {options.processes} fresh processes that have NumPy already. "
            f"Heavy modules loaded by it: {heavy}.",
            "",
            table(("what", "median", "least", "greatest"), rows),
        )
    )
    print(text)
    write("import", here, text, runs, options.output)


if __name__ == "__main__":
    main()
