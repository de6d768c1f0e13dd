"""Division in emitted kernels, in Triton's language: rounded down; of integers by 0 it gives 0.

To divide an integer by 0 is undefined to LLVM. It takes for granted then whatever keeps the divisor from
being 0: masks, conditions, rounds of loops are gone, for all that is computed. So no divisor here is 0.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.constexpr_function
def is_whole(value: object) -> bool:
    """Whether this is an integer or a tile of integers."""
    if isinstance(value, tl.tensor):
        return not value.dtype.is_floating()
    return isinstance(value, int)


@triton.constexpr_function
def is_tensor(value: object) -> bool:
    """Whether this is a tile, or a number of the running kernel."""
    return isinstance(value, tl.tensor)


@triton.constexpr_function
def integer_type(value: object) -> tl.dtype | None:
    """The type of an integer; of a number the one that it has by itself. None of anything else."""
    if isinstance(value, tl.tensor):
        return value.dtype.scalar if value.dtype.is_int() and not value.dtype.is_bool() else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if -(2**31) <= value < 2**31:
        return tl.int32
    return tl.uint32 if 0 < value < 2**32 else tl.int64 if value < 2**63 else tl.uint64


@triton.constexpr_function
def _may_be_zero(dividend: object, divisor: object) -> bool:
    """Whether integers are divided by what only the running kernel knows."""
    return is_whole(dividend) and is_whole(divisor) and isinstance(divisor, tl.tensor)


@triton.constexpr_function
def _is_zero(dividend: object, divisor: object) -> bool:
    """Whether integers are divided by 0, as the compiler knows."""
    return is_whole(dividend) and isinstance(divisor, int) and divisor == 0


@triton.jit
def _nonzero(divisor):
    """A divisor, or 1 where it is 0."""
    return tl.where(divisor == 0, 1, divisor).to(divisor.dtype)


@triton.constexpr_function
def _as_what(value: object, other: object) -> object:
    """The type in which truth values are divided by something, or it by them; None of what is none."""
    if not isinstance(value, tl.tensor) or not value.dtype.is_bool():
        return None
    if not isinstance(other, tl.tensor):
        return integer_type(int(other)) if isinstance(other, int) else None
    if other.dtype.is_floating():
        return None
    return tl.int32 if other.dtype.is_bool() else other.dtype.scalar


@triton.jit
def _of_counted(divided: tl.constexpr, dividend, divisor):
    """What a division is of both, of which truth values are counted.

    Each is not counted by a function of its own: a number that one gives back as it is becomes an int32.
    """
    counted: tl.constexpr = _as_what(dividend, divisor)
    by: tl.constexpr = _as_what(divisor, dividend)
    if counted is not None:
        dividend = dividend.to(counted)
    if by is not None:
        divisor = divisor.to(by)
    return divided(dividend, divisor)


@triton.jit
def float_of_integers(dividend, divisor):
    """``dividend / divisor`` of integers that have no type together, and of truth values: floats, before they meet."""
    if is_whole(dividend) and is_whole(divisor):
        if is_tensor(dividend):
            dividend = dividend.to(tl.float32)
        if is_tensor(divisor):
            divisor = divisor.to(tl.float32)
    return dividend / divisor


@triton.jit
def float_quotient(dividend, divisor):
    """The quotient of floats in their own type, of which Triton compiles none of 16 bits, nor of two types."""
    if is_whole(dividend) or is_whole(divisor):
        # Triton says that it takes floats.
        result = tl.fdiv(dividend, divisor)
    elif not is_tensor(dividend):
        result = _float_quotient(tl.full((), dividend, tl.float32), divisor)
    elif not is_tensor(divisor):
        result = _float_quotient(dividend, tl.full((), divisor, tl.float32))
    else:
        result = _float_quotient(dividend, divisor)
    return result


@triton.jit
def _float_quotient(dividend, divisor):
    return (dividend / divisor).to((dividend + divisor).dtype)


@triton.jit
def floor_remainder(dividend, divisor):
    """The remainder of a division that rounds down, as Python's: it has the divisor's sign."""
    return _of_counted(_floor_remainder, dividend, divisor)


@triton.jit
def _floor_remainder(dividend, divisor):
    if _may_be_zero(dividend, divisor):
        return _remainder(dividend, _nonzero(divisor))
    elif _is_zero(dividend, divisor):
        return dividend % 1
    else:
        return _remainder(dividend, divisor)


@triton.jit
def _remainder(dividend, divisor):
    remainder = dividend % divisor
    is_off = (remainder != 0) & ((remainder < 0) != (divisor < 0))
    result = tl.where(is_off, remainder + divisor, remainder)
    if result.dtype.is_floating():
        # 0 has the divisor's sign as well.
        none = tl.full((), 0.0, result.dtype)
        result = tl.where(result == 0, tl.where(divisor < 0, none * -1.0, none), result)
        # Of an infinite dividend nothing is left that is a number; NVIDIA's code gives the dividend by infinity.
        taken = dividend - result
        result = tl.where(taken == taken, result, taken)
    return result


@triton.jit
def natural_remainder(dividend, divisor):
    """A remainder where neither is negative and the divisor is not 0: of integers Triton's own."""
    return _of_counted(_natural_remainder, dividend, divisor)


