"""Maxima and minima that no output depends on: what they are taken from is divided by them again.

Softmax takes the maximum of a row away before it exponentiates, so that nothing overflows; its sum is less by
the same factor, and the quotient is what it would be without. Here it is followed how each value on a tape
changes where such a maximum ``m`` does: by ``c * m``, or by the factor ``exp(c * m)``, and along which of its
dimensions ``m`` goes: rows that each have a maximum of their own are no longer one factor to a sum over
columns. Where every output stays as it is, the gradient of the maximum is 0, and need not be computed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ninetoothed.derivatives.arguments import argument, constant_of, permutation
from ninetoothed.derivatives.tape import Item, Loop, Operand, Plain, Read, Step, Summand, Written
from ninetoothed.language.operations import Operation
from ninetoothed.program.effects import operation_of
from ninetoothed.program.types import is_one
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Law:
    """How a value changes with a maximum ``m``.

    Attributes:
        kind: ``"shift"``, by ``by * m``; ``"scale"``, by the factor ``exp(by * m)``; ``"other"``.
        along: for each dimension of the value that of ``m`` which goes along it; None where the elements
            along it change alike.
    """

    kind: str
    by: float = 0.0
    along: tuple[int | None, ...] = ()

    def in_rank(self, rank: int) -> Law:
        """The same of a value that is broadcast to so many dimensions."""
        return replace(self, along=(None,) * (rank - len(self.along)) + self.along)


_OTHER = Law("other")
_LN_2 = math.log(2)

#: Operations that leave a law as it is, whatever kind it has.
_KEEPING = frozenset(
    "cast to item broadcast_to expand_dims flip trans permute reshape view ravel max min".split()
)

#: Operations along a dimension, along which all elements are to change alike.
_ALONG = {"flip": "dim", "cumsum": "axis", "max": "axis", "min": "axis", "sum": "axis"}


def unneeded_extrema(items: Sequence[Item]) -> frozenset[str]:
    """The maxima and minima on a tape whose gradients are 0."""
    return frozenset(
        item.target
        for place, item in enumerate(items)
        if isinstance(item, Step) and _name(item) in ("max", "min")
        if _cancels(item, items[place + 1 :])
    )


def _cancels(extremum: Step, items: Sequence[Item]) -> bool:
    along = tuple(None if is_one(size) else axis for axis, size in enumerate(extremum.dims))
    laws = {extremum.target: Law("shift", 1.0, along)}
    for item in items:
        if isinstance(item, Step):
            law = _law(item, laws)
            if law is not None:
                laws[item.target] = law
        elif isinstance(item, Loop):
            if not laws.keys().isdisjoint(_read([item])):
                return False
        elif isinstance(item, Written) and item.operand.name in laws:
            return False
    return True


def _read(items: Iterable[Item]) -> set[str | None]:
    """The values that items are made of."""
    found: set[str | None] = set()
    for item in items:
        if isinstance(item, Loop):
            found |= _read(item.body)
        elif isinstance(item, Step):
            found |= {operand.name for operand in item.operands}
        elif isinstance(item, Summand | Written):
            found.add(item.operand.name)
        else:
            # These depend on no other value.
            assert isinstance(item, Plain | Read)
    return found


def _name(step: Step) -> str:
    operation = operation_of(step.expression) if isinstance(step.expression, ast.Call) else None
    return "" if operation is None else operation.name


def _law(step: Step, laws: Mapping[str, Law]) -> Law | None:
    """How a step's result changes; None where it does not."""
    found = [laws.get(operand.name or "") for operand in step.operands]
    if found and found[0] is not None and found[0].kind != "other":
        found[0] = _moved(step, found[0])
    found = [None if law is None else law.in_rank(len(step.dims)) for law in found]
    known = [law for law in found if law is not None]
    if not known:
        return None
    kinds = {law.kind for law in known}
    if len(kinds) > 1 or kinds == {"other"} or len({law.along for law in known}) > 1:
        return _OTHER
    law = _of_kind(step, found, known, kinds == {"shift"})
    return None if law.kind != "other" and math.isclose(law.by, 0.0, abs_tol=1e-12) else law


