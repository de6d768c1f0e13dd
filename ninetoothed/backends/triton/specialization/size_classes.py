"""Classes of sizes: calls whose sizes are of one class share their source, whatever the sizes are.

One call stands for each class. Its numbers are no less than those of any other, and no more is true of
them: a size that is a power of two stands for itself; else it is the greatest below the next power of
two with the same divisor, of those that make a difference. Where tiles are multiplied there are eight
classes between two powers of two, and what is between them stands for itself too: how many tiles there
are decides how well they fill a device, and so which are chosen. What is made of its numbers (`call_facts`)
holds for the whole class.

That is so where an element exists if a position is below a size, and the position runs over that size
in steps of a tile, as where a tensor is tiled (`size_roles`). Other kernels are compiled for each size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ninetoothed.backends.triton.specialization.call_facts import CallFacts, facts_of
from ninetoothed.backends.triton.specialization.constant_sizes import (
    multiplies_tiles,
    width_symbols,
)
from ninetoothed.backends.triton.specialization.divisors import LEAST_COPY, MOST
from ninetoothed.backends.triton.specialization.size_arithmetic import arithmetic
from ninetoothed.backends.triton.specialization.size_roles import roles_of
from ninetoothed.errors import ArrangementError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.call import Argument, Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.reach import LARGEST_INT32, asked_offsets, far_offsets
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.tensors.access import reads_sequences

#: Of a multiple of so many, tiles of mostly any size have no end but its own: masks are left out.
_TILED = 256

#: Where tiles are multiplied there are so many classes between two powers of two, from such a size on.
PARTS, _LEAST_PARTED = 8, 512

#: Rows as long as this have a body for each quarter of what is between two powers of two: how many of
#: its positions exist is known but for a quarter, and the compiler leaves out the others.
_LEAST_QUARTERED = 256

#: The sizes and the strides of each tensor, in the order of the parameters.
Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def general_call(kernel: Definition, call: Call) -> Call | None:
    """The call that stands for the class of a call; None where its sizes are a class of their own."""
    names = [parameter.name for parameter in kernel.tensor_parameters]
    arguments = [call.arguments[name] for name in names]
    found = classes_for(kernel, call) if kernel.specialize == "classes" else None
    numbers = None
    if found is not None:
        numbers = found.standing_for(tuple((a.shape, a.strides) for a in arguments))
    if numbers is None:
        return None
    general = {
        name: Argument(shape, strides, argument.dtype, argument.alignment)
        for name, argument, (shape, strides) in zip(names, arguments, numbers)
    }
    found_call = replace(call, arguments=general, is_general=True)
    fits = _is_arranged(kernel, found_call) and _is_small(kernel, found_call)
    fits = fits and not _is_far(kernel, found_call)
    return found_call if fits else None


def _is_arranged(kernel: Definition, general: Call) -> bool:
    """Whether what stands for a class fits the arrangement, as its calls do: a number of tiles that
    must be 1 may be 2 there."""
    least = {symbol: symbol.lower_bound or 1 for symbol in kernel.meta_symbols}
    try:
        kernel.verified_grid({**kernel.environment(general), **least})
    except ArrangementError:
        return False
    return True


def _is_small(kernel: Definition, general: Call) -> bool:
    """Whether 32 bits hold what the program computes of sizes in every call of a class: none of its
    numbers is greater than those of the call that stands for it."""
    computed = arithmetic(kernel)
    if not computed:
        return True
    environment = kernel.environment(general)
    ranges = {leaf: (0, value) for leaf, value in environment.items()}
    # What is chosen for a call lies between its bounds.
    ranges |= {s: (s.lower_bound or 1, s.upper_bound or 1) for s in kernel.meta_symbols}
    for symbol in computed:
        for part in symbol.walk():
            low, high = interval(part, ranges)
            if low < -LARGEST_INT32 or high > LARGEST_INT32:
                return False
    return True


def _is_far(kernel: Definition, general: Call) -> bool:
    """Whether an offset that the program asks for may have 64 bits in what stands for a class, and 32 in others."""
    asked = [
        each
        for each in asked_offsets(kernel)
        if not reads_sequences(kernel.arrangement.accesses[each[0]].of(each[1]))
    ]
    if not asked:
        return False
    environment = kernel.environment(general)
    for bound in ("lower_bound", "upper_bound"):
        known = {**environment, **{s: getattr(s, bound) or 1 for s in kernel.meta_symbols}}
        grid = tuple(evaluated(size, known) for size in kernel.grid)
        if not far_offsets(kernel, known, grid).isdisjoint(asked):
            return True
    return False


def classes_for(kernel: Definition, call: Call) -> Classes | None:
    """The classes that a call's sizes are of; None where its kernel is compiled for each size."""
    return classes_of(kernel, _itemsize(call))


def told(call: Call, size: int) -> int:
    """Of what a size is a multiple of, what makes a difference; a small power of two is one of many."""
    wide, narrow = MOST // _itemsize(call), LEAST_COPY // _itemsize(call)
    if _is_alone(size) and size < wide:
        return 1
    return next((by for by in (wide, narrow) if by > 1 and size % by == 0), 1)


def _itemsize(call: Call) -> int:
    return min(argument.dtype.itemsize for argument in call.arguments.values())


@analysis
def classes_of(kernel: Definition, itemsize: int) -> Classes | None:
    """The classes of a kernel's sizes; None where it is compiled for each size.

    Args:
        itemsize: of its smallest elements, in bytes.
    """
    return None if roles_of(kernel) is None else Classes(kernel, itemsize)


