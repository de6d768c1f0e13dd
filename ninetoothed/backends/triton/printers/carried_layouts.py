"""Variables that a loop carries through a transposition, written so that Triton's compiler comes to an end.

Its pass `TritonGPURemoveLayoutConversions` moves conversions of layouts backwards, out of a loop where what it
carries can be computed in another layout, until there is none left to move (triton-lang/triton#8776; seen in
3.6). A transposition exchanges two layouts: a conversion that is moved over it leaves the opposite one
behind, which is moved in turn, for ever. So what a loop begins with is there computed in one way only.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set

from ninetoothed.backends.triton.ir.trees import assign, name
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.program.effects import is_product, names_read, operation_of, targets_of


def keep_layouts(
    body: list[ast.stmt], emission: Emission, before: Set[str] = frozenset()
) -> set[str]:
    """Has variables enter each loop that transposes what they become by `library.in_own_layout`.

    Args:
        before: the names that have a value before the block.

    Returns:
        The names that have one after it.
    """
    known, written = set(before), list[ast.stmt]()
    for statement in body:
        if isinstance(statement, ast.If):
            known = keep_layouts(statement.body, emission, known) & keep_layouts(
                statement.orelse, emission, known
            )
        elif isinstance(statement, ast.For | ast.While):
            keep_layouts(statement.body, emission, known)
            if isinstance(statement, ast.For):
                for label in sorted(known & _transposed(statement.body)):
                    written.append(assign(label, emission.call("in_own_layout", name(label))))
        known |= {target.id for target in targets_of(statement)}
        written.append(statement)
    body[:] = written
    return known


def _transposed(body: Iterable[ast.stmt]) -> set[str]:
    """The names whose values are transposed on their way from one round of a loop to a later one."""
    become: dict[str, set[str]] = defaultdict(set)
    transposed: set[tuple[str, str]] = set()
    for statement in _assignments(body):
        for target in targets_of(statement):
            for node in _moved(statement.value):
                if isinstance(node, ast.Name):
                    become[node.id].add(target.id)
                elif isinstance(node, ast.Call) and _transposes(node):
                    transposed |= {(label, target.id) for label in names_read(node)}
    after = {label: _reached(label, become) for label in tuple(become)}
    return {
        label
        for label, reached in after.items()
        if any(one in reached and label in after.get(other, ()) for one, other in transposed)
    }


def _assignments(body: Iterable[ast.stmt]) -> Iterator[ast.Assign | ast.AugAssign]:
    """Those of a round itself: no conversion is moved over an inner loop."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _assignments([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Assign | ast.AugAssign):
            yield statement


def _moved(value: ast.AST) -> Iterator[ast.AST]:
    """A value and what it is made of, but for operands of products, whose layouts are their own."""
    if not is_product(value):
        yield value
        for part in ast.iter_child_nodes(value):
            yield from _moved(part)


def _transposes(call: ast.Call) -> bool:
    operation = operation_of(call)
    return operation is not None and operation.shape == "transposed"


def _reached(label: str, become: Mapping[str, Set[str]]) -> set[str]:
    """A name and those whose values are made of its value."""
    found, pending = {label}, [label]
    while pending:
        new = become.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found
