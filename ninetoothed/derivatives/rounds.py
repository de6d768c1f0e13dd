"""Which tiles the rounds of loops have: a tile of its own in each round, or one again and again.

What is stored in a round and stored over in the next is not what is left, so its gradient is none; and a
tile that several rounds read has as many gradients, of which a store would leave the last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from ninetoothed.program.effects import names_read
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Access:
    """A tile that is read or stored to, within loops.

    Attributes:
        indices: that select it.
        variables: of the loops around, outermost first.
    """

    indices: Sequence[ast.expr]
    variables: tuple[str, ...]

    def is_apart(self, other: Access) -> bool:
        """Whether it is another tile, whatever the rounds are."""
        pairs = zip(map(_number, self.indices), map(_number, other.indices))
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)

    def is_after(self, other: Access) -> bool:
        """Whether it has a tile after all that the other does with it, in the order of the program."""
        shared = {*self.variables} & {*other.variables}
        pairs = [(_name(a), _name(b)) for a, b in zip(self.indices, other.indices)]
        return all(a == b for a, b in pairs if a in shared or b in shared) and shared <= {
            a for a, _ in pairs
        }


def repeating(
    access: Access, depths: Mapping[str, int], known: Mapping[str, ast.expr]
) -> str | None:
    """The variable of a loop of which several rounds may have the same tile; None where there is none.

    Args:
        depths: within how many loops each variable is made.
        known: what variables stand for.
    """
    for variable in access.variables:
        if not any(_goes_along(index, variable, depths, known) for index in access.indices):
            return variable
    return None


def _goes_along(
    index: ast.expr, variable: str, depths: Mapping[str, int], known: Mapping[str, ast.expr]
) -> bool:
    """Whether an index is another one in each round: the round's number, and what all rounds have."""
    if isinstance(index, ast.Name):
        found = known.get(index.id)
        is_own = index.id == variable
        return is_own or (found is not None and _goes_along(found, variable, depths, known))
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        return _goes_along(index.operand, variable, depths, known)
    if not isinstance(index, ast.BinOp):
        return False
    pairs = ((index.left, index.right), (index.right, index.left))
    if isinstance(index.op, ast.Add | ast.Sub):
        return any(
            _goes_along(one, variable, depths, known) and not _made_in_loops(other, depths)
            for one, other in pairs
        )
    if isinstance(index.op, ast.Mult):
        return any(
            _goes_along(one, variable, depths, known) and _number(other) for one, other in pairs
        )
    return False


def _made_in_loops(node: ast.expr, depths: Mapping[str, int]) -> bool:
    return any(depths.get(name, 0) for name in names_read(node))


def _number(index: ast.expr) -> int | None:
    """The number from 0 on that an index is."""
    value = getattr(index, "value", None)
    is_number = isinstance(index, ast.Constant) and isinstance(value, int) and value >= 0
    return int(value) if is_number else None  # type: ignore[arg-type]


def _name(index: ast.expr) -> str:
    return getattr(index, "id", "")


def are_apart(form: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> bool:
    """Whether a tile selected by numbers is none of others."""
    return all(
        any(a.isdigit() and b.isdigit() and a != b for a, b in zip(form, other)) for other in others
    )
