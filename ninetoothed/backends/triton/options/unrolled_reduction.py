"""Reductions over small windows, element by element of the window instead of across threads.

The four elements of a 2 × 2 window lie in neighbouring threads, each of which takes the position in the
window apart by divisions; then threads exchange what they have. Here a program loads the windows' first
elements, then their second ones, and so on, and combines them place by place: a position in the window
is a number, and no thread asks another. Pooling in windows of 2 × 2 took 1.5 to 2.0 times
as long without, on an H200 (2026-11-22).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.arguments import FIRST, Given
from ninetoothed.program.effects import operation_of
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementLoad,
    ElementRef,
    ElementType,
    LanguageRef,
    Load,
    Mask,
    Masked,
    SymbolValue,
    TileRef,
    at,
    clone,
    walk,
)
from ninetoothed.program.program import Program
from ninetoothed.program.types import is_one, type_of
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, as_symbol, evaluated
from ninetoothed.tensors.views import Run, View

#: How many elements the windows have that are unrolled. Others are padded, and Triton gives all of one
#: to a thread: nothing is gained.
SIZES = (2, 4, 8)

#: The element-wise operation that two parts of a reduction are combined by.
_COMBINED_BY = {"sum": "add", "max": "maximum", "min": "minimum"}


class _NotUnrolled(Exception):
    """A value is not made element by element of tiles of windows."""


@dataclass(frozen=True)
class _Window:
    """A reduction over the dimension of a tile that goes through a window.

    Attributes:
        call: the reduction.
        dim: the dimension, from the last one, that has -1.
        size: how many elements the window has.
    """

    call: ast.Call
    dim: int
    size: Expression


def run(program: Program, kernel: Definition, sizes: Mapping[Expression, int]) -> Program:
    """The program with the reductions over windows unrolled; ``sizes`` has how many elements they have."""
    draft = Draft(program)
    for statement in draft.body:
        for call in [node for node in walk(statement) if isinstance(node, ast.Call)]:
            window = _window(call, kernel)
            if window is not None and window.size in sizes:
                _unroll(window, kernel, sizes[window.size])
    program = draft.finished()
    infer(program)
    return program


@analysis
def window_sizes(kernel: Definition) -> frozenset[Expression]:
    """How many elements the windows have that a kernel reduces over."""
    calls = (node for node in kernel.optimized.nodes() if isinstance(node, ast.Call))
    return frozenset(window.size for call in calls if (window := _window(call, kernel)))


def _window(call: ast.Call, kernel: Definition) -> _Window | None:
    """What is reduced over, where that is a window."""
    operation = operation_of(call)
    if operation is None or operation.name not in _COMBINED_BY:
        return None
    given = Given(call)
    operand, axis = given.get(0), given.constant("axis", 1)
    if operand is None or not isinstance(axis, int) or given.has("return_indices"):
        return None
    rank = type_of(operand).rank
    if rank is None or not -rank <= axis < rank:
        return None
    dim = axis % rank - rank
    loads = (node for node in walk(operand) if isinstance(node, Load))
    sizes = {size for load in loads if (size := _gathered(load, dim, kernel)) is not None}
    if len(sizes) != 1:
        return None
    window = _Window(call, dim, sizes.pop())
    try:
        _Element(window, kernel, 0).of(operand)
    except _NotUnrolled:
        return None
    return window


def _gathered(load: Load, dim: int, kernel: Definition) -> Expression | None:
    """The size of a dimension of a tile that only compile-time constants decide and along which positions
    are taken apart by divisions; None of others."""
    shape = kernel.program.parameter(load.tile.parameter).tile_shape
    if len(shape) < -dim or isinstance(load.tile, ElementRef):
        return None
    size, access = shape[dim], kernel.arrangement.accesses[load.tile.parameter]
    lane = access.coordinates[dim]
    divisions = (node for node in access.offset.walk() if node.op in ("//", "%"))
    is_constant = all(leaf.constexpr for leaf in as_symbol(size).leaves())
    return size if is_constant and any(lane in node.leaves() for node in divisions) else None


def _unroll(window: _Window, kernel: Definition, size: int) -> None:
    """Puts what is combined in the place of a reduction."""
    call, operation = window.call, operation_of(window.call)
    assert operation is not None
    operand = Given(call).get(0)
    assert operand is not None
    parts: list[ast.expr] = []
    for position in range(size):
        # Each by itself, so that it has the type that a reduction gives.
        part = clone(call)
        part.func = at(LanguageRef(name=operation.name), call)
        part.args = [_Element(window, kernel, position).of(operand), *Given(part).all_from(1)]
        part.keywords = [keyword for keyword in part.keywords if keyword.arg not in FIRST]
        parts.append(part)
    combine = LanguageRef(name=_COMBINED_BY[operation.name])
    *_, last = itertools.accumulate(
        parts, lambda one, other: at(ast.Call(at(clone(combine), call), [one, other], []), call)
    )
    call.func, call.args, call.keywords = last.func, last.args, last.keywords


class _Element:
    """One element of each window of a value, held in a dimension of size 1.

    Args:
        position: which element.
    """

    def __init__(self, window: _Window, kernel: Definition, position: int) -> None:
        self._window, self._kernel, self._position = window, kernel, position

    def of(self, node: ast.expr) -> ast.expr:
        """A copy of a value, for this element alone.

        Raises:
            _NotUnrolled: it is not made element by element of tiles.
        """
        if isinstance(node, Load) and self._is_long(node.tile):
            return self._load(node)
        if self._is_short(node):
            return clone(node)
        if isinstance(node, Masked):
            return self._masked(node)
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
            return self._parts(node)
        operation = operation_of(node) if isinstance(node, ast.Call) else None
        if operation is not None and operation.is_elementwise:
            return self._parts(node)
        raise _NotUnrolled

    def _parts(self, node: ast.expr) -> ast.expr:
        copy = clone(node)
        for name in copy._fields:
            value = getattr(copy, name)
            if isinstance(value, list):
                setattr(copy, name, [self._part(item) for item in value])
            else:
                setattr(copy, name, self._part(value))
        return copy

    def _part(self, node: Any) -> Any:
        if isinstance(node, ast.keyword):
            return at(ast.keyword(node.arg, self.of(node.value)), node)
        if isinstance(node, ast.Attribute):
            return at(ast.Attribute(self.of(node.value), node.attr, node.ctx), node)
        return self.of(node) if isinstance(node, ast.expr) else node

    def _is_long(self, tile: TileRef) -> bool:
        """Whether a tile has the window's elements in its dimension."""
        shape = self._kernel.program.parameter(tile.parameter).tile_shape
        return (
            not isinstance(tile, ElementRef)
            and len(shape) >= -self._window.dim
            and shape[self._window.dim] == self._window.size
        )

    def _is_short(self, node: ast.expr) -> bool:
        """Whether a value is the same for all elements of a window."""
        if isinstance(node, ast.Constant | SymbolValue | DTypeRef | ElementType | LanguageRef):
            return True
        if isinstance(node, ast.Name | Load):
            shape = type_of(node).shape
            return shape is not None and (
                len(shape) < -self._window.dim or is_one(shape[self._window.dim])
            )
        return False

    def _load(self, load: Load) -> ElementLoad:
        tile = load.tile
        indices = [clone(index) for index in tile.indices]
        element = ElementLoad(parameter=tile.parameter, indices=indices, view=self._view(tile))
        return at(element, load)

    def _masked(self, node: Masked) -> ast.expr:
        value = self.of(node.value)
        masks = [self._mask(mask) for mask in node.masks]
        return at(Masked(value=value, masks=masks, identity=node.identity), node)

    def _mask(self, mask: ast.expr) -> Mask:
        """A mask of a tile, for this element."""
        if not isinstance(mask, Mask) or not self._is_long(mask.tile):
            raise _NotUnrolled
        if mask.layout != tuple(range(len(mask.layout))):
            raise _NotUnrolled
        tile = mask.tile
        element = ElementRef(
            parameter=tile.parameter,
            indices=[clone(index) for index in tile.indices],
            view=self._view(tile),
            rank=len(mask.layout),
        )
        return at(Mask(tile=at(element, tile), layout=mask.layout), mask)

    def _view(self, tile: TileRef) -> View:
        shape = self._kernel.program.parameter(tile.parameter).tile_shape
        runs = [Run(0, 1, size) for size in shape]
        runs[self._window.dim] = Run(self._position, 1, 1, is_within=True)
        return View(tuple(runs))


@dataclass(frozen=True)
class Unrolling:
    """Unrolls reductions over windows of these sizes."""

    sizes: tuple[tuple[Expression, int], ...]

    def __call__(self, program: Program, lowered: Lowered) -> Program:
        return run(program, lowered.kernel, dict(self.sizes))


def _sizes(case: Case) -> tuple[tuple[Expression, int], ...]:
    """The windows of a call that are unrolled."""
    sizes = {size: evaluated(size, case.environment) for size in window_sizes(case.kernel)}
    return tuple((size, n) for size, n in sizes.items() if n in SIZES)


class UnrolledReduction(Option):
    """Whether reductions over windows are unrolled."""

    name = "unrolled_reduction"
    is_always_on = True

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        return (1,) if _sizes(case) else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, rewrites=(*lowered.rewrites, Unrolling(_sizes(case))))


OPTION = UnrolledReduction()
