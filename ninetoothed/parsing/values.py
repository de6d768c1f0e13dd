"""What an expression of an application can stand for while it is evaluated symbolically."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Any, TypeGuard

from ninetoothed import language
from ninetoothed.language import operations
from ninetoothed.parsing.holds import Hold, Loan
from ninetoothed.program.nodes import ElementPlace, SourcePlace, SymbolValue, clone
from ninetoothed.records import dataclass
from ninetoothed.tensors.views import View


class Value:
    """The base of all values."""

    __slots__ = ()


@dataclass(frozen=True)
class Known(Value):
    """A Python object, known now."""

    object: Any


@dataclass(frozen=True)
class Symbolic(Value):
    """A symbolic integer: known when the kernel is called, an expression of sizes until then."""

    symbol: Any


@dataclass(frozen=True)
class Group(Value):
    """A tuple, whose length is known now."""

    items: tuple[Value, ...]

    def with_items(self, items: Iterable[Value]) -> Group:
        """The same of other values."""
        return replace(self, items=tuple(items))


def to_python(value: Value, shows_symbols: bool = False) -> Known | None:
    """The Python object behind a value, on demand a symbol as it is; None where it is not known."""
    if shows_symbols and isinstance(value, Symbolic):
        return Known(value.symbol)
    if isinstance(value, Group) and not isinstance(value, Iterated):
        items = [to_python(item, shows_symbols) for item in value.items]
        if None in items:
            return None
        objects = tuple(item.object for item in items if item)
        if isinstance(value, Named):
            return Known(dict(zip(value.keys, objects)))
        return Known(list(objects) if isinstance(value, Listed) else objects)
    return value if isinstance(value, Known) else None


@dataclass(frozen=True)
class Named(Group):
    """A dictionary whose keys are known now: ``items`` are its values."""

    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Listed(Group):
    """A list. Names of one object have the same ``identity``; None is that of one from outside."""

    identity: object = field(default_factory=object, compare=False)


@dataclass(frozen=True)
class Iterated(Group):
    """What gives its items once, as ``zip``, ``enumerate`` and generators do.

    Attributes:
        left: a variable that holds which items are still to be given; undecided after it was gone over.
        is_as_made: for each generator that it is made of, whether what that is computed of is what it was.
    """

    left: Cell = field(default_factory=lambda: Cell("", Known(slice(0, None))))
    is_as_made: tuple[Callable[[], bool], ...] = ()


#: The methods of a dictionary that change nothing.
ENTRIES = frozenset({"get", "items", "keys", "values"})


@dataclass(frozen=True)
class Runtime(Value):
    """A value of the running kernel. The node is put into the Program once: see ``copy_of``."""

    node: ast.expr


@dataclass(frozen=True)
class Tile(Value):
    """A tile, or tiles still to be selected from: ``level`` is the parameter's level it names.

    ``held`` is the name that stands for it, where that is not the application's own.
    """

    parameter: Any
    indices: tuple[ast.expr, ...]
    level: int
    held: Hold | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.parameter.levels[self.level] if self.level < self.depth else ()

    @property
    def depth(self) -> int:
        return len(self.parameter.levels)

    @property
    def selected_level(self) -> int:
        """The level that a subscript selects in; the innermost one where nothing is left to."""
        level = self.level
        while level < self.depth - 1 and not self.parameter.levels[level]:
            level += 1
        return level

    @property
    def is_complete(self) -> bool:
        """Whether this is one tile, with nothing left to be selected."""
        return self.selected_level >= self.depth - 1


@dataclass(frozen=True)
class Elements(Value):
    """Elements of a tile, as a place: ``indices`` select the tile, then come the chosen positions."""

    parameter: Any
    indices: tuple[ast.expr, ...]
    view: View


@dataclass(frozen=True)
class Level(Value):
    """An inner level as a type: ``x.dtype`` where the elements of ``x`` are tiles."""

    parameter: Any
    level: int

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.parameter.levels[self.level]


@dataclass(frozen=True)
class Element(Value):
    """The element type of a parameter, whatever it is at the call."""

    parameter: Any


@dataclass(frozen=True)
class Source(Value):
    """The whole tensor that a parameter was arranged from."""

    parameter: Any


@dataclass(frozen=True)
class Method(Value):
    """An attribute that only makes sense called."""

    owner: Value
    name: str


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A Python function, to be inlined where it is called.

    Attributes:
        tree: its definition.
        file: the file of it.
        resolve: gives a free name's value; takes the name and the node that reads it.
        defaults: default values by parameter name.
        key: equal for the same function: guards against recursion.
    """

    tree: ast.FunctionDef
    file: str
    resolve: Callable[[str, ast.AST], Value | Cell]
    defaults: dict[str, Value]
    key: object

    @property
    def name(self) -> str:
        return self.tree.name


