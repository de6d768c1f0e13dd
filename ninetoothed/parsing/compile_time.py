"""How large what Python computes while an application is parsed may become.

``9**9**9`` takes Python longer than anybody waits, and whatever is made of it no device holds. What would be
too large is refused before it is computed where its size can be told, else as soon as it is there.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from ninetoothed.errors import ApplicationError

#: The widest integer; sixteen of a device's make one.
MOST_BITS = 1024

#: The longest string or tuple.
MOST_ITEMS = 1 << 16

#: The largest number whose factorial is computed: it is about as wide as an integer may be.
_MOST_FACTORS = 170


def check_operation(function: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    """Raises ApplicationError where a function of Python's would make something too large."""
    match operands:
        case int(one), int(other), *_ if function in (operator.pow, pow):
            is_small = abs(one) <= 1 or other <= 0 or len(operands) > 2
            if not is_small and other * (one.bit_length() - 1) > MOST_BITS:
                raise _too_wide()
        case int(), int(other) if function is operator.lshift and other > MOST_BITS:
            raise _too_wide()
        case (str() | bytes() | tuple() | list() as items, int(count)) | (
            int(count),
            str() | bytes() | tuple() | list() as items,
        ) if function is operator.mul:
            check_length(len(items) * count)
        case tuple(one), tuple(other) if function is operator.add:
            check_length(len(one) + len(other))
        case str(form), given if function is operator.mod:
            starred = given if isinstance(given, tuple) and "*" in form else ()
            check_length(max([_widest(form), *(n for n in starred if isinstance(n, int))]))
        case _, str(form) if function is format:
            check_length(_widest(form))
        case int(one), *_ if function in (math.factorial, math.comb, math.perm):
            if one > (_MOST_FACTORS if function is math.factorial else MOST_BITS):
                raise _too_wide()


def _widest(form: str) -> int:
    """The largest number in a format."""
    return max((int(digits[:18]) for digits in re.findall(r"\d+", form)), default=0)


def checked(value: Any) -> Any:
    """What was computed.

    Raises:
        ApplicationError: it is too large.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise _too_wide()
    if isinstance(value, str | bytes | tuple | list):
        check_length(len(value))
    return value


def check_length(count: int) -> None:
    """Raises ApplicationError where something would have so many items, and that is too many."""
    if count > MOST_ITEMS:
        raise ApplicationError(
            f"Computed at compile time, this has {count} items, more than the {MOST_ITEMS} that are kept."
        )


def _too_wide() -> ApplicationError:
    return ApplicationError(
        f"Computed at compile time, this is an integer of more than {MOST_BITS} bits, and a device has "
        "64. A float holds larger numbers."
    )
