"""A program's products and their sizes: what a call must fulfil for the matrix unit to take them.

Sizes are texts of expressions of the kernel's parameters: nothing here knows a call or a device.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """A product of matrices.

    Attributes:
        rows, inner, columns: its sizes, each the text of a constant expression.
        left: the tensor of whose type the left operand's elements are.
        right: likewise.
    """

    rows: str
    inner: str
    columns: str
    left: str
    right: str


@dataclass(frozen=True)
class Needs:
    """What must hold of a call.

    Attributes:
        products: what the matrix unit must take.
        columns: of products that values lie as, each the text of a constant expression.
        equal: pairs of such texts that must have the same value.
    """

    products: tuple[Product, ...] = ()
    columns: tuple[str, ...] = ()
    equal: frozenset[tuple[str, str]] = frozenset()
