"""What a process remembers stays within bounds; what it forgot and needs again is made again, and right.

The whole of it, 100,000 calls and 20,000 kernels: ``python -m benchmarks.host.memory_growth``.
"""

import linecache
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from ninetoothed import Tensor, make
from ninetoothed.bounded import forget_oldest, keep
from ninetoothed.kernels import analysis
from ninetoothed.launch import slow_path

ROOT = Path(__file__).parents[1]

#: Megabytes that memory may take beyond its level after the first calls; as for a hundred times as many.
ALLOWED = 50


def test_the_oldest_goes_first_and_is_told():
    known, gone = {}, []
    for key in range(5):
        assert keep(known, key, -key, 3, gone.append) == -key
    assert (known, gone) == ({2: -2, 3: -3, 4: -4}, [0, 1])


def test_the_first_of_two_is_kept():
    known = {1: "first"}
    assert keep(known, 1, "second", 1) == "first"
    assert known == {1: "first"}


def test_threads_that_add_at_once_stay_within_the_bound():
    known, told = {}, []

    def add(offset):
        for key in range(2000):
            keep(known, offset + key, key, 8)
            told.append(len(known))

    threads = [threading.Thread(target=add, args=(10_000 * place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # Each may be about to add its one.
    assert max(told) <= 8 + len(threads)


def _doubled(x, o):
    o = x * 2  # noqa: F841


def test_plans_that_were_forgotten_are_made_again(monkeypatch):
    monkeypatch.setattr(slow_path, "MOST_PLANS", 5)
    kernel = make(lambda x, o: (x.tile((4,)), o.tile((4,))), _doubled, (Tensor(1), Tensor(1)))

    for size in (*range(1, 20), *range(1, 20)):
        x, out = torch.rand(size), torch.full((size,), float("nan"))
        kernel(x, out)
        torch.testing.assert_close(out, x * 2)

    assert len(kernel.func.__globals__["plans_"]) == 5


def test_answers_about_calls_are_forgotten_and_those_about_the_kernel_are_not(monkeypatch):
    monkeypatch.setattr(analysis, "_MOST_FURTHER", 3)
    kernel = make(lambda x, o: (x.tile((4,)), o.tile((4,))), _doubled, (Tensor(1), Tensor(1)))
    asked = []

    @analysis.analysis
    def alone(kernel):
        asked.append(None)
        return len(asked)

    @analysis.analysis
    def with_number(kernel, number):
        asked.append(number)
        return number

    definition = kernel.definition
    assert alone(definition) == 1
    assert [with_number(definition, number) for number in (1, 2, 3, 4, 1)] == [1, 2, 3, 4, 1]
    assert alone(definition) == 1
    assert asked == [None, 1, 2, 3, 4, 1]
    assert len(definition.further_answers) == 3


def test_sources_that_were_forgotten_are_loaded_again(monkeypatch):
    pytest.importorskip("triton")
    from ninetoothed.backends.triton.compiler import compile as compiling

    monkeypatch.setattr(compiling, "_MOST_LOADED", 3)
    monkeypatch.setattr(compiling, "_loaded", {})
    text = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    # {}\n    pass\n"
    paths = [Path(f"/nowhere/kernel_{number}.py") for number in range(6)]

    for number, path in [*enumerate(paths), *enumerate(paths)]:
        function = compiling.load(text.format(number), "kernel", path, {})
        assert f"# {number}" in function.src
        assert function is compiling.load(text.format(number), "kernel", path, {})

    assert len(compiling._loaded) == 3
    assert sum(str(path) in linecache.cache for path in paths) == 3


@pytest.mark.parametrize(
    ("what", "first", "count"), [("calls", 500, 3000), ("makes", 100, 300), ("large", 100, 400)]
)
def test_memory_stays_level(what, first, count):
    step = {
        "calls": "growth.calls()",
        "makes": "growth.new_kernel",
        "large": "growth.calls_with_large_tiles()",
    }[what]
    script = (
        "from benchmarks.host import memory_growth as growth\n"
        f"growth.FIRST = {first}\n"
        f"print('grown', growth.measure({what!r}, {step}, {count}))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert float(told.rpartition("grown ")[2]) < ALLOWED, told


def test_the_oldest_entry_goes_first_and_its_key_is_told():
    known, forgotten = {16: "first", 32: "second"}, []
    forget_oldest(known, forgotten.append)
    assert known == {32: "second"} and forgotten == [16]

    forget_oldest(known)
    forget_oldest(known)
    assert not known
