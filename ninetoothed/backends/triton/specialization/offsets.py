"""Offsets in a form that costs little: dimensions collapsed, and what is of the same lanes together.

A source whose dimensions were merged (`flatten`, `ravel`) is found by quotients and remainders of one
position. Where those dimensions lie behind one another in memory, the remainders and quotients put
the position together again, and the offset is that of one dimension. Where terms of several lanes
are mixed, those of one lane are summed first: a tile of rows and columns then costs one addition an
element, and what does not change in a loop is computed before it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.expr import Symbol, as_symbol, leaf
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access
from ninetoothed.tensors.tensor import Tensor


def adjacent(kernel: Definition, environment: Mapping[Symbol, int]) -> frozenset[Symbol]:
    """The strides that are worth writing as the next dimension's size times its stride.

    Args:
        environment: the values of a call.
    """
    result: frozenset[Symbol] = frozenset()
    for parameter in kernel.tensor_parameters:
        source, offset = parameter.source, kernel.arrangement.accesses[parameter.name].offset
        if source.jagged_dim is not None or not _divisions(offset):
            continue
        if 0 in (as_symbol(size).evaluate(environment) for size in source.shape):
            continue
        possible = frozenset(
            as_symbol(stride)
            for stride, size, following in zip(
                source.strides, source.shape[1:], source.strides[1:], strict=False
            )
            if environment[as_symbol(stride)]
            == as_symbol(size).evaluate(environment) * environment[as_symbol(following)]
        )
        result |= _worthwhile(kernel, parameter.name, possible)
    return result


@analysis
def _worthwhile(kernel: Definition, name: str, possible: frozenset[Symbol]) -> frozenset[Symbol]:
    """As few of a parameter's strides as save as many divisions as all of them do."""
    source = kernel.program.parameter(name).source
    offset = kernel.arrangement.accesses[name].offset
    fewest = _divisions(collapsed(source, offset, possible))
    if fewest >= _divisions(offset):
        return frozenset()
    chosen = possible
    for stride in sorted(possible, key=str):
        if _divisions(collapsed(source, offset, chosen - {stride})) == fewest:
            chosen -= {stride}
    return chosen


def _divisions(expression: Symbol) -> int:
    return len({node for node in expression.walk() if node.op in ("//", "%")})


def collapsed(source: Tensor, offset: Symbol, strides: frozenset[Symbol]) -> Symbol:
    """The offset where ``strides`` are the next dimension's size times its stride, no size being 0."""
    if not strides:
        return offset
    values: dict[Symbol, Symbol] = {}
    following = as_symbol(1)
    for stride, size in reversed(list(zip(source.strides, (*source.shape[1:], 1), strict=True))):
        symbol = as_symbol(stride)
        if symbol in strides:
            values[symbol] = as_symbol(size) * following
        following = values.get(symbol, symbol)
    whole = offset.substitute(values)
    positive = {
        # As what the tuner chooses: never 0.
        symbol: leaf(replace(symbol.leaf, meta=True))
        for symbol in whole.leaves()
        if symbol.leaf.role == "size"
    }
    simplified = as_symbol(simplify(whole.substitute(positive)))
    return simplified.substitute({known: symbol for symbol, known in positive.items()})


def by_lanes(access: Access, offset: Symbol) -> list[Symbol]:
    """Terms whose sum is the offset; all terms of the same lanes are one, where that saves anything.

    Nor are terms that depend on a selection, which changes in a loop, in one with those that do not.
    """
    groups: dict[tuple[int, bool, tuple[Symbol, ...]], Symbol] = {}
    for factors in _terms(access, offset):
        term = functools.reduce(operator.mul, factors)
        leaves = set(term.leaves())
        lanes = tuple(lane for lane in access.coordinates if lane in leaves)
        # What has fewer lanes comes first: it is added to before the tile's shape is reached.
        kind = (len(lanes), any(selection in leaves for selection in access.selections), lanes)
        groups[kind] = groups[kind] + term if kind in groups else term
    result = [groups[kind] for kind in sorted(groups, key=lambda kind: kind[:2])]
    if _cost(access, functools.reduce(operator.add, result)) < _cost(access, offset):
        return result
    return [offset]


def _cost(access: Access, expression: Symbol) -> int:
    """How many operations are done for every pair of two lanes."""
    lanes = set(access.coordinates)
    return sum(
        bool(node.op != "leaf" and len(lanes & set(node.leaves())) > 1)
        for node in set(expression.walk())
    )


def _terms(access: Access, expression: Symbol) -> Iterator[tuple[Symbol, ...]]:
    """The products that an expression is the sum of, each as its factors.

    A sum is multiplied out where its own terms are of different lanes.
    """
    op, operands = expression.op, expression.operands
    if op == "+":
        yield from _terms(access, operands[0])
        yield from _terms(access, operands[1])
    elif op in ("-", "neg"):
        if op == "-":
            yield from _terms(access, operands[0])
        for factors in _terms(access, operands[-1]):
            yield (as_symbol(-1), *factors)
    elif op == "*" and any(_is_mixed(access, operand) for operand in operands):
        left, right = (list(_terms(access, operand)) for operand in operands)
        yield from (first + second for first in left for second in right)
    else:
        yield (expression,)


def _is_mixed(access: Access, expression: Symbol) -> bool:
    leaves = set(expression.leaves())
    return (
        expression.op in ("+", "-", "*", "neg") and sum(x in leaves for x in access.coordinates) > 1
    )


def without_remainders(access: Access, term: Symbol) -> Symbol:
    """The same number by the quotients that are there anyway; the term itself where that fails.

    ``x // d % e * s + x % d * t`` is ``x * t + x // d * (s - d * t) - x // (d * e) * (e * s)``: with
    the strides known, each quotient takes one multiplication and no other is needed.
    """
    coefficients: dict[Symbol, Symbol] = {}
    for factors in _terms(access, term):
        flat = [factor for product in factors for factor in _factors(product)]
        changing = [f for f in flat if set(f.leaves()) & {*access.selections, *access.coordinates}]
        if len(changing) != 1:
            return term
        others = [factor for factor in flat if factor is not changing[0]]
        scale = functools.reduce(operator.mul, others, as_symbol(1))
        for position, count in _by_quotients(changing[0]):
            before = coefficients.get(position, as_symbol(0))
            coefficients[position] = as_symbol(simplify(before + count * scale))
    products = [position * scale for position, scale in coefficients.items() if scale != 0]
    return functools.reduce(operator.add, products) if products else term


def _factors(expression: Symbol) -> Iterator[Symbol]:
    if expression.op == "*":
        for operand in expression.operands:
            yield from _factors(operand)
    else:
        yield expression


def _by_quotients(position: Symbol) -> list[tuple[Symbol, Symbol]]:
    """A position as a sum of quotients, each so many times; all divisors are positive."""
    if position.op == "%":
        dividend, divisor = position.operands
        whole = [(found, -divisor * count) for found, count in _by_quotients(dividend // divisor)]
        return [*_by_quotients(dividend), *whole]
    if position.op == "//" and position.operands[0].op == "//":
        (dividend, first), second = position.operands[0].operands, position.operands[1]
        return _by_quotients(dividend // as_symbol(simplify(first * second)))
    return [(position, as_symbol(1))]
