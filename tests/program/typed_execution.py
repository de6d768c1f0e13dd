"""Runs kernels on the NumPy backend and compares what variables hold with their types in the Program:
shapes, element types, signs, and which elements exist."""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import operator
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.execution.planning import NumpyPlan
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.program.effects import targets_of
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import ElementRef, SymbolValue, TileRef, Within
from ninetoothed.program.program import Program
from ninetoothed.program.tile_masks import TileMask
from ninetoothed.program.types import ValueType, type_of
from ninetoothed.symbols.expr import as_symbol


class Held:
    """What was compared, and what was found to differ: a variable, its type, and what it held.

    Attributes:
        compared: values whose shapes and element types were.
        padded: values of which something does not exist, by the types and by what was held alike.
    """

    def __init__(self) -> None:
        self.compared = 0
        self.padded = 0
        self.differing: set[str] = set()


class _NotKnown(Exception):
    """What a mask is made of is not a variable of the user's."""


@contextlib.contextmanager
def types_compared() -> Iterator[Held]:
    """Kernels that run within are compared."""
    held, run = Held(), NumpyPlan.run

    def compared(plan: NumpyPlan, stream: int, *values: Any) -> None:
        before = sys.gettrace()
        sys.settrace(_Watch(plan, held).call)
        try:
            run(plan, stream, *values)
        finally:
            sys.settrace(before)

    NumpyPlan.run = compared  # type: ignore[method-assign]
    try:
        yield held
    finally:
        NumpyPlan.run = run  # type: ignore[method-assign]


class _Watch:
    """Looks at variables after the line that assigned them."""

    def __init__(self, plan: NumpyPlan, held: Held) -> None:
        self.plan, self.held = plan, held
        given = {name: tensor.dtype for name, tensor in plan.tensors.items()}
        scalars = {name: dtype for name, dtype in plan.scalars.items() if dtype is not None}
        infer(plan.kernel.program, {**given, **scalars})
        self.assigned = _assigned(plan.kernel.program)
        self.existing = _assigned(plan.kernel.optimized)
        self.files = {file for file, _ in self.assigned}

    def call(self, frame: Any, event: str, argument: Any) -> Any:
        # A helper's variables have another type in each call.
        is_application = frame.f_code.co_name == self.plan.kernel.application.__name__
        if not is_application or frame.f_code.co_filename not in self.files:
            return None
        last: list[int] = []

        def local(frame: Any, event: str, argument: Any) -> Any:
            if last and event in ("line", "return"):
                self.look(frame, last[-1])
            last[:] = [frame.f_lineno]
            return local

        return local

    def look(self, frame: Any, line: int) -> None:
        for name, type_ in self.assigned.get((frame.f_code.co_filename, line), {}).items():
            value = frame.f_locals.get(name)
            if isinstance(value, Tile):
                self.compare(f"{frame.f_code.co_filename}:{line} {name}", type_, value)
        for name, type_ in self.existing.get((frame.f_code.co_filename, line), {}).items():
            value = frame.f_locals.get(name)
            if isinstance(value, Tile):
                self.compare_existence(
                    f"{frame.f_code.co_filename}:{line} {name}", type_, value, frame
                )

    def compare(self, where: str, known: ValueType, value: Tile) -> None:
        self.held.compared += 1
        is_same = known.dtype is None or known.dtype is value.dtype
        kind = {"uint": "int"}.get(value.dtype.kind, value.dtype.kind)
        is_same &= known.kind in ("", kind)
        if known.shape is not None:
            is_same &= len(known.shape) == len(value.shape) and all(
                self.fits(a, b) for a, b in zip(known.shape, value.shape)
            )
        if known.is_natural and value.data.size and not value.validity:
            is_same &= not (value.data < 0).any()
        if not is_same:
            self.held.differing.add(f"{where}: {known}, but holds {value.dtype}{list(value.shape)}")

    def compare_existence(self, where: str, known: ValueType, value: Tile, frame: Any) -> None:
        # What is wanted of masks is done where it matters alone.
        if any(mask.wanted is not None for mask in known.validity):
            return
        exists = np.ones(value.shape, bool)
        held = functools.reduce(operator.and_, value.validity, exists)
        try:
            for mask in known.validity:
                exists = exists & self.mask(mask, frame)
        except _NotKnown:
            return
        self.held.padded += not exists.all()
        if not np.array_equal(exists, held):
            self.held.differing.add(
                f"{where}: {int(exists.sum())} elements exist by its type, but {int(held.sum())} do"
            )

    def mask(self, mask: TileMask, frame: Any) -> np.ndarray:
        """Where a mask holds in the running program."""
        made, layout = mask.origin.tile, mask.layout
        if isinstance(made, Within):
            size = self.number(made.size, frame)
            inside = np.arange(1 << max(size - 1, 0).bit_length()) < size
            return inside.reshape([1 if dim is None else -1 for dim in layout])
        reference = frame.f_locals.get(getattr(made, "parameter", None))
        if not isinstance(made, TileRef) or isinstance(made, ElementRef) or reference is None:
            raise _NotKnown
        result = np.ones((1,) * len(layout), bool)
        for each in reference._argument._masks(tuple(self.number(i, frame) for i in made.indices)):
            depends = {dim for dim, size in enumerate(each.shape) if size != 1}
            if not depends <= set(layout):
                if depends & set(layout):
                    # Of a row that is reduced NumPy knows whether there was any element.
                    raise _NotKnown
                continue
            order = [dim for dim in layout if dim is not None]
            rest = [dim for dim in range(each.ndim) if dim not in order]
            sizes = [1 if dim is None else each.shape[dim] for dim in layout]
            result = result & each.transpose(rest + order).reshape(sizes)
        return result

    def number(self, node: ast.expr, frame: Any) -> int:
        """An index as a number, by the user's variables."""
        if isinstance(node, ast.Constant):
            return int(node.value)
        if isinstance(node, SymbolValue):
            return int(as_symbol(node.symbol).evaluate(self.plan.environment))
        if isinstance(node, ast.Name) and node.id in frame.f_locals:
            return operator.index(frame.f_locals[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            sides = self.number(node.left, frame), self.number(node.right, frame)
            return _OPERATORS[type(node.op)](*sides)
        raise _NotKnown

    def fits(self, size: Any, held: int) -> bool:
        if size is None:
            return True
        number = int(as_symbol(size).evaluate(self.plan.environment))
        return 1 << max(number - 1, 0).bit_length() == held


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def _assigned(program: Program) -> dict[tuple[str, int], dict[str, ValueType]]:
    """By file and line, the variables assigned there; those assigned several times are left out."""
    assigned: dict[tuple[str, int], dict[str, ValueType]] = {}
    seen: set[tuple[str, int, str]] = set()
    for node in program.nodes():
        if not isinstance(node, ast.stmt):
            continue
        for target in targets_of(node):
            place = node.file, node.lineno  # type: ignore[attr-defined]
            # The parser assigns too, where the user's line does something else.
            if not re.search(rf"^[^=]*\b{target.id}\b.*=", linecache.getline(*place)):
                continue
            here = assigned.setdefault(place, {})
            if (*place, target.id) in seen:
                here.pop(target.id, None)
            else:
                here[target.id] = type_of(target)
            seen.add((*place, target.id))
    return assigned
