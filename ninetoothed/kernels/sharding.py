"""Along which axes a kernel's tensors may be divided among devices, by what their accesses say.

Where a dimension of the grid alone says which tiles of tensors a program has, a part of these dimensions
is computed from the same part alone. Where the round of a loop that only sums says so, each part gives a
part of the sum. Every other dimension is needed whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.operator import OperatorDefinition
from ninetoothed.program.effects import (
    asks_for_program,
    called_name,
    has_effect,
    names_read,
    operation_of,
)
from ninetoothed.program.frozen import is_exactly
from ninetoothed.program.nodes import (
    ElementLoad,
    Offsets,
    SourceLoad,
    SourcePointer,
    SourceStore,
    Store,
    SymbolValue,
    TileRef,
    walk,
)
from ninetoothed.program.written import written
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.arrange import Parameter


@dataclass(frozen=True)
class Sharding:
    """An axis along which tensors are divided; those that are not named are needed whole.

    Attributes:
        dims: the dimension of each that is divided.
        sums: the outputs of which each device then has a summand.
    """

    dims: Mapping[str, int]
    sums: frozenset[str] = frozenset()


@analysis
def shardings(definition: Definition) -> tuple[Sharding, ...]:
    """The axes, one for each dimension of the grid, then for each loop that may be divided."""
    program, parameters = definition.program, definition.tensor_parameters
    nodes = list(program.nodes())
    if any(isinstance(node, SourcePointer) or _stores_anywhere(node) for node in nodes):
        return ()
    if program.externs or any(p.source.jagged_dim is not None for p in parameters):
        return ()
    found = []
    for position in definition.arrangement.programs:
        dims = _divided(definition, {p.name: position for p in parameters})
        if dims and written(program) <= dims.keys() and _is_free(nodes, definition, dims):
            found.append(Sharding(dims))
    for loop in (each for each in program.body if isinstance(each, ast.For)):
        positions = _selected_by(definition, loop)
        dims = _divided(definition, positions) if positions is not None else None
        others = [n for each in program.body if each is not loop for n in walk(each)]
        within = [n for each in loop.body for n in walk(each)]
        if dims and _is_sum(program.body, loop) and _is_free([*others, *within], definition, dims):
            found.append(Sharding(dims, frozenset(written(program))))
    return tuple(found)


def operator_shardings(operator: OperatorDefinition) -> tuple[Sharding, ...]:
    """Those that the shapes of an operator's outputs allow, which are made of those of its inputs."""
    found = (_with_outputs(operator, sharding) for sharding in shardings(operator.kernel))
    return tuple(sharding for sharding in found if sharding is not None)


def _with_outputs(operator: OperatorDefinition, sharding: Sharding) -> Sharding | None:
    dims = dict(sharding.dims)
    untouched = operator.kernel.untouched
    for output in operator.outputs:
        if isinstance(output.shape, str):
            dim, like = dims.get(output.name), output.shape
            if like in untouched and dim is not None:
                # It is there for its sizes alone.
                dims[like] = dim
            if dims.get(like) != dim:
                return None
    sources = {p.name: p.source for p in operator.kernel.tensor_parameters}
    made = {output.name for output in operator.outputs}
    sizes = {as_symbol(sources[name].shape[dim]) for name, dim in dims.items() if name not in made}
    for output in operator.outputs:
        for dim, size in enumerate(output.shape if isinstance(output.shape, tuple) else ()):
            is_divided = dims.get(output.name) == dim
            if is_divided and as_symbol(size) not in sizes:
                return None
            if not is_divided and sizes & {*as_symbol(size).leaves()}:
                return None
    return Sharding(dims, sharding.sums)


def _stores_anywhere(node: ast.AST) -> bool:
    return isinstance(node, SourceStore) or (isinstance(node, ast.expr) and has_effect(node))


def _divided(definition: Definition, positions: Mapping[str, Symbol]) -> dict[str, int] | None:
    """The dimensions that go along with a position, in tiles side by side of one size for all tensors.

    None where there are others that do.
    """
    is_element_wise = _is_element_wise(definition)
    dims: dict[str, int] = {}
    units: list[Any] = []
    for parameter in definition.tensor_parameters:
        position = positions.get(parameter.name)
        access = definition.arrangement.accesses[parameter.name]
        only = {
            leaf: 0
            for index in access.indices
            for leaf in as_symbol(index).leaves()
            if leaf.leaf.role == "index" and leaf.leaf.extent == 1 and leaf is not position
        }
        indices = [as_symbol(simplify(as_symbol(i).substitute(only))) for i in access.indices]
        along = [dim for dim, index in enumerate(indices) if position in {*index.leaves()}]
        if not along:
            continue
        if position is None or len(along) > 1:
            return None
        unit = _unit(indices[along[0]], position, parameter, access.coordinates, is_element_wise)
        if unit is None or any(difference(unit, other) != 0 for other in units):
            return None
        units.append(unit)
        dims[parameter.name] = along[0]
    return dims


