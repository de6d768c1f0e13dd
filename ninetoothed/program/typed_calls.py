"""A call whose arguments are typed, and what is said where its result cannot be."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ninetoothed.errors import ApplicationError, near
from ninetoothed.language import dtypes, operations
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import integer_bounds
from ninetoothed.program.arguments import Given
from ninetoothed.program.effects import called_name, operation_of
from ninetoothed.program.nodes import DTypeRef, ElementType, LanguageRef, Padded, location, walk
from ninetoothed.program.operands import no_value
from ninetoothed.program.types import (
    UNKNOWN,
    Shape,
    ValueType,
    broadcast,
    is_one,
    met,
    of_dtype,
    together,
    type_of,
)

#: Why no element of a value is picked by its position, and what to do.
COMPUTED = (
    "is a value that the running kernel has computed: its elements are held by several threads, and are not "
    "picked by position. Slice the parameter that it is computed from (`x[1:]`), or select with "
    "`ntl.gather`, `ntl.split` or `ntl.where`."
)


class Call(Given):
    """A call whose arguments are typed.

    Attributes:
        dtype_of: the element type of a parameter, by its name; None where it is not known.
        is_checked: whether what cannot be is an error; else nothing is known of it.
        is_wide: whether it is of a kernel that has elements of float64; None where each call says.
    """

    def __init__(
        self,
        node: ast.Call,
        dtype_of: Callable[[str], DType | None],
        is_checked: bool,
        is_wide: bool | None = False,
    ) -> None:
        super().__init__(node)
        self.dtype_of = dtype_of
        self.is_checked = is_checked
        self.is_wide = is_wide

    def type(self, index: int) -> ValueType:
        """The type of an argument."""
        node = self.get(index)
        return UNKNOWN if node is None else type_of(node)

    def named(self, name: str, index: int) -> ValueType:
        node = self.node_of(name, index)
        return UNKNOWN if node is None else type_of(node)

    def operands(self) -> list[ValueType]:
        """The types of the arguments that are values."""
        nodes = [*self.all_from(0), *self.keywords.values()]
        none = DTypeRef | ElementType | LanguageRef
        types = [type_of(node) for node in nodes if not isinstance(node, none)]
        flags = [type_of(node) for node in self.keywords.values() if isinstance(node, ast.Constant)]
        return [each for each in types if not any(each is flag for flag in flags)]

    def dtype(self, node: ast.expr | None, is_needed: bool = False) -> DType | None:
        """The element type that an argument names; None where it is not known, or none is needed."""
        if isinstance(node, DTypeRef):
            return node.dtype
        if isinstance(node, ElementType):
            return self.dtype_of(node.parameter)
        if isinstance(node, LanguageRef) and node.name in ("int1", "bool"):
            return dtypes.bool
        if isinstance(node, ast.Constant) and (is_needed or node.value is not None):
            self.refuse(
                f"An element type such as ntl.float32 is needed here, but got {node.value!r}."
            )
        if node is not None and (found := type_of(node)).shape:
            self.refuse(
                f"An element type such as ntl.float32 is needed here, but got a tile of shape {shown(found)}."
            )
        return None

    def refuse(self, message: str) -> None:
        """What this is cannot be."""
        if self.is_checked:
            raise ApplicationError(message, location(self.node))

    def met(self, types: Sequence[ValueType], name: str) -> Shape | None:
        """The shape of values that meet element by element."""
        shapes = [each.shape for each in types]
        try:
            return broadcast(shapes)
        except ValueError:
            self.refuse(
                f"`ntl.{name}` needs tiles whose shapes match or are 1, but got {shown(*types)}."
            )
            return None

    def sizes(self, first: int, most: int | None = None) -> Shape | None:
        """A shape that is given, whose sizes are integers and 1 or more."""
        for node in map(unpadded, self.listed("shape", first, most)):
            size = literal(node)
            if type_of(node).shape:
                size = f"a tile of shape {shown(type_of(node))}"
            if not isinstance(size, int) and size is not ...:
                self.refuse(f"A tile's size must be an integer, but got {size}.")
            elif isinstance(size, int) and size < 1:
                self.refuse(f"A tile's size must be 1 or more, but got {size}.")
        return self.shape(first, most)

    def require_axes(self, nodes: Iterable[ast.expr]) -> None:
        """What is given as dimensions must be integers."""
        for node in nodes:
            axis = literal(node)
            if type_of(node).shape:
                axis = f"a tile of shape {shown(type_of(node))}"
            if not isinstance(axis, int) and axis is not ...:
                self.refuse(f"An axis must be an integer, but got {axis}.")

    def require_tile(self, node: ast.expr | None, name: str) -> None:
        """What is moved is a tile, or what the running kernel computes: a literal has no type."""
        given = ... if node is None else literal(node)
        if given is not ...:
            self.refuse(
                f"`ntl.{name}` needs tiles, but got {given!r}: of a number `ntl.full(shape, number, dtype)` "
                "makes one."
            )

    def axis(self, name: str, index: int, rank: int | None, default: int | None = None) -> Any:
        """A dimension that is given; None where none is, `...` where it is not known."""
        axis, node = self.constant(name, index), self.node_of(name, index)
        if node is not None and axis is not None:
            self._require_axis(node)
        axis = default if axis is None else axis
        if not isinstance(axis, int) or rank is None:
            return ... if axis is not None else None
        if not -rank <= axis < rank:
            self.refuse(f"Axis {axis} is out of range for a tile of {rank} dimensions.")
            return ...
        return axis % rank if rank else 0

    def _require_axis(self, node: ast.expr) -> None:
        """One dimension is given, and not several."""
        what, instead = "" if literal(node) is not ... else no_value(node), "give its number"
        if type_of(node).items is not None:
            operation = operation_of(self.node)
            is_of_all = operation is not None and operation.shape == "reduced"
            what, instead = (
                "a tuple",
                (
                    f"`ntl.{called_name(self.node)}` goes along one dimension"
                    f"{' (or, without an axis, along all)' * is_of_all}; call it once for each"
                ),
            )
        if what:
            self.refuse(f"An axis must be an integer, but got {what}: {instead}.")
        self.require_axes([node])

    def flag(self, name: str, index: int) -> Any:
        """A truth value that is given; None where none is, `...` where it is not known."""
        node, given = self.node_of(name, index), self.constant(name, index)
        if node is None:
            return None
        what = no_value(node)
        if isinstance(given, float):
            what = repr(given)
        elif type_of(node).items is not None:
            what = "a tuple"
        if what:
            self.refuse(
                f"`{name}` of `ntl.{called_name(self.node)}` must be True or False, but got {what}."
            )
        return given


def unpadded(node: ast.expr) -> ast.expr:
    """The size that is held in a power of two."""
    return node.value if isinstance(node, Padded) else node


def literal(node: ast.expr) -> Any:
    """What a literal says; `...` of anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return -value if isinstance(value, int | float) else ...
    return node.value if isinstance(node, ast.Constant) else ...


