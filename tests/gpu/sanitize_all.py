"""Everything that `sanitize` runs, under all of compute-sanitizer's tools at once, within minutes.

python -m tests.gpu.sanitize_all [--calls 300] [--programs 500] [--shares 4] [--seconds 480] [--output FOLDER]

First as many processes as there are cores compile what will run, into a cache of its own, without the
sanitizer: under it nothing is compiled. Then each tool watches so many processes with a share of the calls
each, all at once. One line a tool: the calls, what was found, the time. FOLDER has the log of each tool.
The status is 0 where nothing was found and all was run.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")

#: compute-sanitizer looks for a free port among ten from this one on; two processes must not share one.
_FIRST_PORT = 49152
_PORTS = 16

#: What the tools say at the end.
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


@dataclass
class Share:
    """One process with its part of the calls.

    Attributes:
        tool: what watches it; None where nothing does.
        output: what it prints.
        log: what the tool says of it.
    """

    tool: str | None
    process: subprocess.Popen[bytes]
    output: Path
    log: Path
    begun: float
    seconds: float | None = None

    def lines(self, begin: str, end: str) -> int:
        """How many of its lines begin and end so."""
        lines = self.output.read_text().splitlines()
        return sum(line.startswith(begin) and line.endswith(end) for line in lines)

    def findings(self) -> int | None:
        """What the tool found; None where it did not get to the end."""
        said = _SUMMARY.findall(self.log.read_text()) if self.log.exists() else []
        return sum(int(number) for pair in said for number in pair if number) if said else None


def begin(
    tool: str | None, place: int, share: str, folder: Path, program: Sequence[str], sanitizer: str
) -> Share:
    """Starts one process."""
    name = f"{tool or 'compile'}-{share.replace('/', '-of-')}"
    output, log = folder / f"{name}.out", folder / f"{name}.log"
    watched = () if tool is None else _watching(sanitizer, tool, place, log)
    environment = {
        **os.environ,
        "NINETOOTHED_CACHE_DIR": str(folder / "cache"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "NINETOOTHED_TUNE": "none",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
        "CUDA_MODULE_LOADING": "LAZY",
        "OMP_NUM_THREADS": "1",
    }
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*watched, *program, "--share", share],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Share(tool, process, output, log, time.monotonic())


def _watching(sanitizer: str, tool: str, place: int, log: Path) -> list[str]:
    return [
        *(sanitizer, "--tool", tool, "--log-file", str(log), "--error-exitcode", "66"),
        *("--port", str(_FIRST_PORT + _PORTS * place), "--launch-timeout", "120"),
        *("--show-backtrace", "device", "--print-limit", "20"),
    ]


def wait(shares: Sequence[Share], end: float) -> None:
    """Waits for all; those that are left at the end are killed."""
    while any(share.seconds is None for share in shares):
        for share in shares:
            if share.seconds is None and share.process.poll() is not None:
                share.seconds = time.monotonic() - share.begun
        if time.monotonic() > end:
            for share in shares:
                if share.seconds is None:
                    # The tool's own child too.
                    os.killpg(share.process.pid, signal.SIGKILL)
                    share.process.wait()
            return
        time.sleep(0.1)


def told(name: str, shares: Sequence[Share], folder: Path) -> bool:
    """Prints the line of one tool and writes its log; whether all was run and nothing found."""
    ran, all_refused, right, agree, refused = (
        sum(share.lines(*ends) for share in shares)
        for ends in (
            ("", ": ran"),
            ("", ": refused"),
            ("example ", ": right"),
            ("program ", ": agrees"),
            ("program ", ": refused"),
        )
    )
    calls = f"{ran + all_refused - refused} calls ({all_refused - refused} refused)"
    parts = [f"{calls}, {right} examples, {agree + refused} programs ({refused} refused)"]
    counts = [share.findings() for share in shares if share.tool is not None]
    if counts:
        parts.append(f"{sum(filter(None, counts))} findings")
    unfinished = sum(share.seconds is None for share in shares)
    fallen = [share for share in shares if share.seconds is not None and share.process.returncode]
    failed = len(fallen)
    unsaid = sum(count is None for count in counts)
    for number, what in (
        (unfinished, "did not finish"),
        (failed, "failed"),
        (unsaid, "told no sum of findings"),
    ):
        if number:
            parts.append(f"{number} of {len(shares)} processes {what}")
    spent = max(share.seconds or time.monotonic() - share.begun for share in shares)
    print(f"{name}: {', '.join(parts)}; {spent:.0f} s", flush=True)
    for share in fallen:
        said = share.output.read_text(errors="replace").splitlines() or ["nothing"]
        print(
            f"  {share.output.name} ended with {share.process.returncode}: {said[-1]}", flush=True
        )
    with (folder / f"{name}.log").open("w") as log:
        for share in shares:
            for file in (share.output, share.log):
                if file.exists():
                    log.write(f"== {file.name}\n{file.read_text()[-(2**21) :]}\n")
    return not (unfinished or failed or unsaid or sum(filter(None, counts)))


def main() -> int:
    """Compiles, watches, tells; gives the status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--programs", type=int, default=500, help="of the hunt's")
    parser.add_argument("--shares", type=int, default=4, help="processes for each tool")
    parser.add_argument("--seconds", type=float, default=480, help="what it may take in all")
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--output", type=Path, default=Path("."))
    parser.add_argument("--sanitizer", default="compute-sanitizer", help="the program itself")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    program = [sys.executable, "-m", "tests.gpu.sanitize", "--device", given.device]
    program += ["--calls", str(given.calls), "--programs", str(given.programs)]
    given.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sanitize-") as directory:
        folder = Path(directory)

        def all_of(tool: str | None, count: int, first: int = 0) -> list[Share]:
            shares = [f"{place}/{count}" for place in range(count)]
            return [
                begin(tool, first + place, share, folder, program, given.sanitizer)
                for place, share in enumerate(shares)
            ]

        compiling = all_of(None, os.cpu_count() or 1)
        wait(compiling, end)
        is_right = told("compile", compiling, given.output)
        watched = {
            tool: all_of(tool, given.shares, place * given.shares)
            for place, tool in enumerate(given.tools)
        }
        wait([share for shares in watched.values() for share in shares], end)
        for tool, shares in watched.items():
            is_right &= told(tool, shares, given.output)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
