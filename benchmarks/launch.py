"""What one call costs the host: add on 1024 elements, ours, ``kernel[grid](…)`` and PyTorch.

The second table has the frameworks that are there side by side; it ends with status 1 where one of
them costs over 1.5 microseconds more than PyTorch's tensors. JAX's calls make new arrays; where one
new array by itself costs more than that, as is told below the table, JAX is judged only by what one
more kernel costs in a jitted program.

python -m benchmarks.launch [--rounds 15] [--path paddle=FOLDER:FOLDER] [--output FOLDER]

With ``--beside`` another commit, or a folder with another checkout, takes turns with this one, in
processes of their own. Without a device, ``--stub`` measures the launch function alone, before a plan
that does nothing, on PyTorch's tensors on the CPU.

python -m benchmarks.launch [--stub] [--in-place] --beside COMMIT [--rounds 15]
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import subprocess
import sys
import tarfile
import tempfile
import timeit
from pathlib import Path

from benchmarks import frontends
from benchmarks.common import fresh
from benchmarks.common.quiet import on_the_quietest_core
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios

#: A round of a contender is the least of so many turns of so many calls: what else a host does comes on top,
#: and never off (the documentation of `timeit`, on `repeat`). Before each turn are some calls that are not
#: timed: the first after another contender's finds the caches filled with that one's code.
_TURNS, _CALLS, _WARMING = 5, 100, 20
_SIZE = 1024


class CannotRun(Exception):
    """What is asked for cannot be measured here."""


#: The nanoseconds of a call, a turn each, of the checkout in a folder. What it uses of the package has not
#: changed since there are kernels to compare with.
_ALONE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch
import ninetoothed
from examples import add

for module in (ninetoothed, add):
    assert module.__file__.startswith(sys.argv[1]), f"{module.__file__} is not in {sys.argv[1]}"

def wait():
    pass

if sys.argv[2] == "cuda":
    wait = torch.cuda.synchronize
else:
    from ninetoothed import plugins
    from ninetoothed.backends.base import Plan

    plugins.backend_for("cpu").plan = lambda *arguments: Plan(lambda *values: None)

x, y = (torch.ones(1024, dtype=torch.float16, device=sys.argv[2]) for _ in range(2))
kernel, output = add.kernel, x if sys.argv[3] == "in place" else torch.empty_like(x)
times = []
for _ in range(300):
    wait()
    start = time.perf_counter_ns()
    for _ in range(500):
        kernel(x, y, output, BLOCK_SIZE=1024)
    times.append((time.perf_counter_ns() - start) / 500)
print(json.dumps(times[10:]))
"""


def times_alone(
    device: str, beside: str | None, rounds: int, is_in_place: bool = False
) -> dict[str, list[float]]:
    """The nanoseconds of a call: the least of each process, each told on stderr as it is measured.

    Args:
        device: ``"cuda"``; ``"cpu"`` for a call before a plan that does nothing.
        beside: a commit or a folder that takes turns with this checkout.
        rounds: processes of each.
        is_in_place: whether the output is one of the inputs.
    """
    what = "in place" if is_in_place else "apart"
    with tempfile.TemporaryDirectory() as folder:
        places = {"this": str(fresh.ROOT)}
        if beside is not None:
            places[beside] = other_place(beside, folder)
        times: dict[str, list[float]] = {name: [] for name in places}
        for turn in range(rounds):
            for name in sorted(places, reverse=bool(turn % 2)):
                _tell(f"{name}, process {turn + 1} of {rounds}: ")
                times[name].append(min(fresh.figures(_ALONE, places[name], device, what)))
                _tell(f"{times[name][-1]:.0f} ns\n")
    return times


def _tell(text: str) -> None:
    """Says how far it is, for whoever waits, or ends it: the processes take minutes."""
    print(text, end="", file=sys.stderr, flush=True)


def other_place(beside: str, folder: str) -> str:
    """The folder of a checkout, or of one that is made of a commit."""
    if not Path(beside).is_dir():
        return checked_out(beside, folder)
    for needed in ("ninetoothed/__init__.py", "examples/add.py"):
        if not Path(beside, needed).is_file():
            raise CannotRun(f"The folder {beside} is no checkout: it has no {needed}.")
    return str(Path(beside).resolve())