class Classes:
    """The classes of one kernel's sizes."""

    def __init__(self, kernel: Definition, itemsize: int) -> None:
        roles = roles_of(kernel)
        assert roles is not None
        wide, narrow = max(MOST // itemsize, 1), max(LEAST_COPY // itemsize, 1)
        #: What a number may be a multiple of that makes a difference, by what it is to the tensors.
        self._divisors = {
            "width": (wide, narrow),
            "step": (_TILED, wide, narrow),
            "end": (_TILED, wide),
            "other": (_TILED,),
        }
        self._parts = PARTS if multiplies_tiles(kernel) else 1
        places: dict[Symbol, tuple[int, int]] = {}
        #: The dimensions whose size must be known, and those that a tile is as wide as, tensor by tensor.
        self._exact: list[tuple[int, int]] = []
        self._widths: list[tuple[int, int]] = []
        self._ranks = [len(parameter.source.shape) for parameter in kernel.tensor_parameters]
        for number, parameter in enumerate(kernel.tensor_parameters):
            for dim, size in enumerate(map(as_symbol, parameter.source.shape)):
                places[size] = number, dim
                if size in roles.exact:
                    self._exact.append((number, dim))
                if size in roles.widths:
                    self._widths.append((number, dim))
        self._equal = [(*places[one], *places[other]) for one, other in roles.equal]

    def standing_for(self, numbers: Numbers) -> Numbers | None:
        """The numbers that stand for the class of these; None where they are a class of their own."""
        for rank, (shape, strides) in zip(self._ranks, numbers):
            if len(shape) != rank or 0 in shape or (strides and min(strides) < 0):
                return None
        for number, dim, other, other_dim in self._equal:
            if numbers[number][0][dim] != numbers[other][0][other_dim]:
                return None
        # What a number is to one tensor, it is to all: where sizes meet they are still equal.
        exact = {numbers[number][0][dim] for number, dim in self._exact}
        widths = {numbers[number][0][dim] for number, dim in self._widths}
        if len({width.bit_length() for width in widths}) < len(widths):
            # They share their quarters.
            return None
        # Tensors alike are looked at once.
        alike = set(numbers)
        ends: set[int] = set()
        steps: set[int] = set()
        for shape, strides in alike:
            for size, stride in zip(shape, strides):
                if stride == 1:
                    ends.add(size)
                else:
                    steps.add(stride)
        known: dict[int, int] = {}
        for shape, strides in alike:
            for number in (*shape, *strides):
                if number in known:
                    continue
                if _is_alone(number) or number in exact:
                    known[number] = number
                    continue
                role = "other"
                if number in widths:
                    role = "width"
                elif number in steps:
                    role = "step"
                elif number in ends:
                    role = "end"
                known[number] = _greatest(number, self._divisors[role], self._parts)
        found = {}
        for shape, strides in alike:
            strided = _strided(shape, strides, known)
            if strided is None:
                return None
            found[shape, strides] = tuple([known[size] for size in shape]), strided
        return tuple([found[each] for each in numbers])


def end_of(number: int, parts: int) -> int:
    """Where a number's class ends, which is a class of its own."""
    if _is_alone(number):
        return number
    step = 1 << (number.bit_length() - 1)
    if number >= _LEAST_PARTED:
        step //= parts
    return -(-number // step) * step


def _greatest(number: int, divisors: Sequence[int], parts: int) -> int:
    """The greatest of a number's class, with the first of the divisors that it has."""
    end = end_of(number, parts)
    if number == end:
        return number
    for by in divisors:
        if number % by == 0:
            return end - by
    return end - 1


def _strided(
    shape: Sequence[int], strides: Sequence[int], known: Mapping[int, int]
) -> tuple[int, ...] | None:
    """The strides, where dimensions lie behind one another those that let them do so.

    None where they would do so though they do not, or where offsets would need 64 bits for that alone.
    """
    found: list[int] = []
    largest = greatest = following = general_following = 0
    for size, stride in zip(reversed(shape), reversed(strides)):
        is_adjacent = bool(found) and stride == following
        general = general_following if is_adjacent else known[stride]
        if found and (general == general_following) != is_adjacent:
            return None
        found.append(general)
        following, general_following = size * stride, known[size] * general
        largest += (size - 1) * stride
        greatest += (known[size] - 1) * general
    if greatest > LARGEST_INT32 >= largest:
        return None
    return tuple(reversed(found))


def facts_for(
    kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...], is_general: bool
) -> CallFacts:
    """The facts of a call; of one that stands for a class, those that hold for all of it.

    Args:
        environment: the values of the call.
        grid: its number of programs along each dimension.
        is_general: whether it stands for a class.
    """
    if not is_general:
        return facts_of(kernel, environment, grid)
    alone = {symbol for symbol, value in environment.items() if _is_alone(value)}
    roles = roles_of(kernel)
    assert roles is not None
    alone |= roles.exact
    known = {symbol for symbol in environment if symbol.leaf.role == "size"}
    facts = facts_of(kernel, environment, grid, known - alone, roles.equal)
    extents = dict(zip(kernel.arrangement.programs, kernel.grid))
    holding = set()
    for slack in facts.comparisons:
        leaves = set(slack.leaves())
        for leaf in slack.leaves():
            extent = extents.get(leaf, leaf.leaf.extent)
            leaves |= set() if extent is None else set(as_symbol(extent).leaves())
        if leaves & known <= alone:
            holding.add(slack)
    widths = {size for size in width_symbols(kernel) if not _is_alone(environment[size])}
    longest = max((environment[size] for size in widths), default=0)
    quartered = {s for s in widths if environment[s] == longest and longest >= _LEAST_QUARTERED}
    return replace(
        facts,
        comparisons=frozenset(holding),
        widths=frozenset(widths),
        quartered=frozenset(quartered),
    )


def _is_alone(number: int) -> bool:
    """Whether a number is a class of its own."""
    return number & (number - 1) == 0
