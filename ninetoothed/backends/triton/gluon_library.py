"""Functions that kernels emitted in Gluon call.

A row of a product lies in four threads, which hold eight columns in a row together, then the next
eight. What a function here does with these eighths costs no exchange between threads, and no register
for each column. What it does once for a row is not done for each of its elements.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

#: So many columns lie next to each other in one group of threads.
_TOGETHER: gl.constexpr = gl.constexpr(8)

#: Beyond these a number's reciprocal is, or may be, no normal float32.
_LARGE: gl.constexpr = gl.constexpr(2.0**126)
_SMALL: gl.constexpr = gl.constexpr(2.0**-126)


@gluon.jit
def _in_eighths(value):
    """(rows, columns) as (rows, columns / 8, 8)."""
    rows: gl.constexpr = value.shape[0]
    columns: gl.constexpr = value.shape[1]
    return gl.reshape(value, (rows, columns // _TOGETHER, _TOGETHER))


@gluon.jit
def partial_sums(value, layout: gl.constexpr):
    """Of each row the sums of every eighth column: (rows, 8)."""
    return gl.convert_layout(gl.sum(_in_eighths(value), axis=1), layout)


@gluon.jit
def row_max(value, layout: gl.constexpr):
    """Of each row the maximum: first of every eighth column, in no thread after another."""
    return gl.convert_layout(gl.max(gl.max(_in_eighths(value), axis=1), axis=1), layout)


@gluon.jit
def divide_rows(value, divisor):
    """``value / divisor``, a column, with one reciprocal for each row.

    The machine divides two float32 like that (PTX ISA, ``div.full``), and the bits are the same: it
    multiplies one by the other's reciprocal, both scaled where that is none of full precision. But
    the compiler chooses the scale for each element anew.
    """
    if value.dtype == gl.float32 and divisor.dtype == gl.float32:
        size = gl.abs(divisor)
        scale = gl.where(size > _LARGE, 0.25, gl.where(size < _SMALL, 16777216.0, 1.0))
        return value * scale * (1.0 / (divisor * scale))
    else:
        return value / divisor


@gluon.jit
def columns_within(limit, rows: gl.constexpr, columns: gl.constexpr, layout: gl.constexpr):
    """Where ``column - row <= limit``, in a matrix of so many rows and columns.

    A comparison of two vectors would keep a register for each column of a thread through the loop.
    """
    parts = _in_eighths(gl.zeros((rows, columns), gl.int32, layout))
    # The layouts of vectors along each of the three dimensions.
    along: gl.constexpr = parts.type.layout
    row = gl.arange(0, rows, gl.SliceLayout(1, gl.SliceLayout(2, along)))
    eighth = gl.arange(0, columns // _TOGETHER, gl.SliceLayout(0, gl.SliceLayout(2, along)))
    within = gl.arange(0, _TOGETHER, gl.SliceLayout(0, gl.SliceLayout(1, along)))
    rest = (row + limit)[:, None, None] - within[None, None, :]
    holds = (eighth * _TOGETHER)[None, :, None] <= rest
    return gl.convert_layout(gl.reshape(holds, (rows, columns)), layout)


@gluon.jit
def negative(value):
    """``-value``; of a float its sign is another, of 0.0 too."""
    if isinstance(value, gl.tensor) and value.dtype.is_floating():
        return value * -1.0
    else:
        return -value


@gluon.jit
def floor_quotient(dividend, divisor):
    """The quotient of a division of integers that rounds down, as Python's; by 0 it is 0 (`division`)."""
    nonzero = gl.where(divisor == 0, 1, divisor)
    quotient = dividend // nonzero
    rest = dividend - quotient * nonzero
    is_up = (rest != 0) & ((rest < 0) != (nonzero < 0))
    return gl.where(divisor == 0, 0, quotient - is_up.to(gl.int32))
