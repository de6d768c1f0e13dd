"""Runs the published package's kernels, in a process of its own, since it has our package's name.

They are our examples, unchanged, but for attention (`published_sdpa`) and the rotary embedding
(`published_rope`). They are set against PyTorch, which runs in turns with them, and through it against
ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.spread import Spread, ratios
from benchmarks.peers.contenders import PUBLISHED, TORCH

ROOT = Path(__file__).parent.parent


def measure(site: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """What `benchmarks.tasks` finds with the package that is installed in this folder.

    Args:
        site: what ``pip install --target`` was given.
        arguments: further ones of `benchmarks.tasks`.

    Returns:
        The raw figures: ``results``, ``failed`` and ``configurations``.
    """
    with tempfile.TemporaryDirectory() as folder:
        # The package keeps what it generates in the home folder.
        paths = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.tasks", "--output", folder),
                *("--contenders", f"{PUBLISHED},{TORCH}", *arguments),
            ],
            cwd=site,  # It comes first on the path, before our package.
            env={**os.environ, "PYTHONPATH": paths, "HOME": folder},
            capture_output=True,
            text=True,
            check=False,
        )
        written = list(Path(folder).glob("*.json"))
        if not written:
            raise RuntimeError(
                f"the published package's process failed:\n{done.stdout}{done.stderr}"
            )
        return json.loads(written[0].read_text())["tasks"]


def merge(results: list[dict[str, Any]], published: list[dict[str, Any]]) -> None:
    """Put the published package's figures beside ours, task by task.

    Both were measured in turns with PyTorch: the ratio of ours to theirs is the median of our ratio
    over theirs, and its spread is theirs.
    """
    by_task = {result["task"]: result["milliseconds"] for result in published}
    for result in results:
        times = by_task.get(result["task"], {})
        if PUBLISHED not in times or TORCH not in times or TORCH not in result["ratios"]:
            continue
        result["milliseconds_published"] = times
        theirs = ratios(times, PUBLISHED, TORCH)
        ours = result["ratios"][TORCH]["median"]
        spread = Spread(ours / theirs.median, ours / theirs.greatest, ours / theirs.least)
        result["ratios"][PUBLISHED] = vars(spread)
