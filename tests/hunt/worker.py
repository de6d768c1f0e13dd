"""What one process of a hunt does: programs of some seeds, on some backends."""

from __future__ import annotations

import gc
import math
import re
import time
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from tests.hunt import executions, generate, shrink
from tests.hunt.text import HEADER, module

#: What a device says that can run nothing any more.
_ENDED = re.compile(r"CUDA error|illegal|misaligned address|launch failure")


@dataclass(frozen=True)
class Finding:
    """A program that is not right on a backend.

    Attributes:
        text: the smallest program that fails so, without the header that all have.
        tensors: what it was called with.
    """

    seed: int
    backend: str
    kind: str
    family: str
    text: str
    tensors: str
    detail: str


def hunted(
    seeds: range,
    backends: tuple[str, ...],
    families: tuple[str, ...],
    is_first: bool = False,
    ends: float = math.inf,
) -> dict[str, Any]:
    """What became of the programs of these seeds; of those up to the first finding, if that is asked.

    None is begun after ``ends``, a time as `time.time` has it.
    """
    counts: dict[str, int] = {}
    refusals: dict[str, int] = {}
    findings: list[dict[str, Any]] = []
    slowest, made = (0.0, -1, ""), 0

    def result() -> dict[str, Any]:
        names = ("programs", "counts", "refusals", "findings", "slowest")
        return dict(zip(names, (made, counts, refusals, findings, slowest), strict=True))

    # What is collected of a program is little, beside looking for it through all that is kept.
    gc.set_threshold(200_000, 50, 100)
    for seed in seeds:
        if time.time() > ends:
            break
        try:
            program = generate.program(seed, families)
        except Exception:
            findings.append(
                asdict(Finding(seed, "", "generator", "", "", "", traceback.format_exc()))
            )
            continue
        made += 1
        for backend in backends:
            if not executions.has(program, backend):
                continue
            found = executions.outcome(program, backend)
            counts[f"{backend} {found.kind}"] = counts.get(f"{backend} {found.kind}", 0) + 1
            slowest = max(slowest, (found.seconds, seed, backend))
            if found.kind == "refused":
                name = shrink.signature(found)[1]
                refusals[name] = refusals.get(name, 0) + 1
            if not found.is_right:
                findings.append(asdict(_described(seed, backend, program, found, is_first)))
                if is_first:
                    return result()
            if _ENDED.search(found.detail):
                # Nothing more can run in this process.
                return result()
    return result()


def _described(seed: int, backend: str, program: Any, found: Any, is_first: bool) -> Finding:
    if not is_first and found.kind != "slow" and not _ENDED.search(found.detail):
        program, found = shrink.minimal(program, backend, found)
    tensors = [
        f"{p.name}: {p.shape} {p.dtype} {p.layout} {p.sign}"
        + (f" same as {p.same_as}" if p.same_as else "")
        + (" output" if p.is_output else "")
        for p in program.parameters
    ]
    values = [f"{name}={value}" for name, value in program.numbers]
    values += [f"left out: {program.left_out}"] if program.left_out else []
    text = module(program)[len(HEADER) :].strip()
    return Finding(
        seed, backend, found.kind, program.family, text, "; ".join(tensors + values), found.detail
    )