#: What the tile of a parameter has, and its elements by themselves do not.
_OF_PARAMETERS = frozenset({"offsets", "source"})


def no_member(name: str) -> str:
    """Why a tile or a number has no attribute of a name; empty where it, or a pointer, may have it."""
    operation = operations.find(name)
    if name in operations.OF_TILES or (operation is not None and operation.member_of):
        return ""
    if name in _OF_PARAMETERS:
        return (
            f"A value has no {name!r}: a variable, or an item of a list, holds the elements that a tile had. "
            f"Ask the tile itself by its parameter's name, as in `x.{name}`."
        )
    known = {*operations.names(lambda each: each.member_of == "tile"), *operations.OF_TILES}
    return (
        f"A tile has no {name!r}.{near(name, known)} It has what Triton's tensors have; functions of tiles "
        "are in `ninetoothed.language`."
    )


def several(value: ValueType) -> str:
    """Why a value is not one number; empty where it may be."""
    if not any(isinstance(size, int) and size > 1 for size in value.shape or ()):
        return ""
    return (
        f"One number is needed here, but the tile's shape is {shown(value)}; ntl.where chooses element by "
        "element, ntl.max and ntl.sum reduce to one."
    )


def too_narrow(value: ValueType) -> str:
    """Why nothing is computed with a value; empty where something may be.

    Beside a wider tile, floats of 8 bits become as wide; the greatest is found in float32.
    """
    dtype = value.dtype
    if dtype is None or dtype.kind != "float" or dtype.bits > 8:
        return ""
    return (
        f"Tiles of {dtype} are loaded, stored, moved and multiplied by `ntl.dot`, but no device computes "
        "with them: cast first, as in `.to(ntl.float32)`."
    )


def no_cast(value: ValueType, own: DType | None) -> str:
    """Why a value does not become one of another type; empty where it does, or the types are not known."""
    # A number, a size and what is made of them are integers of 32 bits or more.
    of_integers = dtypes.int32 if value.kind in ("int", "bool") else None
    pair = [value.dtype or of_integers, own]
    narrow = [each for each in pair if each is not None and each.kind == "float" and each.bits == 8]
    wide = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
    if not narrow or None in pair or pair[0] is own or any(each in wide for each in pair):
        return ""
    return (
        f"Tiles of {narrow[0]} are made of floats of 16 or 32 bits, and become such, on any device, but this "
        f"makes {own} of {pair[0]}: cast twice, as in `.to(ntl.float32).to(...)`."
    )


