"""Results that stay in the second-level cache, for whoever reads them next.

A kernel that moves more than the cache holds leaves in it what it moved last: inputs that nobody
reads again, and results still to be written. Here the first programs ask that their results stay,
a sixth of the cache's size; from then on what is loaded is the first to leave, so that inputs take
one another's place and nobody else's. The next kernel finds the beginning of the results in the
cache, and memory is written in long runs.

It is for kernels that only move: no products, no loops, nothing that is loaded and stored again. On
tensors of many times the cache's size it loses, and loads that stay are better (`hints`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ninetoothed.backends.triton import hints
from ninetoothed.expr import Symbol, as_symbol
from ninetoothed.program import Load, Store

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.kernel import Kernel

#: The functions of `library` that load and store so.
LOAD, STORE = "load_streamed", "store_kept"

#: Where there are so many times more results than are kept, the others decide.
_LARGEST = 10

#: At least this part of what is moved are results.
_STORED = 0.2

_MIB = 1 << 20


def results(kernel: Kernel) -> frozenset[str]:
    """The parameters whose elements are only stored; none where this is not for the kernel."""
    known: dict[str, frozenset[str]] = kernel.memory
    if "results" not in known:
        known["results"] = _results(kernel)
    return known["results"]


def _results(kernel: Kernel) -> frozenset[str]:
    nodes = list(kernel.optimized.nodes())
    if not hints.streamed(kernel) or any(isinstance(node, ast.For | ast.While) for node in nodes):
        return frozenset()
    stored = {node.tile.parameter for node in nodes if isinstance(node, Store)}
    return frozenset(stored - {node.tile.parameter for node in nodes if isinstance(node, Load)})


def is_worth_it(
    kernel: Kernel, call: Call, environment: Mapping[Symbol, int], grid: tuple[int, ...], mib: int
) -> bool:
    """Whether to keep so many MiB of the results."""
    stored = _bytes(kernel, call, environment, results(kernel))
    loaded = _bytes(kernel, call, environment, hints.streamed(kernel))
    is_mostly_read = stored < _STORED * (stored + loaded)
    return not is_mostly_read and 0 < math.prod(grid) * stored <= _LARGEST * mib * _MIB


def num_programs(kernel: Kernel, call: Call, environment: Mapping[Symbol, int], mib: int) -> int:
    """How many programs store so many MiB, about: the source has this number.

    It has three significant bits, so that calls of some other size share the source.
    """
    count = mib * _MIB // max(_bytes(kernel, call, environment, results(kernel)), 1)
    rest = max(count.bit_length() - 3, 0)
    return max(count >> rest << rest, 1)


def _bytes(
    kernel: Kernel, call: Call, environment: Mapping[Symbol, int], names: frozenset[str]
) -> int:
    """The bytes that one program has of these parameters."""
    total = 0
    for parameter in kernel.tensor_parameters:
        if parameter.name in names:
            sizes = [size for level in parameter.middle_levels for size in level]
            sizes += parameter.tile_shape
            count = math.prod(int(as_symbol(size).evaluate(environment)) for size in sizes)
            total += count * call.arguments[parameter.name].dtype.itemsize
    return total
