"""What an operator costs the host beyond its kernel's launch: cubes of 1024 elements.

Beside `ninetoothed.op`, with and without gradients recorded, stand the launch with an output that is
made before, and PyTorch's ``torch.library.custom_op`` around the same launch.

python -m benchmarks.operators [--rounds 15] [--output FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread
from benchmarks.launch import microseconds

_SIZE = 1024


def contenders() -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    import torch

    import ninetoothed
    from ninetoothed import Tensor, like

    def arrangement(*tensors):
        return tuple(tensor.tile((_SIZE,)) for tensor in tensors)

    def cube(input, output):
        output = input * input * input

    kernel = ninetoothed.make(arrangement, cube, (Tensor(1), Tensor(1)))
    operator = ninetoothed.op(
        "benchmarks::cube",
        kernel,
        {"output": like("input")},
        backward=lambda gradient, input: 3 * input * input * gradient,
        saved=("input",),
    )

    schema = "(Tensor input) -> Tensor"

    @torch.library.custom_op("benchmarks::custom_cube", mutates_args=(), schema=schema)
    def custom(input):
        output = torch.empty_like(input)
        kernel(input, output)
        return output

    x = torch.randn(_SIZE, device="cuda")
    y = x.clone().requires_grad_()

    def launch() -> object:
        output = x.new_empty(x.shape)
        kernel(x, output)
        return output

    found = {
        "launch": launch,
        "operator": lambda: operator(x),
        "operator, gradients recorded": lambda: operator(y),
        "custom_op": lambda: custom(x),
    }
    for name, function in found.items():
        if not torch.equal(function(), x * x * x):
            raise AssertionError(f"the result of {name} is wrong")
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.operators", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS / "launch")
    options = parser.parse_args()
    functions = contenders()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(options.rounds):
        for name, function in functions.items():
            times[name].append(microseconds(function))
    plain, rows = times["launch"], []
    for name, measured in times.items():
        beyond = Spread.of([mine - its for mine, its in zip(measured, plain, strict=True)])
        rows.append((name, f"{Spread.of(measured).median:.2f}", f"{beyond.median:+.2f}"))
    here = environment()
    text = "\n".join(
        [
            "# What an operator costs beyond its kernel's launch",
            "",
            describe(here),
            "",
            "Microseconds of the host's time, medians; each round's are compared with each other.",
            "",
            table(("call", "µs", "beyond the launch"), rows),
        ]
    )
    print(text)
    write("operators", here, text, times, options.output)


if __name__ == "__main__":
    main()