def uncomputed(operands: Sequence[ValueType]) -> str:
    """Why nothing is computed with values together; empty where something may be."""
    narrow = [each for each in operands if too_narrow(each)]
    if not narrow:
        # What is wider meets in something that is.
        return ""
    is_beside_integers = any(each.kind in ("int", "bool") for each in operands)
    if is_beside_integers or len({each.dtype for each in narrow}) > 1:
        return too_narrow(narrow[0])
    found = together(operands, ())
    return too_narrow(found) or next(
        filter(None, (no_cast(each, found.dtype) for each in operands)), ""
    )


def no_rounding(value: ValueType, own: DType | None, rounding: object) -> str:
    """Why a value is not rounded as is said to another type; empty where it may be."""
    given = value.dtype
    if given is None or own is None or given is own or not isinstance(rounding, str):
        return ""
    if given.kind != "float" or own.kind != "float" or given.bits <= own.bits:
        return (
            "`fp_downcast_rounding` is for a conversion to a narrower float, but this makes "
            f"{own} of {given}."
        )
    targets = (dtypes.float16, dtypes.bfloat16, dtypes.float8_e5m2)
    if rounding == "rtz" and (given is not dtypes.float32 or own not in targets):
        return (
            "Devices round toward zero from float32 to float16, bfloat16 and float8e5, but this makes "
            f"{own} of {given}: cast to float32 first, or leave `fp_downcast_rounding` out."
        )
    return ""


def shown(*types: ValueType) -> str:
    """Shapes as an error has them."""
    return " and ".join(
        str(each)[str(each).find("[") :] if each.shape else "a number" for each in types
    )


def not_held(number: object, dtype: DType | None, place: str) -> str:
    """Why a literal does not fit elements of a type; ``""`` where it does, or that is not known."""
    if not isinstance(number, int) or dtype is None or dtype.kind not in ("int", "uint"):
        return ""
    least, most = integer_bounds(dtype)
    if least <= number <= most:
        return ""
    return (
        f"The number {number} does not fit {place}, whose elements are {dtype}, {least} to {most}. "
        f"To keep its lowest bits, cast it: `ntl.cast({number}, ntl.{dtype.triton_name})`."
    )


def not_stored(value: ValueType, place: str, shape: Shape | None, what: str = "value") -> str:
    """Why a value, or the mask of one, does not fit where it is stored to or loaded from."""
    own = "one number" if shape == () else f"of shape {shown(ValueType(shape))}"
    given = "A value" if what == "value" else f"`{what}`"
    verb = "stored" if what == "value" else "applied"
    reason = f"{given} of shape {shown(value)} cannot be {verb} to {place}, which is {own}"
    if shape == () and all(map(is_one, value.shape or (None,))):
        return f"{reason}: `.item()` makes one number of it."
    return f"{reason}."


def is_of_bits(node: ast.AST) -> bool:
    """Whether this is arithmetic with truth values alone."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        return all(type_of(operand).kind == "bool" for operand in (node.left, node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return type_of(node.operand).kind == "bool"
    return False


def returns_of(helper: ast.FunctionDef) -> list[ValueType]:
    """The types of what a typed function returns, at each of its returns."""
    return [type_of(n.value) for n in walk(helper) if isinstance(n, ast.Return) and n.value]


def returned(helper: ast.FunctionDef) -> ValueType:
    """The element type of what each return of a typed function gives, of no known shape."""
    found = returns_of(helper)
    return element(functools.reduce(met, found)) if found else UNKNOWN


def element(value: ValueType) -> ValueType:
    """One element of a tile, or one of each tile of several."""
    if value.items is not None:
        return ValueType(items=tuple(map(element, value.items)))
    if value.dtype is None:
        return ValueType(None, value.kind, least_bits=value.least_bits)
    return of_dtype(value.dtype)


def retyped_by(
    helper: ast.FunctionDef, items: Sequence[ValueType]
) -> list[tuple[ValueType, ValueType]]:
    """What a function is given and what it returns in its place, where their element types differ."""
    pairs = [pair for each in returns_of(helper) for pair in zip(items, each.items or (each,))]
    return [
        (item, new)
        for item, new in pairs
        if (item.kind and new.kind and item.kind != new.kind)
        or (item.dtype and new.dtype and item.dtype is not new.dtype)
    ]
