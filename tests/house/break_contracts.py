"""Runs import-linter over a copy of the package, once for each import that a contract forbids.

    python break_contracts.py CONFIGURATION < CASES

It runs in the folder that has the copy. CASES is JSON: [contract, file, text to add] each. It prints,
as JSON, for each case whether the contract held before and holds with the text added. In a process of
its own, in which nobody has imported the package from elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from importlinter import cli


def holds(configuration: str, contract: str) -> bool:
    return (
        cli.lint_imports(configuration, (contract,), cache_dir="cache") == cli.EXIT_STATUS_SUCCESS
    )


def main() -> None:
    results = []
    with contextlib.redirect_stdout(io.StringIO()):
        for contract, file, text in json.load(sys.stdin):
            path = Path(file)
            before = path.read_text(encoding="utf-8") if path.exists() else None
            held = holds(sys.argv[1], contract)
            path.write_text((before or "") + "\n" + text + "\n", encoding="utf-8")
            results.append((held, holds(sys.argv[1], contract)))
            path.unlink() if before is None else path.write_text(before, encoding="utf-8")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
