"""An option from outside the package: it is searched, emitted and priced; nobody else knows of it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.backends.triton.planning.choices import are_right, choices
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.backends.triton.planning.space import space_of
from ninetoothed.backends.triton.translation import environment_of, specialize
from ninetoothed.program.nodes import LanguageRef, Store, clone
from ninetoothed.program.program import Program
from ninetoothed.tuning.estimate import CostFeatures
from ninetoothed.tuning.space import Config
from tests.corpus.package import call_of, tensor
from tests.golden.kernels import TEN
from tests.tuning.machines import H200

pytestmark = pytest.mark.fixes_options("each of its tests says which options it is about")

KERNEL = TEN["add"].definition
CALL = call_of(
    dict.fromkeys(("input", "other", "output"), tensor(1 << 20)), {}, {"BLOCK_SIZE": 1024}
)


@dataclass(frozen=True)
class Waiting:
    """Threads of a program wait for one another before each store, so many times."""

    times: int

    def __call__(self, program: Program, lowered: Lowered) -> Program:
        barrier = ast.Expr(ast.Call(LanguageRef(name="debug_barrier"), [], []))
        body = [
            clone(new)
            for old in program.body
            for new in (*([barrier] * self.times if isinstance(old, Store) else ()), old)
        ]
        return replace(program, body=body)


class Barriers(Option):
    """Barriers before a store."""

    name = "barriers"

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        return (1, 2) if chosen["eviction_policy"] else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, rewrites=(*lowered.rewrites, Waiting(value)))

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: object
    ) -> CostFeatures:
        return replace(features, reductions=features.reductions + 1000 * value)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)
    monkeypatch.setattr(options, "OPTIONS", (*options.OPTIONS, Barriers()))


def config(**chosen: int) -> Config:
    return Config((), 4, 3, tuple(chosen.items()))


def test_it_is_searched() -> None:
    environment = environment_of(KERNEL, CALL, config())
    tried = [dict(each).get("barriers", 0) for each in choices(KERNEL, CALL, environment, H200)]
    ranked = space_of(KERNEL, CALL, H200).ranked

    assert set(tried) == {0, 1, 2}
    assert {dict(each.options).get("barriers", 0) for each in ranked} == {0, 1, 2}
    assert are_right(KERNEL, CALL, environment, H200, (("barriers", 2), ("dependent_launch", 1)))


def test_a_person_may_fix_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "barriers=2")
    (chosen,) = choices(KERNEL, CALL, environment_of(KERNEL, CALL, config()))

    assert chosen == (("barriers", 2),)


def test_it_is_emitted() -> None:
    texts = [specialize(KERNEL, CALL, config(barriers=n)).emitted.text for n in range(3)]

    assert [text.count("    tl.debug_barrier()\n") for text in texts] == [0, 1, 2]
    assert texts[0] == specialize(KERNEL, CALL, config()).emitted.text


def test_it_is_priced() -> None:
    estimator = Estimator(KERNEL, CALL, H200)
    plain, one, two = (estimator.seconds(config(barriers=n)) for n in range(3))

    assert plain < one < two
    assert "barriers=2" not in str(space_of(KERNEL, CALL, H200).ranked[0])
