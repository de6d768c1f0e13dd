"""A Llama of 8B shape decoding at batch 1, by one GPU and by several that share its weights.

torchrun --nproc-per-node 2 -m benchmarks.llama.parallel [--context 512] [--output FOLDER]

The first process decodes alone while the others wait; then all of them together. Before, what a sum of so
few numbers takes is timed: by NCCL, and as the model has it.
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.llama.__main__ import prompt, seconds
from benchmarks.llama.few_rows import milliseconds
from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.parallel import ALONE, Group
from examples.llama.weights import assembled, random_tensors

_ROUNDS, _STEPS = 5, 64


def rates(config: Config, device: str, group: Group, context: int) -> list[float]:
    """Tokens a second, round by round."""
    weights = assembled(config, random_tensors(config, torch.bfloat16, device), group)
    session = Session(config, weights, 1, context + _STEPS + 8, group=group)
    text = prompt(config, 1, context, device)
    found = []
    for _ in range(1 + _ROUNDS):
        session.restart()
        session.prefill(text)
        for _ in range(3):
            session.step()
        found.append(_STEPS / seconds(session.step, _STEPS))
    return found[1:]


def sums(group: Group, config: Config, device: str) -> dict[str, float]:
    """Microseconds of a sum as a step has it, in a graph of several."""
    part = group.shared(1, config.hidden_size, dtype=torch.bfloat16, device=device)
    output = torch.zeros_like(part)
    part.zero_()
    return {
        "NCCL": 1e3 * milliseconds([lambda: dist.all_reduce(output)]),
        "shared memory": 1e3 * milliseconds([lambda: group.sum(part, output, True)]),
    }


@torch.inference_mode()
def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.llama.parallel", description=__doc__)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args()
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=torch.device(device))
    group, config = Group.here(), Config()
    data: dict[str, Any] = {"sum": sums(group, config, device)}
    if group.rank == 0:
        print(data, flush=True)
        data["one"] = rates(config, device, ALONE, options.context)
        print(f"one GPU: {data['one']}", flush=True)
    dist.barrier()
    torch.cuda.empty_cache()
    data["all"] = rates(config, device, group, options.context)
    if group.rank == 0:
        one, every = (statistics.median(data[name]) for name in ("one", "all"))
        lines = [
            ("1", f"{one:.1f} ({min(data['one']):.1f}–{max(data['one']):.1f})", ""),
            (
                f"{group.size}",
                f"{every:.1f} ({min(data['all']):.1f}–{max(data['all']):.1f})",
                f"{every / one:.2f}",
            ),
        ]
        here = environment()
        text = "\n".join(
            [
                "# A Llama of 8B shape, decoding one request, by GPUs that share the weights",
                "",
                describe(here),
                "",
                table(("GPUs", "tokens a second", "over one"), lines),
                "",
                f"Microseconds of a sum of {config.hidden_size} numbers, in a graph: {data['sum']}.",
            ]
        )
        print(text, flush=True)
        write("parallel", here, text, data, options.output, "llama-parallel")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
