"""Which programs share an input's elements, by what its arrangement's operations say."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ninetoothed.derivatives.tape import Item, Written, all_items, dump, refused
from ninetoothed.program.nodes import Store, SymbolValue, TileRef, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors import metaops
from ninetoothed.tensors.access import positions, steps
from ninetoothed.tensors.arrange import Arrangement
from ninetoothed.tensors.meta_operation import Indices, MetaOperation
from ninetoothed.tensors.sharing import most, overlaps


class SharedError(Exception):
    """Why an input's elements are shared in a way that is not known to be summed."""


@dataclass(frozen=True)
class Sharing:
    """In what accesses of an input may differ and have the same elements.

    Attributes:
        programs: dimensions of the grid.
        selections: dimensions of the middle levels, counted together.
    """

    programs: tuple[int, ...] = ()
    selections: tuple[int, ...] = ()


def shared(arrangement: Arrangement, parameter: Any) -> Sharing:
    """In what accesses of an input have the same elements; in all else they have different ones.

    Raises:
        SharedError: elements are shared in another way.
    """
    tensor = parameter.tensor
    if tensor.source.jagged_dim is not None:
        raise SharedError("sequences of different lengths are packed in it")
    levels = tensor.levels
    access = arrangement.accesses[parameter.name]
    inner = [positions(f"level_{depth}", level.shape) for depth, level in enumerate(levels[1:])]
    found = [access.placed, *inner]
    dropped: list[Symbol] = []
    result: Indices = tuple(found[0])
    for operation, taken, operands in steps(tensor, found):
        if overlaps(operation, taken):
            raise SharedError("its windows overlap")
        if isinstance(operation, metaops.Expand):
            each = zip(taken[0], operation.expanded)
            dropped += [position for position, expanded in each if expanded]
        result = operands[0]
    present = {leaf for index in result for leaf in as_symbol(index).leaves()}
    absent: set[Symbol] = set()
    for position in dropped:
        only = {leaf: 0 for leaf in position.leaves() if leaf.leaf.extent == 1}
        leaves = set(as_symbol(simplify(position.substitute(only))).leaves())
        if leaves & present:
            raise SharedError("several programs have the same elements, and not by a dimension")
        absent |= {leaf for leaf in leaves if leaf.leaf.role == "index"}
    programs, selections = arrangement.programs, [p for level in inner[:-1] for p in level]
    if absent - {*programs, *selections}:
        raise SharedError("a tile has the same elements several times")
    return Sharing(
        tuple(dim for dim, p in enumerate(programs) if p in absent),
        tuple(dim for dim, p in enumerate(selections) if p in absent),
    )


def has_sharers(arrangement: Arrangement, parameter: Any) -> bool:
    """Whether several programs, or several tiles of one, may have the same element of an input."""
    try:
        found = shared(arrangement, parameter)
    except SharedError:
        return True
    return any(arrangement.grid[dim] != 1 for dim in found.programs)


def same_along(
    arrangement: Arrangement, parameters: Mapping[str, Any], dims: Sequence[int]
) -> frozenset[str]:
    """The inputs that have the same elements whatever the program's place in these dimensions is."""
    found = set()
    for name, parameter in parameters.items():
        with contextlib.suppress(SharedError):
            if {*dims} <= {*shared(arrangement, parameter).programs}:
                found.add(name)
    return frozenset(found)


def check_stores(items: Sequence[Item], arrangement: Arrangement, hidden: Collection[str]) -> None:
    """Refuses an output that has several stores to one element: its gradient would come with each.

    Args:
        items: a tape.
        hidden: outputs that have no gradient.

    Raises:
        ApplicationError: located at the store.
    """
    stores: dict[str, list[TileRef]] = {}
    for item in all_items(items):
        if isinstance(item, Written) and item.operand.name is not None:
            stores.setdefault(item.tile.parameter, []).append(item.tile)
    parameters = {p.name: p for p in arrangement.tensors if p.name not in hidden}
    for name in parameters.keys() & stores.keys():
        how = _stored_twice(arrangement, parameters[name], stores[name])
        if how is not None:
            raise refused(
                f"of `{name}`, {how}, and an element's gradient would be counted as often as it is stored. Where "
                "backward alone needs it, name it in `hidden` of `ninetoothed.op`, and it has none.",
                stores[name][0],
            )


def _stored_twice(arrangement: Arrangement, parameter: Any, tiles: Sequence[TileRef]) -> str | None:
    """How several stores to these tiles are to one element; None where none are known to be."""
    if parameter.source.jagged_dim is not None:
        # Each sequence has elements of its own, whichever they are.
        return None
    try:
        found = shared(arrangement, parameter)
    except SharedError as error:
        return str(error)
    if any(arrangement.grid[dim] != 1 for dim in found.programs):
        return "several programs have the same elements"
    for dim in found.selections:
        indices = [tile.indices[dim] for tile in tiles]
        if len({*map(dump, indices)}) > 1 or not isinstance(indices[0], ast.Constant):
            return "several tiles have the same elements"
    return None


