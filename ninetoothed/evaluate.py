"""Evaluation of arranged tensors in NumPy, and substitution of their symbols. No device is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninetoothed.access import positions, source_indices
from ninetoothed.errors import ArrangementError, caller_location
from ninetoothed.expr import Expression, Symbol, as_expression, as_symbol
from ninetoothed.metaops import shape_text
from ninetoothed.simplify import simplify
from ninetoothed.tensor import Tensor, rebuilt

Substitutions = Mapping[Any, Any]


def eval(tensor: Tensor, subs: Substitutions | None = None) -> Any:
    """The source index of each element of an arranged tensor.

    Args:
        subs: maps a `Tensor` to ``{"shape": …}`` or to a `Tensor` with known sizes, and a `Symbol`
            to an int.

    Returns:
        An int64 array shaped (outermost…, next level…, …). An element is its index in the
        flattened, contiguous source, or -1 where it is out of bounds.

    Raises:
        ArrangementError: a size is not known, or the sizes do not fit the arrangement.
    """
    import numpy

    concrete = globals()["subs"](tensor, subs or {})
    _verify(concrete)
    shapes = [level.shape for level in concrete.levels]
    unknown = {str(s) for shape in shapes for size in shape for s in as_symbol(size).leaves()}
    unknown |= {str(s) for size in concrete.source.shape for s in as_symbol(size).leaves()}
    if unknown:
        raise ArrangementError(
            f"{', '.join(sorted(unknown))} must be known to evaluate a tensor; give the sources' "
            'shapes and the symbols, as in t.eval({x: {"shape": (4, 8)}, BLOCK_SIZE: 2})',
            caller_location(),
        )
    flat_shape = tuple(int(size) for shape in shapes for size in shape)
    grids = iter(numpy.indices(flat_shape, dtype=numpy.int64, sparse=True))
    names = [positions(f"level_{depth}", shape) for depth, shape in enumerate(shapes)]
    values: dict[Symbol, Any] = {name: next(grids) for level in names for name in level}
    indices, conditions = source_indices(concrete, names)
    result = numpy.zeros(flat_shape, dtype=numpy.int64)
    for position, size in zip(indices, concrete.source.shape):
        result = result * size + position.evaluate(values)
    inside = numpy.ones(flat_shape, dtype=bool)
    for condition in conditions:
        inside &= condition.evaluate(values)
    return numpy.where(inside, result, -1)


def subs(tensor: Tensor, subs: Substitutions) -> Tensor:
    """The same arrangement with symbols replaced.

    Args:
        subs: maps a `Tensor` to ``{"shape": …}`` or to a `Tensor`, and a `Symbol` to an int.

    Raises:
        ArrangementError: what is given is no such mapping, or has another number of dimensions.
    """
    values: dict[Symbol, Expression] = {}
    shapes: dict[int, tuple[Any, ...]] = {}
    for key, value in subs.items():
        if isinstance(key, Tensor):
            shape = _given_shape(key, value)
            shapes[id(key.source)] = shape
            values |= {as_symbol(old): new for old, new in zip(key.source.shape, shape)}
        elif isinstance(key, Symbol):
            values[key] = as_expression(value)
        else:
            raise ArrangementError(
                f"subs maps Tensors and Symbols to values; {key!r} is neither", caller_location()
            )

    def replaced(expression: Expression) -> Expression:
        return simplify(as_symbol(expression).substitute(values))

    old = tensor.source
    source = Tensor(
        shape=tuple(replaced(size) for size in old.shape),
        dtype=old.dtype,
        jagged_dim=old.jagged_dim,
        other=old.other,
        name=old.name,
    )
    return rebuilt(tensor, replaced, source)


def _given_shape(tensor: Tensor, value: Any) -> tuple[Any, ...]:
    shape = value.shape if isinstance(value, Tensor) else value.get("shape")
    if shape is None:
        raise ArrangementError(
            f'subs needs {{"shape": …}} or a Tensor for {tensor!r}, not {value!r}',
            caller_location(),
        )
    if len(shape) != tensor.source.ndim:
        raise ArrangementError(
            f"subs got the shape {shape_text(tuple(shape))} for {tensor.source!r}, which has "
            f"{tensor.source.ndim} dimensions",
            caller_location(),
        )
    return tuple(as_expression(size) for size in shape)


def _verify(tensor: Tensor) -> None:
    from ninetoothed.arrange import verify_operations

    verify_operations(tensor, tensor.label, _known)


def _known(expression: Expression) -> int:
    if isinstance(expression, int):
        return expression
    raise ArrangementError(f"`{expression}` must be known to evaluate a tensor", caller_location())
