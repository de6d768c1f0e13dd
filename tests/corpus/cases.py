"""The cases of the corpus: a kernel, a call and a configuration each.

Those of `tests/tuning/rankings.json` with each set of options that was measured, the same calls with
the other options that are right for them, and the cases of `cases_by_hand`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpus.package import (
    Call,
    Config,
    Kernel,
    Specialized,
    call_of,
    config_of,
    defined,
    general_call,
    scalar_types,
    specialize,
    tensor,
)
from tests.golden.kernels import TEN

MEASURED = Path(__file__).parents[1] / "tuning" / "rankings.json"

#: Of each set of options so many of the measured configurations, the first and the last among them.
_OF_EACH = 3


@dataclass(frozen=True)
class Case:
    """What is emitted.

    Attributes:
        group: the file that it is stored in.
        name: what it is called there; no other case is called so.
        device: whose estimate it has, of `package.DEVICES`.
        is_general: whether the text is that of the call's class of sizes.
    """

    group: str
    name: str
    kernel: Kernel
    call: Call
    config: Config
    device: str = "H200"
    is_general: bool = False

    def specialized(self) -> Specialized:
        """What is emitted."""
        kernel = defined(self.kernel, self.call)
        general = general_call(kernel, self.call) if self.is_general else None
        assert not self.is_general or general is not None, f"{self.name} is a class of its own"
        return specialize(kernel, self.call, self.config, general)


@dataclass(frozen=True)
class Subject:
    """A kernel and a call of it, and values of its meta symbols for which options are asked for; of its
    class of sizes where it is general."""

    group: str
    name: str
    kernel: Kernel
    call: Call
    values: Mapping[str, int]
    is_general: bool = False

    def case(
        self,
        chosen: str = "",
        values: Mapping[str, int] | None = None,
        warps: int = 4,
        stages: int = 3,
        device: str = "H200",
    ) -> Case:
        """A case with options, as in ``"descriptors=1 persistent=1"``."""
        values = self.values if values is None else values
        parts = [self.name, " ".join(f"{name}={value}" for name, value in values.items())]
        parts += [f"warps {warps} stages {stages}", chosen]
        parts += [f"on {device}"] if device != "H200" else []
        config = config_of(values, warps, stages, parsed(chosen))
        name = " · ".join(filter(None, parts))
        return Case(self.group, name, self.kernel, self.call, config, device, self.is_general)


def parsed(chosen: str) -> dict[str, int]:
    """Options by name, from their text."""
    pairs = (entry.partition("=") for entry in chosen.split())
    return {name: int(value) for name, _, value in pairs}


def spread(entries: Sequence[Any], count: int) -> list[Any]:
    """So many of the entries, the first and the last among them."""
    if len(entries) <= count:
        return list(entries)
    return [entries[place * (len(entries) - 1) // (count - 1)] for place in range(count)]


# What was measured.

#: The files of the kernels that were measured.
_GROUPS = {
    "add": "elements", "silu": "elements", "softmax": "rows", "rms_norm": "rows", "rope": "rope",
}  # fmt: skip

_PRODUCT = (
    "eviction_policy=0",
    "dependent_launch=1",
    "swizzle=1",
    "register_prefetch=1",
    "eviction_policy=0 register_prefetch=1",
    "register_prefetch=1 split_k=3",
)
_PRODUCT += ("dependent_launch=1 split_k=4", "split_k=2")
_SHARED = (
    "cooperative_reduction=1 split_k=2",
    "cooperative_reduction=2 split_k=3",
    "cooperative_reduction=1 register_prefetch=1 split_k=4",
)
_SHARED += ("cooperative_reduction=1 dependent_launch=1 split_k=3",)
_DESCRIBED = (
    "descriptors=1",
    "descriptors=1 eviction_policy=0",
    "dependent_launch=1 descriptors=1",
)
_STAYING = ("descriptors=1 persistent=1", "descriptors=1 persistent=1 swizzle=4")
_STAYING += (
    "descriptors=1 eviction_policy=0 persistent=1",
    "dependent_launch=1 descriptors=1 persistent=1",
)
_ATTENTION = ("partial_reduction_sinking=1", "descriptors=1 partial_reduction_sinking=1")
_PLAIN = (
    *_ATTENTION,
    "dependent_launch=1 partial_reduction_sinking=1",
    "eviction_policy=0",
    "dependent_launch=1",
    "eviction_policy=0 partial_reduction_sinking=1",
    *_DESCRIBED,
)
_PLAIN += ("dependent_launch=1 descriptors=1 partial_reduction_sinking=1",)
_CAUSAL = (
    *_ATTENTION,
    "loop_splitting=1 partial_reduction_sinking=1",
    "eviction_policy=0 loop_splitting=1",
    "descriptors=1 loop_splitting=1 partial_reduction_sinking=1",
)
_MOVING = (
    "eviction_policy=0",
    "dependent_launch=1",
    "program_coarsening=2",
    "program_coarsening=4",
    "eviction_policy=0 program_coarsening=2",
)

#: The options that are right for the measured calls besides those that were measured.
_RIGHT = {
    "conv2d": (*_PRODUCT, *_SHARED),
    "bmm": (*_PRODUCT, "cooperative_reduction=1 split_k=2", *_DESCRIBED, *_STAYING),
    "addmm": (
        "eviction_policy=0",
        "register_prefetch=1",
        "dependent_launch=1",
        *_DESCRIBED,
        *_STAYING,
    ),
    "mm 16 4096 4096": ("eviction_policy=0", "dependent_launch=1"),
    "mm 512 512 512": _SHARED,
    "mm 1000 1000 1000": (
        *_PRODUCT,
        *_DESCRIBED,
        "loop_splitting=1",
        "eviction_policy=0 loop_splitting=1",
    ),
    "mm 2048 14336 4096": (*_PRODUCT, *_DESCRIBED, *_STAYING),
    "sdpa False (4, 48, 1024, 64)": _PLAIN,
    "sdpa False (2, 32, 2048, 128)": _ATTENTION,
    "sdpa True (4, 48, 1024, 64)": _CAUSAL,
    "mm 4096 4096 4096": ("swizzle=1", "descriptors=1", *_STAYING),
    "rope": _MOVING,
    "rms (4096, 4096)": ("eviction_policy=0", "program_coarsening=2"),
    "softmax (65536, 256)": _MOVING,
    "add 16777216 1024": _MOVING,
    "add 268435456 256": _MOVING,
    "rms (4096, 1024)": ("program_coarsening=2",),
    "softmax (32, 4096)": ("eviction_policy=0", "dependent_launch=1"),
}

#: The same with blocks of 64 queries, which may be loaded in a TMA pipeline.
_RINGS = {
    "sdpa False (4, 48, 1024, 64)": ("descriptors=1 tma_pipeline=1",),
    "sdpa False (2, 32, 2048, 128)": (
        "dependent_launch=1 descriptors=1 partial_reduction_sinking=1 tma_pipeline=2",
    ),
    "sdpa True (4, 48, 1024, 64)": (
        "descriptors=1 eviction_policy=0 loop_splitting=1 partial_reduction_sinking=1 tma_pipeline=2",
    ),
}


def measured_tasks() -> list[dict[str, Any]]:
    """The tasks that were measured; one that is there twice has both lists of times."""
    found: dict[str, dict[str, Any]] = {}
    for task in json.loads(MEASURED.read_text(encoding="utf-8"))["tasks"]:
        known = found.setdefault(task["name"], {**task, "times": []})
        known["times"] = known["times"] + task["times"]
    return list(found.values())


def subject_of(task: Mapping[str, Any]) -> Subject:
    """A task's kernel and call, with the first values that were measured."""
    kernel = TEN[task["kernel"]]
    by_columns = task.get("transposed", ())
    tensors = {
        name: tensor(*shape, strides=(1, shape[0]) if name in by_columns else None)
        for name, shape in task["arguments"].items()
    }
    call = call_of(tensors, scalar_types(kernel), task["constants"])
    values = dict(zip(task["symbols"], task["times"][0][0]))
    group = _GROUPS.get(task["kernel"], task["kernel"])
    return Subject(group, task["name"], kernel, call, values)


