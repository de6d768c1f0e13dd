"""A kernel made of another one's statements, changed, and of its tensors, arranged anew."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from ninetoothed.derivatives.text import function_of
from ninetoothed.kernels.definition import Definition, Specializations, define
from ninetoothed.parsing.source import begins_at
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.arrange import pair
from ninetoothed.tensors.tensor import Tensor


def redefined(
    definition: Definition,
    name: str,
    body: Sequence[ast.stmt],
    arranged: Mapping[str, Any],
    sources: Mapping[str, Tensor],
    about: str,
    stores_apart: bool = False,
) -> Specializations:
    """The kernel of these statements, tuned as the one that they are of.

    Args:
        name: of the kernel.
        arranged: its parameters.
        sources: those of its tensors that are new, by name.
        about: the docstring of its application.
        stores_apart: as a `Declaration` has it.
    """
    symbols = dict(definition.names)
    for each, source in sources.items():
        for dim, size in enumerate(source.shape):
            symbols.setdefault(as_symbol(size), f"{each}_size_{dim}")
            symbols.setdefault(as_symbol(source.strides[dim]), f"{each}_stride_{dim}")
    levels = {
        each: [level.ndim for level in value.levels[1:-1]]
        for each, value in arranged.items()
        if isinstance(value, Tensor)
    }
    module = definition.application.__module__
    beginning = begins_at(definition.application)
    function = function_of(name, list(arranged), body, levels, symbols, module, about, beginning)
    named = {s: text for s, text in definition.names.items() if s.leaf.role == "symbol"}
    return define(
        pair(list(arranged.values()), function),
        function,
        name,
        named,
        definition.num_warps,
        definition.num_stages,
        definition.max_num_configs,
        stores_apart=stores_apart,
    )
