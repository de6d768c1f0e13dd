"""A call that differs in sizes alone from one that is planned runs by that one's family."""

from __future__ import annotations

import gc

import pytest

import ninetoothed
from ninetoothed import Tensor, plugins
from ninetoothed.backends.base import Plan
from ninetoothed.errors import ArgumentError

torch = pytest.importorskip("torch", reason="needs PyTorch")


class Planned:
    """Plans that note what they run with; only the first is planned, the others are a family."""

    def __init__(self) -> None:
        self.plans: list[object] = []
        self.asked: list[object] = []
        self.ran: list[tuple[object, ...]] = []

    def plan(self, kernel, call, values) -> Plan:
        self.plans.append(call)
        return Plan(self._run_of("first"), family=self._family)

    def _family(self, numbers):
        self.asked.append(numbers)
        (shape, _), *_ = numbers
        return None if shape == (13,) else self._run_of(shape)

    def _run_of(self, name):
        return lambda stream, *values: self.ran.append((name, *values))


@pytest.fixture
def planned(monkeypatch) -> Planned:
    found = Planned()
    monkeypatch.setattr(plugins.backend_for("cpu"), "plan", found.plan)
    return found


def make():
    def arrangement(x, factor, y):
        return x.tile((4,)), factor, y.tile((4,))

    def application(x, factor, y):
        y = x * factor  # noqa: F841

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))


def test_a_new_length_runs_with_its_own_values_and_is_known_from_then_on(planned) -> None:
    kernel = make()
    kernel(torch.ones(8), 2.0, torch.empty(8))
    x, y = torch.ones(12), torch.empty(12)
    for _ in range(3):
        kernel(x, 3.0, y)

    assert planned.ran[1:] == [((12,), x.data_ptr(), 3.0, y.data_ptr())] * 3
    assert planned.asked == [(((12,), (1,)), ((12,), (1,)))] and len(planned.plans) == 1


def test_what_is_kept_of_a_new_length_is_nothing_that_the_collector_follows(planned) -> None:
    kernel = make()
    x, y = torch.ones(8), torch.empty(8)
    kernel(x, 2.0, y)
    kernel(torch.ones(12), 2.0, torch.empty(12))
    for _ in range(2):  # what holds others after them
        gc.collect()
    keys = list(kernel.func.__globals__["plans_"])

    assert [gc.is_tracked(key) for key in keys] == [False, False]
    shapes = [part for part in keys[1] if isinstance(part, tuple) and part == (12,)]
    assert len(shapes) == 2 and shapes[0] is shapes[1]


def test_a_new_length_raises_the_version_of_what_is_stored_to_by_one(planned) -> None:
    kernel = make()
    kernel(torch.ones(8), 2.0, torch.empty(8))
    x, y = torch.ones(12), torch.empty(12)
    kernel(x, 2.0, y)

    assert planned.asked and (x._version, y._version) == (0, 1)


def test_what_a_family_does_not_run_is_planned(planned) -> None:
    kernel = make()
    for size in (8, 13):
        kernel(torch.ones(size), 2.0, torch.empty(size))

    assert [name for name, *_ in planned.ran] == ["first"] * 2 and len(planned.plans) == 2


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        (torch.ones(12), torch.empty(1).expand(12), "`y` is stored to, and several of its elem"),
        (torch.ones(12, requires_grad=True), torch.empty(12, requires_grad=True), "`y` is stored"),
    ],
)
def test_a_new_length_is_checked_as_any_call(planned, x, y, words: str) -> None:
    kernel = make()
    kernel(torch.ones(8), 2.0, torch.empty(8))
    with pytest.raises(ArgumentError, match=words):
        kernel(x, 2.0, y)
    assert len(planned.ran) == 1


def test_storage_that_is_too_small_is_refused_where_the_length_is_new(planned) -> None:
    kernel, x = make(), torch.ones(12)
    kernel(torch.ones(8), 2.0, torch.empty(8))
    x.untyped_storage().resize_(8)
    with pytest.raises(ArgumentError, match="needs 48 bytes of its storage, which has 8"):
        kernel(x, 2.0, torch.empty(12))
    assert len(planned.ran) == 1