def _unit(
    index: Symbol,
    position: Symbol,
    parameter: Parameter,
    coordinates: Sequence[Symbol],
    is_element_wise: bool,
) -> Any:
    """The size of the tiles that an index goes through; None where what they hold could depend on it."""
    unit = difference(index.substitute({position: 1}), index.substitute({position: 0}))
    rest = as_symbol(simplify(index.substitute({position: 0})))
    if difference(index, as_symbol(unit) * position + rest) != 0:
        return None
    if unit == 1:
        return unit if rest == as_symbol(0) else None
    # Whichever size the tuner takes, the results are the same.
    is_tuned = all(leaf.leaf.meta for leaf in as_symbol(unit).leaves()) and not isinstance(
        unit, int
    )
    is_tuned = is_tuned or is_element_wise
    sizes = [size for each, size in zip(coordinates, parameter.tile_shape) if rest == each]
    return unit if is_tuned and sizes and difference(sizes[0], unit) == 0 else None


def _is_element_wise(definition: Definition) -> bool:
    calls = (node for node in definition.program.nodes() if isinstance(node, ast.Call))
    kinds = {operation.kind if (operation := operation_of(call)) else None for call in calls}
    return kinds <= {"element-wise", "type"} and not definition.program.has_loop


def _is_free(nodes: Sequence[ast.AST], definition: Definition, dims: Mapping[str, int]) -> bool:
    """Whether nothing depends on where in these dimensions it is, or on how many elements they have."""
    sources = {p.name: p.source for p in definition.tensor_parameters}
    sizes = {as_symbol(sources[name].shape[dim]) for name, dim in dims.items()}
    # A part of a tensor has strides of its own.
    own = sizes | {as_symbol(stride) for name in dims for stride in sources[name].strides}
    for node in nodes:
        if isinstance(node, Offsets) and node.tile.parameter in dims:
            if node.dim in (None, dims[node.tile.parameter]):
                return False
        if asks_for_program(node):
            return False
        if isinstance(node, SymbolValue) and own & {*as_symbol(node.symbol).leaves()}:
            return False
        if is_exactly(node, SourceLoad) and node.parameter in dims:
            return False
    indices = (i for access in definition.arrangement.accesses.values() for i in access.indices)
    return not any(sizes & {*as_symbol(index).leaves()} for index in indices)


# Loops.


def _selected_by(definition: Definition, loop: ast.For) -> dict[str, Symbol] | None:
    """For each tensor the position that a loop's round selects; None where it is more than that."""
    if not isinstance(loop.target, ast.Name):
        return None
    variable = loop.target.id
    found: dict[str, Symbol] = {}
    count = 0
    for node in (node for statement in loop.body for node in walk(statement)):
        if not isinstance(node, TileRef | ElementLoad):
            continue
        places = [
            place
            for place, index in enumerate(node.indices)
            if isinstance(index, ast.Name) and index.id == variable
        ]
        if len(places) > 1:
            return None
        if places:
            position = definition.arrangement.accesses[node.parameter].selections[places[0]]
            if found.setdefault(node.parameter, position) is not position:
                return None
            count += 1
    reads = sum(
        isinstance(node, ast.Name) and node.id == variable
        for statement in loop.body
        for node in walk(statement)
    )
    return found if found and reads == count else None


def _is_sum(body: Sequence[ast.stmt], loop: ast.For) -> bool:
    """Whether all that is stored is what a loop adds to zeros."""
    started = {target for statement in body for target in _zeros(statement)}
    added: set[str] = set()
    temporary: set[str] = set()
    for statement in loop.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            if not isinstance(statement.target, ast.Name):
                return False
            added.add(statement.target.id)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            temporary.add(statement.targets[0].id)
        else:
            return False
    reads = {
        name
        for statement in loop.body
        for name in names_read(statement.value)  # type: ignore[attr-defined]
    }
    if not added or not added <= started or added & (reads | temporary) or temporary & started:
        return False
    for statement in body:
        if isinstance(statement, Store):
            if not (isinstance(statement.value, ast.Name) and statement.value.id in added):
                return False
        elif statement is not loop and not [*_zeros(statement)]:
            return False
    return True


def _zeros(statement: ast.stmt) -> Iterator[str]:
    """The variables that a statement sets to zeros."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        call = statement.value
        value = call.args[1] if len(call.args) > 1 else None
        is_zero = isinstance(value, ast.Constant) and value.value == 0
        if _is_call_of("zeros", call) or (_is_call_of("full", call) and is_zero):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))


def _is_call_of(name: str, call: ast.Call) -> bool:
    return name in (called_name(call), getattr(call.func, "name", None))
