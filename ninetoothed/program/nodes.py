"""The nodes of a Program: Python's tree, with accesses and the language's names as nodes of their own.

They are subclasses of Python's ``ast`` nodes, so that everything else of the tree stays plain
Python. No backend is known here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ninetoothed.errors import Location, location_of
from ninetoothed.language.dtypes import DType
from ninetoothed.program.frozen import kind_of
from ninetoothed.tensors.views import View

NodeT = TypeVar("NodeT", bound=ast.AST)

#: What stands in the place of a padded lane, so that it does not take part in a reduction.
IDENTITIES = frozenset({"zero", "one", "lowest", "highest", "last", "all_ones", "nowhere"})


if TYPE_CHECKING:

    class Expression(ast.expr):
        """The base of our expressions; made from the fields by name."""

        def __init__(self, **fields: Any) -> None: ...

    class Statement(ast.stmt):
        """The base of our statements; made from the fields by name."""

        def __init__(self, **fields: Any) -> None: ...

else:
    Expression, Statement = ast.expr, ast.stmt


class TileRef(Expression):
    """A tile of a parameter: ``indices`` select in all dimensions of all middle levels, in order."""

    _fields: ClassVar[tuple[str, ...]] = ("parameter", "indices")
    parameter: str
    indices: list[ast.expr]


class Load(Expression):
    """The value of a tile, in its padded shape."""

    _fields = ("tile",)
    tile: TileRef


class Store(Statement):
    """Stores a value, cast to the element type and broadcast to the tile's shape."""

    _fields = ("tile", "value")
    tile: TileRef
    value: ast.expr


class Forwarded(Expression):
    """What loading ``tile`` gives right after ``value`` was stored to it. Only between passes."""

    _fields = ("tile", "value")
    tile: TileRef
    value: ast.expr


class Offsets(Expression):
    """For each element of a tile its index along source dimension ``dim``; None: linear."""

    _fields = ("tile", "dim")
    tile: TileRef
    dim: int | None


class SymbolValue(Expression):
    """The value of a symbolic integer, a size or a stride for example."""

    _fields = ("symbol",)
    symbol: Any


class GivenSize(SymbolValue):
    """A size that meets elements: of an argument's type, though a compiler may know its value."""


class SequenceLength(Expression):
    """The size of a jagged source along ``dim`` in the program's sequence."""

    _fields = ("parameter", "dim")
    parameter: str
    dim: int


class SourcePointer(Expression):
    """The pointer to a source tensor's first element."""

    _fields: ClassVar[tuple[str, ...]] = ("parameter",)
    parameter: str


class ElementType(Expression):
    """The element type of a parameter's source."""

    _fields: ClassVar[tuple[str, ...]] = ("parameter",)
    parameter: str


class SourceLoad(Expression):
    """Loads elements anywhere in a source tensor, one index a dimension."""

    _fields: ClassVar[tuple[str, ...]] = ("parameter", "indices")
    parameter: str
    indices: list[ast.expr]


class SourceStore(Statement):
    """Stores elements anywhere in a source tensor, one index a dimension."""

    _fields: ClassVar[tuple[str, ...]] = ("parameter", "indices", "value")
    parameter: str
    indices: list[ast.expr]
    value: ast.expr


class ElementLoad(SourceLoad):
    """Loads elements of a tile that a view selects.

    ``indices`` select the tile, as a `TileRef`'s do, then come the positions that are chosen.
    """

    _fields = ("parameter", "indices", "view")
    view: View


class ElementStore(SourceStore):
    """Stores elements of a tile that a view selects; see `ElementLoad`."""

    _fields = ("parameter", "indices", "view", "value")
    view: View


class ElementRef(TileRef):
    """Elements of a tile, of a mask; see `ElementLoad`. Their value has ``rank`` dimensions."""

    _fields = ("parameter", "indices", "view", "rank")
    view: View
    rank: int


class SourcePlace(SourcePointer):
    """Where elements anywhere in a source tensor are, for an atomic operation."""

    _fields = ("parameter", "indices")
    indices: list[ast.expr]


class ElementPlace(SourcePointer):
    """Where elements of a tile are, for an atomic operation; see `ElementLoad`."""

    _fields = ("parameter", "indices", "view")
    indices: list[ast.expr]
    view: View


class DTypeRef(Expression):
    """An element type, by the object."""

    _fields = ("dtype",)
    dtype: DType


