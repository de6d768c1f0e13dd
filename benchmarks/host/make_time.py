"""How long `make` takes for each example: the first time in a process, and after that.

python -m benchmarks.host.make_time [--processes 5] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import pkgutil
import statistics
from pathlib import Path

import examples
from benchmarks.common.fresh import environment, figures
from benchmarks.common.quiet import on_the_quietest_core
from benchmarks.common.report import RESULTS, describe, table, write

# Counts the calls that the module itself makes while it is imported, not those of the examples
# that it imports, which come first and are imported before.
_PROGRAM = """
import importlib, json, statistics, sys, time
import numpy, ninetoothed, ninetoothed.language
make, name, spent = ninetoothed.make, "examples." + sys.argv[1], []

def timed(*arguments, **options):
    start = time.perf_counter()
    kernel = make(*arguments, **options)
    if sys._getframe(1).f_globals["__name__"] == name:
        spent.append(1000 * (time.perf_counter() - start))
    return kernel

ninetoothed.make = timed
module = importlib.import_module(name)
if not spent:  # no kernel of its own
    print("null")
    sys.exit()
first, spent[:] = spent[0], []
for _ in range(20):
    importlib.reload(module)
print(json.dumps([first, statistics.median(spent)]))
"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.host.make_time", description=__doc__)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "host")
    options = parser.parse_args()
    runs = {}
    for module in pkgutil.iter_modules(examples.__path__):
        with on_the_quietest_core():
            times = [figures(_PROGRAM, module.name) for _ in range(options.processes)]
        if None not in times:
            runs[module.name] = times
    rows = [
        (name, *(f"{statistics.median(time[index] for time in times):.2f}" for index in (0, 1)))
        for name, times in runs.items()
    ]
    here = environment()
    text = "\n".join(
        (
            "# Time of make",
            "",
            describe(here),
            "",
            f"Milliseconds, medians over {options.processes} fresh processes.",
            "",
            table(("example", "first in the process", "again"), rows),
        )
    )
    print(text)
    write("make", here, text, runs, options.output)


if __name__ == "__main__":
    main()
