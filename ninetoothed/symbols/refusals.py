"""What Python asks of numbers and a symbol has not: each says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ninetoothed.errors import ArgumentError


class Refusals:
    """An integer that is not known yet, as Python's functions and operators meet it."""

    __slots__ = ()

    def _refused(self, *other: Any) -> Any:
        raise ArgumentError(
            f"`{self}` is a symbol, which has no shifts, no `^`, no `~`, no `@` and no `abs`: symbols have sums, "
            "products and quotients; `s << n` is `s * 2**n`, and `s >> n` is `s // 2**n`"
        )

    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __xor__ = __rxor__ = _refused
    __matmul__ = __rmatmul__ = __invert__ = __abs__ = _refused

    def __truediv__(self, other: Any) -> Any:
        raise ArgumentError(
            f"`({self}) / {other}` may be no integer, and symbols are; `a // b` rounds down, "
            "`(a + b - 1) // b` rounds up"
        )

    def __rtruediv__(self, other: Any) -> Any:
        raise ArgumentError(f"`{other} / ({self})` may be no integer; `a // b` rounds down")

    def __rpow__(self, base: Any) -> Any:
        raise ArgumentError(f"`{base} ** ({self})` has no exponent that is known")

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentError(f"`{self}` is an integer expression and cannot be iterated over")

    def __index__(self) -> int:
        """What `int`, `float`, `range` and positions in lists ask for."""
        raise ArgumentError(
            f"`{self}` is a symbol, whose number is known when the kernel is called, and Python needs one here: "
            "compute with symbols by `+ - * // %`, or give a number"
        )

    def __round__(self, *digits: Any) -> Any:
        """An integer is round already."""
        return self if not digits else self.__index__()

    __trunc__ = __floor__ = __ceil__ = __round__

    def __divmod__(self: Any, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self: Any, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def check_operand(self, other: Any) -> None:
        """Raises for what no integer is computed with; what else is no expression may know symbols itself."""
        if other is None or isinstance(other, float | complex | str | bytes | list | tuple):
            raise ArgumentError(
                f"`{self}` is a symbol, which is an integer and meets integers and symbols, but got {other!r}"
            )
