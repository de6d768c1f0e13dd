"""Tiles of a loop's products that a program loads ahead itself, into rings of buffers, on Hopper.

Measured on an NVIDIA H200, 2026-11-22, float16, in one configuration with and without
(`benchmarks/results/2026-11-22-nvidia-h200-option-trials-others-same.md`): without it attention takes
1.40 times as long, the geometric mean of heads of 64 (1.36), with a causal mask (1.58) and heads of
128 (1.30), each cold, in a row and in a chain; 1.21 at least. Without the descriptors too, which it
needs, it is 1.44 times as long.

Triton decides where the copies of a pipelined loop are begun and waited for. Where a loop has several
products, as attention's, other places are better: each tile is asked for right after the product that
read its buffer, two rounds before, and is waited for right before the product that reads it; and
addresses, masks and the buffers' numbers take fewer registers, so that another program fits beside.
Triton has no way to say so; Gluon, its own lower language, has (`gluon`).

It is offered where every part of a program is understood and the matrix unit takes all that is
multiplied. Who asks says what a program needs: that follows from its text, which nothing here writes.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.ir.products import Needs, Product
from ninetoothed.backends.triton.options import descriptors, swizzle
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.constancy import decided
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import (
    Load,
    Program,
    SourceLoad,
    SourcePointer,
    SourceStore,
    Store,
    clone,
    walk,
)
from ninetoothed.symbols.expr import Symbol, as_symbol, next_power_of_2

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.compile import Target
    from ninetoothed.backends.triton.options.descriptors import Box
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

#: What the matrix unit multiplies at once: rows of all warps, inner elements, least and most
#: columns. Two times the rows are right, and were slower wherever they were measured.
_ROWS, _INNER, _LEAST_COLUMNS, _MOST_COLUMNS = 64, 16, 8, 256

#: The width of the elements that it multiplies here.
_BITS = 16

#: So many products of a loop are worth it.
_SEVERAL = 2

#: Where the sums that a loop carries have no more columns, a split loop is better written as one: at
#: 64 that gains 6% and more, at 128 it loses 1% (`printers.gluon.rounds`).
_COLUMNS_OF_ONE_LOOP = 64


@dataclass(frozen=True)
class Ring:
    """What the text depends on.

    Attributes:
        size: buffers of a ring.
        constants: the application's constants, where they decide what it does.
        has_inverses: whether positions in the grid are found by multiplication (`swizzle`).
        is_one_loop: whether a split loop (`loop_splitting`) is written as one.
    """

    size: int
    constants: tuple[tuple[str, Any], ...] = ()
    has_inverses: bool = False
    is_one_loop: bool = False


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
        ring=Ring(size, constants, has_inverses, is_one_loop(kernel, environment)),
    )


def is_one_loop(kernel: Definition, environment: Mapping[Symbol, int]) -> bool:
    """Whether the sums that loops carry are so narrow that a split loop is better one."""
    sizes = [int(size.evaluate(environment)) for size in _columns_of_sums(kernel)]
    return bool(sizes) and max(sizes) <= _COLUMNS_OF_ONE_LOOP


@analysis
def _columns_of_sums(kernel: Definition) -> tuple[Symbol, ...]:
    """The columns of the products that are added to what a loop carries."""
    program = kernel.optimized
    loaded = _loaded(program.nodes())
    found = []
    for dot in _added(program):
        operand = _unturned(dot.args[1])
        axis = -1 if operand is dot.args[1] else -2
        name = operand.id if isinstance(operand, ast.Name) else ""
        parameter = operand.tile.parameter if isinstance(operand, Load) else loaded.get(name)
        if parameter is not None:
            found.append(as_symbol(program.parameter(parameter).tile_shape[axis]))
    return tuple(found)


def _added(program: Program) -> Iterator[ast.Call]:
    """The products that are added up."""
    for node in program.nodes():
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and called_name(value) == "dot":
            if isinstance(node, ast.AugAssign) or len(value.args) > 2:
                yield value


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
    before = itertools.takewhile(lambda each: not isinstance(each, ast.For), program.body)
    loaded = _loaded(before)
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


def _loaded(statements: Iterable[ast.AST]) -> dict[str, str]:
    """The names of tiles, each with the tensor."""
    return {
        target.id: each.value.tile.parameter
        for each in statements
        if isinstance(each, ast.Assign) and isinstance(each.value, Load)
        for target in each.targets
        if isinstance(target, ast.Name)
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
    needs_of: Callable[[Variant], Needs | None],
) -> bool:
    """Whether a call's programs can load so.

    Args:
        plain: the call's variant without rings.
        needs_of: says what programs of a variant need; None where they have no translation.
    """
    if kernel.optimized.externs or kernel.optimized.helpers:
        # Functions of the user's are in Triton.
        return False
    needs = needs_of(variant(plain, kernel, call, environment, 2))
    if needs is None:
        return False
    known = {kernel.names[symbol]: value for symbol, value in environment.items()}
    try:
        return (
            all(_number(one, known) == _number(other, known) for one, other in needs.equal)
            and all(
                _LEAST_COLUMNS <= _number(size, known) <= _MOST_COLUMNS for size in needs.columns
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
