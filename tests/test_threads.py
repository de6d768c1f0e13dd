"""What threads share: forked processes find locks free, parsing serves all, interrupts do no harm."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ninetoothed import threads

_ROOT = Path(__file__).parents[1]

_KERNEL = """
import faulthandler, os, signal, sys, threading, time
import torch
import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

def arrangement(x, y):
    return x.tile((4,)), y.tile((4,))

def application(x, y):
    y = x * 2 + ntl.exp(x) * 0

def call():
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y.zero_()
    kernel(x, y)
    return y.tolist() == [2] * 8

# Made before: PyTorch may hang on a lock of its own where a forked process allocates.
x, y = torch.ones(8), torch.zeros(8)
"""


def run(script: str, tmp_path: Path) -> str:
    file = tmp_path / "script.py"
    file.write_text(_KERNEL + script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", file],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    sys.stderr.write(done.stderr[-4000:])
    return done.stdout.strip()


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@forks
@pytest.mark.parametrize("make", [threads.lock, threads.reentrant_lock])
def test_a_lock_that_a_thread_holds_is_free_in_a_forked_process(make) -> None:
    lock = make()
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_end.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=1) else 1)
    _, status = os.waitpid(child, 0)
    may_end.set()
    holder.join()
    assert status == 0


def test_a_cached_property_holds_off_no_other_object() -> None:
    class Slow:
        def __init__(self, waits_for: threading.Event | None = None) -> None:
            self.waits_for = waits_for

        @threads.cached_property
        def value(self) -> int:
            return 1 if self.waits_for is None or self.waits_for.wait(10) else 2

    event = threading.Event()
    slow, found = Slow(event), []
    waiting = threading.Thread(target=lambda: found.append(slow.value))
    waiting.start()
    assert Slow().value == 1
    event.set()
    waiting.join()
    assert found == [1] and "value" in vars(slow)


def test_trees_are_parsed_in_many_threads() -> None:
    text = "\n".join(f"x = [a, (b, {{c: d[e]}}), f(g + {n})]" for n in range(300))
    errors = []

    def parse() -> None:
        try:
            for _ in range(20):
                threads.parse(text)
        except SystemError as error:
            errors.append(error)

    workers = [threading.Thread(target=parse) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors


def test_what_another_librarys_thread_disturbed_is_parsed_again(monkeypatch) -> None:
    attempts = []
    plain = ast.parse

    def parse(*arguments, **keywords):
        attempts.append(1)
        if len(attempts) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=45, after=39)")
        return plain(*arguments, **keywords)

    monkeypatch.setattr(ast, "parse", parse)
    assert isinstance(threads.parse("x", mode="eval"), ast.Expression)


@forks
def test_processes_forked_while_threads_make_kernels_make_their_own(tmp_path) -> None:
    script = """
def work():
    while True:
        call()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
statuses = []
for number in range(20):
    time.sleep(0.01 * (number % 5))
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(20, exit=True)
        os._exit(0 if call() else 1)
    statuses.append(os.waitpid(child, 0)[1])
print(statuses.count(0), flush=True)
os._exit(0)
"""
    assert run(script, tmp_path) == "20"


@forks
def test_ctrl_c_in_a_first_call_leaves_the_next_one_right(tmp_path) -> None:
    # Forked before anything of it is loaded: each has its first call, and Ctrl-C somewhere in it.
    script = """
def child(delay):
    def interrupt(number, frame):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        # What comes while a class is made, Python 3.11 tells so.
        assert isinstance(error.__cause__, KeyboardInterrupt)
    return call()

wrong = []
for number in range(POINTS):
    delay = 0.002 + 0.25 * number / POINTS
    pid = os.fork()
    if pid == 0:
        try:
            is_right = child(delay)
        except BaseException as error:
            import traceback; traceback.print_exc()
            is_right = False
        os._exit(0 if is_right else 1)
    if os.waitpid(pid, 0)[1]:
        wrong.append(delay)
print(wrong)
""".replace("POINTS", os.environ.get("NINETOOTHED_TEST_INTERRUPTS", "40"))
    assert run(script, tmp_path) == "[]"
