"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.identities import validity_after_reduction, without_padding
from ninetoothed.backends.numpy.values.casting import Array, cast_array
from ninetoothed.backends.numpy.values.tile import Tile, Validity, joined_validity
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import identity_of
from ninetoothed.language.promotion import checked_dtype, no_product, product_dtype, refuse

_OPERAND_TYPES = (
    dtypes.int8,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
    dtypes.float8_e4m3,
    dtypes.float8_e5m2,
)

#: The least that a GPU's units multiply at once.
_LEAST_DEPTH = 16

_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


def _is_float8(dtype: DType) -> bool:
    return dtype.kind == "float" and dtype.bits == 8


def _check_operands(name: str, a: Any, b: Any) -> None:
    for tile in (a, b):
        if not isinstance(tile, Tile) or tile.ndim < 2:
            shown = tile.shape if isinstance(tile, Tile) else repr(tile)
            raise refuse(f"ntl.{name} needs tiles of two dimensions or more, but got {shown}.")
    if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise refuse(
            f"ntl.{name} needs shapes (…, M, K) and (…, K, N), but got {a.shape} and {b.shape}."
        )


def _check_depth(depth: int) -> None:
    """What a compiler for a GPU refuses is refused here too."""
    if depth < _LEAST_DEPTH:
        raise refuse(
            f"ntl.dot takes tiles whose inner size is {_LEAST_DEPTH} or more, as the units of a GPU do, "
            f"but got {depth}. Tile both tensors with {_LEAST_DEPTH} there: what lies beyond them is padding."
        )


def _check_types(a: DType, b: DType, out_dtype: DType) -> None:
    both_are_float8 = _is_float8(a) and _is_float8(b)
    for dtype in (a, b):
        if dtype.kind != "float" and dtype is not dtypes.int8:
            raise refuse(
                f"ntl.dot of integers needs int8, but got {dtype}; cast to int8 or a float."
            )
    if a not in _OPERAND_TYPES or b not in _OPERAND_TYPES or not (a is b or both_are_float8):
        raise refuse(f"ntl.dot needs two tiles of one type, but got {a} and {b}; cast one.")
    if reason := no_product(a, out_dtype):
        raise refuse(reason)


def _product(a: Array, b: Array, operand: DType) -> Array:
    """The product in float32 or float64, whichever holds it: NumPy is slow with other types."""
    # A sum of products of two int8 is exact in float64.
    between = np.float64 if operand in (dtypes.int8, dtypes.float64) else np.float32
    return np.matmul(a.astype(between, copy=False), b.astype(between, copy=False))


def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: DType = dtypes.float32,
) -> Tile:
    """The matrix product over the last two dimensions, accumulated in float32, plus ``acc``.

    Args:
        input: of shape (…, M, K).
        other: of shape (…, K, N).
        acc: of shape (…, M, N) and the result's type, or None.
        input_precision: checked only: products are exact in IEEE precision here.
        allow_tf32: as ``input_precision``.
        max_num_imprecise_acc: of no consequence here.
        out_dtype: float32 or float16 of such and of narrower floats; int8 gives int32, float64 float64, and
            bfloat16 float32.
    """
    _check_operands("dot", input, other)
    out_dtype = checked_dtype(out_dtype)
    _check_types(input.dtype, other.dtype, out_dtype)
    if input_precision is not None and str(input_precision).lower() not in _PRECISIONS:
        raise refuse(f"input_precision is one of {_PRECISIONS}, but got {input_precision!r}.")
    dtype = product_dtype(input.dtype, out_dtype)
    assert dtype is not None
    _check_depth(input.shape[-1])
    a, b = (without_padding(tile, identity_of("dot")) for tile in (input, other))
    product = _product(a, b, input.dtype)
    rows = (mask[..., None] for mask in validity_after_reduction(input, -1, False))
    columns = (mask[..., None, :] for mask in validity_after_reduction(other, -2, False))
    return _accumulated(product, acc, dtype, (*rows, *columns))