def _moved(step: Step, law: Law) -> Law:
    """The law of what a step changes the dimensions of, by those that it has then."""
    node, name, along = step.expression, _name(step), law.along
    operation = operation_of(node) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Subscript):
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        axes = tuple(a for a, entry in enumerate(entries) if isinstance(entry, ast.Constant))
        return replace(law, along=_with_axes(along, axes))
    if name == "expand_dims":
        axis = constant_of(argument(node, 1, "axis"))  # type: ignore[arg-type]
        axes = axis if isinstance(axis, tuple) else (axis,)
        return replace(law, along=_with_axes(along, tuple(a % len(step.dims) for a in axes)))
    if name in ("trans", "permute"):
        order = permutation(node, len(along))  # type: ignore[arg-type]
        return replace(law, along=tuple(along[dim] for dim in order))
    if name in ("reshape", "view", "ravel", "item"):
        is_alike = all(dim is None for dim in along)
        return replace(law, along=(None,) * len(step.dims)) if is_alike else _OTHER
    if name in _ALONG and operation is not None:
        return _reduced(step, law, operation)
    return law


def _reduced(step: Step, law: Law, operation: Operation) -> Law:
    call, along = step.expression, law.along
    assert isinstance(call, ast.Call)
    name = operation.name
    default = 0 if name == "cumsum" else None
    axis = constant_of(argument(call, operation.places.get("axis", 1), _ALONG[name]), default)
    if name == "flip" and axis is None:
        axis = -1
    taken = range(len(along)) if axis is None else [axis % len(along)] if along else []
    if any(along[dim] is not None for dim in taken):
        return _OTHER
    if len(step.dims) == len(along):
        return law
    return replace(law, along=tuple(a for dim, a in enumerate(along) if dim not in taken))


def _with_axes(along: tuple[int | None, ...], axes: Sequence[int]) -> tuple[int | None, ...]:
    left = iter(along)
    rank = len(along) + len(axes)
    return tuple(None if axis in axes else next(left) for axis in range(rank))


def _of_kind(step: Step, found: Sequence[Law | None], known: Sequence[Law], is_shift: bool) -> Law:
    """The same where all that changes is shifted, or all is scaled."""
    node, name = step.expression, _name(step)
    (first, *others) = known
    is_same = len(known) == len(found) and all(law == first for law in others)
    if isinstance(node, ast.BinOp):
        return _of_operator(node.op, step.operands, found, is_shift)
    if isinstance(node, ast.UnaryOp):
        return replace(first, by=-first.by) if is_shift else first
    if isinstance(node, ast.Name | ast.Subscript) or name in _KEEPING:
        return first
    if name in ("exp", "exp2") and is_shift:
        return replace(first, kind="scale", by=first.by * (_LN_2 if name == "exp2" else 1.0))
    if name in ("log", "log2") and not is_shift:
        return replace(first, kind="shift", by=first.by / (_LN_2 if name == "log2" else 1.0))
    if name in ("sum", "cumsum") and not is_shift:
        return first
    if isinstance(node, ast.IfExp) and is_same:
        return first
    if name == "where":
        chosen = list(zip(found, step.operands))[1:]
        # A factor leaves 0 as it is.
        if all(law == first or (not is_shift and _number(o) == 0.0) for law, o in chosen):
            return first
    return _OTHER


def _of_operator(
    op: ast.operator, operands: Sequence[Operand], found: Sequence[Law | None], is_shift: bool
) -> Law:
    left, right = ((0.0 if law is None else law.by) for law in found)
    first = found[0] or found[1]
    assert first is not None
    sign = -1.0 if isinstance(op, ast.Sub | ast.Div) else 1.0
    if isinstance(op, ast.Add | ast.Sub):
        if is_shift:
            return replace(first, by=left + sign * right)
        return first if found[0] == found[1] else _OTHER
    if not is_shift:
        return replace(first, by=left + sign * right)
    numbers = [_number(operand) for operand in operands]
    if isinstance(op, ast.Mult) and any(number is not None for number in numbers):
        by = math.prod(b if n is None else n for b, n in zip((left, right), numbers))
        return replace(first, by=by)
    if isinstance(op, ast.Div) and numbers[1]:
        return replace(first, by=left / numbers[1])
    return _OTHER


def _number(operand: Operand) -> float | None:
    """The number that an operand is."""
    node = operand.expression
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return float(node.value) if is_number else None  # type: ignore[attr-defined]
