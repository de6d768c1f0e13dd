"""What is checked when a kernel is defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ninetoothed.errors import ApplicationError, ArgumentError
from ninetoothed.passes import remove_dead
from ninetoothed.program.nodes import SequenceLength, location
from ninetoothed.program.program import Program
from ninetoothed.tensors.access import sequence_of
from ninetoothed.tensors.arrange import Arrangement


def check_one_of(option: str, value: Any, known: Sequence[str]) -> None:
    """`ArgumentError` where an option is none of what it may be."""
    if value not in known:
        listed = " or ".join(map(repr, known))
        raise ArgumentError(f"{option} must be {listed}, not {value!r}")


def check_choices(option: str, value: Any) -> None:
    """`ArgumentError` where ``num_warps`` or ``num_stages`` is neither None, an int nor several."""
    if value is None:
        return
    choices = (value,) if isinstance(value, int) or not isinstance(value, Sequence) else value
    are_counts = all(
        isinstance(choice, int) and not isinstance(choice, bool) and choice > 0
        for choice in choices
    )
    if isinstance(value, str) or not choices or not are_counts:
        raise ArgumentError(
            f"{option} must be a positive int, or several to choose from, as in (4, 8); got {value!r}"
        )
    if option == "num_warps" and any(choice & (choice - 1) for choice in choices):
        raise ArgumentError(f"num_warps must be a power of two, as in (4, 8); got {value!r}")


def check_count(option: str, value: Any) -> None:
    """`ArgumentError` where an option is neither None nor a positive int."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ArgumentError(f"{option} must be a positive int, got {value!r}")


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
