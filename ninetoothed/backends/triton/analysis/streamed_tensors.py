"""Tensors that a kernel only moves through: read once, or only stored, for no product."""

from __future__ import annotations

from ninetoothed.backends.triton.specialization.constant_sizes import multiplies_tiles
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import Load, Store


@analysis
def streamed(kernel: Definition) -> frozenset[str]:
    """The parameters that are only loaded, and whose tiles no two programs share.

    There are none in a kernel with products.
    """
    nodes = list(kernel.optimized.nodes())
    if multiplies_tiles(kernel):
        return frozenset()
    loaded = {node.tile.parameter for node in nodes if isinstance(node, Load)}
    loaded -= {node.tile.parameter for node in nodes if isinstance(node, Store)}
    programs = kernel.arrangement.programs
    moving = {name for name, size in zip(programs, kernel.grid) if size != 1}
    accesses = kernel.arrangement.accesses
    return frozenset(name for name in loaded if moving <= set(accesses[name].offset.leaves()))


@analysis
def moved(kernel: Definition) -> frozenset[str]:
    """The parameters that a kernel without loops, and with results, loads once or only stores."""
    if not streamed(kernel) or kernel.optimized.has_loop:
        return frozenset()
    nodes = list(kernel.optimized.nodes())
    results = {node.tile.parameter for node in nodes if isinstance(node, Store)}
    results -= {node.tile.parameter for node in nodes if isinstance(node, Load)}
    return frozenset(results | streamed(kernel)) if results else frozenset()
