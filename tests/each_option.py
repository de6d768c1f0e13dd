"""A plugin of pytest: every test once for each of some values of the Triton backend's options.

``python -m pytest -p tests.each_option --each-option split_k=1,split_k=3 tests/gpu``. A value is fixed
as ``$NINETOOTHED_OPTIONS`` would have it, in the tests' processes and in those that they start. Where
an option does not apply to a kernel it stays off, so a line of the table says how often it did.

Tests that fix options themselves are marked ``fixes_options`` and skipped: they are the same in every
run. All values are tested in the same processes, which have imported, parsed and compiled what they
have in common once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

#: The most failures of one value that are told one by one.
_MOST_TOLD = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--each-option``."""
    parser.addoption(
        "--each-option",
        required=True,
        metavar="NAME=VALUE,NAME=VALUE",
        help="run every test with each of these",
    )


def values_of(config: pytest.Config) -> list[str]:
    """What is fixed, one after the other."""
    return [value.strip() for value in config.getoption("--each-option").split(",")]


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each value, which is the last part of its name."""
    if metafunc.definition.get_closest_marker("fixes_options"):
        return
    values = values_of(metafunc.config)
    metafunc.parametrize("fixed_option", values, ids=str, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One value after the other: to change it, kernels are planned anew."""
    places = {value: place for place, value in enumerate(["", *values_of(config)])}
    items.sort(key=lambda item: places[_value_in(item.nodeid, places)])


def _value_in(nodeid: str, values: Iterable[str]) -> str:
    """The value that a test is run with; empty where it fixes its own."""
    found = (value for value in values if value and nodeid.endswith((f"[{value}]", f"-{value}]")))
    return next(found, "")


@pytest.fixture(scope="session", autouse=True)
def fixed_option(request: pytest.FixtureRequest) -> Iterator[str]:
    """Fixes the option; what was planned with another one is forgotten."""
    from ninetoothed import plugins

    if not hasattr(request, "param"):
        # A test that is skipped.
        yield ""
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NINETOOTHED_OPTIONS", request.param)
        for kernel in list(plugins.MANAGER._told):
            kernel.forget_launches()
        yield request.param


@pytest.fixture(autouse=True)
def counted_option(request: pytest.FixtureRequest, fixed_option: str) -> Iterator[None]:
    """Tells how many choices of options were made, and in how many of them the value was taken."""
    from ninetoothed.backends.triton.planning import choices as registry

    choices, found = registry.choices, Counter[bool]()

    def counting(*arguments: Any, **keywords: Any) -> Any:
        chosen = choices(*arguments, **keywords)
        first = {**registry.defaults(), **dict(chosen[0])}
        found[all(first[name] == value for name, value in registry.fixed().items())] += 1
        return chosen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "choices", counting)
        yield
    request.node.user_properties.append(("chosen", [found[True], found.total()]))


@dataclass
class _Row:
    """What became of the tests of one value."""

    tests: int = 0
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    taken: int = 0
    choices: int = 0

    def add(self, report: pytest.TestReport) -> None:
        """Count one phase of a test."""
        self.seconds += report.duration
        if report.failed:
            self.failed.setdefault(report.nodeid, _reason(report))
        elif report.skipped:
            self.outcomes["skipped"] += 1
            self.reasons[_reason(report)] += 1
        elif report.when == "call":
            self.outcomes["passed"] += 1
        if report.when == "teardown":
            self.done += 1
            taken, choices = dict(report.user_properties).get("chosen", (0, 0))
            self.taken += taken
            self.choices += choices

    def lines(self, value: str) -> Iterator[str]:
        """One line, and one more for each of the first failures."""
        told = [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        told += [f"{len(self.failed)} FAILED"] if self.failed else []
        if self.done < self.tests:
            told.append(f"{self.tests - self.done} not run")
        used = f", taken in {self.taken} of {self.choices} choices" if self.choices else ""
        yield f"{value:27} {', '.join(told)}{used} ({self.seconds:.0f} s of tests)"
        for nodeid, reason in list(self.failed.items())[:_MOST_TOLD]:
            yield f"    {nodeid}: {reason}"


def _reason(report: pytest.TestReport) -> str:
    """The first line of what a failed or skipped test says."""
    told: Any = report.longrepr
    if report.skipped:
        _, _, told = told
    elif hasattr(told, "reprcrash"):
        told = told.reprcrash.message
    lines = str(told).removeprefix("Skipped: ").strip().splitlines() or [""]
    return lines[0][:160]


class _Table:
    """Prints a line for each value as soon as its tests are done; with pytest-xdist, the controller's."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows = {value: _Row() for value in ["", *values_of(config)]}
        self._is_told: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        # The same in every worker.
        self._expect(ids)

    def _expect(self, ids: Sequence[str]) -> None:
        for value, row in self._rows.items():
            row.tests = sum(_value_in(nodeid, self._rows) == value for nodeid in ids)

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str]:
        # No letter for each test: there are thousands.
        is_told = report.when == "call" or not report.passed
        return report.outcome if is_told else "", "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        value = _value_in(report.nodeid, self._rows)
        row = self._rows[value]
        row.add(report)
        if row.done == row.tests and report.when == "teardown":
            self._tell(value)

    def _tell(self, value: str) -> None:
        self._is_told.add(value)
        for line in self._rows[value].lines(value or "(their own)"):
            print(line, flush=True)

    def pytest_terminal_summary(self) -> None:
        for value, row in self._rows.items():
            if value not in self._is_told and row.tests:
                self._tell(value)
        reasons = sum((row.reasons for row in self._rows.values()), Counter[str]())
        for reason, count in reasons.most_common():
            print(f"{count} skipped: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """The table is printed by the process that hears of all tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Table(config))
