"""Levels of a kernel's variants that have more options than the usual ones.

Where the copy engine moves products' tiles, which of them are boxes is found out with one large call, and
what must hold of any call for the engine to take its tensors is asked at the launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.ahead.assumptions import LARGEST_INT32, Assumption
from ninetoothed.backends.triton.analysis import reduction_form
from ninetoothed.backends.triton.analysis.boxes import GRANULE, LARGEST_STRIDE, is_multiple
from ninetoothed.backends.triton.analysis.full_iterations import compares
from ninetoothed.backends.triton.analysis.resources import lanes
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.nodes import MOST_COUNTERS
from ninetoothed.backends.triton.planning.legality import needs_of
from ninetoothed.backends.triton.translation import generic
from ninetoothed.kernels.ahead import Condition, Within
from ninetoothed.symbols.expr import Symbol, as_symbol
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


def tiles_of(kernel: Definition, known: Mapping[Symbol, int]) -> Symbol:
    """The elements of the grid."""
    return as_symbol(simplify(as_symbol(product(kernel.grid)).substitute(known)))


def lowered(kernel: Definition, level: Assumption, case: Case, **options: int) -> Lowered:
    """The kernel under a level's assumptions, with its options and others."""
    # Tiles that take turns are put together by what is known of strides alone.
    options = {"interleaved_pairs": 1, **options, **dict(level.options)}
    result = generic(kernel, level.facts, case, **options)
    # Multiplications in place of divisions are exact for some grids.
    return replace(result, by_inverses=False)


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
