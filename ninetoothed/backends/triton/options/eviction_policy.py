"""Hints for the second-level cache: what is read once is told to leave it last, or first.

Where each element is read by one program and memory is all that a kernel waits for, loads that ask
to be evicted last were 1 to 5% faster on an H200: in a cold cache, in one full of another kernel's
results, in a chain of kernels that read what the one before wrote, and on tensors of 2 GiB. What
then leaves the cache first is what was stored, and it does so early and in the order of its
addresses. Loads that ask to be evicted first, as one would think, gain in some of these cases and
lose 4% on large tensors; hints at stores gain nothing more. What is stored to where it was loaded
is not to stay: rope was 1 to 7% slower with the hint. Where results are kept (`keep`), which gains more
but not on tensors of many times the cache's size, loads say nothing or something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.nodes import LanguageRef, Load, Store

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition

#: What Triton calls it.
LAST = "evict_last"


@analysis
def streamed(kernel: Definition) -> frozenset[str]:
    """The parameters that are only loaded, and whose tiles no two programs share.

    There are none in a kernel with products.
    """
    nodes = list(kernel.optimized.nodes())
    if any(isinstance(node, LanguageRef) and node.name.startswith("dot") for node in nodes):
        return frozenset()
    loaded = {node.tile.parameter for node in nodes if isinstance(node, Load)}
    loaded -= {node.tile.parameter for node in nodes if isinstance(node, Store)}
    programs = kernel.arrangement.programs
    moving = {name for name, size in zip(programs, kernel.grid) if size != 1}
    accesses = kernel.arrangement.accesses
    return frozenset(name for name in loaded if moving <= set(accesses[name].offset.leaves()))
