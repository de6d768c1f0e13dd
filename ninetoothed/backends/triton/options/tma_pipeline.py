"""Tiles of a loop's products that a program loads ahead itself, into rings of buffers, on Hopper.

Triton decides where the copies of a pipelined loop are begun and waited for. Where a loop has several
products, as attention's, other places are better: each tile is asked for right after the product that
read its buffer, two rounds before, and is waited for right before the product that reads it; and
addresses, masks and the buffers' numbers take fewer registers, so that another program fits beside.
Triton has no way to say so; Gluon, its own lower language, has (`gluon`).

It is offered where every part of a program is understood (`layouts`) and the matrix unit takes all
that is multiplied.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.options import descriptors, swizzle
from ninetoothed.backends.triton.printers.layouts import MOST_COLUMNS, NotPossibleError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.constancy import decided
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import (
    Load,
    SourceLoad,
    SourcePointer,
    SourceStore,
    Store,
    clone,
    walk,
)
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import next_power_of_2

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.compile import Target
    from ninetoothed.backends.triton.options.descriptors import Box
    from ninetoothed.backends.triton.options.registry import Options
    from ninetoothed.backends.triton.printers.gluon import Needs, Product
    from ninetoothed.backends.triton.specialization.call_facts import Variant
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.estimate import DeviceLimits

#: The capability whose matrix unit this is written for.
_CAPABILITY = 90

#: Warps of a program: those that work on a product together.
WARPS = 4

#: The buffers of a ring that are worth trying: with fewer more programs fit beside.
SIZES = (1, 2)

#: Registers of a multiprocessor; a thread has a multiple of so many; programs are at most so many.
_REGISTERS, _UNIT, _MOST_PROGRAMS = 65536, 8, 5

#: Of a thread, besides those for the sums of products.
_OTHER_REGISTERS = 32

#: What the matrix unit multiplies at once: rows of all warps, inner elements, least columns. Two
#: times the rows are right, and were slower wherever they were measured.
_ROWS, _INNER, _LEAST_COLUMNS = 64, 16, 8

#: The width of the elements that it multiplies here.
_BITS = 16

#: So many products of a loop are worth it.
_SEVERAL = 2


@dataclass(frozen=True)
class Ring:
    """What the text depends on.

    Attributes:
        size: buffers of a ring.
        constants: the application's constants, where they decide what it does.
        has_inverses: whether positions in the grid are found by multiplication (`order`).
    """

    size: int
    constants: tuple[tuple[str, Any], ...] = ()
    has_inverses: bool = False


def serves(device: DeviceLimits | Target | None) -> bool:
    """Whether a device has what this is written for."""
    return device is not None and device.backend == "cuda" and device.arch == _CAPABILITY


def variant(
    plain: Variant,
    kernel: Definition,
    call: Call,
    environment: Mapping[Symbol, int],
    size: int,
) -> Variant:
    """A call's variant with rings of so many buffers."""
    constants = tuple(sorted((n, v) for n, v in call.constants.items() if n in _tested(kernel)))
    grid = tuple(int(as_symbol(size).evaluate(environment)) for size in kernel.grid)
    has_inverses = len(grid) > 1 and swizzle.are_inverses_exact(grid) and not plain.wide
    return replace(
        plain,
        # Quotients by multiplication are functions in Triton.
        bounds=frozenset(),
        boxes=_boxes(kernel, call, environment),
        ring=Ring(size, constants, has_inverses),
    )


def _tested(kernel: Definition) -> set[str]:
    """The names in conditions."""
    return {
        name.id
        for node in kernel.optimized.nodes()
        if isinstance(node, ast.If)
        for name in walk(node.test)
        if isinstance(name, ast.Name)
    }


def _boxes(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, Box]]:
    """The tensors to move by descriptor: besides those of a loop, what it multiplies each round, and
    the result."""
    found = dict(descriptors.boxes(kernel, call, environment))
    further = _held(kernel.optimized) | _stored(kernel.optimized)
    for name in further - found.keys():
        box = descriptors.box_of(kernel, name, call, environment)
        if box is not None:
            found[name] = box
    return frozenset(found.items())


def _stored(program: Program) -> set[str]:
    """The tensor that the last statement stores to, if it is not read."""
    last = program.body[-1]
    if not isinstance(last, Store):
        return set()
    touched = [
        node.tile.parameter if isinstance(node, Load | Store) else node.parameter
        for node in program.nodes()
        if isinstance(node, Load | Store | SourceLoad | SourceStore | SourcePointer)
    ]
    name = last.tile.parameter
    return {name} if touched.count(name) == 1 else set()