def measured() -> Iterator[Case]:
    """Each set of options that was measured, with some of its configurations and values."""
    for task in measured_tasks():
        subject = subject_of(task)
        of_options: dict[tuple[str, ...], dict[Any, Case]] = {}
        for values, warps, stages, chosen, _ in task["times"]:
            text = " ".join(f"{name}={value}" for name, value in sorted(chosen.items()))
            case = subject.case(text, dict(zip(task["symbols"], values)), warps, stages)
            alike = of_options.setdefault(tuple(sorted(chosen)), {})
            alike.setdefault((text, *values), case)
        for alike in of_options.values():
            yield from spread(list(alike.values()), _OF_EACH)


def right() -> Iterator[Case]:
    """The measured calls with the other options that are right for them."""
    for task in measured_tasks():
        subject = subject_of(task)
        for chosen in _RIGHT.get(task["name"], ()):
            yield subject.case(chosen, warps=8)
        for chosen in _RINGS.get(task["name"], ()):
            columns = 64 if task["arguments"]["query"][-1] == 128 else 128
            yield subject.case(chosen, {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": columns})


def elsewhere() -> Iterator[Case]:
    """The measured calls on a device of another kind, without options and with what it has."""
    for task in measured_tasks():
        subject = subject_of(task)
        yield subject.case(warps=8, device="MI300X")
        if "split_k=2" in _RIGHT.get(task["name"], ()):
            yield subject.case("register_prefetch=1 split_k=2", device="MI300X")


def unique(cases: Iterable[Case]) -> list[Case]:
    """The cases, each once; the first of those that are called the same."""
    return list({case.name: case for case in reversed(list(cases))}.values())[::-1]


def all_cases() -> list[Case]:
    """All cases, in the order of the files."""
    from tests.corpus.cases_by_hand import by_hand

    cases = unique(itertools.chain(measured(), right(), elsewhere(), by_hand()))
    groups = list(dict.fromkeys(case.group for case in cases))
    return sorted(cases, key=lambda case: groups.index(case.group))


def subjects() -> list[Subject]:
    """Whose offers are stored: the measured calls, and those by hand that differ in what they offer."""
    from tests.corpus.cases_by_hand import SUBJECTS

    return [*map(subject_of, measured_tasks()), *SUBJECTS]