def checked_out(commit: str, folder: str) -> str:
    """A folder with what a call needs of a commit."""
    command = ["git", "archive", commit, "ninetoothed", "examples"]
    try:
        archive = subprocess.run(command, cwd=fresh.ROOT, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", b"").decode().strip() or error
        why = f"There is no folder {commit}, and git gives no such commit: {said}"
        raise CannotRun(why) from error
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def check_device(device: str) -> None:
    """That calls can be measured on a device."""
    if importlib.util.find_spec("torch") is None:
        raise CannotRun("PyTorch is not installed, on whose tensors calls are measured.")
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        why = "Launches are timed on a CUDA device, and PyTorch finds none here"
        raise CannotRun(f"{why}; --stub measures the launch function alone.")


def alone(device: str, beside: str | None, rounds: int, is_in_place: bool) -> None:
    """Measures and prints what a call costs here and in another checkout; see `times_alone`."""
    check_device(device)
    times = times_alone(device, beside, rounds, is_in_place)
    rows = []
    for name, values in times.items():
        spread, ratio = Spread.of(values), ratios(times, "this", name)
        rows.append((name, f"{spread.median:.0f}", f"{spread.least:.0f}", f"{ratio.median:.3f}"))
    print(describe(fresh.environment()))
    behind = "on the device" if device == "cuda" else "with nothing behind it"
    print(f"Nanoseconds of a launch {behind}, each process's least.\n")
    print(table(("commit", "median", "least", "this over it"), rows))


def microseconds(calls: timeit.Timer) -> float:
    """The host's time for one call, in a run of calls that the device keeps up with."""
    import torch

    calls.timeit(_WARMING)
    torch.cuda.synchronize()
    spent = calls.timeit(_CALLS)
    torch.cuda.synchronize()

    return 1e6 * spent / _CALLS


def against_triton(rounds: int) -> dict[str, list[float]]:
    """The microseconds of a call of ours, Triton's and PyTorch's on PyTorch's tensors, in turns."""
    import torch

    from benchmarks.peers.idiomatic.elements import add_kernel
    from examples import add

    x, y = (torch.randn(_SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    output = torch.empty_like(x)
    # Without its tuner, which would cost more than the launch.
    triton_kernel = add_kernel.fn
    names = {"kernel": add.kernel, "triton_kernel": triton_kernel, "torch": torch, "size": _SIZE}
    names |= {"x": x, "y": y, "output": output}
    # As they are written: a function around a call costs another call.
    contenders = {
        "ours": "kernel(x, y, output, BLOCK_SIZE=1024)",
        "Triton": "triton_kernel[(1,)](x, y, output, size, BLOCK_SIZE=1024)",
        "PyTorch": "torch.add(x, y, out=output)",
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}

    for name, call in contenders.items():
        output.fill_(torch.nan)
        exec(call, dict(names))
        if not torch.equal(output, x + y):
            raise AssertionError(f"the result of {name} is wrong")

    timers = {name: timeit.Timer(call, globals=names) for name, call in contenders.items()}
    for _ in range(rounds):
        # Anew: which one that is changes within seconds.
        with on_the_quietest_core():
            turns = [[microseconds(timer) for timer in timers.values()] for _ in range(_TURNS)]
        for name, taken in zip(timers, zip(*turns)):
            times[name].append(min(taken))

    return times


def main() -> int:
    """Measure, print and write; gives the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks.launch", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--path", action="append", default=[], metavar="FRONTEND=FOLDERS")
    parser.add_argument("--output", type=Path, default=RESULTS / "launch")
    parser.add_argument("--stub", action="store_true", help="the launch function alone")
    parser.add_argument("--beside", metavar="COMMIT", help="this beside it, and nothing else")
    parser.add_argument("--in-place", action="store_true", help="of these: the output is an input")
    options = parser.parse_args()

    if options.stub or options.beside:
        device = "cpu" if options.stub else "cuda"
        try:
            alone(device, options.beside, options.rounds, options.in_place)
        except CannotRun as error:
            print(f"benchmarks.launch: {error}", file=sys.stderr)
            return 2
        return 0

    paths = frontends.paths_of(options.path)
    here, kind, times = fresh.environment(), "cpu", {}
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            from benchmarks.common.measure import environment

            here, kind, times = environment(), "cuda", against_triton(options.rounds)

    rows = []

    for name, values in times.items():
        spread, ratio = Spread.of(values), ratios(times, "ours", name)
        rows.append(
            (name, f"{spread.median:.2f}", f"{spread.least:.2f}", f"{1 / ratio.median:.2f}")
        )

    by_frontend = frontends.compare(kind, frontends.available(kind, paths), paths)
    text = [
        "# One call of add on 1024 elements",
        "",
        describe(here),
        "",
        f"Microseconds of the host's time: of each round the least of {_TURNS} turns of {_CALLS} calls, after",
        f"{_WARMING} that are not timed, on the core that was the fastest before it.",
        "",
    ]
    if rows:
        text += [table(("contender", "median", "least", "over ours"), rows), ""]
    text += [
        "On the tensors of each framework, each in processes of its own, in turns. Beside it what the",
        "framework itself takes there, for a jitted addition or for reading the three tensors'",
        "shape, strides, address, dtype and device. In a program: what one more kernel costs within a",
        "jitted function, where a call is a launch and nothing else.",
        "",
        frontends.report(by_frontend),
    ]
    if kind == "cpu":
        text += ["", "There is no CUDA device: no kernel was run, and a call is the launch alone."]
    print("\n".join(text))
    write("launch", here, "\n".join(text), {**times, "frontends": by_frontend}, options.output)
    too_slow = frontends.too_slow(by_frontend)

    for name in too_slow:
        print(f"{name} costs over {frontends.ALLOWED} µs more than torch")

    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
