"""Elements of a tile: ``x[i]``, ``x[indices]``, ``x[1:]`` where no level is left to select in."""

from __future__ import annotations

import ast

from ninetoothed.parsing.frames import count_text, shape_text
from ninetoothed.parsing.objects import literal, value_of
from ninetoothed.parsing.tiles import TileFrame, from_end
from ninetoothed.parsing.values import Elements, Known, Runtime, Symbolic, Tile, Value, copy_of
from ninetoothed.program import nodes
from ninetoothed.symbols.expr import Expression, maximum
from ninetoothed.tensors.views import Chosen, Fixed, Run, View, run_of

_WHOLE = Known(slice(None))


class ElementFrame(TileFrame):
    """A frame that knows elements of tiles."""

    def elements_of(self, tile: Tile, keys: list[Value], node: ast.AST) -> Elements:
        """The elements of a tile that indices, slices and positions select.

        Raises:
            ApplicationError: there are too many, or one is none of these.
        """
        shape, name = tile.parameter.tile_shape, tile.parameter.name
        keys = self._without_ellipsis(keys, len(shape))
        if len(keys) > len(shape):
            raise self.error(
                node,
                f"{name!r} is indexed with {count_text(len(keys), 'index', 'indices')}, and it is one "
                f"tile here, of shape ({shape_text(shape)}): an index for each dimension at most.",
            )
        entries: list[Run | Fixed | Chosen] = []
        positions: list[ast.expr] = []
        for dim, key in enumerate(keys + [_WHOLE] * (len(shape) - len(keys))):
            entry = self._entry(name, key, shape[dim], node)
            if isinstance(entry, Chosen):
                position = self.expression(key, node)
                if not self._is_stable(position):
                    position = self.saved(position, node, f"{name}_position")
                positions.append(position)
            entries.append(entry)
        tile = self.frozen(tile, node)
        return Elements(tile.parameter, (*tile.indices, *positions), View(tuple(entries)))

    def _without_ellipsis(self, keys: list[Value], count: int) -> list[Value]:
        places = [
            place
            for place, key in enumerate(keys)
            if isinstance(key, Known) and key.object is Ellipsis
        ]
        if not places:
            return keys
        place = places[0]
        return [*keys[:place], *[_WHOLE] * (count - len(keys) + 1), *keys[place + 1 :]]

    def _entry(
        self, name: str, key: Value, size: Expression, node: ast.AST
    ) -> Run | Fixed | Chosen:
        """What one index selects in its dimension."""
        if isinstance(key, Symbolic):
            return Fixed(from_end(key.symbol, size))
        if isinstance(key, Runtime):
            if isinstance(key.node, ast.Slice):
                self.needed(key, node)
                raise self.error(
                    node,
                    f"The bounds of a slice of {name!r} are needed at compile time, since they decide "
                    "the shape: a loop over `ntl.static_range` knows its variable then, one over `range` "
                    "does not. Positions that only the running kernel knows are a tile: "
                    f"`{name}[start + ntl.arange(0, 16)]`.",
                )
            return Chosen()
        found = literal(key.object) if isinstance(key, Known) else None
        if isinstance(found, slice):
            start, stop = (_bound(each, size) for each in (found.start, found.stop))
            step = self.needed(value_of(found.step), node)
            try:
                return run_of(slice(start, stop, getattr(step, "object", found.step)), size)
            except (ValueError, TypeError) as error:
                raise self.error(
                    node, f"A slice of {name!r}, along a dimension of size {size}: {error}."
                ) from error
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.error(
                node,
                f"{name!r} is one tile here, and is indexed with "
                f"{found if isinstance(key, Known) else 'a tuple in a tuple'!r}: integers, tiles of "
                "them, and slices select its elements.",
            )
        if isinstance(size, int) and not -size <= found < size:
            raise self.error(
                node, f"{name!r} is indexed with {found}, and that dimension has size {size}."
            )
        return Fixed(found if found >= 0 else size + found)

    def loaded_elements(self, elements: Elements, node: ast.AST) -> Runtime:
        """The value of elements of a tile."""
        indices = [copy_of(Runtime(index)).node for index in elements.indices]
        name = elements.parameter.name
        return Runtime(
            self.at(nodes.ElementLoad(parameter=name, indices=indices, view=elements.view), node)
        )

    def place_of(self, value: Value, node: ast.AST) -> Value:
        """What an atomic operation changes: of what is loaded from a tensor, the place.

        Raises:
            ApplicationError: it is none, nor pointers.
        """
        loaded, keys = value.node if isinstance(value, Runtime) else None, list[Value]()
        while isinstance(loaded, ast.Subscript) and is_whole(loaded.slice):
            keys = max(keys, [_WHOLE] * len(parts_of(loaded.slice)), key=len)
            loaded = loaded.value
        if isinstance(loaded, nodes.Load):
            parameter = self.state.parameters[loaded.tile.parameter]
            value = Tile(parameter, tuple(loaded.tile.indices), len(parameter.levels))
        if isinstance(value, Tile):
            self.reference(value, node)
            loaded = self.loaded_elements(self.elements_of(value, keys, node), node).node
        if not isinstance(loaded, nodes.SourceLoad):
            if loaded is None or not any(isinstance(n, _POINTING) for n in nodes.walk(loaded)):
                raise self.error(
                    node,
                    "An atomic operation changes a tensor: give it a parameter, elements of one "
                    "(`x[1:]`, `x.source[i]`), or pointers such as `x.data_ptr() + offsets`.",
                )
            return value
        changed = self.state.parameters[loaded.parameter]
        self.state.holds.changes.append((self.state.holds.now(), changed))
        fields = {field: getattr(loaded, field) for field in loaded._fields}
        place = nodes.ElementPlace if isinstance(loaded, nodes.ElementLoad) else nodes.SourcePlace
        return Runtime(self.at(place(**fields), loaded))

    def store_elements(self, elements: Elements, value: ast.expr, node: ast.AST) -> None:
        """Stores to elements of a tile."""
        indices = [copy_of(Runtime(index)).node for index in elements.indices]
        name = elements.parameter.name
        store = nodes.ElementStore(parameter=name, indices=indices, view=elements.view, value=value)
        self.emit(store, node)


def _bound(position: Expression | None, size: Expression) -> Expression | None:
    """A slice's bound as `run_of` takes it."""
    found = from_end(position, size)
    return position if found is position else maximum(found, 0)


#: What may give a pointer: a tensor, a local variable, a function.
_POINTING = nodes.SourcePointer | ast.Name | ast.Call


def has_bounds(index: Value) -> bool:
    """Whether an index is a slice that leaves something out."""
    if isinstance(index, Runtime):
        return isinstance(index.node, ast.Slice)
    return (
        isinstance(index, Known) and isinstance(index.object, slice) and index.object != slice(None)
    )


def is_whole(index: ast.expr) -> bool:
    """Whether an index is made of ``:`` alone."""
    return all(isinstance(p, ast.Slice) and is_reshaped_only(p) for p in parts_of(index))


def parts_of(index: ast.expr) -> list[ast.expr]:
    """The parts of an index that commas divide."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def is_reshaped_only(node: ast.expr) -> bool:
    """Whether a subscript is made of ``:`` and ``None``: all elements are taken as they are."""
    return all(
        part.lower is None and part.upper is None and part.step is None
        if isinstance(part, ast.Slice)
        else isinstance(part, ast.Constant) and part.value is None
        for part in parts_of(node)
    )
