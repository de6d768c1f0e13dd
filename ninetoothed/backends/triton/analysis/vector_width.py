"""How many bytes one thread can load or store of a tensor with one instruction."""

from __future__ import annotations

from collections.abc import Mapping

from ninetoothed.backends.base import Call
from ninetoothed.backends.triton.specialization import divisors, offsets
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.expr import Symbol, evaluated
from ninetoothed.tensors.access import Access
from ninetoothed.tensors.arrange import Parameter

#: So many positions of a lane are looked at for neighbours that lie apart.
_MOST_PLACES = 32


def bytes_at_once(
    kernel: Definition,
    parameter: Parameter,
    call: Call,
    environment: Mapping[Symbol, int],
    adjacent: frozenset[Symbol],
    is_masked: bool = True,
) -> int:
    """The bytes of a parameter's tile that one thread can load or store with one instruction.

    Args:
        adjacent: what `offsets.adjacent` gives for this environment.
        is_masked: whether a mask says where the tensor ends.
    """
    argument, source = call.arguments[parameter.name], parameter.source
    itemsize = argument.dtype.itemsize
    access = kernel.arrangement.accesses[parameter.name]
    offset = offsets.collapsed(source, access.offset, adjacent & frozenset(source.strides))
    most = max(argument.alignment // itemsize, 1)
    # What the compiler knows of a row's beginning and of a mask's end is what it is told, unless it
    # knows the number itself.
    for leaf in divisors.deciding(source, offset, environment, is_masked):
        number = int(environment[leaf])
        if number > 1 and not _is_constant(leaf):
            most = min(most, divisors.divisor(number))
    run = max(
        (
            _run(parameter, access, environment, lane, most)
            for lane in range(len(access.coordinates))
        ),
        default=1,
    )
    return itemsize * run


def _is_constant(leaf: Symbol) -> bool:
    return leaf.constexpr or leaf.meta


def _is_divided(offset: Symbol, lane: Symbol) -> bool:
    """Whether a lane's position is taken apart by a division."""
    return any(node.op in ("//", "%") and lane in set(node.leaves()) for node in offset.walk())


def _run(
    parameter: Parameter, access: Access, environment: Mapping[Symbol, int], lane: int, most: int
) -> int:
    """How many neighbouring lanes of a dimension hold neighbouring elements, at most ``most``."""
    size = evaluated(parameter.tile_shape[lane], environment)
    base = access.first(environment)
    first = access.offset.evaluate(base)
    count = 1
    while count < min(size, most):
        offset = access.offset.evaluate({**base, access.coordinates[lane]: count})
        if offset != first + count:
            break
        count += 1
    run = 1 << (count.bit_length() - 1)
    if run > 1 and _is_divided(access.offset, access.coordinates[lane]):
        import numpy

        # The first of a window's line are neighbours; its last one and the next line's first are not.
        places = numpy.arange(min(size, _MOST_PLACES))
        found = access.offset.evaluate({**base, access.coordinates[lane]: places})
        while numpy.any(found - found[places - places % run] != places % run):
            run //= 2
    # Nor may a step of anything else lead between two runs.
    leaves = (*access.programs, *access.selections, *access.coordinates)
    others = [leaf for leaf in leaves if leaf is not access.coordinates[lane]]
    steps = [access.offset.evaluate({**base, leaf: 1}) - first for leaf in others]
    while any(step % run for step in steps):
        run //= 2
    return run
