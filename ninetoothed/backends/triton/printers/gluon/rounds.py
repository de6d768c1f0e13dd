"""A split loop's rounds, the first and the others, as one loop or as two.

In one loop what the two do differently stands under a condition. Two loops in succession that carry
the same values leave the compiler to bring them from the registers of the one to those of the other,
and need more than either alone; a branch that a whole program takes or does not costs next to nothing.

Measured on an NVIDIA H200, 2026-11-22, float16, causal attention, two loops over one, the mean of
cold, in a row and in a chain; *tuned* anew for two loops, or in the *same* configuration
(`benchmarks/results/options/2026-11-22-nvidia-h200-option-trials-trial.md`, there called ``joined``):

    heads of 64, 1024 long       tuned 1.057   same 1.075
    heads of 64, 4096 long       tuned 1.069   same 1.064
    heads of 128                 tuned 0.986   same 0.990

So one loop gains where the sums that it carries are narrow: `tma_pipeline.is_one_loop` decides.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from ninetoothed.backends.triton.printers.gluon.trees import called
from ninetoothed.program.effects import names_assigned, names_read, reads_memory
from ninetoothed.program.nodes import at, clone, walk
from ninetoothed.records import dataclass

#: Products are begun and waited for in every round.
_STAYING = frozenset({"warpgroup_mma", "warpgroup_mma_wait"})


@dataclass(frozen=True)
class Step:
    """What one statement is in the first rounds and in the others.

    Attributes:
        first: in the first rounds; None for nothing.
        other: in the others.
    """

    first: ast.stmt | None
    other: ast.stmt

    @property
    def is_common(self) -> bool:
        """Whether it is the same in all rounds."""
        return self.first is self.other


def common(statements: Iterable[ast.stmt]) -> list[Step]:
    """Statements that are the same in all rounds."""
    return [Step(statement, statement) for statement in statements]


def in_two(steps: Sequence[Step], needed: Collection[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The first rounds and the others.

    Args:
        needed: names that are read after the loop.
    """
    kept = _without_unneeded(steps, needed)
    return [step.first for step in kept if step.first is not None], [step.other for step in kept]


def in_one(
    steps: Sequence[Step], is_other: ast.expr, known: Collection[str], needed: Collection[str]
) -> list[ast.stmt] | None:
    """The rounds of one loop; None where that cannot be written.

    Args:
        is_other: a condition that holds in the other rounds.
        known: names that have a value before the loop, or are the loop's variable.
        needed: names that are read after it.
    """
    body: list[ast.stmt] = []
    inside: set[str] = set()
    for step in _sunk(_without_unneeded(steps, needed)):
        if step.is_common:
            body.append(step.other)
            continue
        if step.first is None:
            inside |= names_assigned([step.other])
        if not body or not isinstance(body[-1], ast.If):
            body.append(at(ast.If(clone(is_other), [], []), step.other))
        branch = body[-1]
        assert isinstance(branch, ast.If)
        branch.body.append(step.other)
        branch.orelse += [] if step.first is None else [step.first]
    return body if _have_values(inside, body, known, needed) else None


def _have_values(
    inside: set[str], body: Sequence[ast.stmt], known: Collection[str], needed: Collection[str]
) -> bool:
    """Whether what the other rounds alone assign has a value before, or is read nowhere else."""
    known = set(known)
    for statement in body:
        if isinstance(statement, ast.If):
            others = (each for each in body if each is not statement)
            elsewhere = set(needed).union(*map(names_read, others))
            new = names_assigned(statement.body) & inside - known - names_assigned(statement.orelse)
            if new & elsewhere:
                return False
        known |= names_assigned([statement])
    return True


def _sunk(steps: Iterable[Step]) -> list[Step]:
    """The same, what the other rounds alone compute standing right before what needs it."""
    result = list(steps)
    for place in reversed(range(len(result))):
        step = result[place]
        if step.first is not None or not _may_move(step.other):
            continue
        later = result[place + 1 :]
        count = next((n for n, each in enumerate(later) if _meet(step, each)), len(later))
        result[place:] = [*later[:count], step, *later[count:]]
    return result


def _may_move(statement: ast.stmt) -> bool:
    return _is_value(statement) and not reads_memory(statement)


def _is_value(statement: ast.stmt) -> bool:
    """Whether this only computes something."""
    calls = {called(node) for node in walk(statement) if isinstance(node, ast.Call)}
    return isinstance(statement, ast.Assign) and calls.isdisjoint(_STAYING)


def _meet(step: Step, later: Step) -> bool:
    """Whether two steps must stay in this order."""
    assigned, changed = names_assigned([step.other]), names_assigned([later.other])
    read = names_read(later.other) | (names_read(later.first) if later.first else set())
    return bool(assigned & (read | changed) or changed & names_read(step.other))


def _without_unneeded(steps: Sequence[Step], needed: Collection[str]) -> list[Step]:
    """The steps without those whose value nobody reads, in the first rounds or in any."""
    firsts = [step.first for step in steps if step.first is not None]
    others = [step.other for step in steps]
    carried = {*needed, *_expected(firsts), *_expected(others)}
    of_firsts, of_others = set(carried), set(carried)
    kept = []
    for step in reversed(steps):
        first = step.first if _is_needed(step.first, of_firsts) else None
        # The others read all that the first ones read.
        if _is_needed(step.other, of_others):
            kept.append(Step(first, step.other))
    return kept[::-1]


def _is_needed(statement: ast.stmt | None, read: set[str]) -> bool:
    """Whether a statement is needed after which ``read`` is read; then what it reads is too."""
    if statement is None:
        return False
    assigned = names_assigned([statement])
    if _is_value(statement) and assigned.isdisjoint(read):
        return False
    read -= assigned
    read |= names_read(statement)
    return True


def _expected(body: Iterable[ast.stmt]) -> set[str]:
    """The names that a round reads before it gives them a value."""
    expected: set[str] = set()
    assigned: set[str] = set()
    for statement in body:
        expected |= names_read(statement) - assigned
        assigned |= names_assigned([statement])
    return expected
