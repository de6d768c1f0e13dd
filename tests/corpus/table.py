"""The table of the cases that were not measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.corpus.cases import Subject
from tests.corpus.package import Kernel, call_of, scalar_types

#: Each entry: a subject, and its sets of options.
TABLE: list[tuple[Subject, tuple[str, ...]]] = []

BLOCKS = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
SMALL = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32}
ATTENTION = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64}

#: 2**31, from which on numbers have 64 bits.
LIMIT = 2**31


def put(
    group: str,
    name: str,
    kernel: Kernel,
    tensors: Mapping[str, Any],
    *chosen: str,
    values: Mapping[str, int] | None = None,
    scalars: Mapping[str, str] | None = None,
    is_general: bool = False,
    **constants: Any,
) -> None:
    """Adds a subject without options, and with each of these sets of them."""
    call = call_of(tensors, {**scalar_types(kernel), **(scalars or {})}, constants)
    TABLE.append((Subject(group, name, kernel, call, values or {}, is_general), ("", *chosen)))


def changed(tensors: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Tensors of which some are others."""
    return {**tensors, **changes}
