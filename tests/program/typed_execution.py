"""Runs kernels on the NumPy backend and compares what variables hold with their types in the Program."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import sys
from collections.abc import Iterator
from typing import Any

from ninetoothed.backends.numpy.execution.planning import NumpyPlan
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.program.effects import targets_of
from ninetoothed.program.inference import infer
from ninetoothed.program.types import ValueType, type_of
from ninetoothed.symbols.expr import as_symbol


class Held:
    """What was compared, and what was found to differ: a variable, its type, and what it held."""

    def __init__(self) -> None:
        self.compared = 0
        self.differing: set[str] = set()


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
        #: By file and line, the variables assigned there; those of which several are not looked at.
        self.assigned: dict[tuple[str, int], dict[str, ValueType]] = {}
        seen: set[tuple[str, int, str]] = set()
        for node in plan.kernel.program.nodes():
            if not isinstance(node, ast.stmt):
                continue
            for target in targets_of(node):
                place = node.file, node.lineno  # type: ignore[attr-defined]
                # The parser assigns too, where the user's line does something else.
                if not re.search(rf"\b{target.id}\b.*=", linecache.getline(*place)):
                    continue
                here = self.assigned.setdefault(place, {})
                if (*place, target.id) in seen:
                    here.pop(target.id, None)
                else:
                    here[target.id] = type_of(target)
                seen.add((*place, target.id))
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

    def fits(self, size: Any, held: int) -> bool:
        if size is None:
            return True
        number = int(as_symbol(size).evaluate(self.plan.environment))
        return 1 << max(number - 1, 0).bit_length() == held
