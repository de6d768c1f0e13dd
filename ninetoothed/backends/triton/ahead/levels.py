"""Levels of a kernel's variants that have more options than the usual ones.

Where the copy engine moves products' tiles, which of them are boxes is found out with one large call, and
what must hold of any call for the engine to take its tensors is asked at the launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.ahead.assumptions import Assumption
from ninetoothed.backends.triton.analysis import reduction_form
from ninetoothed.backends.triton.analysis.boxes import GRANULE, LARGEST_STRIDE, is_multiple
from ninetoothed.backends.triton.analysis.full_iterations import compares
from ninetoothed.backends.triton.analysis.program_order import INVERSE_BITS
from ninetoothed.backends.triton.analysis.resources import lanes
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.nodes import MOST_COUNTERS
from ninetoothed.backends.triton.printers.gluon.translation import needs_of
from ninetoothed.backends.triton.specialization import comparisons, size_ratios
from ninetoothed.backends.triton.translation import generic
from ninetoothed.errors import ArrangementError
from ninetoothed.kernels.ahead import Condition, Within
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, maximum
from ninetoothed.symbols.simplify import product, simplify

if TYPE_CHECKING:
    from ninetoothed.backends.triton.options.option import Case
    from ninetoothed.backends.triton.specialization.boxes import Box
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.space import Config


def with_descriptors(
    levels: list[Assumption], case: Case, config: Config, known: Mapping[Symbol, int]
) -> list[Assumption]:
    """The levels, with descriptors where a configuration has them: from the one of aligned rows on.

    Args:
        levels: `Assumptions.chain`.
        case: a large call.
        known: the values of the constexpr and meta symbols.
    """
    *weaker, aligned, full = levels
    options = _options(case, config, aligned)
    conditions = _conditions(
        case, lowered(case.kernel, replace(aligned, options=options), case), known
    )
    if conditions is None:
        return levels
    described = replace(aligned, name="described", added=conditions, options=options)
    return [*weaker, aligned, described, replace(full, options=_options(case, config, full))]


def with_parts(
    levels: list[Assumption], case: Case, config: Config, known: Mapping[Symbol, int]
) -> list[Assumption]:
    """The levels, with the reduction divided where a configuration divides it: from the one of aligned
    rows on, where counters and offsets in the workspace suffice."""
    *weaker, aligned, full = levels
    tiles = tiles_of(case.kernel, known)
    form = reduction_form.form_of(case.kernel)
    assert form is not None
    room = dict(config.options)["split_k"] * reduction_form.room(form, known)
    most = min(MOST_COUNTERS, LARGEST_INT32 // room)
    divided = replace(
        aligned, name="divided", added=(Within(tiles, 0, most),), options=config.options
    )
    return [*weaker, aligned, divided, replace(full, options=config.options)]


def with_likeness(
    levels: list[Assumption], case: Case, config: Config, known: Mapping[Symbol, int]
) -> list[Assumption]:
    """The levels, and one more where calls like the large one need less: comparisons that hold everywhere
    are not made, quotients of sizes are numbers, and positions in the grid come by multiplication."""
    kernel, environment, strongest = case.kernel, case.environment, levels[-1]
    try:
        grid = kernel.verified_grid(environment)
    except ArrangementError:
        return levels
    slacks = comparisons.holding(kernel, environment, grid)
    accesses = kernel.arrangement.accesses.values()
    ratios = frozenset(r for access in accesses for r in size_ratios.known(access, environment))
    facts = replace(strongest.facts, comparisons=slacks, size_ratios=ratios)
    level = replace(strongest, name="alike", facts=facts, added=(), by_inverses=True)
    if "descriptors" in dict(strongest.options):
        level = replace(level, options=_options(case, config, level))
    level = replace(level, by_inverses=lowered(kernel, level, case).by_inverses)
    asked = [_holds_everywhere(kernel, slack, known) for slack in sorted(slacks, key=str)]
    asked += [Within(_with(ratio, known), value, value) for ratio, value in sorted(ratios, key=str)]
    if level.by_inverses:
        most = product(kernel.grid) * product(kernel.grid[1:])
        asked.append(Within(_with(most, known), 1, (1 << INVERSE_BITS) - 1))
    needed = tuple(each for each in asked if each.expression.op != "const")
    return [*levels, replace(level, added=needed)] if asked else levels


def _holds_everywhere(kernel: Definition, slack: Symbol, known: Mapping[Symbol, int]) -> Within:
    """That a slack is negative wherever a program is, in whatever round, at whatever coordinates."""
    programs = dict(zip(kernel.arrangement.programs, kernel.grid))
    positions = []
    for leaf in dict.fromkeys(slack.leaves()):
        if leaf in programs or leaf.leaf.role == "index":
            extent = programs.get(leaf, leaf.leaf.extent)
            last = maximum(_with(as_symbol(extent) - 1, known), 0)
            positions.append((leaf, constant(0), last))
    return Within(_with(slack, known), None, -1, tuple(positions))


def _with(expression: object, known: Mapping[Symbol, int]) -> Symbol:
    return as_symbol(simplify(as_symbol(expression).substitute(known)))


def tiles_of(kernel: Definition, known: Mapping[Symbol, int]) -> Symbol:
    """The elements of the grid."""
    return _with(product(kernel.grid), known)


def lowered(kernel: Definition, level: Assumption, case: Case, **options: int) -> Lowered:
    """The kernel under a level's assumptions, with its options and others."""
    # Tiles that take turns are put together by what is known of strides alone.
    options = {"interleaved_pairs": 1, **options, **dict(level.options)}
    result = generic(kernel, level.facts, case, **options)
    # Multiplications in place of divisions are exact for some grids.
    return result if level.by_inverses else replace(result, by_inverses=False)


