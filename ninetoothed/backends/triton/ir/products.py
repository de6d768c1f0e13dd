"""A program's products and their sizes: what a call must fulfil for the matrix unit to take them.

Sizes are those of types, each held in the next power of two: nothing here knows a call or a device.
"""

from __future__ import annotations

from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression


@dataclass(frozen=True)
class Product:
    """A product of matrices.

    Attributes:
        rows, inner, columns: its sizes.
        left: the tensor of whose type the left operand's elements are.
        right: likewise.
        is_kept: whether the left operand is in registers through all rounds of the loop.
    """

    rows: Expression
    inner: Expression
    columns: Expression
    left: str
    right: str
    is_kept: bool = False


@dataclass(frozen=True)
class Needs:
    """What must hold of a call.

    Attributes:
        products: what the matrix unit must take.
        columns: of matrices.
        equal: pairs of sizes that must be the same.
    """

    products: tuple[Product, ...] = ()
    columns: tuple[Expression, ...] = ()
    equal: frozenset[tuple[Expression, Expression]] = frozenset()
