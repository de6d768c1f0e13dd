"""Hunts for programs that are wrong: ``python -m tests.hunt --programs 1000 --backend numpy``.

Prints each finding as the smallest program that fails, and at the end a line: how many programs ran,
what became of them, and the slowest. ``--json FILE`` keeps it. Backends are those of `executions`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

CHUNK = 20

#: The backends that want Triton's interpreter, or do not mind; and those that cannot have it.
INTERPRETED = ("numpy", "interpreter", "plain", "options", "class", "ahead")
COMPILED = ("cubin", "cuda")


def main(arguments: list[str] | None = None) -> int:
    """0 where every program is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--backend", default="numpy", help="several with commas")
    parser.add_argument("--families", default="", help="of arrangements; the usual ones by default")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="a file for all of it")
    parser.add_argument("--first", action="store_true", help="end at a finding, as it is")
    parser.add_argument("--seconds", type=float, help="begin nothing after so long")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    total: dict[str, Any] = {
        "programs": 0,
        "counts": {},
        "refusals": {},
        "findings": [],
        "slowest": (0.0, -1, ""),
    }
    backends = tuple(given.backend.split(","))
    families = tuple(filter(None, given.families.split(",")))
    for chosen in (INTERPRETED, COMPILED):
        if group := tuple(name for name in backends if name in chosen):
            _run(group, families, given, total, started)
    seconds = time.monotonic() - started
    summary = _kept(total, given, started)
    counts = ", ".join(f"{count} {name}" for name, count in summary["counts"].items())
    print(
        f"hunt: {total['programs']} programs from seed {given.seed}: {counts}; "
        f"{len(total['findings'])} findings; slowest {total['slowest'][0]:.1f} s "
        f"(seed {total['slowest'][1]}, {total['slowest'][2]}); {seconds:.0f} s"
    )
    return 1 if total["findings"] else 0


def _kept(total: dict[str, Any], given: Any, started: float) -> dict[str, Any]:
    """What has become of the programs so far; in the file, too, that is asked for."""
    summary = {
        "programs": total["programs"],
        "first seed": given.seed,
        "backends": given.backend.split(","),
        "counts": dict(sorted(total["counts"].items())),
        "refusals": dict(sorted(total["refusals"].items())),
        "findings": total["findings"],
        "slowest": dict(zip(("seconds", "seed", "backend"), total["slowest"])),
        "seconds": round(time.monotonic() - started, 1),
    }
    if given.json:
        with open(given.json, "w") as file:
            json.dump(summary, file, indent=1)
            file.write("\n")
    return summary


def _run(
    backends: tuple[str, ...], families: tuple[str, ...], given: Any, total: Any, started: float
) -> None:
    """All programs on backends that can be in one process."""
    os.environ.pop("TRITON_INTERPRET", None)
    if {*INTERPRETED[1:]} & set(backends):
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("NINETOOTHED_TUNE", "none")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Imported where it runs: what the environment says must stand before.
    from tests.hunt import worker
    from tests.hunt.arrangements import USUAL

    families = families or USUAL
    stop = given.seed + given.programs
    # What ends a process on a device ends no other programs than the rest of its own.
    size, tasks = (2 * CHUNK, 1) if "cuda" in backends else (CHUNK, 100)
    chunks = [range(at, min(at + size, stop)) for at in range(given.seed, stop, size)]
    if given.jobs == 1:
        for chunk in chunks:
            is_over = given.seconds and time.monotonic() - started > given.seconds
            if is_over or (given.first and total["findings"]):
                break
            _add(total, worker.hunted(chunk, backends, families, given.first))
            _kept(total, given, started)
        return
    context = multiprocessing.get_context("spawn")
    ends = math.inf
    if given.seconds:
        ends = time.time() + given.seconds - (time.monotonic() - started)
    # New processes after so many: `max_tasks_per_child` waits for ever on Python 3.11.
    for at in range(0, len(chunks), given.jobs * tasks):
        with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
            futures = {
                pool.submit(worker.hunted, chunk, backends, families, False, ends): chunk
                for chunk in chunks[at : at + given.jobs * tasks]
            }
            for future in as_completed(futures):
                try:
                    _add(total, future.result())
                    _kept(total, given, started)
                except BrokenProcessPool:
                    detail = f"a process ended on one of the seeds {futures[future]}"
                    _add(total, {"findings": [{"kind": "crash", "detail": detail}]})
        if time.time() > ends:
            break


def _add(total: dict[str, Any], found: dict[str, Any]) -> None:
    total["programs"] += found.get("programs", 0)
    for name in ("counts", "refusals"):
        for key, count in found.get(name, {}).items():
            total[name][key] = total[name].get(key, 0) + count
    total["slowest"] = max(total["slowest"], tuple(found.get("slowest", (0.0, -1, ""))))
    for finding in found["findings"]:
        total["findings"].append(finding)
        print(
            f"===== {finding['kind']}, "
            + "".join(
                f"{finding.get(key, '')}{end}"
                for key, end in (
                    ("backend", ", seed "),
                    ("seed", ", "),
                    ("family", "\n"),
                    ("tensors", "\n"),
                    ("text", "\n"),
                    ("detail", ""),
                )
            ),
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
