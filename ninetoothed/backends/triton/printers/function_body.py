"""The body of the function that is printed: a kernel's statements, in which tiles have become addresses."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.trees import assign, name
from ninetoothed.backends.triton.printers.addresses import Addresses
from ninetoothed.backends.triton.printers.carried_copies import mark_copies
from ninetoothed.backends.triton.printers.carried_layouts import keep_layouts
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.backends.triton.printers.lowering import Lowering
from ninetoothed.program.nodes import clone
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol


@dataclass(frozen=True)
class FunctionBody:
    """What is printed.

    Attributes:
        emission: the names and parameters of the function.
        prologue: what it computes first: where its program and its tiles are.
        statements: what it does then.
        helpers: functions that the language calls back.
    """

    emission: Emission
    prologue: list[ast.stmt]
    statements: list[ast.stmt]
    helpers: list[ast.FunctionDef]


def function_body_of(lowered: Lowered) -> FunctionBody:
    """The body for a kernel in a kind of call."""
    emission, program = Emission(lowered), lowered.program
    addresses = Addresses(emission)
    lowering = Lowering(emission, addresses)

    def statements() -> list[ast.stmt]:
        return [new for old in program.body for new in lowering.statement(clone(old))]

    if lowered.full_tiles is None:
        body = statements()
    else:
        # Twice: without masks where all elements of the program exist.
        with lowering.where(lowered.full_tiles.holding):
            inside = statements()
        beyond = statements()
        label = emission.fresh("has_all")
        branches = ast.If(name(label), inside, beyond)
        body = [*_asked(emission, lowered.full_tiles.tests, label), branches]
    mark_copies(body)
    if lowered.tma_pipeline is None:
        # In Gluon layouts are what they are said to be.
        keep_layouts(body, emission)
    helpers = [lowering.function(clone(helper)) for helper in program.helpers.values()]
    return FunctionBody(emission, addresses.prologue(), body, helpers)


def _asked(emission: Emission, slacks: Sequence[Symbol], label: str) -> list[ast.stmt]:
    """What finds out whether all elements of the program exist, under a name."""
    first, *others = [
        ast.Compare(emission.position(slack), [ast.Lt()], [ast.Constant(0)]) for slack in slacks
    ]
    target = ast.Name(label, ast.Store())
    return [assign(label, first), *(ast.AugAssign(target, ast.BitAnd(), o) for o in others)]
