"""Tiles of a loop's products that a program loads ahead itself, into rings of buffers, on Hopper.

Triton decides where the copies of a pipelined loop are begun and waited for. Where a loop has several
products, as attention's, other places are better: each tile is asked for right after the product that
read its buffer, two rounds before, and is waited for right before the product that reads it; and
addresses, masks and the buffers' numbers take fewer registers, so that another program fits beside.
Triton has no way to say so; Gluon, its own lower language, has.

It is offered where every part of a program is understood and the matrix unit takes all that is
multiplied; `printers.gluon.legality` says what a program needs. Attention gained
41% in the mean of three settings on an H200 (2026-11-22), the kernels of its backward 8% in the mean of 24 calls
(2026-11-23, one launch, beside the fastest without).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis import boxes as descriptors
from ninetoothed.backends.triton.analysis import program_order
from ninetoothed.backends.triton.analysis.held_tensors import (
    loaded_names,
    multiplied_alone,
    unturned,
)
from ninetoothed.backends.triton.analysis.resources import GROUP_WARPS, lanes, most_registers
from ninetoothed.backends.triton.ir.lowered import Lowered, Pipeline
from ninetoothed.backends.triton.options.option import Case, Chosen, Device, Option
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.effects import called_name
from ninetoothed.program.nodes import Load, SourceLoad, SourcePointer, SourceStore, Store, walk
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.tuning.estimate import CostFeatures, resident_programs

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.products import Product
    from ninetoothed.backends.triton.specialization.boxes import Box
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.space import Config

#: The capability whose matrix unit this is written for.
_CAPABILITY = 90

#: The buffers of a ring that are worth trying: with fewer more programs fit beside.
SIZES = (1, 2)

#: What the matrix unit multiplies at once: rows of all warps, inner elements, least and most
#: columns. Two times the rows are right, and were slower wherever they were measured.
_ROWS, _INNER, _LEAST_COLUMNS, _MOST_COLUMNS = 64, 16, 8, 256

#: The width of the elements that it multiplies here.
_BITS = 16

#: What is left of the time where tiles come through rings: so many programs of a multiprocessor fill
#: each other's gaps, and each one fewer costs as much more; registers of a thread at most. (With .88, heads of
#: 256 had none: 1.3 of the time on an H200, 2026-11-23.)
_LEFT = 0.82
_PROGRAMS, _MISSING = 4, 0.09
_MOST_REGISTERS = 255

#: So many products of a loop are worth it.
_SEVERAL = 2

#: Where the sums that a loop carries have no more columns together, a split loop is better written as one: at
#: 64 that gains 6% and more, at 128 it loses 1% (`printers.gluon.rounds`), at two sums of 64 7% (attention's
#: backward by keys, 4096 × 64: 587 µs for 546, H200, 2026-11-23).
_COLUMNS_OF_ONE_LOOP = 64


def is_one_loop(kernel: Definition, environment: Mapping[Symbol, int]) -> bool:
    """Whether the sums that a loop carries are so narrow that a split loop is better one."""
    sizes = [int(size.evaluate(environment)) for size in _columns_of_sums(kernel)]
    return bool(sizes) and sum(sizes) <= _COLUMNS_OF_ONE_LOOP


@analysis
def _columns_of_sums(kernel: Definition) -> tuple[Symbol, ...]:
    """The columns of the products that are added to what a loop carries."""
    program = kernel.optimized
    loaded = loaded_names(program.nodes())
    found = []
    for dot in _added(program):
        operand = unturned(dot.args[1])
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


def _boxes(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, Box]]:
    """The tensors to move by descriptor: besides those of a loop, what it multiplies each round, and
    the result."""
    found = dict(descriptors.boxes(kernel, call, environment))
    further = multiplied_alone(kernel) | _stored(kernel.optimized)
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


# Where it is right.


def _is_possible(case: Case, lowered: Lowered) -> bool:
    """Whether a call's programs can load so."""
    kernel, call = case.kernel, case.call
    if kernel.optimized.externs or kernel.optimized.helpers:
        # Functions of the user's are in Triton.
        return False
    assert case.needs_of is not None
    needs = case.needs_of(kernel, lowered)
    if isinstance(needs, str):
        return False
    known = case.environment
    return (
        all(lanes(one, known) == lanes(other, known) for one, other in needs.equal)
        and all(_LEAST_COLUMNS <= lanes(size, known) <= _MOST_COLUMNS for size in needs.columns)
        and all(_is_taken(product, call, known) for product in needs.products)
    )


@analysis
def is_worth_it(kernel: Definition) -> bool:
    """Whether a loop has several products: with one, Triton's own pipeline does as well."""
    return any(
        sum(isinstance(n, ast.Call) and called_name(n) == "dot" for n in walk(loop)) >= _SEVERAL
        for loop in kernel.optimized.body
        if isinstance(loop, ast.For)
    )


def _is_taken(product: Product, call: Call, known: Mapping[Symbol, int]) -> bool:
    """Whether the matrix unit takes a product."""
    left, right = (call.arguments[name].dtype for name in (product.left, product.right))
    return (
        left == right
        and left.is_floating()
        and left.bits == _BITS
        and lanes(product.rows, known) == _ROWS
        and lanes(product.inner, known) % _INNER == 0
    )


class TmaPipeline(Option):
    """Buffers of each ring that programs load a loop's tiles to themselves."""

    name = "tma_pipeline"
    num_warps = GROUP_WARPS

    def serves(self, device: Device) -> bool:
        return device is not None and device.backend == "cuda" and device.arch == _CAPABILITY

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        if not chosen["descriptors"] or chosen["persistent"] or not is_worth_it(case.kernel):
            return ()
        moved = _boxes(case.kernel, case.call, case.environment)
        if not descriptors.stay_in_level(moved, case.facts.beyond):
            return ()
        assert case.lower is not None
        is_possible = _is_possible(case, case.lower({**chosen, self.name: SIZES[-1]}))
        # Asked last: to tell takes longer than all else here.
        return SIZES if is_possible and case.has_gluon() else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        kernel, environment = lowered.kernel, case.environment
        grid = tuple(evaluated(size, environment) for size in kernel.grid)
        is_exact = len(grid) > 1 and program_order.are_inverses_exact(grid)
        return replace(
            lowered,
            # Quotients by multiplication are functions in Triton.
            facts=replace(lowered.facts, bounds=frozenset()),
            boxes=_boxes(kernel, case.call, environment),
            tma_pipeline=Pipeline(value, is_one_loop(kernel, environment)),
            by_inverses=is_exact and not lowered.facts.wide,
        )

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """Tiles come by descriptor, in fewer buffers; threads have fewer registers. With one buffer a tile
        that the last product takes too is asked for when the round is over."""
        sizes = [product.rows * product.columns for product in counts.products]
        features = replace(
            features,
            stages=value + 1,
            is_waiting=value == 1 and bool(counts.reread),
            copies=0.0,
            registers=most_registers(sizes, counts.kept) or _MOST_REGISTERS,
            shared_bytes=sum(counts.held.values())
            - counts.kept
            + value * sum(counts.streamed.values()),
        )
        missing = max(_PROGRAMS - resident_programs(features), 0)
        return replace(features, share=features.share * _LEFT * (1 + _MISSING * missing))


OPTION = TmaPipeline()
