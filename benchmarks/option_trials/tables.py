"""What trials found, as tables.

    python -m benchmarks.option_trials.tables RESULTS.json …

prints one table of several results: of each task and option the last that tried it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common.report import table
from benchmarks.common.spread import Spread
from benchmarks.option_trials.trials import GAIN, LOSS, SETTINGS, TRIALS

# Tables.


@dataclass(frozen=True)
class Summary:
    """What the tasks say of one trial together.

    Attributes:
        tasks: how many.
        settings: the geometric mean over the tasks in each setting.
        mean: the geometric mean over the settings.
        worst: the least ratio, and where it was.
    """

    tasks: int
    settings: dict[str, float]
    mean: float
    worst: tuple[float, str]

    @classmethod
    def of(cls, found: Mapping[str, Mapping[str, float]]) -> Summary:
        """The summary of medians by task and setting, one at least."""
        settings = {}
        for setting in SETTINGS:
            if values := [each[setting] for each in found.values() if setting in each]:
                settings[setting] = statistics.geometric_mean(values)
        worst = min(
            (value, f"{task}, {setting}")
            for task, each in found.items()
            for setting, value in each.items()
        )
        return cls(len(found), settings, statistics.geometric_mean(settings.values()), worst)

    @property
    def verdict(self) -> str:
        """Whether it stays."""
        reasons = []
        if self.mean < GAIN:
            reasons.append(f"gains {self.mean - 1:+.1%}")
        if self.worst[0] < LOSS:
            reasons.append(f"{self.worst[1]} {self.worst[0] - 1:+.1%}")
        return f"goes: {'; '.join(reasons)}" if reasons else "stays"


def summaries(results: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Summary]:
    """Of each trial and each way, where there was one."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for result in results:
        for each in result["trials"]:
            medians = {setting: spread["median"] for setting, spread in each["ratios"].items()}
            by_task = found.setdefault((each["trial"], each["without"]), {})
            by_task[result["task"]] = medians
    return {key: Summary.of(by_task) for key, by_task in found.items()}


def verdicts(results: Sequence[Mapping[str, Any]], trials: Sequence[str]) -> str:
    """A line for each trial: its means and its verdict."""
    rows = [
        (
            f"{name}, {way}",
            str(each.tasks),
            *(
                f"{each.settings[setting]:.3f}" if setting in each.settings else "–"
                for setting in SETTINGS
            ),
            f"{each.mean:.3f}",
            f"{each.worst[0]:.3f} ({each.worst[1]})",
            each.verdict,
        )
        for (name, way), each in sorted(
            summaries(results).items(), key=lambda item: trials.index(item[0][0])
        )
    ]
    header = ("option, without", "tasks", *SETTINGS.values(), "mean", "worst", "verdict")
    return table(header, rows) if rows else "Nothing was tried."


def as_tables(results: Sequence[Mapping[str, Any]], trials: Sequence[str]) -> str:
    """The verdicts, and what they are made of."""
    tried = {each["trial"] for result in results for each in result["trials"]}
    never = [name for name in trials if name not in tried]
    return "\n".join(
        (
            verdicts(results, trials),
            *(("", f"Taken in none of these tasks: {', '.join(never)}.") if never else ()),
            "",
            _details(results, trials),
        )
    )


def _details(results: Sequence[Mapping[str, Any]], trials: Sequence[str]) -> str:
    """A line for each trial of each task."""
    rows = []
    for name in trials:
        for result in results:
            for each in (each for each in result["trials"] if each["trial"] == name):
                spreads = {key: Spread(**spread) for key, spread in each["ratios"].items()}
                medians = [spread.median for spread in spreads.values()]
                rows.append(
                    (
                        f"{name}, {each['without']}",
                        f"{result['task']}",
                        *(str(spreads.get(setting, "–")) for setting in SETTINGS),
                        f"{statistics.geometric_mean(medians):.3f}",
                    )
                )
    header = ("option, without", "task", *SETTINGS.values(), "mean")
    return table(header, rows) if rows else ""


def configs_in_words(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was chosen, in words."""
    for result in results:
        for label, configs in result["configs"].items():
            for kernel, config in configs.items():
                yield f"- {result['task']}, {label}, {kernel}: {config}"


def main(paths: Sequence[str]) -> None:
    """Prints the table of several results."""
    last: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in paths:
        for result in json.loads(Path(path).read_text())["option-trials"]["results"]:
            task = result["task"]
            left = {(task, name) for name in result["not taken"]}
            last = {key: kept for key, kept in last.items() if key[:2] not in left}
            for each in result["trials"]:
                key = (task, each["trial"], each["without"])
                last[key] = {"task": task, "trials": [each]}
    print(verdicts(list(last.values()), list(TRIALS)))


if __name__ == "__main__":
    main(sys.argv[1:])
