"""The two parts of a split loop (`peel`) as one again: what they do differently stands under a condition.

Two loops in succession that carry the same values leave the compiler to bring them from the registers of
the one to those of the other, and need more than either alone. A branch that a whole program takes or does
not costs next to nothing.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence

from ninetoothed.backends.triton.printers.layouts import called, parse, text
from ninetoothed.program.effects import names_assigned, names_read, reads_memory
from ninetoothed.program.nodes import at, walk

#: Products are begun and waited for in every round.
_STAYING = frozenset({"warpgroup_mma", "warpgroup_mma_wait"})

#: A statement, and whether both parts have it.
_Step = tuple[ast.stmt, bool]


def join(
    first: ast.For, second: ast.For, known: Collection[str], needed: Collection[str]
) -> list[ast.For]:
    """One loop that does what two in succession do; the two, where that cannot be written.

    Args:
        first: over a range, as ``second``, which begins where this ends. Neither changes its
            variable, which is the same, or the numbers of its range.
        known: names that have a value before them.
        needed: names that are read after them.
    """
    variable = text(first.target)
    needed = {*needed, *_expected(first.body), *_expected(second.body)}
    usual, last = (_without_unneeded(loop.body, needed) for loop in (first, second))
    steps = _sunk(_common(last, usual))
    body = [statement for statement, _ in steps]
    start, middle = _bounds(first)[0], _bounds(second)[0]
    written: list[ast.stmt] = []
    for tag, a, b, c, d in _differences(usual, body):
        if tag == "equal":
            written += body[c:d]
        elif c == d:
            written += _under(f"{variable} < {middle}", usual[a:b])
        else:
            written += _under(f"{variable} >= {middle}", body[c:d], usual[a:b])
    if not _is_right(written, {*known, variable}, needed):
        return [first, second]
    bounds = [_bounds(second)[1]] if start == "0" else [start, _bounds(second)[1]]
    loop = parse(f"for {variable} in range({', '.join(bounds)}): pass")
    assert isinstance(loop, ast.For)
    loop.body = written
    return [at(loop, first)]


def _bounds(loop: ast.For) -> list[str]:
    assert isinstance(loop.iter, ast.Call)
    return ["0", *map(text, loop.iter.args)][-2:]


def _under(
    condition: str, body: Sequence[ast.stmt], otherwise: Sequence[ast.stmt] = ()
) -> list[ast.stmt]:
    statement = parse(f"if {condition}: pass")
    assert isinstance(statement, ast.If)
    statement.body, statement.orelse = list(body), list(otherwise)
    return [at(statement, body[0])]


def _differences(
    one: Sequence[ast.stmt], other: Sequence[ast.stmt]
) -> Iterable[tuple[str, int, int, int, int]]:
    """By what runs of statements two parts differ, as `difflib` says it."""
    texts, others = (list(map(text, part)) for part in (one, other))
    return difflib.SequenceMatcher(None, texts, others, autojunk=False).get_opcodes()


def _common(part: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> Iterator[_Step]:
    """The statements of a part, each with whether the other has it in this place too."""
    for tag, _, _, begin, end in _differences(other, part):
        for statement in part[begin:end]:
            yield statement, tag == "equal"


def _sunk(steps: Iterable[_Step]) -> list[_Step]:
    """The same, what one part alone computes standing right before what needs it."""
    result = list(steps)
    for place in reversed(range(len(result))):
        statement, is_common = result[place]
        if is_common or not _may_move(statement):
            continue
        later = result[place + 1 :]
        count = next((n for n, (each, _) in enumerate(later) if _meet(statement, each)), len(later))
        result[place:] = [*later[:count], (statement, False), *later[count:]]
    return result


def _may_move(statement: ast.stmt) -> bool:
    return _is_value(statement) and not reads_memory(statement)


def _is_value(statement: ast.stmt) -> bool:
    """Whether this only computes something."""
    calls = {called(node) for node in walk(statement) if isinstance(node, ast.Call)}
    return isinstance(statement, ast.Assign) and calls.isdisjoint(_STAYING)


def _meet(statement: ast.stmt, later: ast.stmt) -> bool:
    """Whether two statements must stay in this order."""
    assigned, changed = names_assigned([statement]), names_assigned([later])
    return bool(assigned & (names_read(later) | changed) or changed & names_read(statement))


def _expected(body: Iterable[ast.stmt]) -> set[str]:
    """The names that a round reads before it gives them a value."""
    expected: set[str] = set()
    assigned: set[str] = set()
    for statement in body:
        expected |= names_read(statement) - assigned
        assigned |= names_assigned([statement])
    return expected


def _without_unneeded(body: Sequence[ast.stmt], needed: Collection[str]) -> list[ast.stmt]:
    """A round's statements without those whose value nobody reads."""
    kept: list[ast.stmt] = []
    read = set(needed)
    for statement in reversed(body):
        assigned = names_assigned([statement])
        if isinstance(statement, ast.Assign) and assigned.isdisjoint(read):
            continue
        read -= assigned
        read |= names_read(statement)
        kept.append(statement)
    return kept[::-1]


def _is_right(body: Sequence[ast.stmt], known: set[str], needed: Collection[str]) -> bool:
    """Whether a loop may have this body: what stands under a condition only computes something, and
    what that is named has another value in the other rounds, or is read nowhere else."""
    for statement in body:
        changed = names_assigned([statement])
        if isinstance(statement, ast.If):
            if not all(map(_is_value, (*statement.body, *statement.orelse))):
                return False
            others = (each for each in body if each is not statement)
            elsewhere = set(needed).union(*map(names_read, others))
            if (changed - known) & elsewhere:
                return False
        known = known | changed
    return True
