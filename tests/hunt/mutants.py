"""Breaks the package on purpose, and counts what the hunt catches: ``python -m tests.hunt.mutants``.

Each mutant (`broken_rules`) is a copy of the package in which one rule is another. It is caught where a
program is found to be wrong; all programs are right in the package as it is, which is run first. Where the
hunt does not come to its end, that is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.hunt.broken_rules import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


def hunted(mutant: Mutant | None, backend: str, programs: int, seed: int) -> dict[str, Any]:
    """What a hunt finds first in a mutant, or in the package as it is."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        # With what is compiled of the sources: it holds for those that stay as they are.
        for part in ("ninetoothed", "tests", "examples"):
            shutil.copytree(ROOT / part, Path(folder, part))
        if mutant is not None:
            path = Path(folder, mutant.file)
            text = path.read_text()
            count = text.count(mutant.before)
            assert count == 1, f"{mutant.file} has {mutant.before!r} {count} times"
            path.write_text(text.replace(mutant.before, mutant.after))
        kept = Path(folder, "found.json")
        asked = ["--programs", str(programs), "--seed", str(seed), "--json", str(kept), "--first"]
        asked += [
            "--families",
            ",".join(["probes"] * 6 + ["windows", "windows", "chains", "loops"]),
        ]
        first = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        finished = subprocess.run(
            [sys.executable, "-m", "tests.hunt", "--backend", backend, *asked],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": first, "NINETOOTHED_CACHE_DIR": f"{folder}/cache"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not kept.exists():
            raise RuntimeError(f"the hunt did not end: {finished.stderr[-2000:]}")
        return json.loads(kept.read_text())


def caught(name: str, programs: int, seed: int) -> dict[str, Any] | None:
    """The first program that is found to be wrong in a mutant, and how many it took."""
    mutant = MUTANTS[name]
    summary = hunted(mutant, mutant.backend, programs, seed)
    if not summary["findings"]:
        return None
    (found,) = summary["findings"]
    return {
        "backend": mutant.backend,
        "programs": summary["programs"],
        "seed": found["seed"],
        "kind": found["kind"],
    }


def main() -> int:
    """0 where every mutant is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt.mutants", description=__doc__)
    parser.add_argument("--programs", type=int, default=40, help="for each mutant, at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mutants", help="several with semicolons; all by default")
    parser.add_argument("--json", help="a file for what was caught")
    given = parser.parse_args()
    names = given.mutants.split(";") if given.mutants else list(MUTANTS)
    results: dict[str, dict[str, Any] | None] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        backends = sorted({MUTANTS[name].backend for name in names})
        of_none = pool.map(lambda each: hunted(None, each, given.programs, given.seed), backends)
        catches = pool.map(lambda name: caught(name, given.programs, given.seed), names)
        for found in of_none:
            assert not found["findings"], f"the package as it is: {found['findings']}"
        for name, found in zip(names, catches):
            results[name] = found
            text = (
                f"caught by program {found['programs']}: {found['kind']}" if found else "NOT CAUGHT"
            )
            print(f"{name}: {text}", flush=True)
    count = sum(map(bool, results.values()))
    print(f"mutants: {count} of {len(results)} caught by {given.programs} programs each")
    if given.json:
        summary = {
            "caught": count,
            "of": len(results),
            "programs": given.programs,
            "seed": given.seed,
        }
        Path(given.json).write_text(json.dumps({**summary, "mutants": results}, indent=1) + "\n")
    return count < len(results)


if __name__ == "__main__":
    sys.exit(main())