@dataclass(frozen=True)
class Range(Value):
    """A call of ``range`` or of the language's kinds of it: something to loop over."""

    function: Known
    arguments: tuple[Value, ...]
    keywords: dict[str, Value]
    #: As an iterator has it, where this is one.
    left: Cell | None = None

    @property
    def known(self) -> list[Any]:
        """The numbers among its arguments that are known at compile time."""
        return [item.object for item in self.arguments if isinstance(item, Known)]


@dataclass(frozen=True)
class Undecided(Value):
    """A compile-time value that depends on what happens at run time; reading it is an error."""

    why: str


class Evaluated(ast.expr):
    """An expression of an application that is evaluated already."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


def in_rounds(
    loop: ast.For, number: str, start: Value, stop: Value, step: Value
) -> tuple[ast.expr, ast.For]:
    """How many rounds a loop over a range has, and the loop over their numbers, which is to be given them."""
    bounds: dict[str, Value] = {"start": start, "stop": stop, "step": step}
    known = {
        "cast": Known(language.cast),
        "int32": Known(language.int32),
        "int64": Known(language.int64),
    }

    class Filled(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            found = (bounds | known).get(node.id)
            return ast.Name(number, ast.Load()) if found is None else Evaluated(found)

    def filled(text: str) -> ast.expr:
        made = ast.copy_location(Filled().visit(ast.parse(text, mode="eval").body), loop.iter)
        for part in ast.walk(made):
            ast.copy_location(part, loop.iter)
        return made

    item = ast.Assign([loop.target], filled("start + number * step"))
    made = ast.For(ast.Name(number, ast.Store()), loop.iter, [item, *loop.body], [])
    if not any(isinstance(bound, Runtime) for bound in bounds.values()):
        return filled("-((start - stop) // step)"), made
    # Their own types need not hold the difference, nor its negative.
    first, last, by = (
        f"cast({name}, int64)" if isinstance(bound, Runtime) else name
        for name, bound in bounds.items()
    )
    return filled(f"cast(-(({first} - {last}) // {by}), int32)"), made


@dataclass(eq=False)
class Cell:
    """A variable.

    Attributes:
        name: its name in the Program; empty where it has none yet, since it only reads another's.
        value: what it holds; None before it is assigned.
        stores: whether assigning it stores to the tile that it holds.
        is_stable: whether no more than one statement assigns it.
        is_former: whether it is what a variable was that a later argument of the same call assigns.
        is_lent: whether it was given to a helper that may rebind it.
        changed_by: the last loan that was assigned, of those that are out.
    """

    name: str
    value: Value | None = None
    stores: bool = False
    is_stable: bool = False
    is_former: bool = False
    is_lent: bool = False
    changed_by: Loan | None = None
    item_names: dict[str, str] = field(default_factory=dict)


def is_method(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether it is a method of a value of the running kernel, not what the method gives."""
    if not isinstance(node, ast.Attribute) or node.attr in operations.OF_TILES:
        return False
    return operations.find(node.attr) is not None


