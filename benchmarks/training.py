"""A small Llama that trains: losses and the time of a step, with our operators and with PyTorch's.

Both start from the same weights and see the same data; it computes in bfloat16 with float32 weights.

python -m benchmarks.training [--steps 200] [--layers 4] [--width 512] [--output FOLDER]
python -m benchmarks.training --draw RESULTS.json

The second one draws the losses that the first one kept, beside them; it needs matplotlib and no GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write

_HEADS, _LENGTH, _BATCH = 8, 512, 16

#: Of the steps, so many are for tuning and compilation, and not timed.
_WARM_UP = 10


def contenders(layers: int, width: int) -> dict[str, Any]:
    """A step of training for each contender: a function of tokens and targets that gives the loss."""
    import torch

    from examples.training import llama

    def step_of(operators: Any, is_compiled: bool) -> Any:
        torch.manual_seed(0)
        model = llama.Llama(operators, layers, width, _HEADS, _LENGTH, torch.bfloat16).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        forward = torch.compile(model, fullgraph=True) if is_compiled else model

        def step(tokens: Any, targets: Any) -> Any:
            loss = forward(tokens, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return {
        "ours": step_of(llama.Ours, False),
        "ours, compiled": step_of(llama.Ours, True),
        "PyTorch": step_of(llama.PyTorch, False),
        "PyTorch, compiled": step_of(llama.PyTorch, True),
    }


def measured(functions: dict[str, Any], steps: int) -> dict[str, dict[str, list[float]]]:
    """Losses, and the milliseconds of each step on the device's clock, in turns."""
    import torch

    from examples.training import llama

    found: dict[str, dict[str, list[float]]] = {
        name: {"losses": [], "milliseconds": []} for name in functions
    }
    for tokens, targets in itertools.islice(llama.batches(steps, _BATCH, _LENGTH), steps):
        tokens, targets = tokens.cuda(), targets.cuda()
        for name, step in functions.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
            loss = step(tokens, targets)
            end.record()
            torch.cuda.synchronize()
            found[name]["losses"].append(loss.item())
            found[name]["milliseconds"].append(start.elapsed_time(end))
    return found


def draw(results: Path) -> Path:
    """Draw the losses by step, of each contender a line, as an SVG file beside the raw figures."""
    from matplotlib.figure import Figure

    kept = json.loads(results.read_text())
    drawn = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = drawn.add_subplot()
    for name, entry in kept["training"].items():
        style = "--" if name.endswith("compiled") else "-"
        axes.plot(entry["losses"], style, label=name, linewidth=1.2)
    axes.set(xlabel="step", ylabel="loss", title=kept["environment"]["device"])
    axes.legend(frameon=False)
    path = results.with_suffix(".svg")
    drawn.savefig(path)
    return path


def main() -> None:
    """Measure, print and write; or draw what was measured."""
    parser = argparse.ArgumentParser("python -m benchmarks.training", description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--output", type=Path, default=RESULTS / "training")
    parser.add_argument("--draw", type=Path, help="kept results, of which a figure is made instead")
    options = parser.parse_args()
    if options.draw:
        print(draw(options.draw))
        return
    found = measured(contenders(options.layers, options.width), options.steps)
    times = {name: entry["milliseconds"][_WARM_UP:] for name, entry in found.items()}
    rows = []
    for name, entry in found.items():
        losses = entry["losses"]
        apart = max(abs(a - b) for a, b in zip(losses, found["PyTorch"]["losses"], strict=True))
        ratio = statistics.median(a / b for a, b in zip(times[name], times["PyTorch"], strict=True))
        cells = [f"{losses[0]:.3f}", f"{statistics.mean(losses[-10:]):.3f}", f"{apart:.3f}"]
        rows.append((name, *cells, f"{statistics.median(times[name]):.2f}", f"{ratio:.3f}"))
    header = ("operators", "first loss", "last ten", "most apart", "ms a step", "over PyTorch")
    here = environment()
    text = "\n".join(
        [
            f"# A Llama of {options.layers} layers, width {options.width}, {options.steps} steps",
            "",
            describe(here),
            "",
            f"Batches of {_BATCH} × {_LENGTH} tokens, bfloat16, float32 weights, AdamW. *Most apart*: from",
            "PyTorch's loss at one step.",
            "",
            table(header, rows),
        ]
    )
    print(text)
    write("training", here, text, found, options.output)


if __name__ == "__main__":
    main()
