"""The kernels of examples/more with their input builders and float64 references, as `cases` has the others."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

from examples.more import (
    addcmul,
    argmax,
    attention_with_mask,
    causal_conv1d,
    clamp,
    cross_entropy,
    cumsum,
    group_norm,
    instance_norm,
    mm_with_precision,
    pool2d,
    quantile,
    roll,
    top1,
    tril,
    upsample_bilinear,
)
from examples.more.indices import embedding, histogram
from tests.examples.cases import Example, columns, same_shapes
from tests.examples.inputs.more import (
    CACHES,
    CAUSAL_CONVOLUTIONS,
    HISTOGRAMS,
    IMAGES,
    JAGGED,
    LARGE_CACHES,
    LARGE_CAUSAL_CONVOLUTIONS,
    LARGE_HISTOGRAMS,
    LARGE_IMAGES,
    LARGE_JAGGED,
    LARGE_LOOKUPS,
    LARGE_MASKED_ATTENTIONS,
    LARGE_POOLS,
    LARGE_PRODUCTS,
    LARGE_ROWS,
    LARGE_SHAPES,
    LARGE_UPSAMPLINGS,
    LOOKUPS,
    MASKED_ATTENTIONS,
    POOLS,
    PRODUCTS,
    ROWS,
    SHAPES,
    UPSAMPLINGS,
    add_to_residual,
    attend_with_caches,
    build_addcmul,
    build_caches,
    build_causal_conv1d,
    build_cross_entropy,
    build_embedding,
    build_histogram,
    build_jagged,
    build_masked_attention,
    build_mm,
    build_norm,
    build_pool2d,
    build_residual,
    build_rounded_mm,
    build_scatter,
    scattered,
    softmax_of_jagged,
)
from tests.examples.more_references import (
    addcmul_reference,
    attention_with_cache_reference,
    causal_conv1d_reference,
    clamp_reference,
    cross_entropy_reference,
    first_argmax,
    histogram_reference,
    instance_norm_reference,
    jagged_softmax_reference,
    masked_attention_reference,
    quantile_reference,
    residual_reference,
    top1_reference,
)

Mode, Precision = addcmul.Mode, mm_with_precision.Precision


def _pool(name: str, function: Any, reference: Any) -> Example:
    return Example(
        name, function, reference, build_pool2d, POOLS, LARGE_POOLS, reduction=lambda *_: 16
    )


def _product(precision: Any) -> Example:
    small, large = PRODUCTS, LARGE_PRODUCTS
    if precision is not Precision.IEEE:
        small, large = {"odd": PRODUCTS["odd"]}, {"odd": LARGE_PRODUCTS["odd"]}
    return Example(
        f"mm in {precision.name}",
        mm_with_precision.mm,
        lambda input, other, precision: input @ other,
        build_rounded_mm if precision is Precision.TF32 else build_mm,
        small,
        large,
        {"precision": precision},
        reduction=lambda m, k, n: k,
    )


def _elements(
    name: str, function: Any, reference: Any, build: Any, is_variant: bool = False, **options: Any
) -> Example:
    """A kernel of elements; a variant, with other options, is tried at one size."""
    small, large = SHAPES, LARGE_SHAPES
    if is_variant:
        small, large = {"odd": SHAPES["odd"]}, {"odd": LARGE_SHAPES["odd"]}
    # Triton's interpreter takes a Python number, where the compiler has a scalar of float32.
    rounds = "value" in options
    return Example(
        name, function, reference, build, small, large, options, rounds_intermediates=rounds
    )


def _rows(name: str, *rest: Any, **keywords: Any) -> Example:
    return Example(name, *rest, ROWS, LARGE_ROWS, reduction=columns, **keywords)


MORE = (
    _pool("max_pool2d with padding", pool2d.max_pool2d, F.max_pool2d),
    _pool("avg_pool2d", pool2d.avg_pool2d, F.avg_pool2d),
    Example(
        "causal_conv1d",
        causal_conv1d.causal_conv1d,
        causal_conv1d_reference,
        build_causal_conv1d,
        CAUSAL_CONVOLUTIONS,
        LARGE_CAUSAL_CONVOLUTIONS,
        reduction=lambda b, c, t, k: k,
    ),
    Example(
        "upsample_bilinear",
        upsample_bilinear.upsample_bilinear,
        lambda input, size: F.interpolate(input, size, mode="bilinear"),
        lambda make, shape, size: (make(*shape), size),
        UPSAMPLINGS,
        LARGE_UPSAMPLINGS,
        # A position is rounded, and its distance from a pixel has the error of its size.
        reduction=lambda shape, size: max(size) ** 2,
    ),
    Example(
        "instance_norm",
        instance_norm.instance_norm,
        instance_norm_reference,
        build_norm,
        IMAGES,
        LARGE_IMAGES,
        reduction=lambda n, c, h, w: h * w,
    ),
    Example(
        "group_norm",
        lambda input, *vectors: group_norm.group_norm(input, 2, *vectors),
        lambda input, *vectors: F.group_norm(input, 2, *vectors),
        build_norm,
        IMAGES,
        LARGE_IMAGES,
        reduction=lambda n, c, h, w: c * h * w,
    ),
    _rows(
        "rms_norm with a residual",
        add_to_residual,
        residual_reference,
        build_residual,
        rounds_intermediates=True,
    ),
    Example(
        "quantile",
        lambda input: quantile.quantile(input, 0.3),
        quantile_reference,
        same_shapes(1),
        # Triton's interpreter takes long to sort.
        {label: ROWS[label] for label in ("one", "odd", "empty")},
        LARGE_ROWS,
        reduction=columns,
    ),
    _rows("cumsum", cumsum.cumsum, lambda input: input.cumsum(-1), same_shapes(1)),
    _rows("argmax", argmax.argmax, first_argmax, same_shapes(1)),
    _rows("top1", top1.top1, top1_reference, same_shapes(2)),
    _rows(
        "cross_entropy", cross_entropy.cross_entropy, cross_entropy_reference, build_cross_entropy
    ),
    Example(
        "jagged_softmax",
        softmax_of_jagged,
        jagged_softmax_reference,
        build_jagged,
        JAGGED,
        LARGE_JAGGED,
        reduction=lambda lengths, size: max(lengths),
    ),
    *(_product(precision) for precision in Precision),
    Example(
        "attention_with_cache",
        attend_with_caches,
        attention_with_cache_reference,
        build_caches,
        CACHES,
        LARGE_CACHES,
        reduction=lambda b, h, new, position, d: new + position + d,
        rounds_intermediates=True,
    ),
    Example(
        "attention_with_mask",
        attention_with_mask.attention_with_mask,
        masked_attention_reference,
        build_masked_attention,
        MASKED_ATTENTIONS,
        LARGE_MASKED_ATTENTIONS,
        reduction=lambda b, h, h_keys, m, n, d: n + d,
        rounds_intermediates=True,
    ),
    Example(
        "embedding",
        embedding.embedding,
        lambda input, table: table[input],
        build_embedding,
        LOOKUPS,
        LARGE_LOOKUPS,
    ),
    Example(
        "scatter_add",
        scattered,
        lambda output, index, input: output.index_add(0, index, input),
        build_scatter,
        LOOKUPS,
        LARGE_LOOKUPS,
    ),
    Example(
        "histogram",
        histogram.histogram,
        histogram_reference,
        build_histogram,
        HISTOGRAMS,
        LARGE_HISTOGRAMS,
    ),
    *(
        _elements(
            f"roll by {shift}",
            roll.roll,
            lambda input, shift: input.roll(shift, -1),
            same_shapes(1),
            shift < 0,
            shift=shift,
        )
        for shift in (3, -2)
    ),
    *(
        _elements(
            f"tril from {diagonal}",
            tril.tril,
            lambda input, diagonal: input.tril(diagonal),
            same_shapes(1),
            diagonal < 0,
            diagonal=diagonal,
        )
        for diagonal in (0, -2)
    ),
    _elements("clamp", clamp.clamp, clamp_reference, same_shapes(1), low=-1, high=0.5),
    _elements(
        "clamp with a replacement",
        clamp.clamp,
        clamp_reference,
        same_shapes(1),
        True,
        low=-1.0,
        high=0.5,
        replacement=0.25,
    ),
    *(
        _elements(
            f"addcmul, {mode.value}",
            addcmul.addcmul,
            addcmul_reference,
            build_addcmul,
            mode is Mode.DIVIDE,
            value=-1.5,
            mode=mode,
        )
        for mode in Mode
    ),
)
