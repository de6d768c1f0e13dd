"""What is checked when a kernel is defined."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import ApplicationError, ArgumentError, Location, shown
from ninetoothed.parsing import source
from ninetoothed.parsing.frames import MODULE_NAMES
from ninetoothed.passes import remove_dead
from ninetoothed.program.effects import (
    has_effect,
    names_assigned,
    names_read,
    reads_memory,
    statements_of,
    targets_of,
)
from ninetoothed.program.nodes import SequenceLength, location
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.access import sequence_of
from ninetoothed.tensors.arrange import Arrangement, Parameter


def check_one_of(option: str, value: Any, known: Sequence[str]) -> None:
    """`ArgumentError` where an option is none of what it may be."""
    if value not in known:
        listed = " or ".join(map(repr, known))
        raise ArgumentError(f"{option} must be {listed}, not {value!r}")


def check_names(
    parameters: Sequence[Parameter], symbols: Sequence[Symbol], place: Location
) -> None:
    """`ArgumentError` where what a source calls its libraries is given by name in calls."""
    given = [p.name for p in parameters if p.kind != "tensor"]
    given += [s.name for s in symbols if s.leaf.owner is None]
    for name in given:
        if name in MODULE_NAMES:
            raise ArgumentError(
                f"`{name}` is what a generated source calls one of its modules; call it otherwise",
                place,
            )


def check_call_names(kernel: str, names: Sequence[str], place: Location) -> None:
    """`ArgumentError` where a call could not say which of two it gives by a name."""
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(
                f"kernel `{kernel}`: a call gives two things that are called `{name}`: a parameter of the "
                "application and a symbol, or two symbols that were declared differently. Call one of them "
                "otherwise.",
                place,
            )


def check_choices(option: str, value: Any) -> None:
    """`ArgumentError` where ``num_warps`` or ``num_stages`` is neither None, an int nor several."""
    if value is None:
        return
    choices = (value,) if isinstance(value, int) or not isinstance(value, Sequence) else value
    are_counts = all(
        isinstance(choice, int) and not isinstance(choice, bool) and 0 < choice < 1 << 31
        for choice in choices
    )
    if isinstance(value, str) or not choices or not are_counts:
        raise ArgumentError(
            f"{option} must be a positive int, or several to choose from, as in (4, 8); "
            f"got {shown(value)}"
        )
    if option == "num_warps" and any(choice & (choice - 1) for choice in choices):
        raise ArgumentError(f"num_warps must be a power of two, as in (4, 8); got {value!r}")


def check_count(option: str, value: Any) -> None:
    """`ArgumentError` where an option is neither None nor a positive int."""
    if value is not None and (
        not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 31
    ):
        raise ArgumentError(f"{option} must be a positive int, got {shown(value)}")


def check_sequences(program: Program, arrangement: Arrangement) -> None:
    """`ApplicationError` where a length is asked for of a tile that is of several sequences."""
    asked = (node for node in program.nodes() if isinstance(node, SequenceLength))
    several = {n.parameter for n in asked if sequence_of(arrangement.accesses[n.parameter]) is None}
    for node in remove_dead.run(program).nodes() if several else ():
        if isinstance(node, SequenceLength) and node.parameter in several:
            raise ApplicationError(
                f"`{node.parameter}.source.shape[{node.dim}]` is the length of the sequence at "
                f"hand, and a program's tiles of `{node.parameter}` are of several sequences. In "
                "the arrangement, tile dimension 0 by 1, and let it be one of the grid's.",
                location(node),
            )


def check_scalars(program: Program) -> None:
    """`ApplicationError` where what is made of tensors is assigned to a number, and nothing reads it."""
    numbers = {each.name for each in program.parameters if each.kind == "scalar"}
    scalars = {variable for variable, name in program.rebound.items() if name in numbers}
    if scalars.isdisjoint(names_assigned(program.body)):
        return
    live = names_assigned(remove_dead.run(program).body)
    statements = [each for one in program.body for each in statements_of(one)]
    loaded: set[str] = set()
    while True:
        made = {
            target.id for each in statements if _is_of(each, loaded) for target in targets_of(each)
        }
        if made <= loaded:
            break
        loaded |= made
    for statement in statements:
        for target in targets_of(statement):
            if target.id in scalars - live and target.id in loaded:
                raise ApplicationError(
                    f"`{program.rebound[target.id]}` is a number (`Tensor(0)`), which a kernel is given by "
                    "value: what is assigned to it is stored nowhere. For a result take a tensor of one dimension, "
                    "`Tensor(1).tile((1,))`, and hand over one of one element, as `x.reshape(1)`.",
                    location(statement),
                )


def _is_of(statement: ast.AST, loaded: set[str]) -> bool:
    """Whether a statement assigns what is made of loads, or of variables that are."""
    value = getattr(statement, "value", None)
    return isinstance(value, ast.AST) and (
        reads_memory(value) or not loaded.isdisjoint(names_read(value))
    )


def check_effects(program: Program, application: Callable[..., Any]) -> None:
    """`ApplicationError` where all that is computed is lost, and a tensor is there that nothing names.

    Not where a branch, the rounds of a loop or a helper may have been to store.
    """
    statements = [each for one in program.body for each in statements_of(one)]
    lost = [each for each in statements if isinstance(each, ast.Assign)]
    if not lost or any(map(has_effect, program.body)):
        return
    written = [*ast.walk(source.read(application).tree)]
    if any(map(_may_store, written)):
        return
    named = {each.id for each in written if isinstance(each, ast.Name)}
    tensors = [each.name for each in program.parameters if each.kind == "tensor"]
    idle = ", ".join(f"`{name}`" for name in tensors if name not in named)
    if idle:
        raise ApplicationError(
            "Nothing is stored: what is assigned here is a variable, and no parameter. Assign to the "
            f"tensor that is to have it; the application does not name {idle}.",
            location(lost[-1]),
        )


def _may_store(node: ast.AST) -> bool:
    """Whether a statement without stores of its own may have some within."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call or isinstance(node, ast.If | ast.For | ast.While)
