"""Modules that are run in a process of their own, and what they tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def told_by(module: str, *arguments: str, **variables: str) -> Any:
    """What ``python -m MODULE ARGUMENTS`` prints last, as JSON; ``variables`` are of its environment."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_none(failures: dict[str, str]) -> None:
    """Fails where there are failures, which it tells a line each."""
    assert not failures, "\n".join(f"{case}: {error}" for case, error in failures.items())
