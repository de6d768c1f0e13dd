"""Processes that are ended at any moment, and calls that are interrupted: what comes after is right.

The whole of it, 50 kills among 8 processes that compile on one cold cache: ``python -m tests.test_kills``.
"""

from __future__ import annotations

import linecache
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from ninetoothed import Tensor, make

ROOT = Path(__file__).parents[1]

#: Puts and gets entries whose content follows from their names; says what is torn or lost.
ENTRIES = """
import random, sys
from ninetoothed.cache import Cache
store, known = Cache("things"), set()
for number in range(100000):
    key = f"key {random.randrange(50)}"
    value = key.encode() * 4000
    found = store.get(key)
    if found not in (None, value) or (found is None and key in known):
        print("torn or lost:", key, flush=True)
        sys.exit(1)
    store.put(key, value)
    known.add(key)
"""

#: Compiles a kernel for a device that is not there, and runs it on the CPU.
KERNELS = """
import torch
from examples import softmax
x = torch.rand(7, 50)
out = torch.full_like(x, float("nan"))
softmax.kernel.compile(x, out, target=("cuda", 90))
softmax.kernel(x, out)
torch.testing.assert_close(out, torch.softmax(x, 1))
"""


def killed(script: str, directory: Path, processes: int, kills: int, patience: float) -> list[str]:
    """Runs a script in so many processes, ends one at a random moment so many times; what went wrong."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NINETOOTHED_CACHE_DIR": str(directory / "cache"),
        "TRITON_CACHE_DIR": str(directory / "triton"),
    }

    def begun() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    wrong = []
    running = [begun() for _ in range(processes)]
    for _ in range(kills):
        time.sleep(random.uniform(0, patience))
        place = random.randrange(processes)
        running[place].send_signal(signal.SIGKILL)
        output, _ = running[place].communicate()
        if running[place].returncode not in (0, -signal.SIGKILL):
            wrong.append(output)
        running[place] = begun()
    return wrong + _ended(running)


def _ended(running: list[subprocess.Popen[str]]) -> list[str]:
    """What went wrong in those that are left: they may end by themselves, or are ended."""
    wrong = []
    for process in running:
        try:
            output, _ = process.communicate(timeout=500 if "softmax" in str(process.args) else 1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            continue
        if process.returncode != 0:
            wrong.append(output)
    return wrong


def test_no_entry_is_torn_or_lost_where_processes_are_killed(tmp_path):
    assert killed(ENTRIES, tmp_path, processes=3, kills=10, patience=0.5) == []


def test_a_killed_compilation_leaves_nothing_that_harms_the_next(tmp_path):
    assert killed(KERNELS, tmp_path, processes=2, kills=2, patience=6) == []


def _copy(x, o):
    o = x + 1  # noqa: F841


def _call():
    x, out = torch.rand(10), torch.full((10,), float("nan"))
    kernel = make(lambda x, o: (x.tile((4,)), o.tile((4,))), _copy, (Tensor(1), Tensor(1)))
    return kernel, x, out


def _interrupted(kernel, x, out, after: int) -> bool:
    """Calls the kernel, and interrupts it before so many lines of the package; whether it got there."""
    left = after

    def trace(frame, event, argument):
        nonlocal left
        if f"{os.sep}ninetoothed{os.sep}" not in frame.f_code.co_filename:
            return None
        if event == "line":
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            # Python itself interrupts nobody between the end of a `with` and the freeing of its lock.
            left -= not line.lstrip().startswith("with ")
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        kernel(x, out)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_after_an_interrupt_at_any_point_of_a_first_call_the_next_is_right():
    # A kernel that another equals in all but itself: what the process knows by then is the same.
    kernel, x, out = _call()
    lines = 1
    while _interrupted(*_call(), lines):
        lines *= 2
    chosen = random.Random(0)
    interrupted = 0
    while interrupted < 200:
        kernel, x, out = _call()
        interrupted += _interrupted(kernel, x, out, chosen.randrange(1, lines))
        out.fill_(float("nan"))
        kernel(x, out)
        torch.testing.assert_close(out, x + 1)


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        wrong = killed(KERNELS, Path(directory), processes=8, kills=50, patience=4)
    print(
        "\n".join(wrong)
        or "50 kills among 8 processes on one cold cache: nothing torn, nothing lost"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
