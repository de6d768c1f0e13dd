"""What the page shows of an arrangement: its tensors, their sizes and accesses, as JavaScript.

Where elements lie is the access chain's, printed; the browser evaluates it for any sizes. So the
page is small, and what it shows is what the compiler does.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ninetoothed.errors import ArrangementError, caller_location, near
from ninetoothed.program.names import unused
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated, make
from ninetoothed.tensors.access import Access, access_of
from ninetoothed.tensors.arrange import mismatch
from ninetoothed.tensors.evaluate import values_of
from ninetoothed.tensors.level import Level, operations, verify_operations
from ninetoothed.tensors.meta_operation import Need, shape_text
from ninetoothed.visualization.javascript import javascript, listed
from ninetoothed.visualization.sizes import Links, default_sizes, default_symbols, within_bounds


@dataclass(frozen=True)
class View:
    """A tensor that the page shows: its name, how it is arranged, what programs do with it."""

    name: str
    tensor: Level
    is_read: bool = True
    is_stored: bool = False


class Model:
    """An arrangement with sizes to begin with.

    Args:
        title: what the page is called.
        views: the arranged tensors.
        names: what the user calls the symbols.
        given: sizes and symbols: of a `Tensor` or its name the shape, of a `Symbol` or its name the
            value. Small ones are chosen for the others.
        functions: the user's own, which the page shows, by what it calls them.
        notes: sentences that the page says besides.

    Raises:
        ArrangementError: what is given names nothing that is here, or the sizes do not fit.
    """

    def __init__(
        self,
        title: str,
        views: Sequence[View],
        names: Mapping[Symbol, str],
        given: Mapping[Any, Any],
        functions: Mapping[str, Callable[..., Any]],
        notes: Sequence[str] = (),
    ) -> None:
        self.title = title
        self.notes = tuple(notes)
        self.views = tuple(views)
        self.functions = functions
        self.accesses = tuple(access_of(view.tensor) for view in views)
        self.labels = _labels(self.views, self.accesses, names)
        self._tensors = [view.tensor for view in views]
        resolved = self._resolved(given)
        self.values = self._beginning(_numbers(resolved))
        self._check(resolved)
        self.links = self._links()

    def _beginning(self, values: dict[Symbol, int]) -> dict[Symbol, int]:
        """A value for each size and symbol: what was given, what follows from it, small numbers."""
        symbols = [leaf for leaf in self.labels if not self._is_size(leaf)]
        values = {**values, **default_symbols(self._tensors, symbols, values)}
        links = Links(values)
        links.add(self._tensors)
        free = default_sizes(self._tensors, values)
        values |= {leaf: value for leaf, value in free.items() if leaf not in links.found}
        following = [leaf for leaf in links.found if leaf in self.labels]
        return {**values, **{leaf: links.resolved(leaf).evaluate(values) for leaf in following}}

    def _is_size(self, leaf: Symbol) -> bool:
        return any(leaf is size for t in self._tensors for size in t.source.shape)

    def _resolved(self, given: Mapping[Any, Any]) -> dict[Any, Any]:
        """What is given, by tensors and symbols in the place of their names."""
        tensors = {view.name: view.tensor.source for view in self.views}
        symbols = {label: leaf for leaf, label in self.labels.items()}
        resolved: dict[Any, Any] = {}
        for key, value in given.items():
            if isinstance(key, str):
                if key not in tensors and key not in symbols:
                    known = [*tensors, *(each for each in symbols if "." not in each)]
                    raise ArrangementError(
                        f"{key!r} is neither a tensor nor a symbol of `{self.title}`."
                        f"{near(key, known)} There are {', '.join(known)}"
                    )
                key = tensors[key] if key in tensors else symbols[key]
            if isinstance(key, Level):
                shape = value.get("shape") if isinstance(value, Mapping) else value
                shape = getattr(shape, "shape", shape)
                value = {"shape": tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)}
            resolved[key] = value
        return resolved

    def evaluate(self, expression: Expression) -> int:
        """The number that an expression is to begin with."""
        return evaluated(expression, self.values)

    def _check(self, resolved: Mapping[Any, Any]) -> None:
        """The sizes fit the arrangement, and are those that were given."""
        shapes = {}
        for view in self.views:
            source = view.tensor.source
            shape = tuple(map(self.evaluate, source.shape))
            wanted = resolved.get(source, {}).get("shape", shape)
            if tuple(wanted) != shape:
                raise ArrangementError(
                    f"`{view.name}` was given the shape {shape_text(wanted)}; as it is "
                    f"declared, it has {shape_text(shape)}"
                )
            verify_operations(view.tensor, f"`{view.name}`", self.evaluate)
            shapes[view.name] = tuple(max(self.evaluate(size), 0) for size in view.tensor.shape)
        if len({tuple(size for size in shape if size != 1) for shape in shapes.values()}) > 1:
            raise mismatch(shapes, caller_location())

    def _links(self) -> dict[Symbol, Symbol]:
        """The sizes that follow from others as long as a person only moves sliders."""
        links = Links()
        links.add(self._tensors)
        for leaf, expression in list(links.found.items()):
            is_shown = {leaf, *expression.leaves()} <= set(self.labels)
            if not is_shown or self.evaluate(expression) != self.values[leaf]:
                del links.found[leaf]
        return {leaf: links.resolved(leaf) for leaf in links.found}

    def script(self) -> str:
        """``const MODEL = …``."""
        places = {leaf: f"v[{place}]" for place, leaf in enumerate(self.labels)}
        free = [leaf for leaf in self.labels if leaf not in self.links]
        assignments = [f"{places[leaf]} = free[{place}];" for place, leaf in enumerate(free)]
        assignments += [
            f"{places[leaf]} = {javascript(expression, places.__getitem__)};"
            for leaf, expression in self.links.items()
        ]
        tensors = [self._tensor(*each, places) for each in zip(self.views, self.accesses)]
        parts = {
            "knobs": f"[{', '.join(self._knob(leaf) for leaf in free)}]",
            "values": f"(free) => {{ const v = []; {' '.join(assignments)} return v; }}",
            "labels": _text(list(self.labels.values())),
            "tensors": f"[{', '.join(tensors)}]",
            "requirements": f"[{', '.join(self._requirements(places))}]",
            "notes": _text(self.notes),
            "functions": _text(
                [{"title": title, "text": _source(f)} for title, f in self.functions.items()]
            ),
        }
        return _object("const MODEL = ", parts) + ";"

    def _knob(self, leaf: Symbol) -> str:
        """A size or symbol that a slider changes, and what follows from it."""
        following = [
            {
                "label": self.labels[other],
                "text": None
                if expression is leaf
                else _shown(expression, lambda name: ast.Name(self.labels[name])),
            }
            for other, expression in self.links.items()
            if leaf in expression.leaves()
        ]
        return _text(
            {
                "label": self.labels[leaf],
                "value": self.values[leaf],
                "powers": leaf.power_of_two,
                "least": within_bounds(leaf, 1 if self._is_size(leaf) else 0),
                "most": within_bounds(leaf, max(2 * self.values[leaf], 16)),
                "following": following,
            }
        )

    def _tensor(self, view: View, access: Access, places: Mapping[Symbol, str]) -> str:
        source, levels = view.tensor.source, view.tensor.levels

        def present(node: Symbol) -> Expression | None:
            """Of a jagged tensor every sequence is shown as long as the longest."""
            dim = source.jagged_dim if node.op == "sequence_length" else None
            return None if dim is None else source.shape[dim]

        conditions = [condition.map(present) for condition in access.conditions]
        names = dict(places)
        for letter, indices in zip("psl", (access.programs, access.selections, access.coordinates)):
            names |= {leaf: f"{letter}[{place}]" for place, leaf in enumerate(indices)}

        def token(leaf: Symbol) -> ast.expr:
            """Stands for a name, which the page replaces by the name or by its number."""
            letter, place = names[leaf][:-1].split("[")
            return ast.Name(f"__{letter}{place}__")

        code = names.__getitem__
        shape = levels[-1].shape if len(levels) > 1 else ()
        arguments = "(v, p, s, l) => "
        parts = {
            "name": _text(view.name),
            "read": _text(view.is_read),
            "stored": _text(view.is_stored),
            "jagged": _text(source.jagged_dim is not None),
            "shape": f"(v) => {listed(source.shape, code)}",
            "grid": f"(v) => {listed(view.tensor.shape, code)}",
            "steps": f"(v) => {listed((s for level in levels[1:-1] for s in level.shape), code)}",
            "depths": _text([level.ndim for level in levels[1:-1]]),
            "tile": f"(v) => {listed(shape, code)}",
            "indices": arguments + listed(access.indices, code),
            "exists": arguments
            + (" && ".join(javascript(condition, code) for condition in conditions) or "true"),
            "formulas": _text([_shown(index, token) for index in access.indices]),
            "conditions": _text([_shown(condition, token) for condition in conditions]),
        }
        return _object("", parts)

    def _requirements(self, places: Mapping[Symbol, str]) -> Iterable[str]:
        code = places.__getitem__
        for view in self.views:
            for operation in operations(view.tensor):
                for need in operation.needs:
                    condition = _holds(need)
                    if condition.op != "const":
                        parts = {
                            "holds": f"(v) => {javascript(condition, code)}",
                            "found": f"(v) => {javascript(need.value, code)}",
                            "text": _text(f"{operation.name} of {view.name} needs {need.text}"),
                        }
                        yield _object("", parts)


def _numbers(resolved: Mapping[Any, Any]) -> dict[Symbol, int]:
    """The value of each symbol and size that is given."""
    values = values_of(resolved)
    unknown = [str(value) for value in values.values() if isinstance(value, Symbol)]
    if unknown:
        raise ArrangementError(
            f"a page begins with known sizes, and was given `{', '.join(unknown)}`"
        )
    return {leaf: int(value) for leaf, value in values.items()}  # type: ignore[arg-type]


def _holds(need: Need) -> Symbol:
    """The condition that sizes fulfil."""
    expression = as_symbol(need.expression)
    if need.low == need.high:
        return make("==", expression, as_symbol(need.low))
    assert need.high is None
    return expression >= need.low


def _labels(
    views: Sequence[View], accesses: Sequence[Access], names: Mapping[Symbol, str]
) -> dict[Symbol, str]:
    """How the page calls each size and symbol; all that decide anything, sizes first."""
    labels: dict[Symbol, str] = {}
    for view in views:
        for dim, size in enumerate(view.tensor.source.shape):
            if isinstance(size, Symbol) and size.op == "leaf" and size.leaf.role == "size":
                labels.setdefault(size, f"{view.name}.shape[{dim}]")
    expressions: list[Expression] = []
    for view, access in zip(views, accesses):
        expressions += view.tensor.source.shape
        expressions += [size for level in view.tensor.levels for size in level.shape]
        expressions += [*access.indices, *access.conditions]
        for operation in operations(view.tensor):
            expressions += [need.value for need in operation.needs]
    taken = set(labels.values())
    for expression in expressions:
        for leaf in as_symbol(expression).leaves():
            if leaf in labels or leaf.leaf.role == "index":
                continue
            labels[leaf] = unused(names.get(leaf, leaf.leaf.label), taken)
            taken.add(labels[leaf])
    return labels


def _shown(expression: Expression, name_of: Callable[[Symbol], ast.expr]) -> str:
    return ast.unparse(as_symbol(expression).ast(name_of))


def _source(function: Callable[..., Any]) -> str:
    """A function's text, or its name where Python does not know it."""
    function = inspect.unwrap(getattr(function, "func", function))
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        return getattr(function, "__name__", repr(function))


def _text(value: Any) -> str:
    """A value as JavaScript's; what could end the script stands escaped."""
    return json.dumps(value).replace("<", "\\u003c")


def _object(prefix: str, parts: Mapping[str, str]) -> str:
    entries = ",\n".join(f"  {name}: {value}" for name, value in parts.items())
    return f"{prefix}{{\n{entries},\n}}"
