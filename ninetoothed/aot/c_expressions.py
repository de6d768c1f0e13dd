"""Symbolic integers in C: as numbers, as ranges of numbers, and conditions on them.

Each operator is a function of ``ninetoothed_kernel.h``: integers of 64 bits that divide as Python's do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ninetoothed.errors import DeviceError
from ninetoothed.kernels.ahead import Aligned, Condition, Position
from ninetoothed.symbols.expr import Symbol

#: What a name is called in C.
NameOf = Callable[[Symbol], str]

_FUNCTIONS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "//": "div",
    "%": "mod",
    "neg": "neg",
    "min": "min",
    "max": "max",
    "padded": "padded",
}

_LARGEST_INT = 2**31 - 1


def number(expression: Symbol, name_of: NameOf) -> str:
    """The value of an expression."""
    if expression.op == "const":
        return literal(expression.operands[0])
    if expression.op == "leaf":
        return name_of(expression)
    operands = [number(operand, name_of) for operand in expression.operands]
    return f"nt_{_function(expression)}({', '.join(operands)})"


def range_of_position(position: Position, name_of: NameOf) -> str:
    """The values that a position takes."""
    _, low, high = position
    return f"nt_between({number(low, name_of)}, {number(high, name_of)})"


def range_of(expression: Symbol, name_of: NameOf, positions: Mapping[Symbol, str]) -> str:
    """The numbers that an expression lies between, wherever its positions are.

    Args:
        positions: what the ranges of its positions are called.
    """
    if expression in positions:
        return positions[expression]
    if expression.op in ("leaf", "const"):
        return f"nt_exact({number(expression, name_of)})"
    operands = list(expression.operands)
    if expression.op == "*":
        # By one number, which is last.
        operands.sort(
            key=lambda operand: operand.op in ("leaf", "const") and operand not in positions
        )
        if operands[1].op in ("leaf", "const") and operands[1] not in positions:
            ranged = range_of(operands[0], name_of, positions)
            return f"nt_range_times({ranged}, {number(operands[1], name_of)})"
    ranges = [range_of(operand, name_of, positions) for operand in operands]
    return f"nt_range_{_function(expression)}({', '.join(ranges)})"


def condition(
    asked: Condition,
    name_of: NameOf,
    address_of: Callable[[str], str],
    positions: Mapping[Symbol, str],
) -> str:
    """Whether a condition holds.

    Args:
        address_of: the address of a parameter's tensor.
        positions: what the ranges of the condition's positions are called.
    """
    if isinstance(asked, Aligned):
        return f"nt_is_aligned({address_of(asked.parameter)}, {asked.bytes})"
    expression, low, high = asked.expression, asked.low, asked.high
    if low is not None and low == high and not positions and expression.op in ("leaf", "%"):
        # Neither overflows.
        return f"{number(expression, name_of)} == {literal(low)}"
    if expression.op == "leaf" and not positions and (low, high) == (-_LARGEST_INT, _LARGEST_INT):
        return f"nt_is_narrow({name_of(expression)})"
    within = range_of(expression, name_of, positions)
    least, most = (
        ("INT64_MIN" if low is None else literal(low)),
        ("INT64_MAX" if high is None else literal(high)),
    )
    return f"nt_is_within({within}, {least}, {most})"


def literal(value: int) -> str:
    """An integer constant."""
    value = int(value)
    return str(value) if abs(value) <= _LARGEST_INT else f"INT64_C({value})"


def _function(expression: Symbol) -> str:
    try:
        return _FUNCTIONS[expression.op]
    except KeyError:
        raise DeviceError(
            f"`{expression}` cannot be computed where there is no Python: in C there are + - * // %, "
            "minimum and maximum."
        ) from None