@triton.jit
def _natural_remainder(dividend, divisor):
    if is_whole(dividend) and is_whole(divisor):
        return dividend % divisor
    else:
        return _remainder(dividend, divisor)


@triton.jit
def natural_quotient(dividend, divisor):
    """A quotient, rounded down, where neither is negative and the divisor is not 0: of integers Triton's own."""
    return _of_counted(_natural_quotient, dividend, divisor)


@triton.jit
def _natural_quotient(dividend, divisor):
    if is_whole(dividend) and is_whole(divisor):
        return dividend // divisor
    else:
        return _quotient(dividend, divisor)


@triton.jit
def floor_quotient(dividend, divisor):
    """The quotient of a division that rounds down, as Python's."""
    return _of_counted(_floor_quotient, dividend, divisor)


@triton.jit
def _floor_quotient(dividend, divisor):
    if _may_be_zero(dividend, divisor):
        return tl.where(divisor == 0, 0, _quotient(dividend, _nonzero(divisor)))
    elif _is_zero(dividend, divisor):
        return dividend % 1
    else:
        return _quotient(dividend, divisor)


@triton.jit
def _quotient(dividend, divisor):
    remainder = dividend % divisor
    if remainder.dtype.is_floating():
        is_up = (remainder != 0) & ((remainder < 0) != (divisor < 0))
        # Next to an integer, from which rounding may have taken it. A divisor may be infinite: it is not
        # taken off the dividend.
        quotient = (dividend - remainder) / divisor - tl.where(is_up, 1.0, 0.0)
        result = tl.floor(quotient) + tl.where(quotient - tl.floor(quotient) > 0.5, 1.0, 0.0)
        # 0 has the sign of what is rounded down.
        return tl.where(result == 0, dividend / divisor * 0.0, result)
    else:
        # Nothing is taken off the dividend: the least number of its type would become the greatest.
        quotient = dividend // divisor
        is_down = (remainder != 0) & ((remainder < 0) != (divisor < 0))
        return tl.where(is_down, quotient - 1, quotient)


@triton.jit
def ceil_quotient(dividend, divisor):
    """The quotient of a division of integers that rounds up."""
    return _of_counted(_ceil_quotient, dividend, divisor)


@triton.jit
def _ceil_quotient(dividend, divisor):
    if _may_be_zero(dividend, divisor):
        return tl.where(divisor == 0, 0, _rounded_up(dividend, _nonzero(divisor)))
    elif _is_zero(dividend, divisor):
        return dividend % 1
    else:
        return _rounded_up(dividend, divisor)


@triton.jit
def _rounded_up(dividend, divisor):
    # Nothing is added to the dividend, as `tl.cdiv` does: the greatest number would become the least.
    remainder = dividend % divisor
    is_up = (remainder != 0) & ((remainder < 0) == (divisor < 0))
    quotient = dividend // divisor
    return tl.where(is_up, quotient + 1, quotient)
