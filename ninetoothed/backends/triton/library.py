"""Functions that emitted kernels call, in Triton's language.

A lane that holds no element must not take part in a reduction: ``exclude_…`` puts the identity of one kind of
reduction in its place. Others are for options.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ninetoothed.backends.triton.division import (  # noqa: F401
    ceil_quotient,
    float_of_integers,
    float_quotient,
    floor_quotient,
    floor_remainder,
    natural_quotient,
    natural_remainder,
)
from ninetoothed.backends.triton.orders import bitonic_merge, histogram, sort, topk  # noqa: F401
from ninetoothed.backends.triton.python_numbers import (  # noqa: F401
    MINUS_ZERO,
    as_float,
    compared,
    negative,
    shifted_left,
    shifted_right,
)
from ninetoothed.backends.triton.scans import (  # noqa: F401
    cumprod,
    cumsum,
    flip_existing,
    flip_scattered,
    flip_whole,
    gather,
    is_one_long,
    packed,
    packed_axis,
    softmax,
    unpacked,
)
from ninetoothed.backends.triton.specialization import magic_division


@triton.constexpr_function
def _lowest(dtype: tl.dtype) -> float | int:
    """What every value of the type is at least as great as: the identity of a maximum."""
    if dtype.is_floating():
        # This one has no infinity; 448 is its largest number.
        return -448.0 if dtype.is_fp8e4nv() else float("-inf")
    return -(1 << (dtype.primitive_bitwidth - 1)) if dtype.is_int_signed() else 0


@triton.constexpr_function
def _highest(dtype: tl.dtype) -> float | int:
    """What every value of the type is at most as great as: the identity of a minimum."""
    if dtype.is_floating():
        return 448.0 if dtype.is_fp8e4nv() else float("inf")
    return (1 << (dtype.primitive_bitwidth - dtype.is_int_signed())) - 1


@triton.constexpr_function
def _all_ones(dtype: tl.dtype) -> int:
    """All bits set: the identity of a conjunction of bits."""
    if dtype.is_floating():
        raise TypeError(f"the bits of {dtype} are no set")
    return -1 if dtype.is_int_signed() else (1 << dtype.primitive_bitwidth) - 1


@triton.jit
def _constant(value: tl.constexpr, dtype: tl.constexpr):
    # Triton makes no constants of the 8-bit floats but 0.
    if dtype.is_fp8():
        return tl.full((), value, tl.float32).to(dtype)
    else:
        return tl.full((), value, dtype)


@triton.constexpr_function
def _quarter(width: int, number: int) -> tuple[int, int]:
    """After which size a quarter of what is between ``width // 2`` and ``width`` begins, and its last."""
    start = width // 2 + number * (width // 8)
    return start, start + width // 8


@triton.jit
def ends_in_quarter(size, width: tl.constexpr, number: tl.constexpr):
    """Whether a size is in a quarter of what is between two powers of two."""
    bounds: tl.constexpr = _quarter(width, number)
    return (size > bounds[0]) & (size <= bounds[1])


@triton.jit
def below(position, size, width: tl.constexpr, number: tl.constexpr):
    """``position < size``, where the size is in a quarter: the compiler need not ask of the others."""
    bounds: tl.constexpr = _quarter(width, number)
    return ((position < size) | (position < bounds[0])) & (position < bounds[1])


@triton.constexpr_function
def _is_tile(value: object) -> bool:
    return len(getattr(value, "shape", ())) > 0


@triton.jit
def _first(one, other):
    return one


@triton.jit
def in_own_layout(value):
    """``value``, over which Triton's compiler moves no conversion of layouts, as over no reduction: here of
    one element each."""
    if _is_tile(value):
        return tl.reduce(value[None], 0, _first)
    else:
        return value


@triton.jit
def both(left, right):
    """``left and right``: one of two numbers, as Python's; of tiles whether both are not 0."""
    if _is_tile(left) or _is_tile(right):
        return (left != 0) & (right != 0)
    else:
        return tl.where(left != 0, right, left)


@triton.jit
def either(left, right):
    """``left or right``: one of two numbers, as Python's; of tiles whether one is not 0."""
    if _is_tile(left) or _is_tile(right):
        return (left != 0) | (right != 0)
    else:
        return tl.where(left != 0, left, right)


@triton.jit
def as_position(index):
    """An index in a signed type of at least 32 bits; what has no place in 64 becomes negative."""
    index = tl.full((), 0, tl.int8) + index
    if index.dtype.primitive_bitwidth < 32:
        return index.to(tl.int32)
    else:
        return index.to(tl.int64) if index.dtype.is_int_unsigned() else index


@triton.jit
def after_others(position, count: tl.constexpr):
    """A tile with so many dimensions of size 1 after its own; a number as it is."""
    result = tl.full((), 0, tl.int32) + position
    if len(result.shape) > 0:
        for _ in tl.static_range(count):
            result = tl.expand_dims(result, -1)
    return result


@triton.jit
def before_others(lane, position, count: tl.constexpr):
    """A tile of one dimension, before those of a position and so many others, of size 1."""
    after = tl.full((), 0, tl.int32) + position
    result = lane
    for _ in tl.static_range(count + len(after.shape)):
        result = tl.expand_dims(result, -1)
    return result