def _options(case: Case, config: Config, level: Assumption) -> tuple[tuple[str, int], ...]:
    """A configuration's, with loops split where comparisons may fail at this level."""
    chosen = dict(config.options)
    chosen.pop("loop_splitting", None)
    if compares(case.kernel, level.facts):
        # A split loop stays on no multiprocessor.
        chosen.pop("persistent", None)
        chosen["loop_splitting"] = 1
    return tuple(chosen.items())


def _conditions(
    case: Case, result: Lowered, known: Mapping[Symbol, int]
) -> tuple[Condition, ...] | None:
    """What must hold for the engine to take a call's tensors; None where it may take none."""
    if not result.boxes:
        return None
    if result.tma_pipeline is not None and not _is_of_tiles(case.kernel, result, known):
        return None
    found: list[Condition] = []
    for name, box in sorted(result.boxes):
        asked = _of_box(case, name, box, known)
        if asked is None:
            return None
        found += asked
    return tuple(dict.fromkeys(found))


def _of_box(case: Case, name: str, box: Box, known: Mapping[Symbol, int]) -> list[Condition] | None:
    kernel = case.kernel
    source = kernel.program.parameter(name).source
    access = kernel.arrangement.accesses[name]
    itemsize = case.call.arguments[name].dtype.itemsize
    granule = max(GRANULE // itemsize, 1)
    *outer, inner = box.dims
    # The strides that are assumed to be 1 are those of the last dimensions.
    if inner != source.ndim - 1:
        return None
    if not is_multiple(access.indices[inner], access.coordinates, known, granule):
        return None
    sizes = [Within(as_symbol(source.shape[dim]), 1, LARGEST_INT32) for dim in box.dims]
    strides = [as_symbol(source.strides[dim]) for dim in outer]
    largest = (LARGEST_STRIDE - 1) // itemsize
    return [
        *(asked for asked in sizes if asked.expression.op != "const"),
        *(Within(stride, 1, largest) for stride in strides),
        *(Within(as_symbol(stride % granule), 0, 0) for stride in strides),
    ]


def _is_of_tiles(kernel: Definition, result: Lowered, known: Mapping[Symbol, int]) -> bool:
    """Whether what Gluon needs of a call is said by constants alone, and holds."""
    needs = needs_of(kernel, result)
    if isinstance(needs, str):
        return False
    sizes = [as_symbol(size) for pair in needs.equal for size in pair]
    if not all(leaf in known for size in sizes for leaf in size.leaves()):
        return False
    return all(lanes(one, known) == lanes(other, known) for one, other in needs.equal)
