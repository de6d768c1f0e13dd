"""A Llama of 8B shape with random weights: tokens a second when decoding, prefill, and the paper's experiment.

python -m benchmarks.llama [--parts decode prefill paper] [--batches 1 2] [--outputs 128] [--output FOLDER]

*decode*: a step at some positions of context, the contenders in turns. *prefill*: a prompt of 2,048 tokens.
*paper*: requests of 32 tokens, generating as many as `--outputs` says, one warm-up and three runs; PyTorch's
modules Attention, Linear, RMSNorm and SiLU are replaced by ours, and by Triton kernels written by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import search
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.llama import contenders
from examples.llama import in_pytorch
from examples.llama.config import Config
from examples.llama.weights import assembled, random_tensors

_PROMPT, _RUNS = 32, 3


def synchronize() -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(function: Callable[..., None], times: int, *arguments: Any) -> float:
    """The seconds that so many calls take to their end on the device."""
    synchronize()
    start = time.perf_counter()
    for _ in range(times):
        function(*arguments)
    synchronize()
    return time.perf_counter() - start


def prompt(config: Config, requests: int, count: int, device: str) -> torch.Tensor:
    """Random tokens, the same each time."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(config.vocab_size, (requests, count), generator=generator).to(device)


def profile(function: Callable[[], None], times: int = 4) -> dict[str, dict[str, float]]:
    """How often a call launches each kernel, and the microseconds of one launch on the device."""
    from torch.profiler import ProfilerActivity

    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as found:
        seconds(function, times)
    return {
        entry.key: {
            "launches": entry.count / times,
            "microseconds": entry.self_device_time_total / entry.count,
        }
        for entry in found.key_averages()
        if entry.self_device_time_total > 0
    }


class Benchmark:
    """The model and its contenders.

    Args:
        names: of the contenders.
    """

    def __init__(self, config: Config, device: str, names: list[str], context: int) -> None:
        self.config, self.device, self.names, self.context = config, device, names, context
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.weights = assembled(config, random_tensors(config, dtype, device))
        self.model = in_pytorch.Llama(config, self.weights)

    def contender(self, name: str, requests: int, length: int) -> contenders.Contender:
        """One of them, for so many requests of so many positions at most."""
        config, weights = self.config, self.weights
        if name == contenders.OURS:
            return contenders.ours(config, weights, requests, length)
        if name == contenders.COMPILED:
            # Otherwise sizes that changed from one batch to the next would be compiled as unknown ones.
            torch._dynamo.reset()
            return contenders.compiled(self.model, config, weights, requests, length)
        make = {
            contenders.EAGER: lambda model: model,
            contenders.REPLACED: contenders.replaced,
            contenders.TRITON: contenders.with_triton,
        }[name]
        return contenders.by_module(make(self.model), weights)

    def decode(self, requests: int, rounds: int = 5, steps: int = 32) -> dict[str, Any]:
        """Tokens a second of steps after a context, round by round; and how far logits are apart."""
        text = prompt(self.config, requests, self.context, self.device)
        length = self.context + 2 * steps
        made, found = {}, {}
        for name in self.names:
            started = time.perf_counter()
            read, step, logits = self.contender(name, requests, length)
            read(text)
            for _ in range(3):
                step()
            synchronize()
            found[name] = {"first": time.perf_counter() - started, "tokens_per_second": []}
            print(f"batch {requests}, {name}: first steps {found[name]['first']:.1f} s", flush=True)
            made[name] = read, step
            read(text)
            step()
            found[name]["logits"] = logits().double().cpu()
        if self.device == "cuda" and contenders.OURS in made:
            found[contenders.OURS]["kernels"] = profile(made[contenders.OURS][1])
        reference = found[contenders.EAGER]["logits"] if contenders.EAGER in found else None
        for entry in found.values():
            own = entry.pop("logits")
            entry["most_apart"] = (
                None if reference is None else (own - reference).abs().max().item()
            )
        for turn in range(rounds):
            for name in self.names[turn % len(self.names) :] + self.names[: turn % len(self.names)]:
                read, step = made[name]
                read(text)
                taken = seconds(step, steps)
                found[name]["tokens_per_second"].append(requests * steps / taken)
        return found

    def prefill(self, count: int, rounds: int = 5) -> dict[str, Any]:
        """Tokens a second of reading a prompt, ours and PyTorch's."""
        text = prompt(self.config, 1, count, self.device)
        names = [name for name in self.names if name != contenders.COMPILED]
        made = {name: self.contender(name, 1, count + 1)[0] for name in names}
        found: dict[str, Any] = {}
        for name, read in made.items():
            found[name] = {"first": seconds(read, 1, text), "tokens_per_second": []}
            print(f"prefill, {name}: first {found[name]['first']:.1f} s", flush=True)
        if self.device == "cuda" and contenders.OURS in made:
            read = made[contenders.OURS]
            found[contenders.OURS]["kernels"] = profile(lambda: read(text), 2)
        for _ in range(rounds):
            for name, read in made.items():
                taken = seconds(read, 1, text)
                found[name]["tokens_per_second"].append(count / taken)
        return found

    def paper(self, count: int, requests: int = 2) -> Iterator[dict[str, Any]]:
        """Tokens a second of generating so many tokens: the mean of three runs after a warm-up.

        What was found is given after each contender.
        """
        text = prompt(self.config, requests, _PROMPT, self.device)
        found: dict[str, Any] = {}
        for name in self.names:
            read, step, _ = self.contender(name, requests, _PROMPT + count + 1)

            first, *times = (
                seconds(read, 1, text) + seconds(step, count - 1) for _ in range(1 + _RUNS)
            )
            rates = [requests * count / taken for taken in times]
            found[name] = {"first": first, "tokens_per_second": rates}
            print(f"{count} out, {name}: {statistics.mean(rates):.1f} tokens/s", flush=True)
            yield found


def rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line for each contender: its rate, and ours over it."""
    rates = {name: entry["tokens_per_second"] for name, entry in found.items()}
    own = next(iter(rates.values()))
    lines = []
    for name, its in rates.items():
        ratio = statistics.median(a / b for a, b in zip(own, its, strict=True))
        apart = found[name].get("most_apart")
        spread = f"{statistics.median(its):.1f} ({min(its):.1f}–{max(its):.1f})"
        lines.append((name, spread, f"{ratio:.2f}", "" if apart is None else f"{apart:.3f}"))
    return lines


def kernels(found: dict[str, dict[str, float]]) -> str:
    """The kernels that take longest."""

    def whole(entry: dict[str, float]) -> float:
        return entry["launches"] * entry["microseconds"]

    longest = sorted(found.items(), key=lambda item: -whole(item[1]))[:14]
    lines = [
        (name[:60], f"{e['launches']:.0f}", f"{e['microseconds']:.2f}", f"{whole(e):.0f}")
        for name, e in longest
    ]
    return table(("kernel", "launches", "µs each", "µs in all"), lines)


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser("python -m benchmarks.llama", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["decode", "prefill"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--outputs", nargs="+", type=int, default=[128])
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--prompt", type=int, default=2048)
    parser.add_argument("--contenders", nargs="+")
    parser.add_argument("--config", type=json.loads, default={}, help="other sizes, as JSON")
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    parser.add_argument("--label", default="llama")
    return parser.parse_args()


#: Who contends in which part, unless it is said.
_WHO = {
    "decode": [contenders.OURS, contenders.COMPILED, contenders.EAGER],
    "prefill": [contenders.OURS, contenders.EAGER],
    "paper": [
        contenders.REPLACED,
        contenders.EAGER,
        contenders.OURS,
        contenders.COMPILED,
        contenders.TRITON,
    ],
}


def environment() -> dict[str, str]:
    """The device's, or the CPU's where there is none."""
    if not torch.cuda.is_available():
        from benchmarks.common.fresh import environment as here
    else:
        from benchmarks.common.measure import environment as here
    return here()


@torch.inference_mode()
def main() -> None:
    """Measure, print and write."""
    options = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    benchmark = Benchmark(Config(**options.config), device, [], options.context)
    data: dict[str, Any] = {}

    def keep(title: str, found: dict[str, Any]) -> None:
        # What is there by now is written, should the next one not end.
        data[title] = found
        report(benchmark, data, options)

    for part in options.parts:
        benchmark.names = options.contenders or _WHO[part]
        if part == "decode":
            for batch in options.batches:
                keep(f"decode, batch {batch}, context {options.context}", benchmark.decode(batch))
        elif part == "prefill":
            keep(f"prefill of {options.prompt}", benchmark.prefill(options.prompt))
        else:
            # Kernels of Triton are searched for from hundreds of configurations.
            search.start_compilers(os.cpu_count() or 1)
            for count in options.outputs:
                for found in benchmark.paper(count):
                    keep(f"paper, {count} out", found)
            search.stop_compilers()


def report(benchmark: Benchmark, data: dict[str, Any], options: argparse.Namespace) -> None:
    """Print what was measured last, and write all."""
    here = environment()
    lines = [f"# A Llama of random weights: {benchmark.config}", "", describe(here)]
    header = ("contender", "tokens a second", "the first one's over it", "logits apart")
    for title, found in data.items():
        section = ["", f"## {title}", "", table(header, rows(found))]
        for name, entry in found.items():
            if "kernels" in entry:
                section += ["", f"Kernels of {name}:", "", kernels(entry["kernels"])]
        lines += section
    print("\n".join(section), flush=True)
    write("model", here, "\n".join(lines), data, options.output, options.label)


if __name__ == "__main__":
    main()