@triton.jit
def spread(pointers, value):
    """A value in the shape of pointers, of whose last dimensions it may have some alone."""
    return tl.broadcast(pointers, value)[1]


@triton.jit
def masked_cas(
    pointer, first, cmp, val, mask, sem: tl.constexpr = None, scope: tl.constexpr = None
):
    """An atomic exchange where a mask holds; ``first`` points to a tensor's first element.

    Triton's own has no mask. What is left out exchanges the first element for itself, or nothing is
    there at all.
    """
    where = tl.where(mask, pointer, first)
    zeros = tl.zeros(where.shape, first.dtype.element_ty)
    expected = tl.where(mask, cmp, zeros).to(first.dtype.element_ty)
    wanted = tl.where(mask, val, zeros).to(first.dtype.element_ty)
    if len(mask.shape) > 0:
        is_any = tl.max(mask.to(tl.int32)) > 0
    else:
        is_any = mask
    old = zeros
    if is_any:
        old = tl.atomic_cas(where, expected, wanted, sem=sem, scope=scope)
    return old


@triton.constexpr_function
def _size_type(value: int) -> tl.dtype:
    return tl.int32 if -(1 << 31) <= value < 1 << 31 else tl.int64


@triton.jit
def given_size(value: tl.constexpr):
    """A size that is known when a kernel is compiled, of the type that it would have as an argument."""
    return tl.full((), value, _size_type(value))


@triton.jit
def exclude_zero(value, mask):
    """``value`` where ``mask`` holds, else 0: the identity of a sum, of an exclusive or."""
    return tl.where(mask, value, _constant(0, value.dtype))


@triton.jit
def exclude_one(value, mask):
    """``value`` where ``mask`` holds, else 1: the identity of a product."""
    return tl.where(mask, value, _constant(1, value.dtype))


@triton.jit
def exclude_lowest(value, mask):
    """``value`` where ``mask`` holds, else the least value of its type: the identity of a maximum."""
    return tl.where(mask, value, _constant(_lowest(value.dtype), value.dtype))


@triton.jit
def exclude_highest(value, mask):
    """``value`` where ``mask`` holds, else the greatest value of its type: that of a minimum."""
    return tl.where(mask, value, _constant(_highest(value.dtype), value.dtype))


@triton.jit
def exclude_last(value, mask):
    """``value`` where ``mask`` holds, else what comes last in order: NaN, or the greatest integer."""
    if value.dtype.is_floating():
        return tl.where(mask, value, _constant(float("nan"), value.dtype))
    else:
        return exclude_highest(value, mask)


@triton.jit
def exclude_all_ones(value, mask):
    """``value`` where ``mask`` holds, else all bits set: the identity of a conjunction of bits."""
    return tl.where(mask, value, _constant(_all_ones(value.dtype), value.dtype))


@triton.jit
def existing(value, mask):
    """1 where an element of ``value`` exists, else 0."""
    return tl.where(mask, tl.full(value.shape, 1, tl.int32), 0)


_multiplier = triton.constexpr_function(magic_division.multiplier)


@triton.jit
def quotient(value, divisor: tl.constexpr, bits: tl.constexpr):
    """``value // divisor`` where ``0 <= value < 2**bits``."""
    known: tl.constexpr = _multiplier(divisor, bits)
    if known is None:
        return value // divisor
    else:
        return value * known[0] >> known[1]


@triton.jit
def remainder(value, divisor: tl.constexpr, bits: tl.constexpr):
    """``value % divisor`` where ``0 <= value < 2**bits``."""
    return value - quotient(value, divisor, bits) * divisor


