"""From a Program to Triton source: text that a person can read, with the user's names.

Nothing here imports Triton. What is lowered the same gives the same text in any process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.ir.trees import assign, name
from ninetoothed.backends.triton.printers import persistent
from ninetoothed.backends.triton.printers.addresses import Addresses
from ninetoothed.backends.triton.printers.emission import Emission, KernelParameter
from ninetoothed.backends.triton.printers.gluon import translation as gluon
from ninetoothed.backends.triton.printers.lowering import Lowering
from ninetoothed.errors import Location
from ninetoothed.program.nodes import clone, location
from ninetoothed.program.printer import with_bare_targets
from ninetoothed.symbols.expr import Symbol
from ninetoothed.symbols.simplify import product

if TYPE_CHECKING:
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.backends.triton.ir.products import Needs

#: The first statement of a program that waits for the kernel before (`dependent_launch`).
WAIT = "tl.extra.cuda.gdc_wait()"


@dataclass(frozen=True)
class Emitted:
    """Generated source.

    Attributes:
        text: a module with the kernel.
        parameters: the kernel's parameters, in order.
        lines: the user's location for lines of ``text`` (counted from 1).
        externs: functions that the module uses and does not define.
        needs: what must hold of a call, in Gluon.
        waits: whether a program first waits for the kernel before: no other may be launched early.
    """

    text: str
    parameters: tuple[KernelParameter, ...]
    lines: dict[int, Location] = field(default_factory=dict)
    externs: dict[str, Any] = field(default_factory=dict)
    needs: Needs | None = None
    waits: bool = False


def emit(lowered: Lowered) -> Emitted:
    """The source of a kernel for a kind of call."""
    return _Printer(lowered).emit()


class _Printer:
    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._program = lowered.program
        self._emission = Emission(lowered)
        self._addresses = Addresses(self._emission)
        self._lowering = Lowering(self._emission, self._addresses)
        self._writer = _Writer()

    def emit(self) -> Emitted:
        addresses = self._addresses
        lowering = self._lowering
        body = self._body(lowering)
        helpers = [lowering.function(clone(h)) for h in self._program.helpers.values()]
        prologue = addresses.prologue()
        count = (
            self._emission.tree(product(self._lowered.kernel.grid))
            if self._lowered.is_persistent
            else None
        )
        statements = [s for group in body for s in group] or [ast.Pass()]
        needs: Needs | None = None
        if pipeline := self._lowered.tma_pipeline:
            used = self._emission.used.values()
            translation = gluon.Translation(
                [*prologue, *statements],
                pipeline.num_buffers,
                pipeline.is_one_loop,
                {p.name: p.parameter or "" for p in used if p.kind == "descriptor"},
                self._emission.widths,
                self._emission.fresh,
            )
            prologue, statements = [], translation.statements()
            needs = translation.needs
            self._emission.library = translation.library
        if self._emission.quarter:
            prologue, statements = [], self._emission.for_each_quarter([*prologue, *statements])
        parameters = self._emission.ordered()
        write = self._writer
        language = "gluon" if self._lowered.tma_pipeline else "triton"
        constexpr = "gl.constexpr" if self._lowered.tma_pipeline else "tl.constexpr"
        for line in self._header():
            write.line(line)
        for function in helpers:
            write.line("")
            write.line("")
            write.line("@triton.jit")
            write.statements([function], 0)
        write.line("")
        write.line("")
        write.line(f"@{language}.jit")
        write.line(f"def {self._lowered.kernel.name}(")
        for parameter in parameters:
            write.line(f"    {parameter.name}{f': {constexpr}' if parameter.is_constexpr else ''},")
        write.line("):")
        if self._lowered.waits:
            write.line(f"    {WAIT}")
        if count is not None:
            total = self._emission.fresh("num_tiles")
            statements = persistent.loop(
                self._emission.number, total, count, [*prologue, *statements]
            )
            write.statements(statements, 1)
        else:
            write.statements(prologue, 1)
            if prologue:
                write.line("")
            write.statements(statements, 1)
        return Emitted(
            write.text(),
            tuple(parameters),
            write.locations,
            self._emission.externs,
            needs,
            self._lowered.waits,
        )

    def _body(self, lowering: Lowering) -> list[list[ast.stmt]]:
        """The program's statements, each after what it needs; twice where masks are left out."""
        full_tiles = self._lowered.full_tiles
        if full_tiles is None:
            return [lowering.statement(clone(s)) for s in self._program.body]
        self._emission.holding = full_tiles.holding
        inside = [new for s in self._program.body for new in lowering.statement(clone(s))]
        self._emission.holding = None
        beyond = [new for s in self._program.body for new in lowering.statement(clone(s))]
        label = self._emission.fresh("has_all")
        branches = ast.If(name(label), inside, beyond)
        return [[*self._asked(full_tiles.tests, label), branches]]

    def _asked(self, excesses: Sequence[Symbol], label: str) -> list[ast.stmt]:
        """What finds out whether all elements of the program exist, under a name."""
        first, *others = [
            ast.Compare(self._emission.position(excess), [ast.Lt()], [ast.Constant(0)])
            for excess in excesses
        ]
        target = ast.Name(label, ast.Store())
        return [assign(label, first), *(ast.AugAssign(target, ast.BitAnd(), o) for o in others)]

    def _header(self) -> Iterator[str]:
        kernel = self._lowered.kernel
        code = kernel.application.__code__
        file = code.co_filename.replace("\\", "/").rpartition("/")[2]
        yield f"# {kernel.name}: generated by NineToothed; do not edit."
        yield f"# Application: {kernel.application.__qualname__}, {file}:{code.co_firstlineno}."
        count = self._lowered.parts
        yield f"# {f'{count} programs' if count > 1 else 'One program'} for each element of the grid "
        self._writer.amend(
            ", ".join(ast.unparse(self._emission.tree(size, record=False)) for size in kernel.grid)
        )
        if self._lowered.tma_pipeline:
            yield "import triton"
            if self._lowered.waits:
                yield "import triton.language as tl"
            yield from gluon.IMPORTS.splitlines()
            yield from self._library("gluon_library")
            return
        yield "import triton"
        yield "import triton.language as tl"
        if "libdevice" in self._emission.imports:
            yield "from triton.language.extra import libdevice"
        yield from self._library("library")

    def _library(self, module: str) -> Iterator[str]:
        if self._emission.library:
            names = ", ".join(sorted(self._emission.library))
            yield ""
            yield f"from ninetoothed.backends.triton.{module} import {names}"