def is_shape(node: ast.AST) -> bool:
    """Whether a node is a tile's shape in the running kernel, or a dimension of it."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def is_of_shapes(node: ast.AST) -> bool:
    """Whether a node is such a shape or dimension, or made of these, of sizes and numbers: the compiler knows it.

    So it does a value's element type.
    """
    if isinstance(node, ast.Attribute) and node.attr == "dtype":
        return True
    if not isinstance(node, ast.BinOp):
        place = node.slice if isinstance(node, ast.Subscript) else ast.Constant(None)
        place = place.operand if isinstance(place, ast.UnaryOp) else place
        return is_shape(node) and isinstance(place, ast.Constant)
    parts = [
        part for part in (node.left, node.right) if not isinstance(part, ast.Constant | SymbolValue)
    ]
    return bool(parts) and all(map(is_of_shapes, parts))


def copy_of(value: Any) -> Any:
    """A value whose nodes are fresh, to be put into the Program once more."""
    if isinstance(value, Runtime):
        return Runtime(clone(value.node))
    if isinstance(value, Group):
        return value.with_items(map(copy_of, value.items))
    return value


def same_captures(left: dict[str, Value | None], right: dict[str, Value | None]) -> bool:
    """Whether two functions of one definition see the same around them."""
    return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)


def with_nodes(value: Any, change: Callable[[ast.expr], ast.expr]) -> Any:
    """A value with the Program's expressions that it is made of changed; itself where none is.

    What changes memory atomically is a place, of which the indices are values.
    """
    if isinstance(value, Runtime) and isinstance(value.node, ElementPlace | SourcePlace):
        value.node.indices = [change(index) for index in value.node.indices]
        return value
    if isinstance(value, Runtime):
        node = change(value.node)
        return value if node is value.node else Runtime(node)
    if isinstance(value, Group):
        return value.with_items(with_nodes(item, change) for item in value.items)
    if isinstance(value, Tile | Elements):
        return replace(value, indices=tuple(map(change, value.indices)))
    if isinstance(value, Method):
        return Method(with_nodes(value.owner, change), value.name)
    if isinstance(value, Range):
        keywords = {key: with_nodes(item, change) for key, item in value.keywords.items()}
        arguments = tuple(with_nodes(item, change) for item in value.arguments)
        return replace(value, arguments=arguments, keywords=keywords)
    return value


def is_scalar(item: Any) -> bool:
    """Whether an object is a scalar of NumPy's, or an array without dimensions."""
    is_numpys = type(item).__module__ == "numpy" and hasattr(item, "item")
    return is_numpys and getattr(item, "ndim", 1) == 0


def same(left: Value | None, right: Value | None) -> bool:
    """Whether two values are certainly the same, wherever both are defined."""
    if left is right:
        return True
    if isinstance(left, Known) and isinstance(right, Known):
        a, b = left.object, right.object
        return a is b or (
            type(a) is type(b)
            and (isinstance(a, int | float | str) or is_scalar(a))
            and repr(a) == repr(b)
        )
    if isinstance(left, Symbolic) and isinstance(right, Symbolic):
        return left.symbol is right.symbol
    if isinstance(left, Group) and isinstance(right, Group):
        if getattr(left, "left", None) is not getattr(right, "left", None):
            return False
        if type(left) is not type(right) or getattr(left, "keys", 0) != getattr(right, "keys", 0):
            return False
        return len(left.items) == len(right.items) and all(
            same(a, b) for a, b in zip(left.items, right.items, strict=True)
        )
    if isinstance(left, Tile) and isinstance(right, Tile):
        return (
            left.parameter is right.parameter
            and left.level == right.level
            and (left.held and left.held.value) is (right.held and right.held.value)
            and [ast.dump(index) for index in left.indices]
            == [ast.dump(index) for index in right.indices]
        )
    if isinstance(left, Element | Source | Level):
        return left == right
    if isinstance(left, Method) and isinstance(right, Method):
        return left.name == right.name and same(left.owner, right.owner)
    if isinstance(left, Runtime) and isinstance(right, Runtime):
        return isinstance(left.node, ast.Name) and ast.dump(left.node) == ast.dump(right.node)
    return False