@triton.jit
def fold_neighbours(size: tl.constexpr):
    """The positions along the one dimension of a folded tile that a warp's threads follow."""
    return (
        tl.arange(0, 32)[:, None, None, None] + 32 * tl.arange(0, size // 32)[None, None, None, :]
    )


@triton.jit
def fold_runs(size: tl.constexpr):
    """The positions along the other dimension of a folded tile, eight in succession a thread."""
    return 8 * tl.arange(0, size // 8)[None, :, None, None] + tl.arange(0, 8)[None, None, :, None]


@triton.jit
def unfold_tile(value, dim: tl.constexpr):
    """A folded tile as it is meant; its neighbours are along ``dim``."""
    near: tl.constexpr = value.shape[0] * value.shape[3]
    far: tl.constexpr = value.shape[1] * value.shape[2]
    if dim == 0:
        return tl.reshape(tl.permute(value, (3, 0, 1, 2)), (near, far))
    else:
        return tl.reshape(tl.permute(value, (1, 2, 3, 0)), (far, near))


@triton.jit
def _as_rows(value):
    """``value`` as a matrix of the same rows."""
    columns: tl.constexpr = value.shape[-1]
    return tl.reshape(value, (value.numel // columns, columns))


@triton.jit
def _places(rows: tl.constexpr, columns: tl.constexpr):
    return tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]


@triton.jit
def keep_part(pointer, value):
    """Stores the sums of one part at ``pointer``, in float32."""
    matrix = _as_rows(value)
    tl.store(pointer + _places(matrix.shape[0], matrix.shape[1]), matrix.to(tl.float32))


@triton.jit
def is_last_part(arrivals, num_parts: tl.constexpr):
    """Counts this part as arrived; whether all others were there before. The last resets the count.

    What any part stored before is seen by the last.
    """
    # What every thread has stored comes before the one that counts.
    tl.debug_barrier()
    is_last = tl.atomic_add(arrivals, 1, sem="acq_rel", scope="gpu") == num_parts - 1
    if is_last:
        tl.store(arrivals, 0)
    return is_last


@triton.jit
def sum_of_parts(pointer, like, step: tl.constexpr, num_parts: tl.constexpr):
    """The sum of what all parts kept, first to last, each ``step`` elements after the one before.

    It has the shape and the type of ``like``.
    """
    matrix = _as_rows(like)
    places = _places(matrix.shape[0], matrix.shape[1])
    total = tl.zeros(matrix.shape, tl.float32)
    # Not from this multiprocessor's own cache: others have stored them.
    coming = tl.load(pointer + places, cache_modifier=".cg")
    for part in range(1, num_parts):
        # Asked for before it is waited for.
        here = coming
        coming = tl.load(pointer + part * step + places, cache_modifier=".cg")
        total += here
    return tl.reshape(total + coming, like.shape).to(like.dtype)


#: How often a part asks whether all others have arrived: for 10 to 20 microseconds on an H200.
_MOST_LOOKS = tl.constexpr(64)


@triton.jit
def _step(part, num_parts: tl.constexpr):
    """What a part adds to its tile's counter when it arrives, and once more when it leaves.

    All parts' steps together are 2**31. So the counter is negative from when the last one arrives
    until all have left, and then it is 0 again. The lowest ``num_parts`` bits are not touched.
    """
    one: tl.constexpr = 1 << num_parts
    rest: tl.constexpr = 2147483648 - (num_parts - 1) * one
    return tl.where(part == 0, rest, one)


@triton.jit
def shares_of_part(counter, part, num_parts: tl.constexpr):
    """The shares that this part is to do: a bit for each part whose share it is.

    Counts this part as arrived and waits for the others. One that has waited in vain sets its bit in
    the counter and does nothing; if it is not too late for that, the last to arrive has seen the bit
    and does its share. What any part stored before it arrived is seen by all that have a share to do.
    """
    # What every thread has stored comes before the one that counts.
    tl.debug_barrier()
    due = _step(part, num_parts)
    own = 1 << part
    mine = own
    seen = tl.atomic_add(counter, due, sem="acq_rel", scope="gpu") + due
    if seen < 0:
        gone = seen & ((1 << num_parts) - 1)
        mine += gone
        due -= gone
        for other in tl.static_range(num_parts):
            due += (gone >> other & 1) * _step(other, num_parts)
    else:
        looks = 0
        while (seen >= 0) & (looks < _MOST_LOOKS):
            seen = tl.atomic_add(counter, 0, sem="acquire", scope="gpu")
            looks += 1
        if seen >= 0:
            seen = tl.atomic_add(counter, own, sem="acq_rel", scope="gpu")
            due -= own
            if seen >= 0:
                mine -= own
                due -= due
    # A part that is gone has left all the rest to another.
    tl.atomic_add(counter, due, sem="relaxed", scope="gpu")
    return mine


@triton.jit
def share_of_sum(
    pointer,
    like,
    share,
    num_shares: tl.constexpr,
    dim: tl.constexpr,
    step: tl.constexpr,
    num_parts: tl.constexpr,
):
    """The sum of what all parts kept, first to last, of one of several slices of a matrix.

    Args:
        like: a matrix of the whole one's shape and type.
        dim: the dimension along which it is cut.
        step: how many elements after a part's the next one's are.
    """
    rows: tl.constexpr = like.shape[0] // num_shares if dim == 0 else like.shape[0]
    columns: tl.constexpr = like.shape[1] // num_shares if dim == 1 else like.shape[1]
    first = share * (rows * like.shape[1] if dim == 0 else columns)
    places = first + tl.arange(0, rows)[:, None] * like.shape[1] + tl.arange(0, columns)[None, :]
    total = tl.zeros((rows, columns), tl.float32)
    for part in tl.static_range(num_parts):
        # Not from this multiprocessor's own cache: others have stored them.
        total += tl.load(pointer + part * step + places, cache_modifier=".cg")
    return total.to(like.dtype)


@triton.jit
def partial_sums(value):
    """Of each row the sums of every eighth column: (rows, 8)."""
    rows: tl.constexpr = value.shape[0]
    columns: tl.constexpr = value.shape[1]
    parts: tl.constexpr = min(8, columns)
    return tl.sum(tl.reshape(value, (rows, columns // parts, parts)), axis=1)


@triton.constexpr_function
def _is_vector(value: object) -> bool:
    return len(getattr(value, "shape", ())) == 1


@triton.jit
def as_column(value):
    """A vector as a column, that it may be multiplied with rows; a number as it is."""
    if _is_vector(value):
        return value[:, None]
    else:
        return value
