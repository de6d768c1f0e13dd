"""What a program computes of sizes and strides, and which of it 32 bits do not hold in a call.

Arithmetic on them has as many bits as it takes. What the arguments' own type does not hold, at least on the
way, is computed before the launch, as Python computes it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.program.nodes import LanguageRef, SequenceLength, SymbolValue, walk
from ninetoothed.program.program import Program
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, maximum, minimum

LARGEST_INT64 = 2**63 - 1

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}

#: Shifts by so many bits.
_SHIFTS: dict[type, Callable[[Any, int], Any]] = {
    ast.LShift: lambda value, bits: value * 2**bits,
    ast.RShift: lambda value, bits: value // 2**bits,
}

_SIGNS: dict[type, Callable[[Any], Any]] = {
    ast.USub: lambda value: 0 - value,
    ast.Invert: lambda value: -1 - value,
}

_CALLS: dict[str, Callable[..., Any]] = {
    "abs": lambda value: maximum(value, 0 - value),
    "cdiv": lambda left, right: 0 - (0 - left) // right,
    "maximum": maximum,
    "minimum": minimum,
}


def outsized(kernel: Definition, environment: Mapping[Symbol, int]) -> Iterator[Symbol]:
    """The arithmetic that 32 bits do not hold, at least on the way."""
    for symbol in arithmetic(kernel):
        if any(_overflows(part, environment) for part in symbol.walk()):
            yield symbol


def _overflows(symbol: Symbol, environment: Mapping[Symbol, int]) -> bool:
    """Whether the type that an operation's operands have does not hold its result, or a literal."""
    operands = [operand for operand in symbol.operands if isinstance(operand, Symbol)]
    leaves = [abs(int(leaf.evaluate(environment))) for leaf in symbol.leaves()]
    limit = LARGEST_INT32 if max(leaves, default=0) <= LARGEST_INT32 else LARGEST_INT64
    held = [symbol, *(operand for operand in operands if operand.op == "const")]
    return bool(operands) and any(abs(int(n.evaluate(environment))) > limit for n in held)


def passed(kernel: Definition, environment: Mapping[Symbol, int]) -> Iterator[Symbol]:
    """The ends of loops that fit 32 bits where what is counted in steps goes beyond that."""
    for _, end, step in _counted(kernel):
        last = int(end.evaluate(environment))
        after = last + abs(int(step.evaluate(environment))) - 1
        if after > LARGEST_INT32 >= last:
            yield end


def end_of(
    program: Program, loop: ast.For, lengths: bool = False
) -> tuple[int, Symbol, Symbol] | None:
    """Which bound of a loop's is the greater one, what it is, and the step; None where these are no sizes."""
    assert isinstance(loop.iter, ast.Call)
    if len(loop.iter.args) < 3:
        return None
    *bounds, step = [_number(program, argument, lengths) for argument in loop.iter.args]
    if step is None:
        return None
    place = 0 if interval(step)[1] < 0 else 1
    end = bounds[place]
    return None if end is None else (place, end, step)


def are_long(kernel: Definition, environment: Mapping[Symbol, int]) -> bool:
    """Whether 32 bits do not hold the length of some sequence, or what the program computes of lengths."""
    known = {leaf: (value, value) for leaf, value in environment.items()}
    jagged = (p.source for p in kernel.tensor_parameters if p.source.jagged_dim is not None)
    longest = [as_symbol(source.shape[source.jagged_dim]) for source in jagged]  # type: ignore[index]
    known |= {size: (0, int(size.evaluate(environment))) for size in longest}
    found = (interval(part, known) for part in (*longest, *parts_of_lengths(kernel)))
    return any(low < -LARGEST_INT32 or high > LARGEST_INT32 for low, high in found)


@analysis
def parts_of_lengths(kernel: Definition) -> tuple[Symbol, ...]:
    """What the program computes of lengths of sequences, each as if it were the longest, and counts to."""
    program, found = kernel.optimized, set()
    if all(parameter.source.jagged_dim is None for parameter in kernel.tensor_parameters):
        return ()
    for node in program.nodes():
        if isinstance(node, ast.For) and (counted := end_of(program, node, lengths=True)):
            place, end, step = counted
            found.add(as_symbol(end + step - 1 if place else end - step - 1))
        elif isinstance(node, ast.expr) and _has_length(node):
            symbol = _number(program, node, lengths=True)
            found |= set() if symbol is None else {*symbol.walk()}
    return tuple(sorted(found, key=lambda symbol: symbol.sort_key))


def _has_length(node: ast.expr) -> bool:
    return any(isinstance(part, SequenceLength) for part in walk(node))


@analysis
def _counted(kernel: Definition) -> tuple[tuple[int, Symbol, Symbol], ...]:
    program = kernel.optimized
    loops = (node for node in program.nodes() if isinstance(node, ast.For))
    return tuple(found for loop in loops if (found := end_of(program, loop)) is not None)


@analysis
def arithmetic(kernel: Definition) -> tuple[Symbol, ...]:
    """What the program computes of sizes and strides, but for what is known when it is compiled."""
    program = kernel.optimized
    found = (computed_of(program, node) for node in program.nodes() if isinstance(node, ast.expr))
    return tuple(dict.fromkeys(symbol for symbol in found if symbol is not None))


def parts(kernel: Definition) -> Iterator[Symbol]:
    """What there is on the way, and what loops count to; quotients and remainders are no larger than these."""
    for symbol in arithmetic(kernel):
        yield from (part for part in symbol.walk() if part.op not in ("//", "%"))
    for place, end, step in _counted(kernel):
        yield as_symbol(end + step - 1 if place else end - step - 1)


def computed_of(program: Program, node: ast.expr) -> Symbol | None:
    """What an expression computes of sizes and strides; None where it is more than that, or less."""
    symbol = _number(program, node)
    if symbol is None or symbol.op in ("leaf", "const") or is_constant_symbol(symbol):
        return None
    return None if any(leaf.leaf.role == "index" for leaf in symbol.leaves()) else symbol


def _number(program: Program, node: ast.expr, lengths: bool = False) -> Symbol | None:
    """A number that is made of sizes, strides and literals.

    Args:
        lengths: whether those of sequences count as well, as if each were the longest one.
    """
    if lengths and isinstance(node, SequenceLength):
        return as_symbol(program.parameter(node.parameter).source.shape[node.dim])
    if isinstance(node, SymbolValue):
        return as_symbol(node.symbol)
    if isinstance(node, ast.Constant):
        return constant(node.value) if type(node.value) is int else None
    function: Callable[..., Any] | None = None
    parts: list[ast.expr] = []
    if isinstance(node, ast.BinOp) and (shift := _SHIFTS.get(type(node.op))):
        bits = node.right.value if isinstance(node.right, ast.Constant) else None
        if type(bits) is int and 0 <= bits < 64:
            return _applied(
                lambda value: shift(value, bits), [_number(program, node.left, lengths)]
            )
    elif isinstance(node, ast.BinOp):
        function, parts = _OPERATORS.get(type(node.op)), [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        return _applied(_SIGNS[type(node.op)], [_number(program, node.operand, lengths)])
    elif isinstance(node, ast.Call) and isinstance(node.func, LanguageRef) and not node.keywords:
        function, parts = _CALLS.get(node.func.name), node.args
    return (
        None
        if function is None
        else _applied(function, [_number(program, p, lengths) for p in parts])
    )


def _applied(function: Callable[..., Any], parts: list[Symbol | None]) -> Symbol | None:
    return None if None in parts else as_symbol(function(*parts))