def _text_of(statement: ast.stmt, width: int) -> list[str]:
    """A simple statement's lines; the arguments of a call that is too long have one each."""
    if isinstance(statement, ast.Assign):
        statement = with_bare_targets(statement)
    text = ast.unparse(ast.fix_missing_locations(statement))
    call = getattr(statement, "value", None)
    if len(text) <= width or not isinstance(call, ast.Call):
        return text.splitlines()
    arguments = [ast.unparse(a) for a in call.args]
    arguments += [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
    head = text[: len(text) - len(ast.unparse(call))] + ast.unparse(call.func)
    return [f"{head}(", *(f"    {argument}," for argument in arguments), ")"]


class _Writer:
    """Collects lines, and where in the user's source each came from."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.locations: dict[int, Location] = {}

    def line(self, text: str) -> None:
        self._lines.append(text)

    def amend(self, text: str) -> None:
        """Puts ``text`` at the end of the last line."""
        self._lines[-1] += f"({text})."

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def statements(self, statements: Iterable[ast.stmt], depth: int) -> None:
        for statement in statements:
            self._statement(statement, depth)

    def _statement(self, statement: ast.stmt, depth: int) -> None:
        where = location(statement) if getattr(statement, "file", None) else None
        blocks = [
            (name, getattr(statement, name, None) or [])
            for name in ("body", "orelse")
            if not isinstance(statement, ast.Expr)
        ]
        if not any(block for _, block in blocks):
            for text in _text_of(statement, 100 - 4 * depth):
                self._mark(where)
                self.line("    " * depth + text)
            return
        shell = clone(statement)
        shell.body = [ast.Pass()]  # type: ignore[attr-defined]
        if hasattr(shell, "orelse"):
            shell.orelse = []
        head = ast.unparse(ast.fix_missing_locations(shell)).splitlines()[:-1]
        for text in head:
            self._mark(where)
            self.line("    " * depth + text)
        self.statements(blocks[0][1] or [ast.Pass()], depth + 1)
        if blocks[1][1]:
            self.line("    " * depth + "else:")
            self.statements(blocks[1][1], depth + 1)

    def _mark(self, where: Location | None) -> None:
        if where is not None:
            self.locations[len(self._lines) + 1] = where
