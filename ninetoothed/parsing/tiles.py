"""What may be done with a parameter: its shape, its levels, its source, its offsets."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeGuard, cast

from ninetoothed.errors import near
from ninetoothed.language import dtypes
from ninetoothed.parsing.bindings import BindingFrame
from ninetoothed.parsing.frames import count_text, shape_text
from ninetoothed.parsing.objects import literal, value_of
from ninetoothed.parsing.values import (
    Element,
    Elements,
    Group,
    Known,
    Level,
    Method,
    Runtime,
    Source,
    Symbolic,
    Tile,
    Value,
)
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.program.nodes import (
    Offsets,
    SequenceLength,
    SourceLoad,
    SourcePointer,
    SourceStore,
    Store,
)
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, maximum, minimum


class TileFrame(BindingFrame):
    """A frame that knows tiles, levels and sources."""

    def tile_attribute(self, value: Value, name: str, node: ast.AST) -> Value | None:
        """``x.name`` where it says something about the parameter; None where it does not."""
        if name == "strides" and isinstance(value, Tile | Source):
            return _shape_of(value.parameter.source.strides)
        attribute = _ATTRIBUTES.get(type(value), {}).get(name)
        if attribute is None:
            return None
        if name == "shape" and isinstance(value, Source):
            return self._source_shape(value.parameter, node)
        return attribute(value)

    def _source_shape(self, parameter: Any, node: ast.AST) -> Group:
        """The sizes of a source; along a jagged dimension that of the program's sequence."""
        source = parameter.source
        sizes = list(_shape_of(source.shape).items)
        if source.jagged_dim is not None:
            length = SequenceLength(parameter=parameter.name, dim=source.jagged_dim)
            sizes[source.jagged_dim] = Runtime(self.at(length, node))
        return Group(tuple(sizes))

    def missing_attribute(self, value: Any, name: str, node: ast.AST) -> Exception:
        """The error for an attribute that a level, a source or an element type does not have."""
        if isinstance(value, Element):
            owner = value.parameter.name
            return self.error(
                node,
                f"An element type has no {name!r}.{near(name, dir(dtypes.float32))} The tiles of {owner!r} have "
                f"elements only, and `.dtype` is the type of these; a level that is tiled once more has a `.dtype` with "
                "a shape.",
            )
        known = ", ".join(f"`.{key}`" for key in _ATTRIBUTES[type(value)])
        what = "inner level" if isinstance(value, Level) else "source"
        parameter = value.parameter.name
        return self.error(
            node, f"The {what} of {parameter!r} has no attribute {name!r}; it has {known}."
        )

    def tile_method(
        self, method: Method, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> Value:
        """A call of ``offsets``, ``stride``, ``data_ptr`` on a tile or a source."""
        owner: Any = method.owner
        parameter = owner.parameter
        dim = self._dimension(method, arguments, keywords, node)
        if method.name == "data_ptr":
            return Runtime(self.at(SourcePointer(parameter=parameter.name), node))
        if method.name == "stride":
            return value_of(parameter.source.strides[dim or 0])
        if method.name == "size":
            return self._source_shape(parameter, node).items[dim or 0]
        return Runtime(self.at(Offsets(tile=self.reference(owner, node), dim=dim), node))

    def _dimension(
        self, method: Method, arguments: list[Value], keywords: dict[str, Value], node: ast.Call
    ) -> int | None:
        """The one argument that these methods take: a dimension of the source."""
        parameter = cast(Any, method.owner).parameter
        least, most = {"data_ptr": (0, 0), "offsets": (0, 1)}.get(method.name, (1, 1))
        given = [*arguments, *(keywords[key] for key in keywords if key == "dim")]
        if set(keywords) - {"dim"} or not least <= len(given) <= most:
            takes = {0: "no argument", 1: "one argument, a dimension"}[most]
            raise self.error(node, f"`{parameter.name}.{method.name}` takes {takes}.")
        if not given:
            return None
        value, ndim = given[0], parameter.source.ndim
        if isinstance(value, Known) and value.object is None and least == 0:
            return None
        dim = literal(value.object) if isinstance(value, Known) else None
        if not _is_int(dim):
            raise self.error(
                node,
                f"The dimension of `{parameter.name}.{method.name}` is needed at compile time: an "
                f"int from {-ndim} to {ndim - 1}.",
            )
        if not -ndim <= dim < ndim:
            raise self.error(
                node,
                f"`{parameter.name}.{method.name}({dim})`: the source of "
                f"{parameter.name!r} has {count_text(ndim, 'dimension', 'dimensions')}, so the "
                f"dimension has to be from {-ndim} to {ndim - 1}.",
            )
        return int(dim) % ndim

    def select(self, tile: Tile, indices: list[Value], node: ast.AST) -> Tile:
        """``x[i, j]``: a tile, or several of an inner level, selected from a level."""
        level = tile.selected_level
        shape = tile.parameter.levels[level]
        name = tile.parameter.name
        if len(indices) != len(shape):
            raise self.error(
                node,
                f"{name!r} is indexed with {count_text(len(indices), 'index', 'indices')} where it "
                f"names {shape_text(shape)} tiles: {count_text(len(shape), 'index', 'indices')} "
                "needed.",
            )
        selected = tuple(
            self._index(name, value, size, node) for value, size in zip(indices, shape, strict=True)
        )
        return Tile(tile.parameter, tile.indices + selected, level + 1)

    def _index(self, name: str, value: Value, size: Any, node: ast.AST) -> ast.expr:
        """One index; a constant one that is negative counts from the end."""
        if isinstance(value, Runtime) and isinstance(value.node, ast.Slice):
            raise self.error(
                node,
                f"{name!r} is indexed with a slice, of bounds that the running kernel has: tiles are selected one "
                "at a time, with an integer for each dimension.",
            )
        if isinstance(value, Known):
            index = literal(value.object)
            if not _is_int(index):
                raise self.error(
                    node,
                    f"{name!r} is indexed with {index!r}: tiles are selected one at a time, with "
                    "an integer for each dimension.",
                )
            if isinstance(size, int) and not -size <= index < size:
                raise self.error(
                    node, f"{name!r} is indexed with {index}, and that dimension has size {size}."
                )
            if index < 0:
                return self.expression(value_of(size - -index), node)
        if isinstance(value, Symbolic):
            value = value_of(from_end(value.symbol, size))
        if isinstance(value, Group):
            raise self.error(node, f"{name!r} is indexed with a tuple inside of a tuple.")
        return self.expression(value, node)

    def source_element(self, source: Source, indices: list[Value], node: ast.AST) -> Value:
        """``x.source[i, j]``, read."""
        nodes = self.source_indices(source, indices, node)
        return Runtime(self.at(SourceLoad(parameter=source.parameter.name, indices=nodes), node))

    def source_indices(self, source: Source, indices: list[Value], node: ast.AST) -> list[ast.expr]:
        """The indices of ``x.source[i, j]``, one a dimension."""
        name, ndim = source.parameter.name, source.parameter.source.ndim
        if len(indices) != ndim:
            raise self.error(
                node,
                f"`{name}.source` is indexed with {count_text(len(indices), 'index', 'indices')}, and "
                f"it has {count_text(ndim, 'dimension', 'dimensions')}: one index for each is needed.",
            )
        jagged = source.parameter.source.jagged_dim
        given = None if jagged is None else indices[jagged]
        last = literal(given.object) if isinstance(given, Known) else None
        if _is_int(last) and last < 0:
            raise self.error(
                node,
                f"`{name}.source` is indexed with {last} in its jagged dimension: sequences "
                "end where each has its end. Say the position from the sequence's first element, "
                f"as in `{name}.source.shape[{jagged}] - {-last}` for the one at hand.",
            )
        return [
            self._index(f"{name}.source", value, size, node)
            for value, size in zip(indices, source.parameter.source.shape, strict=True)
        ]

    def store(
        self, target: Tile | Source | Elements, indices: list[ast.expr], value: Value, node: ast.AST
    ) -> None:
        """Store to one tile, to elements of it, or to elements of a source."""
        expression = self.expression(value, node)
        if isinstance(target, Elements | Source):
            self.state.holds.changes.append((self.state.holds.now(), target.parameter))
        if isinstance(target, Elements):
            self.store_elements(target, expression, node)
            return
        if isinstance(target, Source):
            name = target.parameter.name
            self.emit(SourceStore(parameter=name, indices=indices, value=expression), node)
        else:
            self.emit(Store(tile=self.reference(target, node), value=expression), node)

    def store_elements(self, elements: Elements, value: ast.expr, node: ast.AST) -> None:
        """Stores to elements of a tile."""
        raise NotImplementedError


def from_end(position: Any, size: Any) -> Any:
    """A position of which the compiler knows the value, and `make` not yet: a negative one counts from the end."""
    if isinstance(position, Symbol) and is_constant_symbol(position) and interval(position)[0] < 0:
        return position + minimum(maximum(-position, 0), 1) * size
    return position


def of_type(name: str) -> bool:
    """Whether an element type may have an attribute: ours do, or Triton's alone."""
    return hasattr(dtypes.float32, name) or name.startswith("is_") or name in _OF_TRITON


def _shape_of(shape: Any) -> Group:
    return Group(tuple(value_of(size) for size in shape))


def _inner(value: Any) -> Value:
    """``.dtype``: the next level, or the element type at the innermost one."""
    level = value.level + 1
    if level < len(value.parameter.levels):
        return Level(value.parameter, level)
    return Element(value.parameter)


#: What only Triton's element types have.
_OF_TRITON = frozenset(
    "codegen_name exponent_bias fp_mantissa_width get_int_max_value get_int_min_value mangle scalar".split()
)

_LEVEL: dict[str, Callable[[Any], Value]] = {
    "shape": lambda value: _shape_of(value.shape),
    "ndim": lambda value: Known(len(value.shape)),
    "dtype": _inner,
}

_ATTRIBUTES: dict[type, dict[str, Callable[[Any], Value]]] = {
    Tile: {
        **_LEVEL,
        "source": lambda value: Source(value.parameter),
        "offsets": lambda value: Method(value, "offsets"),
        "stride": lambda value: Method(value, "stride"),
        "data_ptr": lambda value: Method(value, "data_ptr"),
    },
    Level: _LEVEL,
    Source: {
        "shape": lambda value: _shape_of(value.parameter.source.shape),
        "ndim": lambda value: Known(value.parameter.source.ndim),
        "dtype": lambda value: Element(value.parameter),
        "stride": lambda value: Method(value, "stride"),
        "size": lambda value: Method(value, "size"),
        "data_ptr": lambda value: Method(value, "data_ptr"),
    },
}


def _is_int(item: Any) -> TypeGuard[int]:
    return isinstance(item, int) and not isinstance(item, bool)
