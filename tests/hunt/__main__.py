"""Hunts for programs that are wrong: ``python -m tests.hunt --programs 1000 --backend numpy``.

Prints each finding as the smallest program that fails, and at the end a line: how many programs ran,
what became of them, and the slowest. ``--json FILE`` keeps it. Backends are those of `executions`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: So many programs one process runs before another one begins, on backends that compile or not.
COMPILING, INTERPRETING = 40, 2000

#: The backends that want Triton's interpreter, or do not mind; and those that cannot have it.
INTERPRETED = ("numpy", "interpreter", "plain", "options", "class", "ahead")
COMPILED = ("cubin", "cuda")


def main(arguments: list[str] | None = None) -> int:
    """0 where every program is right."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--backend", default="numpy", help="several with commas")
    parser.add_argument(
        "--families",
        default="",
        help="of arrangements, the usual ones by default; or of `variables`",
    )
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
    groups = [[name for name in backends if name in chosen] for chosen in (INTERPRETED, COMPILED)]
    groups = list(filter(None, groups))
    for place, group in enumerate(groups):
        ends = math.inf
        if given.seconds:
            # Each group has its part of the time that is left.
            left = given.seconds - (time.monotonic() - started)
            ends = time.time() + left / (len(groups) - place)
        _run(tuple(group), families, given, total, started, ends)
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
    backends: tuple[str, ...],
    families: tuple[str, ...],
    given: Any,
    total: Any,
    started: float,
    ends: float,
) -> None:
    """All programs on backends that can be in one process; none begins after ``ends``."""
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
    more = backends, families, given.first, ends
    is_compiled = backends[0] in COMPILED
    found: Iterable[dict[str, Any]]
    if given.jobs == 1 and not is_compiled:
        found = worker.each(range(given.seed, stop), *more)
    else:
        size = min(COMPILING if is_compiled else INTERPRETING, -(-given.programs // given.jobs))
        chunks = [range(at, min(at + size, stop)) for at in range(given.seed, stop, size)]
        found = apart(worker.served, chunks, given.jobs, more)
    for each in found:
        _add(total, each)
        _kept(total, given, started)


def apart(
    serve: Callable[..., None], chunks: list[range], jobs: int, more: tuple[Any, ...]
) -> Iterator[dict[str, Any]]:
    """What became of each seed's program, in processes of their own.

    A process that a compiler or a device ends, or that is ended since a compiler does not return, is a
    finding; another one goes on with the seeds after it.

    Args:
        serve: what a process does: it is given where to send what it finds, the seeds, and ``more``.
        more: the arguments of `worker.each`.
    """
    context = multiprocessing.get_context("spawn")
    told: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def served(seeds: range) -> None:
        try:
            while seeds and not is_over.is_set() and time.time() < more[-1]:
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=serve, args=(theirs, seeds, *more))
                process.start()
                theirs.close()
                with contextlib.suppress(EOFError):
                    while True:
                        found = ours.recv()
                        seeds = seeds[1:]
                        told.put(found)
                        if found["findings"] and more[-2]:
                            is_over.set()
                process.join()
                if process.exitcode and seeds:
                    detail = f"its process ended with {process.exitcode}, as where a compiler never returns"
                    told.put({"findings": [{"kind": "crash", "seed": seeds[0], "detail": detail}]})
                    seeds = seeds[1:]
        finally:
            told.put(None)

    is_over = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(served, chunk) for chunk in chunks]
        for _ in futures:
            yield from iter(told.get, None)
        for future in futures:
            future.result()


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
