"""Who contends: kernels as the tuner plans them, with and without."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.option_trials.tasks import Call, Data, Kernels, Operation, Task
from benchmarks.option_trials.trials import Trial
from ninetoothed.backends import base
from ninetoothed.backends.triton.backend import TritonBackend
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.translation import specialize
from ninetoothed.kernels.call_types import as_given
from ninetoothed.kernels.definition import Definition
from ninetoothed.launch.kernel import Kernel
from ninetoothed.launch.recorded_calls import definition_of
from ninetoothed.tuning.space import Config

# Contenders.


@dataclass(frozen=True)
class Planned:
    """What one kernel's plan was made of."""

    kernel: Definition
    call: base.Call
    config: Config

    def is_of(self, kernel: Kernel) -> bool:
        """Whether it is this kernel's, with whatever constants."""
        return self.kernel.frozen is kernel.declaration.frozen


class Watch:
    """Every plan that is made, in order."""

    def __init__(self) -> None:
        self.plans: list[Planned] = []

    @contextlib.contextmanager
    def begun(self) -> Iterator[Watch]:
        """Within, plans are noted."""
        original = TritonBackend.plan

        def plan(
            backend: Any, kernel: Definition, call: base.Call, values: Any = None
        ) -> base.Plan:
            made = original(backend, kernel, call, values)
            self.plans.append(Planned(kernel, call, made.details["config"]))
            return made

        with mock.patch.object(TritonBackend, "plan", plan):
            yield self


@dataclass
class Contender:
    """The kernels of a task, tuned with something fixed.

    Attributes:
        label: what is fixed, and how it was come by.
        plans: of each operation the one that serves it.
        calls: what is timed in each setting.
        values: each operation's result.
    """

    label: str
    plans: list[Planned]
    calls: dict[str, list[Call]]
    values: list[torch.Tensor] = field(repr=False, default_factory=list)

    def configs(self) -> dict[str, str]:
        """What was chosen, by kernel."""
        return {
            f"{place}: {plan.kernel.name}": str(plan.config)
            for place, plan in enumerate(self.plans)
        }


class Workshop:
    """Makes a task's contenders.

    Args:
        task, data: what they contend in.
        root: the folder of the caches.
        watch: what has noted all plans.
    """

    def __init__(self, task: Task, data: Data, root: Path, watch: Watch) -> None:
        self._task = task
        self._data = data
        self._root = root
        self._watch = watch
        self._made: dict[str, Contender | None] = {}

    @property
    def made(self) -> dict[str, Contender]:
        """The contenders, by label."""
        return {label: each for label, each in self._made.items() if each is not None}

    def baseline(self) -> Contender:
        """*With*: tuned, and nothing off."""
        found = self._once("with", Trial(""), "")
        assert found is not None
        return found

    def without(self, trial: Trial, way: str) -> Contender | None:
        """*Without*; None where the same configuration cannot be."""
        if way == "tuned":
            return self._once(trial.fixed or f"no {trial.step}", trial, trial.fixed)
        base_ = self.baseline()
        return self._once(f"{trial.name} off, same", trial, trial.fixed, base_.plans)

    def is_taken(self, trial: Trial) -> bool:
        """Whether *with* has what is tried."""
        base_ = self.baseline()
        pairs = zip(self._task.operations, base_.plans, strict=True)
        return any(_is_taken(trial, operation, plan) for operation, plan in pairs)

    def _once(
        self, label: str, trial: Trial, fixed: str, like: Sequence[Planned] | None = None
    ) -> Contender | None:
        if label not in self._made:
            folder = "".join(each if each.isalnum() else "_" for each in label)
            variables = {
                "NINETOOTHED_OPTIONS": fixed,
                "NINETOOTHED_CACHE_DIR": str(self._root / f"{self._task.name}-{folder}"),
            }
            with mock.patch.dict(os.environ, variables), trial.switched_off():
                self._made[label] = self._new(label, trial, like)
        return self._made[label]

    def _new(self, label: str, trial: Trial, like: Sequence[Planned] | None) -> Contender | None:
        in_peace()
        kernels = Kernels()
        if like is not None and not self._foretold(kernels, trial, like):
            return None
        before = len(self._watch.plans)
        values = self._data.values(kernels)
        calls = self._data.calls(kernels)
        for call in {id(call): call for listed in calls.values() for call in listed}.values():
            call()
        torch.cuda.synchronize()
        plans = self._watch.plans[before:]
        served = [
            next(plan for plan in plans if plan.is_of(kernels.of(operation)))
            for operation in self._task.operations
        ]
        if len(plans) != len(served):
            raise RuntimeError(f"{len(plans)} plans for {len(served)} kernels")
        return Contender(label, served, calls, values)

    def _foretold(self, kernels: Kernels, trial: Trial, like: Sequence[Planned]) -> bool:
        """Has a search's result be the same configuration but for the trial; whether it can be."""
        for operation, plan in zip(self._task.operations, like, strict=True):
            planner = Planner(_given(kernels.of(operation), plan.call), plan.call)
            config = trial.without(plan.config)
            if not planner._applies(config):
                return False
            results = planner._results()
            # Of whatever an earlier run has found, this comes first.
            results.times = {config: 1.0}
            results.finished, results.chosen = "full", config
            results.write()
        return True


def _given(kernel: Kernel, call: base.Call) -> Definition:
    """A kernel as a call gives it."""
    return as_given(definition_of(kernel, call), call)


def _is_taken(trial: Trial, operation: Operation, plan: Planned) -> bool:
    """Whether one kernel has what is tried."""
    if trial.option and trial.option != "eviction_policy":
        return trial.option in dict(plan.config.options)
    fresh, config = _given(Kernels().of(operation), plan.call), plan.config
    if trial.option:
        config = replace(config, options=(*config.options, (trial.option, trial.value)))
    with trial.switched_off():
        changed = specialize(fresh, plan.call, config).key
    return bool(changed != specialize(plan.kernel, plan.call, plan.config).key)


def same_values(contender: Contender, other: Contender) -> bool:
    """Whether two contenders compute the same, but for rounding."""
    pairs = zip(contender.values, other.values, strict=True)
    return all(relative_error(one, two) < 2**-8 for one, two in pairs)


def relative_error(one: torch.Tensor, other: torch.Tensor) -> float:
    difference = (one.float() - other.float()).norm() / other.float().norm()
    # What is not a number is no small one.
    return float(difference.nan_to_num(float("inf")))


def in_peace() -> None:
    """Waits for what still compiles after a search is over."""
    for thread in threading.enumerate():
        if thread.name.startswith("ninetoothed-compile"):
            thread.join(30.0)
