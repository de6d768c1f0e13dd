"""Breaks the package on purpose, and counts what the hunt catches: ``python -m tests.hunt.mutants``.

Each mutant is a copy of the package in which one rule is another; the hunt runs the same programs in it.
A mutant is caught where a program is found to be wrong that is right in the package as it is; where the
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

ROOT = Path(__file__).parents[2]

_CALLS = "ninetoothed/passes/padding_calls.py"
_MOVES = "ninetoothed/passes/padding_moves.py"
_MARKS = "ninetoothed/passes/validity.py"
_ROUNDS = "ninetoothed/passes/padding_rounds.py"
_VALUES = "ninetoothed/passes/padding_values.py"
_PYTHON = "ninetoothed/passes/python_operators.py"

#: By its name: the file, what stands there, what a mutant has in its place.
MUTANTS: dict[str, tuple[str, str, str]] = {
    "a scan takes padding in": (
        _CALLS,
        "    arguments.mask(0, identity(operation))\n    return value.changed()",
        "    return value.changed()",
    ),
    "a reduction takes padding in": (
        _CALLS,
        "    arguments.mask(0, identity(operation), axis if isinstance(axis, int) else None)\n",
        "",
    ),
    "a reduction's identity is 0": (
        _CALLS,
        "arguments.mask(0, identity(operation), axis if isinstance(axis, int) else None)",
        'arguments.mask(0, "zero", axis if isinstance(axis, int) else None)',
    ),
    "a sort puts padding first": (
        _CALLS,
        '"lowest" if descending else identity(operation)',
        'identity(operation) if descending else "lowest"',
    ),
    "a reduction keeps the wrong dimension": (
        _CALLS,
        "result = reduced(value, axis, keep_dims)",
        "result = reduced(value, 0, keep_dims)",
    ),
    "padding is counted": (
        _CALLS,
        "ops=[ast.NotEq()], comparators=[zero]",
        "ops=[ast.GtE()], comparators=[zero]",
    ),
    "what is made exists beyond the size": (_CALLS, "validity.append(TileMask((", "(TileMask(("),
    "a transposed value's padding stays": (
        _CALLS,
        "return keep_zero(value, rearranged(value, dims))",
        "return keep_zero(value, value)",
    ),
    "a flip reverses the padding too": (_MOVES, "dim=dim, masks=masks", "dim=dim, masks=[]"),
    "a flip is of the first dimension": (_MOVES, "    dim %= len(value.shape)\n", "    dim = 0\n"),
    "what moved exists as it was": (
        _MOVES,
        "        return result\n    analysis, node",
        "        return result\n    return result\n    analysis, node",
    ),
    "a round without an element counts": (
        _ROUNDS,
        "        if not new or held is None:\n            return\n",
        "        return\n",
    ),
    "a loop forgets what is wanted": (
        _ROUNDS,
        "        if new and (loop, name) not in self.needed:",
        "        if False:",
    ),
    "a loaded tile exists everywhere": (
        _VALUES,
        "        return Known(shape, (mask,))\n\n    def visit_forwarded",
        "        return Known(shape)\n\n    def visit_forwarded",
    ),
    "what negates is as before": (
        _VALUES,
        "            return node, value\n        return node, value.changed()",
        "            return node, UNKNOWN\n        return node, UNKNOWN",
    ),
    "a comparison has no padding": (
        _VALUES,
        "        result = joined([left, right])\n        if isinstance(node.ops[0]",
        "        result = joined([left])\n        if isinstance(node.ops[0]",
    ),
    "a product of two drops the right one's padding": (
        _VALUES,
        "joined([left, right], OPERATORS",
        "joined([left], OPERATORS",
    ),
    "a sum with padding is 0 there": (_MARKS, 'ast.Sub: "less"', 'ast.Sub: "product"'),
    "a quotient rounds to 0": (
        _PYTHON,
        "        return at(Rounded(left=node.left, op=node.op, right=node.right), node)",
        "        return node",
    ),
    "truth values do not count": (_PYTHON, "node.left = _counted(node.left)", "pass"),
    "not is as a device has it": (_PYTHON, "node.operand, ast.Eq()", "node.operand, ast.NotEq()"),
}


def findings(name: str | None, programs: int, seconds: float) -> dict[int, str]:
    """The programs that are found to be wrong in a mutant, or in the package as it is: by seed, of what kind."""
    changes = [] if name is None else [MUTANTS[name]]
    # What is found is not made smaller here.
    changes.append(("tests/hunt/shrink.py", "PATIENCE = 30.0", "PATIENCE = 0.0"))
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for part in ("ninetoothed", "tests"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, Path(folder, part), ignore=ignored)
        for place, before, after in changes:
            path = Path(folder, place)
            text = path.read_text()
            assert text.count(before) == 1, f"{place} has {before!r} {text.count(before)} times"
            path.write_text(text.replace(before, after))
        kept = Path(folder, "found.json")
        asked = ["--programs", str(programs), "--seconds", str(seconds), "--json", str(kept)]
        finished = subprocess.run(
            [sys.executable, "-m", "tests.hunt", "--backend", "plain", *asked],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder, "NINETOOTHED_CACHE_DIR": f"{folder}/cache"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not kept.exists():
            raise RuntimeError(f"the hunt in {name!r} did not end: {finished.stderr[-2000:]}")
        found = json.loads(kept.read_text())["findings"]
    return {finding["seed"]: finding["kind"] for finding in found}


def main() -> int:
    """0 where every mutant is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt.mutants", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each mutant")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mutants", help="several with commas; all by default")
    parser.add_argument("--json", help="a file for what was caught")
    given = parser.parse_args()
    results: dict[str, dict[int, str]] = {}
    names = given.mutants.split(",") if given.mutants else list(MUTANTS)
    with ThreadPoolExecutor(given.jobs) as pool:
        found = pool.map(lambda name: findings(name, given.programs, given.seconds), [None, *names])
        known = next(found)
        print(f"as it is: {len(known)} found", flush=True)
        for name, seen in zip(names, found):
            results[name] = {seed: kind for seed, kind in seen.items() if seed not in known}
            count = len(results[name])
            print(f"{name}: {f'caught by {count}' if count else 'NOT CAUGHT'}", flush=True)
    count = sum(map(bool, results.values()))
    print(f"mutants: {count} of {len(results)} caught")
    if given.json:
        summary = {"caught": count, "of": len(results), "programs": given.programs}
        Path(given.json).write_text(json.dumps({**summary, "mutants": results}, indent=1) + "\n")
    return count < len(results)


if __name__ == "__main__":
    sys.exit(main())
