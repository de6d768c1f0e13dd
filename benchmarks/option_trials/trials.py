"""What is switched off: options and steps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from ninetoothed.backends.triton.analysis import full_tiles, program_order
from ninetoothed.backends.triton.options import folded_gather, interleaved_pairs, tma_pipeline
from ninetoothed.backends.triton.planning.choices import defaults
from ninetoothed.backends.triton.specialization import divisors, magic_division, size_ratios
from ninetoothed.tuning.space import Config

#: The settings, in the order of the tables, and what they are called there.
SETTINGS = {"do_bench": "cold, do_bench", "row": "in a row, kept", "chain": "chain"}

#: How *without* is come by.
WAYS = ("tuned", "same")

#: What an option must gain to stay, and may lose nowhere.
GAIN, LOSS = 1.01, 0.99

#: Steps that are no options: the module and the name of what decides, and what decides otherwise.
STEPS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "one_loop": (tma_pipeline, "is_one_loop", lambda kernel, environment: False),
    "by_inverses": (program_order, "are_inverses_exact", lambda grid: False),
    "full_tile_versioning": (full_tiles, "conditions", lambda *_: frozenset()),
    "interleaved_pairs": (interleaved_pairs, "run", lambda program, accesses, facts: program),
    "folded_gather": (folded_gather, "folds", lambda *_: frozenset()),
    "magic_division": (magic_division, "bounded", lambda *_: iter(())),
    "size_ratios": (size_ratios, "known", lambda *_: iter(())),
    # What Triton asks of its own accord.
    "divisors": (divisors, "divisor", lambda number: 1 if number % divisors.MOST else 16),
}

#: What cannot be without an option.
_DEPENDENTS = {"descriptors": ("persistent", "tma_pipeline"), "split_k": ("cooperative_reduction",)}


@dataclass(frozen=True)
class Trial:
    """Something that is switched off.

    Attributes:
        name: as ``--options`` takes it.
        option: the option that is fixed; none for a step.
        value: what it is fixed at.
        step: the step that is left out.
    """

    name: str
    option: str = ""
    value: int = 0
    step: str = ""

    @property
    def fixed(self) -> str:
        """What *without* has fixed."""
        return f"{self.option}={self.value}" if self.option else ""

    def switched_off(self) -> contextlib.AbstractContextManager[Any]:
        """Within, kernels are emitted without the step."""
        return mock.patch.object(*STEPS[self.step]) if self.step else contextlib.nullcontext()

    def without(self, config: Config) -> Config:
        """The configuration but for the option and what needs it."""
        if not self.option:
            return config
        gone = {self.option, *_DEPENDENTS.get(self.option, ())}
        kept = [(name, value) for name, value in config.options if name not in gone]
        if self.value != defaults()[self.option]:
            kept.append((self.option, self.value))
        return replace(config, options=tuple(kept))


def _trials() -> dict[str, Trial]:
    # All options are off by default but for one.
    off = defaults()
    off["eviction_policy"] = 0
    found = [Trial(name, option=name, value=value) for name, value in off.items()]
    found += [Trial(name, step=name) for name in STEPS]
    return {trial.name: trial for trial in found}


TRIALS = _trials()

#: Names of several trials.
GROUPS: dict[str, tuple[str, ...]] = {"trial": ("cooperative_reduction", "one_loop", "by_inverses")}
GROUPS["steps"] = tuple(name for name in STEPS if name not in GROUPS["trial"])
GROUPS["others"] = tuple(
    name for name in TRIALS if name not in (*GROUPS["trial"], *GROUPS["steps"])
)
