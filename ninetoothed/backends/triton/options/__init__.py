"""What may be done beyond the plain translation, an option a file; here is the list.

The options are asked in this order, each with what was chosen of those before it; they are applied in
this order too, but for their `phase`.
"""

from __future__ import annotations

from ninetoothed.backends.triton.options import (
    cooperative_reduction,
    dependent_launch,
    descriptors,
    eviction_policy,
    folded_gather,
    full_tile_versioning,
    interleaved_pairs,
    loop_pipelining,
    loop_splitting,
    partial_reduction_sinking,
    persistent,
    program_coarsening,
    register_prefetch,
    split_k,
    swizzle,
    tma_pipeline,
    unrolled_reduction,
)
from ninetoothed.backends.triton.options.option import Option

OPTIONS: tuple[Option, ...] = (
    interleaved_pairs.OPTION,
    unrolled_reduction.OPTION,
    loop_splitting.OPTION,
    partial_reduction_sinking.OPTION,
    eviction_policy.OPTION,
    descriptors.OPTION,
    persistent.OPTION,
    tma_pipeline.OPTION,
    split_k.OPTION,
    cooperative_reduction.OPTION,
    register_prefetch.OPTION,
    loop_pipelining.OPTION,
    folded_gather.OPTION,
    program_coarsening.OPTION,
    swizzle.OPTION,
    dependent_launch.OPTION,
    full_tile_versioning.OPTION,
)