def _held(program: Program) -> set[str]:
    """The tensors whose tiles are loaded before the loop and that products alone read."""
    loaded: dict[str, str] = {}
    for statement in program.body:
        if isinstance(statement, ast.For):
            break
        if isinstance(statement, ast.Assign) and isinstance(statement.value, Load):
            (target,) = statement.targets
            if isinstance(target, ast.Name):
                loaded[target.id] = statement.value.tile.parameter
    nodes = list(program.nodes())
    reads = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    multiplied = Counter(
        operand.id
        for node in nodes
        if isinstance(node, ast.Call) and called_name(node) == "dot"
        for operand in map(_unturned, node.args[:2])
        if isinstance(operand, ast.Name)
    )
    tiles = Counter(node.tile.parameter for node in nodes if isinstance(node, Load))
    return {
        parameter
        for name, parameter in loaded.items()
        if reads[name] == multiplied[name] and tiles[parameter] == 1
    }


def _unturned(operand: ast.expr) -> ast.expr:
    if isinstance(operand, ast.Call) and called_name(operand) == "trans" and operand.args:
        return operand.args[0]
    return operand


def run(program: Program, constants: Mapping[str, Any]) -> Program:
    """The program in which constants have decided what they decide."""
    return replace(program, body=_decided(program.body, constants))


def _decided(body: list[ast.stmt], constants: Mapping[str, Any]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        decision = decided(statement.test, constants) if isinstance(statement, ast.If) else None
        if decision is not None:
            assert isinstance(statement, ast.If)
            result += _decided(statement.body if decision else statement.orelse, constants)
            continue
        copy = clone(statement)
        for block in ("body", "orelse"):
            inner = getattr(copy, block, None)
            if isinstance(inner, list):
                setattr(copy, block, _decided(inner, constants))
        result.append(copy)
    return result


# Where it is right.


def is_possible(
    kernel: Definition,
    call: Call,
    environment: Mapping[Symbol, int],
    plain: Variant,
    options: Options,
) -> bool:
    """Whether a call's programs can load so, with these options."""
    needs = _needs(kernel, variant(plain, kernel, call, environment, 2), options)
    if needs is None:
        return False
    known = {kernel.names[symbol]: value for symbol, value in environment.items()}
    try:
        return (
            all(_number(one, known) == _number(other, known) for one, other in needs.equal)
            and all(
                _LEAST_COLUMNS <= _number(size, known) <= MOST_COLUMNS for size in needs.columns
            )
            and all(_is_taken(product, call, known) for product in needs.products)
        )
    except NameError:
        # A size that is not the arrangement's.
        return False


def registers(needs: Needs, kernel: Definition, environment: Mapping[Symbol, int]) -> int | None:
    """The most that a thread is given: what it needs for sums and a little more, rounded up to
    what so many programs as then fit share. The compiler left alone takes one more now and then,
    and a whole program is lost."""
    known = {kernel.names[symbol]: value for symbol, value in environment.items()}
    return most_registers(
        _number(product.rows, known) * _number(product.columns, known) for product in needs.products
    )


def most_registers(sizes: Iterable[int]) -> int | None:
    """`registers`, for products of so many elements each."""
    threads = 32 * WARPS
    sums = sum(sizes)
    for programs in range(_MOST_PROGRAMS, 2, -1):
        each = _REGISTERS // (programs * threads) // _UNIT * _UNIT
        if sums // threads + _OTHER_REGISTERS <= each:
            return each
    return None


@analysis
def is_worth_it(kernel: Definition) -> bool:
    """Whether a loop has several products: with one, Triton's own pipeline does as well."""
    return any(
        sum(isinstance(n, ast.Call) and called_name(n) == "dot" for n in walk(loop)) >= _SEVERAL
        for loop in kernel.optimized.body
        if isinstance(loop, ast.For)
    )


@analysis
def _needs(kernel: Definition, variant: Variant, options: Options) -> Needs | None:
    """What a call must fulfil; None where a program has no translation."""
    # That module writes what this one describes.
    from ninetoothed.backends.triton.printers.triton import emit

    try:
        return emit(kernel, variant, options).needs
    except NotPossibleError:
        return None


def _is_taken(product: Product, call: Call, known: Mapping[str, int]) -> bool:
    """Whether the matrix unit takes a product."""
    left, right = (call.arguments[name].dtype for name in (product.left, product.right))
    return (
        left == right
        and left.is_floating()
        and left.bits == _BITS
        and _number(product.rows, known) == _ROWS
        and _number(product.inner, known) % _INNER == 0
    )


def _number(size: str, known: Mapping[str, int]) -> int:
    """What the text of a tile's size stands for."""
    functions = {"min": min, "triton": SimpleNamespace(next_power_of_2=next_power_of_2)}
    return int(eval(size, {"__builtins__": {}}, {**functions, **known}))