def _accumulated(product: Array, acc: Any, dtype: DType, validity: Validity) -> Tile:
    """The product's elements, which exist where a row meets a column, and what is added to them."""
    if acc is not None:
        if not isinstance(acc, Tile) or acc.shape != product.shape or acc.dtype is not dtype:
            found = f"{acc.dtype}{list(acc.shape)}" if isinstance(acc, Tile) else repr(acc)
            raise refuse(
                f"The accumulator must be {dtype}{list(product.shape)} as the product is, but got "
                f"{found}."
            )
        product = product + acc.data.astype(product.dtype, copy=False)
        validity = joined_validity(acc, Tile(product, dtype, validity))
    return Tile(product.astype(dtype.numpy, copy=False), dtype, validity)


_FORMATS = {
    "e4m3": dtypes.float8_e4m3,
    "e5m2": dtypes.float8_e5m2,
    "bf16": dtypes.bfloat16,
    "fp16": dtypes.float16,
}

#: The sixteen values of the 4-bit float with two bits of exponent and one of mantissa.
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def _decoded(tile: Tile, number_format: str, axis: int) -> Array:
    """``tile`` in float32; of a 4-bit format, two of an element along ``axis``, low bits first."""
    if number_format == "e2m1":
        if tile.dtype is not dtypes.uint8:
            raise refuse(f"The e2m1 format is packed as uint8, but got {tile.dtype}.")
        pairs = np.stack((_E2M1[tile.data & 15], _E2M1[tile.data >> 4]), axis=axis % tile.ndim + 1)
        shape = list(tile.shape)
        shape[axis] *= 2
        return pairs.reshape(shape)
    if number_format not in _FORMATS:
        raise refuse(
            f"A scaled product's format is one of {('e2m1', *_FORMATS)}, but got {number_format!r}."
        )
    dtype = _FORMATS[number_format]
    return cast_array(tile.to(dtype, bitcast=True).data, dtype, dtypes.float32)


def _scale(scale: Any, rows: int, depth: int) -> Array:
    """The scales, one for each of ``rows`` and group along ``depth``, one for each element."""
    if scale is None:
        return np.float32(1)
    if scale.dtype is dtypes.float8_e4m3:
        group, factors = 16, scale.data.astype(np.float32)
    else:
        group = 32
        exponents = scale.data.astype(np.float32) - np.float32(127)
        factors = np.where(scale.data == 255, np.float32(np.nan), np.exp2(exponents))
    if scale.shape[-2:] != (rows, depth // group):
        raise refuse(f"A scale must be shaped {(rows, depth // group)}, but got {scale.shape}.")
    return np.repeat(factors, group, axis=-1)


def dot_scaled(
    lhs: Tile,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Tile,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: DType = dtypes.float32,
) -> Tile:
    """The matrix product of two tiles in a microscaling format, in float32, plus ``acc``.

    Source: OCP Microscaling Formats (MX) Specification 1.0. ``lhs_scale`` is shaped (M, K // 32),
    ``rhs_scale`` (N, K // 32), of uint8 exponents; None for none.
    """
    if checked_dtype(out_dtype) is not dtypes.float32:
        raise refuse(f"ntl.dot_scaled gives float32, but out_dtype is {out_dtype}.")
    left = _decoded(lhs, str(lhs_format), -1 if lhs_k_pack else -2)
    right = _decoded(rhs, str(rhs_format), -2 if rhs_k_pack else -1)
    _check_operands("dot_scaled", Tile(left, dtypes.float32), Tile(right, dtypes.float32))
    depth = left.shape[-1]
    left = left * _scale(lhs_scale, left.shape[-2], depth)
    right_scale = _scale(rhs_scale, right.shape[-1], depth)
    right = right * (right_scale.swapaxes(-1, -2) if right_scale.ndim else right_scale)
    return _accumulated(np.matmul(left, right), acc, dtypes.float32, ())