class NumberType(DTypeRef):
    """What ``float(x)`` or ``int(x)`` is of; ``dtype`` in a call without elements of float64."""


class LanguageRef(Expression):
    """A name of the language, ``exp`` or ``libdevice.tanh``."""

    _fields = ("name",)
    name: str


class ExternRef(Expression):
    """A ``triton.jit`` function (in ``Program.externs``) or a helper (in ``Program.helpers``)."""

    _fields = ("name",)
    name: str


class Padded(Expression):
    """The next power of two of a dimension."""

    _fields = ("value",)
    value: ast.expr


class Mask(Expression):
    """Where the elements of a tile are within their source.

    ``layout`` gives for each dimension of the mask the tile's dimension that it follows, or None for
    a dimension of size 1. Conditions on a dimension of the tile that is absent are left out.
    """

    _fields = ("tile", "layout")
    tile: TileRef
    layout: tuple[int | None, ...]


class Within(Expression):
    """Where the positions of a tile that was made lie below the size that was asked for.

    ``layout`` is as a `Mask`'s: 0 for the dimension of that size, None for the others.
    """

    _fields = ("size", "layout")
    size: ast.expr
    layout: tuple[int | None, ...]


class Held(Expression):
    """Where a variable is not 0 that says which elements exist; ``layout`` is as a `Mask`'s."""

    _fields = ("name", "rank", "layout")
    name: str
    rank: int
    layout: tuple[int | None, ...]


class Exists(Expression):
    """1 where the elements of ``value`` exist, else 0: what moves as they do."""

    _fields = ("value", "masks")
    value: ast.expr
    masks: list[Any]


class Kept(Expression):
    """``value`` where all masks hold, elsewhere what was before it."""

    _fields = ("value", "before", "masks")
    value: ast.expr
    before: ast.expr
    masks: list[Any]


class Flipped(Expression):
    """``value`` with the elements that exist in reverse order along ``dim``, where those are.

    ``is_first`` says whether they are known to come first there.
    """

    _fields = ("value", "dim", "masks", "is_first")
    value: ast.expr
    dim: int
    masks: list[Any]
    is_first: bool


class AllHold(Expression):
    """Whether all masks hold."""

    _fields = ("masks",)
    masks: list[Any]


class Masked(Expression):
    """``value`` where all masks hold, elsewhere the identity (a member of ``IDENTITIES``)."""

    _fields = ("value", "masks", "identity")
    value: ast.expr
    masks: list[Any]
    identity: str


class Rounded(ast.BinOp):
    """``//`` or ``%`` of what may be negative, or no integer, or by what may be 0: rounded down.

    ``/`` too where one is a truth value, and a shift by what may be no bit's place.
    """


class Logical(ast.BoolOp):
    """``and`` or ``or``: an operand of numbers, as Python has it; of tiles element by element."""


#: What is made of nothing else.
_LEAVES = (ast.Name, ast.Constant)


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and all nodes below it, operators and contexts left out; faster than ``ast.walk``."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, _LEAVES):
            continue
        fields = current.__dict__
        for name in current._fields:
            value = fields.get(name)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        pending.append(item)
            elif isinstance(value, ast.AST) and value._fields:
                pending.append(value)


def at(node: NodeT, origin: ast.AST, file: str | None = None) -> NodeT:
    """``node``, placed where ``origin`` stands in the user's source."""
    place = origin.__dict__
    into = node.__dict__
    into["lineno"] = place.get("lineno", 1)
    into["col_offset"] = place.get("col_offset", 0)
    into["end_lineno"] = place.get("end_lineno")
    into["end_col_offset"] = place.get("end_col_offset")
    into["file"] = place.get("file") if file is None else file
    return node


def location(node: ast.AST) -> Location:
    """Where a node of a Program stands in the user's source."""
    return location_of(node, getattr(node, "file", None) or "<unknown>")


def clone(node: NodeT) -> NodeT:
    """A copy of a tree that may be changed. Symbols, element types, operators and other leaves are shared."""
    kind = kind_of(node)
    copy: NodeT = kind.__new__(kind)
    into = copy.__dict__
    into.update(node.__dict__)
    for key in node._fields:
        value = into.get(key)
        if isinstance(value, list):
            into[key] = [clone(item) if isinstance(item, ast.AST) else item for item in value]
        elif isinstance(value, ast.AST) and value._fields:
            into[key] = clone(value)
    return copy
