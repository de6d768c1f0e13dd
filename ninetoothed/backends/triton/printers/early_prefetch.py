"""What a program asks the second-level cache for before it waits for the kernel before.

The option `early_prefetch` says of which tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.ir.trees import language
from ninetoothed.backends.triton.printers.emission import Scope
from ninetoothed.program.nodes import Load, clone, walk

if TYPE_CHECKING:
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.backends.triton.printers.addresses import Addresses
    from ninetoothed.backends.triton.printers.emission import Emission


def statements(
    lowered: Lowered, emission: Emission, addresses: Addresses, body: Sequence[list[ast.stmt]]
) -> list[ast.stmt]:
    """A loop over the first rounds, which asks for the tiles that they load.

    Args:
        body: what the program's statements were lowered to.
    """
    ahead = lowered.ahead
    if ahead is None:
        return []
    loop = next(s for s in lowered.program.body if isinstance(s, ast.For))
    printed = next(s for group in body for s in group if isinstance(s, ast.For))
    assert isinstance(printed.iter, ast.Call)
    steps = dict(ahead.lines)
    tiles = {
        ast.dump(node.tile): node.tile
        for statement in loop.body
        for node in walk(statement)
        if isinstance(node, Load) and node.tile.parameter in steps
    }
    # A scope of its own: names of the loop's own positions are not known here.
    outer, emission.scope = emission.scope, Scope()
    asked = [addresses.prefetch(tile, steps[tile.parameter]) for tile in tiles.values()]
    found, emission.scope = emission.scope.before, outer
    rounds = language("minimum", clone(printed.iter.args[-1]), ast.Constant(ahead.rounds))
    return [
        ast.For(
            clone(printed.target),
            ast.Call(ast.Name("range", ast.Load()), [rounds], []),
            [*found, *asked],
            [],
        )
    ]
