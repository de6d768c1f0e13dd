"""Figures from fresh processes, for what happens once a process: imports and first calls."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def figures(program: str, *arguments: str, path: str = "") -> Any:
    """What a program prints on its last line, as JSON, when a fresh Python runs it here.

    Modules' bytecode is kept, as that of installed packages is, whatever this process does.

    Args:
        path: folders that it searches before this process's, separated as in ``PYTHONPATH``.
    """
    searched = (str(ROOT), *filter(None, path.split(os.pathsep)), *sys.path[1:])
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(searched)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        how = f"ended with status {done.returncode}" if done.returncode else "printed nothing"
        raise RuntimeError(f"a fresh process {how}:\n{done.stdout}{done.stderr}")

    return json.loads(lines[-1])


def environment() -> dict[str, str]:
    """The machine, the Python and the date."""
    return {
        "device": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "python": platform.python_version(),
    }
