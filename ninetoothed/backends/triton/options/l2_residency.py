"""Results that stay in the second-level cache while a kernel runs, for whoever reads them next.

A kernel that moves more than the cache holds leaves in it what it moved last: inputs that nobody
reads again, and results still to be written. Here the first programs ask that their results stay, a
sixth of the cache's size; where it is much that is loaded, it is the first to leave from then on. The
last programs take the marks back, so that none outlasts the kernel: the next one finds the beginning
of the results in the cache, and has the whole cache to itself.

It is for kernels that only move, without products and loops, and whose first programs' results lie
together in memory. On tensors that the cache holds, and on those of many times its size, loads that
stay gain more (`hints`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.compiler.compile import is_capable
from ninetoothed.backends.triton.options import eviction_policy
from ninetoothed.backends.triton.specialization.call_facts import positions
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.nodes import Load, Store
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import simplify

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.compile import Target
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tensors.arrange import Parameter
    from ninetoothed.tuning.estimate import DeviceLimits

#: The functions of `library` that load and store so, and that take the marks back.
LOAD, STORE, RELEASE = "load_streamed", "store_kept", "release_kept"

#: The cache has lines of so many bytes.
_LINE = 128

#: There are so many times more results than are kept: at least, and at most.
_SMALLEST, _LARGEST = 1.5, 10

#: What is loaded leaves first where the results are not more times more than those that are kept, and
#: where so many times more is loaded than stored.
_FEW, _MUCH = 5, 1.5

#: At least this part of what is moved are results.
_STORED = 0.2

#: At least this part of the memory that the kept results span are kept results.
_DENSE = 0.75

_MIB = 1 << 20

#: The compute capability from which on a device has priorities of lines.
_FIRST_CAPABILITY = 80


def serves(device: DeviceLimits | Target | None) -> bool:
    """Whether a device marks lines and takes marks back."""
    return is_capable(device, _FIRST_CAPABILITY)


@dataclass(frozen=True)
class Keeping:
    """Which results stay.

    Attributes:
        num_programs: those of so many programs, the first ones.
        lines: the tensors that are stored, each with the number of the cache's lines, from its first
            element on, that those programs store to.
        leaves_first: whether what later programs load is the first to leave.
    """

    num_programs: int
    lines: tuple[tuple[str, int], ...]
    leaves_first: bool


def moved(kernel: Definition) -> frozenset[str]:
    """The parameters that a kernel that only moves loads once, or only stores."""
    return results(kernel) | eviction_policy.streamed(kernel) if results(kernel) else frozenset()


@analysis
def results(kernel: Definition) -> frozenset[str]:
    """The parameters whose elements are only stored; none where this is not for the kernel."""
    if not eviction_policy.streamed(kernel) or kernel.optimized.has_loop:
        return frozenset()
    nodes = list(kernel.optimized.nodes())
    stored = {node.tile.parameter for node in nodes if isinstance(node, Store)}
    return frozenset(stored - {node.tile.parameter for node in nodes if isinstance(node, Load)})


def keeping(
    kernel: Definition,
    call: Call,
    environment: Mapping[Symbol, int],
    grid: tuple[int, ...],
    mib: int,
) -> Keeping | None:
    """Which results stay if so many MiB are kept; None where that is not worth it."""
    parameters = [p for p in kernel.tensor_parameters if p.name in results(kernel)]
    stored = sum(_bytes(parameter, call, environment) for parameter in parameters)
    kept, whole = mib * _MIB, math.prod(grid) * stored
    if not _SMALLEST * kept <= whole <= _LARGEST * kept:
        return None
    streamed = [p for p in kernel.tensor_parameters if p.name in eviction_policy.streamed(kernel)]
    loaded = sum(_bytes(parameter, call, environment) for parameter in streamed)
    if stored < _STORED * (stored + loaded):
        return None
    count = _rounded(kept // stored)
    if not count:
        return None
    lines = [(p.name, _lines(kernel, p, call, environment, grid, count)) for p in parameters]
    if not all(number for _, number in lines):
        return None
    leaves_first = whole <= _FEW * kept and loaded >= _MUCH * stored
    return Keeping(count, tuple(lines), leaves_first)


def _rounded(count: int) -> int:
    """About so many programs: three significant bits, so that other sizes share the source."""
    rest = max(count.bit_length() - 3, 0)
    return count >> rest << rest


def _bytes(parameter: Parameter, call: Call, environment: Mapping[Symbol, int]) -> int:
    """The bytes that one program has of a tensor."""
    sizes = [size for level in parameter.middle_levels for size in level]
    sizes += parameter.tile_shape
    count = math.prod(int(as_symbol(size).evaluate(environment)) for size in sizes)
    return count * call.arguments[parameter.name].dtype.itemsize


def _lines(
    kernel: Definition,
    parameter: Parameter,
    call: Call,
    environment: Mapping[Symbol, int],
    grid: tuple[int, ...],
    count: int,
) -> int:
    """The number of lines that the first programs' results span; 0 if they do not lie together."""
    access = kernel.arrangement.accesses[parameter.name]
    offset = simplify(access.offset.substitute(environment))
    known = positions(parameter, access, environment, grid)
    spans = [
        interval(offset, {**known, **dict(zip(access.programs, box))})
        for box in _boxes(count, grid)
    ]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    argument = call.arguments[parameter.name]
    last = sum((n - 1) * stride for n, stride in zip(argument.shape, argument.strides))
    num_bytes = int(min(high, last) + 1) * argument.dtype.itemsize
    is_dense = low >= 0 and count * _bytes(parameter, call, environment) >= _DENSE * num_bytes
    return -(-num_bytes // _LINE) if is_dense else 0


def _boxes(count: int, grid: tuple[int, ...]) -> Iterator[list[Interval]]:
    """The positions of the first programs of a grid, row-major, as boxes that are disjoint."""
    before: list[Interval] = []
    for dim, size in enumerate(grid):
        inner = math.prod(grid[dim + 1 :])
        digit = count // inner % size
        if digit:
            yield [*before, (0, digit - 1), *((0, n - 1) for n in grid[dim + 1 :])]
        before.append((digit, digit))
