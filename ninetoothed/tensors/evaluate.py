"""Evaluation of arranged tensors in NumPy, and substitution of their symbols. No device is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError, ArrangementError, located_where_too_deep
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_expression, as_symbol, is_expression
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import positions, source_indices
from ninetoothed.tensors.level import Level, LevelT, rebuilt, verify_operations
from ninetoothed.tensors.meta_operation import Rewrite, shape_text

Substitutions = Mapping[Any, Any]


@located_where_too_deep("An integer expression", ArrangementError)
def eval(tensor: Level, subs: Substitutions | None = None) -> Any:
    """The source index of each element of an arranged tensor.

    Args:
        subs: maps a `Tensor` to ``{"shape": …}`` or to a `Tensor` with known sizes, and a `Symbol`
            to an int.

    Returns:
        An int64 array shaped (outermost…, next level…, …). An element is its index in the
        flattened, contiguous source, or -1 where it is out of bounds. Of a jagged tensor all
        sequences are taken to be as long as the longest.

    Raises:
        ArrangementError: a size is not known, or the sizes do not fit the arrangement.
    """
    import numpy

    concrete = globals()["subs"](tensor, {} if subs is None else subs)
    verify_operations(concrete, concrete.label, _known)
    shapes = [level.shape for level in concrete.levels]
    unknown = {str(s) for shape in shapes for size in shape for s in as_symbol(size).leaves()}
    unknown |= {str(s) for size in concrete.source.shape for s in as_symbol(size).leaves()}
    if unknown:
        raise ArrangementError(
            f"{', '.join(sorted(unknown))} must be known to evaluate a tensor; give the sources' "
            'shapes and the symbols, as in t.eval({x: {"shape": (4, 8)}, BLOCK_SIZE: 2})'
        )
    flat_shape = tuple(int(size) for shape in shapes for size in shape)
    grids = iter(numpy.indices(flat_shape, dtype=numpy.int64, sparse=True))
    names = [positions(f"level_{depth}", shape) for depth, shape in enumerate(shapes)]
    values: dict[Symbol, Any] = {name: next(grids) for level in names for name in level}
    indices, conditions = source_indices(concrete, names)

    def longest(node: Symbol) -> Expression | None:
        is_length = node.op == "sequence_length"
        return concrete.source.shape[concrete.jagged_dim] if is_length else None

    result = numpy.zeros(flat_shape, dtype=numpy.int64)
    for position, size in zip(indices, concrete.source.shape):
        result = result * size + position.evaluate(values)
    inside = numpy.ones(flat_shape, dtype=bool)
    for condition in conditions:
        inside &= condition.map(longest).evaluate(values)
    return numpy.where(inside, result, -1)


@located_where_too_deep("An integer expression", ArrangementError)
def subs(tensor: LevelT, subs: Substitutions) -> LevelT:
    """The same arrangement with symbols replaced.

    Args:
        subs: maps a `Tensor` to ``{"shape": …}`` or to a `Tensor`, and a `Symbol` to an int.

    Raises:
        ArrangementError: what is given is no such mapping, or has another number of dimensions.
    """
    if not isinstance(tensor, Level) or not isinstance(subs, Mapping):
        raise ArgumentError(
            f"a Tensor and a dictionary of what replaces its symbols are needed, not {tensor!r} and "
            f"{subs!r}"
        )
    values = values_of(subs)

    def replaced(expression: Expression) -> Expression:
        return simplify(as_symbol(expression).substitute(values))

    for key, value in subs.items():
        if isinstance(key, Level):
            _check_shape(key, value, replaced)
    old = tensor.source
    return rebuilt(tensor, replaced, old.resized(tuple(map(replaced, old.shape))))


def values_of(subs: Substitutions) -> dict[Symbol, Expression]:
    """What `subs` gives each symbol, those of the tensors' sizes among them; it raises the same."""
    values: dict[Symbol, Expression] = {}
    for key, value in subs.items():
        values |= _shape_values(key, value) if isinstance(key, Level) else _value(key, value)
    return values


def _value(symbol: Any, value: Any) -> dict[Symbol, Expression]:
    """The value of a symbol, checked."""
    if not isinstance(symbol, Symbol) or symbol.op != "leaf":
        raise ArrangementError(f"subs maps Tensors and Symbols to values; {symbol!r} is neither")
    if not is_expression(value):
        raise ArrangementError(f"subs got {value!r} for `{symbol}`; it needs an int or a Symbol")
    _check_bounds(symbol, as_expression(value))
    return {symbol: as_expression(value)}


def _shape_values(tensor: Level, value: Any) -> dict[Symbol, Expression]:
    """The values of those sizes of a tensor that are symbols."""
    result: dict[Symbol, Expression] = {}
    for size, given in zip(tensor.source.shape, _given_shape(tensor, value)):
        if isinstance(size, Symbol) and size.op == "leaf":
            _check_bounds(size, given)
            result[size] = given
    return result


def _check_shape(tensor: Level, value: Any, replaced: Rewrite) -> None:
    """A size that was declared as a number or an expression is not given another value."""
    shape = _given_shape(tensor, value)
    for dim, (size, given) in enumerate(zip(tensor.source.shape, shape)):
        if isinstance(given, int) and replaced(size) != given:
            raise ArrangementError(
                f"subs got the shape {shape_text(shape)} for {tensor.source!r}, whose size in "
                f"dimension {dim} is {replaced(size)}"
            )


def _check_bounds(symbol: Symbol, value: Expression) -> None:
    """What was simplified because no size is negative would be wrong for one that is."""
    low, high = interval(symbol)
    if isinstance(value, int) and not low <= value <= high:
        raise ArrangementError(f"subs got {value} for `{symbol}`, which is {low} or more")


def _given_shape(tensor: Level, value: Any) -> tuple[Any, ...]:
    shape = value.get("shape") if isinstance(value, Mapping) else getattr(value, "shape", None)
    if not isinstance(shape, Sequence) or not all(map(is_expression, shape)):
        raise ArrangementError(
            f'subs needs {{"shape": …}} or a Tensor for {tensor!r}, not {value!r}'
        )
    if len(shape) != tensor.source.ndim:
        raise ArrangementError(
            f"subs got the shape {shape_text(tuple(shape))} for {tensor.source!r}, which has "
            f"{tensor.source.ndim} dimensions"
        )
    return tuple(as_expression(size) for size in shape)


def _known(expression: Expression) -> int:
    if isinstance(expression, int):
        return expression
    raise ArrangementError(f"`{expression}` must be known to evaluate a tensor")
