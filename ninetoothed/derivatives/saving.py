"""What backward needs again: computed again of the inputs, or loaded where the forward kernel stored it.

A value that an output has is loaded from that output where fewer bytes are moved then: softmax's own result
stands for the row that it is made of, and a sum over a loop for all that the loop reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ninetoothed.derivatives.absent import moves
from ninetoothed.derivatives.record import Recorder
from ninetoothed.derivatives.reverse import Reverse
from ninetoothed.derivatives.rules import template
from ninetoothed.derivatives.tape import SumType, Written
from ninetoothed.program.nodes import (
    ElementType,
    LanguageRef,
    Load,
    SourceLoad,
    TileRef,
    clone,
    walk,
)
from ninetoothed.program.types import UNKNOWN, is_one
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression
from ninetoothed.symbols.simplify import difference

#: How many elements a parameter's tile has.
Size = Callable[[str], Expression]


def backwards(
    recorder: Recorder,
    gradients: dict[str, str],
    outputs: Collection[str],
    size_of: Size,
    atomic: Collection[str] = (),
) -> list[ast.stmt]:
    """The statements of a backward kernel; what is stored to an output is loaded where that moves less.

    Args:
        recorder: the tape.
        gradients, atomic: as `Reverse` takes them.
        outputs: those that may be loaded.
    """
    names = set(recorder.names)
    tensors = [each for each in recorder.parameters.values() if each.kind == "tensor"]
    # Elements beyond a tensor's end, and those that were moved, make values that no output has.
    has_other = any(each.source.other is not None for each in tensors)
    is_partial = has_other or moves(recorder.program.body)

    def written(saved: Mapping[str, TileRef]) -> list[ast.stmt]:
        recorder.names.clear()
        recorder.names.update(names)
        return Reverse(recorder, gradients, saved, atomic).run()

    outputs = {*outputs} - recorder.summed
    kept: dict[str, TileRef] = {}
    loaded = _loaded(written(kept))
    stored = dict(_stored(recorder, outputs, is_partial))
    # One by one; then all, for a loop is run while anything that it sums is needed.
    for more in (*({value: tile} for value, tile in stored.items()), stored):
        fewer = _loaded(written({**kept, **more}))
        if _moves_less(fewer, loaded, size_of):
            kept, loaded = {**kept, **more}, fewer
    return written(kept)


def _stored(
    recorder: Recorder, outputs: Collection[str], is_partial: bool
) -> Iterator[tuple[str, TileRef]]:
    """The values on a tape that are stored as they are and whole, once a program, and where."""
    for item in recorder.items:
        if isinstance(item, Written) and item.tile.parameter in outputs:
            dims = item.operand.dims
            is_whole = not is_partial or (dims is not None and all(map(is_one, dims)))
            value = getattr(item.operand.expression, "id", "")
            is_float = recorder.types.known.get(value, UNKNOWN).kind == "float"
            if is_whole and value and (is_float or item.operand.name is not None):
                yield value, item.tile


def _loaded(
    body: Sequence[ast.stmt], depth: int = 0, found: dict[str, int] | None = None
) -> dict[str, int]:
    """Within how many loops statements load each tensor's tiles."""
    found = {} if found is None else found
    for statement in body:
        if isinstance(statement, ast.For):
            _loaded(statement.body, depth + 1, found)
            continue
        for node in walk(statement):
            if isinstance(node, Load | SourceLoad):
                parameter = node.tile.parameter if isinstance(node, Load) else node.parameter
                found[parameter] = max(found.get(parameter, 0), depth)
    return found


def decide_sums(body: Sequence[ast.stmt]) -> None:
    """Says what element type the sums of a program have."""
    found: ast.expr = LanguageRef(name="float32")
    for each in sorted(_loaded(body), reverse=True):
        type_ = ElementType(parameter=each)
        found = template("float64 if t is float64 else f", t=type_, f=found)
    for node in (node for statement in body for node in walk(statement)):
        if isinstance(node, ast.keyword) and isinstance(node.value, SumType):
            node.value = clone(found)


def _moves_less(mine: Mapping[str, int], theirs: Mapping[str, int], size_of: Size) -> bool:
    """Whether one way loads no more than another, as far as the sizes tell."""
    both, left = mine.keys() & theirs.keys(), theirs.keys() - mine.keys()
    if any(mine[each] > theirs[each] for each in both):
        return False
    if any(theirs[each] > 0 for each in left) or any(theirs[each] > mine[each] for each in both):
        # What every round of a loop loaded is more than what is loaded once.
        return True
    sizes = [size_of(each) for each in left], [size_of(each) for each in mine.keys() - both]
    less, more = (sum(each[1:], start=each[0]) if each else 0 for each in sizes)
    return bool(left) and interval(difference(less, more))[0] >= 0
