"""Scans, flips and gathers along a dimension, for emitted kernels.

Where a thread holds several copies of an element, which Triton may have in a tile with dimensions of size 1,
its scans are wrong or refused (seen in 3.6, on an H200). So a tile is scanned without such dimensions.

3.6 does not compile a gather in two or more dimensions whose index is longer than a short source, where a program
has several warps: each has a part of the index, and is asserted to have the source's. A source that is repeated
till it is as long as its index has its lanes where the index has them.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.constexpr_function
def _is_tuple(value: object) -> bool:
    return isinstance(value, (tuple, tl.tuple))


@triton.constexpr_function
def _shape(value: Any) -> list[int]:
    """The shape of a tile, or of those in a tuple."""
    tile = value[0] if _is_tuple(value) else value
    return [getattr(size, "value", size) for size in tile.shape]


@triton.constexpr_function
def is_one_long(value: Any, axis: int) -> bool:
    """Whether a tile, or a tuple of some, has a dimension of size 1."""
    return _shape(value)[axis] == 1


@triton.constexpr_function
def packed_axis(value: Any, axis: int) -> int:
    """What ``axis`` is in `packed`."""
    shape = _shape(value)
    return sum(size != 1 for size in shape[: axis % len(shape)])


@triton.constexpr_function
def _packed_shape(value: Any, axis: int) -> tuple[int, ...]:
    shape = _shape(value)
    return tuple(size for dim, size in enumerate(shape) if size != 1 or dim == axis % len(shape))


@triton.jit
def _each_packed(values, axis: tl.constexpr):
    first = tl.reshape(values[0], _packed_shape(values[0], axis))
    if len(values) == 1:
        return (first,)
    else:
        return (first,) + _each_packed(values[1:], axis)  # noqa: RUF005


@triton.jit
def _each_unpacked(values, like):
    first = tl.reshape(values[0], like.shape)
    if len(values) == 1:
        return (first,)
    else:
        return (first,) + _each_unpacked(values[1:], like)  # noqa: RUF005


@triton.jit
def packed(value, axis: tl.constexpr):
    """A tile, or a tuple of some, without dimensions of size 1 beside ``axis``."""
    if _is_tuple(value):
        return _each_packed(value, axis)
    else:
        return _each_packed((value,), axis)[0]


@triton.jit
def unpacked(value, like):
    """What `packed` gave of ``like``, in the shape that it had."""
    if _is_tuple(value):
        return _each_unpacked(value, like[0])
    else:
        return _each_unpacked((value,), like)[0]


@triton.jit
def cumsum(
    input, axis: tl.constexpr = 0, reverse: tl.constexpr = False, dtype: tl.constexpr = None
):
    """Triton's own, of any tile."""
    if is_one_long(input, axis):
        # What Triton makes of the type.
        return input.to(tl.cumsum(tl.zeros((2,), input.dtype), 0, dtype=dtype).dtype)
    else:
        along: tl.constexpr = packed_axis(input, axis)
        return unpacked(tl.cumsum(packed(input, axis), along, reverse, dtype), input)


@triton.jit
def cumprod(input, axis: tl.constexpr = 0, reverse: tl.constexpr = False):
    """Triton's own, of any tile."""
    if is_one_long(input, axis):
        return input.to(tl.cumprod(tl.zeros((2,), input.dtype), 0).dtype)
    else:
        along: tl.constexpr = packed_axis(input, axis)
        return unpacked(tl.cumprod(packed(input, axis), along, reverse), input)


@triton.jit
def flip_existing(value, mask, dim: tl.constexpr):
    """``value`` with the elements for which ``mask`` holds, the first ones, reversed along ``dim``."""
    exists = tl.where(mask, tl.full(value.shape, 1, tl.int32), 0)
    place = cumsum(tl.full(value.shape, 1, tl.int32), axis=dim) - 1
    count = tl.sum(exists, axis=dim, keep_dims=True)
    last = tl.where(place < count, count - 1 - place, place)
    return tl.gather(value, last, dim)


@triton.constexpr_function
def _bit_length(size: int) -> int:
    return size.bit_length()


@triton.jit
def flip_scattered(value, mask, dim: tl.constexpr):
    """``value`` with the elements for which ``mask`` holds reversed along ``dim``, where those are."""
    ones = tl.full(value.shape, 1, tl.int32)
    so_far = cumsum(tl.where(mask, ones, 0), axis=dim)
    # As many as this one has after it stand before the one that is looked for.
    others = tl.max(so_far, axis=dim, keep_dims=True) - so_far
    found = ones - 1
    for halvings in tl.static_range(1, _bit_length(value.shape[dim])):
        step = value.shape[dim] >> halvings
        found = tl.where(tl.gather(so_far, found + step - 1, dim) <= others, found + step, found)
    return tl.gather(value, tl.where(mask, found, cumsum(ones, axis=dim) - 1), dim)


@triton.jit
def flip_whole(value, dim: tl.constexpr):
    """``value`` reversed along ``dim``; Triton has no ``flip`` for a vector of one element, or a number."""
    if len(value.shape) == 0 or value.numel == 1:
        return value
    else:
        return tl.flip(value, dim)


@triton.constexpr_function
def _times(src: Any, index: Any, axis: int) -> int:
    """How many times as long as its source the index of a tile of two or more dimensions is."""
    source, wanted = _shape(src), _shape(index)
    fits = len(source) == len(wanted) > 1 and -len(source) <= axis < len(source)
    return wanted[axis] // source[axis] if fits else 1


@triton.constexpr_function
def _repeated(src: Any, times: int, axis: int, is_one: bool) -> tuple[int, ...]:
    """The shape of a source that comes several times, in a dimension of its own or as one."""
    sizes = _shape(src)
    place = axis % len(sizes)
    own = (times * sizes[place],) if is_one else (times, sizes[place])
    return (*sizes[:place], *own, *sizes[place + 1 :])


@triton.jit
def gather(src, index, axis: tl.constexpr):
    """Triton's own, with an index of any length."""
    times: tl.constexpr = _times(src, index, axis)
    if times > 1:
        apart: tl.constexpr = _repeated(src, times, axis, False)
        together: tl.constexpr = _repeated(src, times, axis, True)
        several = tl.broadcast_to(tl.expand_dims(src, axis % len(src.shape)), apart)
        return tl.gather(tl.reshape(several, together), index, axis)
    else:
        return tl.gather(src, index, axis)


@triton.jit
def softmax(x, dim: tl.constexpr = None, ieee_rounding: tl.constexpr = False):
    """The exponentials over their sum along a dimension, by default the first."""
    along: tl.constexpr = 0 if dim is None else dim
    powers = tl.exp(x - tl.max(x, along, keep_dims=True))
    return tl.fdiv(powers, tl.sum(powers, along, keep_dims=True), ieee_rounding)
