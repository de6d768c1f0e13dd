"""The size and the seconds of builds ahead of time: ours beside the published package's.

    python -m benchmarks.built [--site FOLDER] [--kernels add,mm] [--targets sm_90] [--seconds 60] [--at-once 1]

Both build the same kernels with the same tiles (`benchmarks.peers.built_ahead`), each in a process of its
own, with empty caches; the published package for this device, which it needs, and nvcc. Ours is compiled and
linked by ``cc`` besides, as it is by theirs. Without ``--site``, what ``pip install --target`` was given,
ours stands alone, and needs no device. All of ours come first, one after the other; then theirs, ``--at-once``
beside each other. What is there is written whenever one ends.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write

ROOT = Path(__file__).parent.parent
PROGRAM = Path(__file__).parent / "peers" / "built_ahead.py"

KERNELS = (
    *("add", "silu", "softmax", "rms_norm", "rope", "mm", "addmm", "bmm", "sdpa", "conv2d"),
    "mm_of_four",
)

#: A binary of ours is <source>.c.<target>.<variant> and one of these.
_BINARIES = (".cubin", ".ptx", ".hsaco")


def built(name: str, site: Path | None, seconds: float, targets: str) -> dict[str, Any]:
    """What a process finds that builds a kernel; ``failed`` says why it did not.

    Args:
        site: the published package's folder; None for ours.
        seconds: so long it may take.
        targets: that ours is built for, by commas.
    """
    with tempfile.TemporaryDirectory(prefix="built-") as made:
        folder, home = Path(made) / "output", Path(made) / "home"
        home.mkdir()
        places = [str(ROOT)] if site is None else [str(site), str(ROOT)]
        ours = {"NINETOOTHED_TARGETS": targets, "NINETOOTHED_CACHE_DIR": str(home / "cache")}
        # The published package compiles by a program that it calls `python`.
        programs = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        variables = {
            **os.environ,
            **ours,
            "HOME": str(home),
            "TRITON_CACHE_DIR": str(home / "triton"),
            "PATH": os.pathsep.join(programs),
            "PYTHONPATH": os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, str(PROGRAM), name, str(folder)]
        done = subprocess.Popen(
            command,
            env=variables,
            cwd=made,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            said, errors = done.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # The compilers that it started too.
            os.killpg(done.pid, signal.SIGKILL)
            done.communicate()
            sources = len(list(Path(made).rglob("*.cpp")))
            return {"failed": f"more than {seconds:.0f} s, {sources} sources by then"}
        if done.returncode:
            # What it started may have said why.
            reasons = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*", errors, re.MULTILINE)
            print(errors, file=sys.stderr)
            return {"failed": (reasons or ["nothing said"])[0][:120]}
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        package = ROOT if site is None else site
        imported = Path(found.pop("package"))
        if imported.parent != package.resolve():
            raise RuntimeError(f"wanted the package in {package}, got {imported}")
        if site is None:
            found |= _linked(name, folder)
        return found


def _linked(name: str, folder: Path) -> dict[str, Any]:
    """A shared library of our sources: what compiling them takes, and its bytes."""
    library = folder / f"lib{name}.so"
    begin = time.monotonic()
    sources = [str(path) for path in sorted(folder.glob("*.c"))]
    command = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", *sources, "-o", str(library)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True)
    return {"linked_in": time.monotonic() - begin, "linked": library.stat().st_size}


def without_device() -> dict[str, str]:
    """The versions and the date, where nothing but ours is built."""
    return {
        "device": f"{os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "python": platform.python_version(),
        "triton": importlib.metadata.version("triton"),
    }


def as_table(results: list[dict[str, Any]]) -> str:
    """A line for each kernel: ours, and the published package's."""
    header = (
        *("kernel", "configurations", "ours: binaries", "bytes", "linked, bytes", "built in"),
        *("and cc", "published: sources", "bytes", "linked, bytes", "built in"),
    )
    return table(
        header, [(r["kernel"], *_of_ours(r["ours"]), *_of_theirs(r["published"])) for r in results]
    )


def _of_ours(found: dict[str, Any]) -> tuple[str, ...]:
    if "failed" in found:
        return ("–", found["failed"], "–", "–", "–", "–")
    binaries = [n for name, n in found["files"].items() if name.endswith(_BINARIES)]
    return (
        *(str(found["configurations"]), str(len(binaries)), str(sum(binaries))),
        *(str(found["linked"]), f"{found['seconds']:.1f} s", f"{found['linked_in']:.1f} s"),
    )


def _of_theirs(found: dict[str, Any] | None) -> tuple[str, ...]:
    if found is None or "failed" in found:
        return (found["failed"] if found else "–", "–", "–", "–")
    by_end = {
        end: [n for name, n in found["files"].items() if name.endswith(end)]
        for end in (".cpp", ".so")
    }
    return (
        *(str(len(by_end[".cpp"])), str(sum(by_end[".cpp"]))),
        *(str(sum(by_end[".so"])), f"{found['seconds']:.1f} s"),
    )


def each_binary(results: list[dict[str, Any]]) -> str:
    """The bytes of each of our variants for each target."""
    rows = []
    for result in results:
        for name, size in result["ours"].get("files", {}).items():
            if name.endswith(_BINARIES):
                source, target, variant, _ = name.rsplit(".", 3)
                rows.append((source.removesuffix(".c"), target, variant, str(size)))
    return table(("kernel", "target", "variant", "bytes"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--site", type=Path, help="where the published package is installed")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--seconds", type=float, default=60, help="that one build may take")
    parser.add_argument("--targets", default="sm_90", help="of ours")
    parser.add_argument("--at-once", type=int, default=1, help="builds of the published package")
    parser.add_argument("--output", type=Path, default=RESULTS / "ahead")
    options = parser.parse_args()
    here = environment() if torch.cuda.is_available() else without_device()
    here["at once"] = f"{options.at_once} of theirs on {os.cpu_count()} cores"
    names = options.kernels.split(",")
    results: list[dict[str, Any]] = []
    for name in names:
        ours = built(name, None, options.seconds, options.targets)
        results.append({"kernel": name, "ours": ours, "published": None})
    _report(results, here, options.output)
    if options.site is None:
        return
    with ThreadPoolExecutor(options.at_once) as pool:
        theirs = {
            pool.submit(built, r["kernel"], options.site, options.seconds, options.targets): r
            for r in results
        }
        for done in as_completed(theirs):
            theirs[done]["published"] = done.result()
            _report(results, here, options.output)


def _report(results: list[dict[str, Any]], here: dict[str, str], folder: Path) -> None:
    """Prints and writes what has been built so far."""
    summary = as_table(results)
    print(summary, flush=True)
    heading = "Builds ahead of time, ours and the published package's, of the same kernels"
    text = f"# {heading}\n\n{describe(here)}\n\n{summary}\n\n{each_binary(results)}"
    write("built", here, text, results, folder)


if __name__ == "__main__":
    main()
