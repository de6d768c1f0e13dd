"""What one process of a hunt does: programs of some seeds, on some backends."""

from __future__ import annotations

import contextlib
import gc
import math
import random
import re
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from tests.hunt import executions, generate, reference, shrink
from tests.hunt.description import Program, with_shapes
from tests.hunt.spelling.respelled import spelling
from tests.hunt.text import HEADER, module
from tests.hunt.values import Ambiguous
from tests.hunt.variables import generate as variables
from tests.hunt.variables import run as variables_run
from tests.hunt.variables import shrink as variables_shrink

#: What a device says that can run nothing any more.
_ENDED = re.compile(r"CUDA error|illegal|misaligned address|launch failure")


#: How many other calls of a program's classes of sizes are looked for, and how often one is tried.
COUNT, TRIES = 3, 12


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


def each(
    seeds: Iterable[int],
    backends: tuple[str, ...],
    families: tuple[str, ...],
    is_first: bool = False,
    ends: float = math.inf,
) -> Iterator[dict[str, Any]]:
    """What became of the program of each seed; of those up to the first finding, if that is asked.

    None is begun after ``ends``, a time as `time.time` has it.
    """
    # What is collected of a program is little, beside looking for it through all that is kept.
    gc.set_threshold(200_000, 50, 100)
    for seed in seeds:
        if time.time() > ends:
            break
        found = _hunted(seed, backends, families, is_first)
        yield found
        if is_first and found["findings"]:
            break


def served(connection: Any, *given: Any) -> None:
    """Sends what `each` finds, as long as anything can run in this process."""
    for found in each(*given):
        connection.send(found)
        if any(_ENDED.search(finding["detail"]) for finding in found["findings"]):
            break


def _hunted(
    seed: int, backends: tuple[str, ...], families: tuple[str, ...], is_first: bool
) -> dict[str, Any]:
    """What became of a seed's program, up to the first finding if that is asked."""
    counts: dict[str, int] = {}
    refusals: dict[str, int] = {}
    findings: list[dict[str, Any]] = []
    result = {"programs": 0, "counts": counts, "refusals": refusals, "findings": findings}
    result["slowest"] = (0.0, -1, "")
    try:
        program = drawn(seed, families)
    except Exception:
        findings.append(asdict(Finding(seed, "", "generator", "", "", "", traceback.format_exc())))
        return result
    result["programs"] = 1
    for backend in backends:
        if not _has(program, backend):
            continue
        tried, found = _first_wrong(program, backend)
        counts[f"{backend} {found.kind}"] = 1
        result["slowest"] = max(result["slowest"], (found.seconds, seed, backend))
        if found.kind == "refused":
            refusals[shrink.signature(found)[1]] = 1
        if not found.is_right:
            findings.append(asdict(_described(seed, backend, tried, found, is_first)))
            if is_first or _ENDED.search(found.detail):
                break
    return result


def drawn(seed: int, families: tuple[str, ...]) -> Any:
    """The program of a seed, of one of the families, as it is written."""
    about_variables = [family for family in families if family in variables.FAMILIES]
    others = tuple(family for family in families if family not in about_variables)
    at = random.Random(seed).randrange(len(families))
    if at >= len(others):
        made: Any = variables.program(seed, about_variables[at - len(others)])
    else:
        made = generate.program(seed, others)
    return replace(made, spelling=spelling(seed))


def _has(program: Any, backend: str) -> bool:
    if isinstance(program, Program):
        return executions.has(program, backend)
    return backend in variables_run.BACKENDS


def _first_wrong(program: Any, backend: str) -> tuple[Any, executions.Outcome]:
    """The call that is wrong, or the last, and what became of it."""
    if not isinstance(program, Program):
        return program, variables_run.outcome(program, backend)
    found = executions.Outcome("alone")
    for tried in _tried(program, backend):
        found = executions.outcome(tried, backend)
        if not found.is_right or (backend == "ahead" and found.kind != "undeclared"):
            return tried, found
    return program, found


def _tried(program: Program, backend: str) -> Iterator[Program]:
    if backend == "class":
        yield from siblings(program)
        return
    yield program
    if backend == "ahead":
        # With the last size of each tensor declared, or all.
        for is_known in ("last", True):
            parameters = tuple(replace(p, is_known=is_known) for p in program.parameters)
            declared = replace(program, parameters=parameters)
            with contextlib.suppress(Ambiguous):
                reference.executed(declared)
                yield declared


def siblings(program: Program) -> Iterator[Program]:
    """The same program called with other sizes of the same classes, whose source is theirs too."""
    choose = random.Random(program.seed)
    found = [{p.name: p.shape for p in program.parameters}]
    for _ in range(TRIES):
        if len(found) > COUNT:
            return
        shapes = _other_shapes(program, choose)
        if shapes in found:
            continue
        try:
            changed = with_shapes(program, shapes)
            reference.executed(changed)
        except (Ambiguous, ValueError, IndexError, TypeError, KeyError, StopIteration):
            continue
        found.append(shapes)
        yield changed


def _other_shapes(program: Program, choose: random.Random) -> dict[str, tuple[int, ...]]:
    """Other sizes: what was equal mostly stays so; those at the ends of a class are drawn often."""
    by_size: dict[int, int] = {}
    is_alike, share = choose.random() < 0.7, choose.choice((0.2, 0.5, 1.0))

    def other(size: int) -> int:
        if choose.random() > share and not is_alike:
            return size
        least = 1 << max(size.bit_length() - 1, 0)
        most = 2 * least - 1
        # A power of two is a class of its own.
        ends = (least + 1, most, choose.randint(least + 1, most)) if least < size else (size,)
        drawn = choose.choice(ends)
        return by_size.setdefault(size, drawn) if is_alike else drawn

    shapes: dict[str, tuple[int, ...]] = {}
    for parameter in program.parameters:
        owner = shapes.get(parameter.same_as or "")
        shapes[parameter.name] = tuple(map(other, parameter.shape)) if owner is None else owner
    return shapes


def _described(seed: int, backend: str, program: Any, found: Any, is_first: bool) -> Finding:
    is_variables = not isinstance(program, Program)
    if not is_first and found.kind != "slow" and not _ENDED.search(found.detail):
        minimal = variables_shrink.minimal if is_variables else shrink.minimal
        program, found = minimal(program, backend, found)
    if is_variables:
        return Finding(
            seed, backend, found.kind, program.family, program.written, program.called, found.detail
        )
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
