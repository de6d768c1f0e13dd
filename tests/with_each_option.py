"""Tests run once for each option of the Triton backend fixed off, and once for each fixed on.

python -m tests.with_each_option [--options NAME=VALUE,NAME=VALUE] [ARGUMENTS OF PYTEST …]

An option that does not apply to a kernel stays off there. Ends with status 1 where a run failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from ninetoothed.backends.triton.options import Options

#: For each option, the value that is plain and those that are not.
VALUES = {
    "group": (8, 1, 4),
    "programs": (1, 4),
    "peel": (0, 1),
    "defer": (0, 1),
    "early": (0, 1),
    "hints": (0, 1),
    "descriptors": (0, 1),
    "persistent": (0, 1),
    "split": (1, 3),
    "ahead": (0, 1),
}


def main() -> int:
    """Run pytest for each value; gives the exit status."""
    parser = argparse.ArgumentParser("python -m tests.with_each_option", description=__doc__)
    parser.add_argument("--options", help="one run for each of these, as in split=3,ahead=1")
    chosen, arguments = parser.parse_known_args()
    missing = set(vars(Options())) ^ set(VALUES)
    if missing:
        print(f"The options and the values to fix them at differ in {', '.join(sorted(missing))}.")
        return 1
    fixed = [f"{name}={value}" for name in VALUES for value in VALUES[name]]
    if chosen.options:
        fixed = chosen.options.split(",")
    failed = []

    for option in fixed:
        started = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-rN", "--tb=short", *arguments]
        environment = {**os.environ, "NINETOOTHED_OPTIONS": option}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        lines = run.stdout.strip().splitlines() or run.stderr.strip().splitlines() or [""]
        print(f"{option:14} {lines[-1].strip('= ')} ({time.perf_counter() - started:.0f} s)")
        sys.stdout.flush()
        if run.returncode:
            failed.append(option)
            print(run.stdout, run.stderr, sep="\n")

    print(f"{len(fixed)} runs, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