def may_end(
    output: Any, arrangement: Arrangement, inputs: Sequence[Any], equal: Mapping[Symbol, Expression]
) -> bool:
    """Whether an output may end where there are inputs yet: by a size of its own that none of them has.

    Args:
        equal: what sizes are the same as.
    """
    sizes = {as_symbol(size).substitute(equal) for each in inputs for size in each.source.shape}
    said = [as_symbol(size).substitute(equal) for size in output.source.shape if size in equal]
    return bool(arrangement.accesses[output.name].conditions) and not sizes.issuperset(said)


def unstored(
    arrangement: Arrangement,
    parameter: Any,
    gradient: str,
    body: Sequence[ast.stmt],
    repeated: Collection[int],
    taken: Collection[tuple[int, int]],
    equal: Mapping[Symbol, Expression],
) -> tuple[str, ast.AST | None] | None:
    """Why statements may not store every element of an input's gradient, and what of them; None where they do.

    Args:
        gradient: its name in the statements.
        repeated: the selections that make no difference.
        taken: the dimensions of the middle levels that are dimensions of the grid.
        equal: what sizes are the same as.
    """
    levels = parameter.middle_levels
    places = [(depth, dim) for depth, level in enumerate(levels) for dim in range(len(level))]
    sizes = [
        1 if selection in repeated else levels[depth][dim]
        for selection, (depth, dim) in enumerate(places)
        if (depth, dim) not in taken
    ]
    if not _is_covered(parameter, arrangement):
        return "its tiles do not have every element", None
    if _are_selected(sizes, gradient, body, equal):
        return None
    for loop in (node for statement in body for node in walk(statement)):
        if isinstance(loop, ast.For) and any(_stores_to(gradient, each) for each in walk(loop)):
            variable = getattr(loop.target, "id", "")
            return (
                f"it may have more tiles than the loop over `{variable}` has rounds. Where it has as many, declare its "
                "size by the other tensor's, as in `Tensor(shape=(other.shape[0],))`",
                loop.iter,
            )
    return "its tiles are selected by numbers, and it may have more", None


def _stores_to(gradient: str, node: ast.AST) -> bool:
    return isinstance(node, Store) and node.tile.parameter == gradient


def _is_covered(parameter: Any, arrangement: Arrangement) -> bool:
    """Whether tiles have every element of an input."""
    tensor = parameter.tensor
    access = arrangement.accesses[parameter.name]
    inner = [positions(f"level_{d}", level.shape) for d, level in enumerate(tensor.levels[1:])]
    return all(_covers(op, taken) for op, taken, _ in steps(tensor, [access.placed, *inner]))


def _are_selected(
    sizes: Sequence[Any],
    gradient: str,
    body: Sequence[ast.stmt],
    equal: Mapping[Symbol, Expression],
) -> bool:
    """Whether statements store to every tile of a gradient, in middle levels of these sizes.

    Args:
        equal: what sizes are the same as.
    """
    fixed: set[tuple[Any, ...]] = set()
    pending: list[tuple[ast.stmt, dict[str, ast.expr]]] = [(each, {}) for each in body]
    while pending:
        statement, rounds = pending.pop()
        if isinstance(statement, ast.For):
            inner = {**rounds, getattr(statement.target, "id", ""): statement.iter}
            pending += [(each, inner) for each in statement.body]
        elif isinstance(statement, Store) and statement.tile.parameter == gradient:
            indices = [
                index.value
                if isinstance(index, ast.Constant)
                else _is_every(index, size, rounds, equal)
                for index, size in zip(statement.tile.indices, sizes)
            ]
            if all(index is True for index in indices):
                return True
            fixed.add(tuple(indices))
    if not all(isinstance(size, int) for size in sizes):
        return False
    return set(itertools.product(*(range(int(size)) for size in sizes))) <= fixed


def _is_every(
    index: ast.expr, size: Any, rounds: dict[str, ast.expr], equal: Mapping[Symbol, Expression]
) -> bool:
    """Whether an index is the number of a loop's round, of which there are ``size``."""
    iterable = rounds.get(getattr(index, "id", ""))
    if not isinstance(iterable, ast.Call) or len(iterable.args) != 1:
        return False
    (count,) = iterable.args
    if isinstance(count, SymbolValue):
        pair = (as_symbol(each).substitute(equal) for each in (count.symbol, size))
        return difference(*pair) == 0
    return isinstance(count, ast.Constant) and count.value == size


def _covers(operation: MetaOperation, taken: Sequence[Indices]) -> bool:
    if isinstance(operation, metaops.Index):
        # A part is taken of each dimension that is there.
        return all(
            entry[0] == "new" or (entry[0] == "slice" and entry[3] == size)
            for entry, size in zip(operation.entries, operation.input)
        )
    if isinstance(operation, metaops.Resize):
        return operation.shape == operation.input
    if not isinstance(operation, metaops.Tile):
        return True
    for dim, whole in enumerate(operation.whole):
        tile, stride, step = (
            values[dim] for values in (operation.tile_shape, operation.strides, operation.dilation)
        )
        is_beside = stride == tile and step == 1
        is_between = stride == 1 and most(taken[0][dim]) == (step - 1 if step != 1 else None)
        if not whole and (operation.floor_mode or not (is_beside or is_between)):
            return False
    return True
