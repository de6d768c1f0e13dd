"""Attention with a mask of booleans, where groups of query heads share a head of keys and values."""

import math

import ninetoothed
import ninetoothed.language as ntl
from examples import sdpa
from ninetoothed import Tensor, block_size


def arrangement(
    query,
    key,
    value,
    mask,
    scale,
    output,
    BLOCK_SIZE_M=block_size(lower_bound=16, upper_bound=64),
    BLOCK_SIZE_N=block_size(lower_bound=16, upper_bound=64),
):
    query_arranged, key_arranged, value_arranged, *_, output_arranged = sdpa.arrangement(
        query, key, value, scale, False, output, BLOCK_SIZE_M, BLOCK_SIZE_N
    )
    mask_arranged = mask.tile((1, 1, BLOCK_SIZE_M, BLOCK_SIZE_N)).tile((1, 1, 1, -1))
    mask_arranged.dtype = mask_arranged.dtype.squeeze((0, 1, 2))
    mask_arranged.dtype.dtype = mask_arranged.dtype.dtype.squeeze((0, 1))

    return query_arranged, key_arranged, value_arranged, mask_arranged, scale, output_arranged


def application(query, key, value, mask, scale, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)
    # No infinity: a block of which all is masked comes before one that has something to see.
    maximum = ntl.full((query.shape[0],), -1e30, dtype=ntl.float32)

    for i in range(key.shape[0]):
        scores = ntl.where(mask[i], ntl.dot(query, ntl.trans(key[i])) * scale, float("-inf"))

        new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
        weights = ntl.exp(scores - new_maximum[:, None])
        correction = ntl.exp(maximum - new_maximum)

        accumulator = accumulator * correction[:, None]
        accumulator += ntl.dot(ntl.cast(weights, value.dtype.dtype), value[i])
        total = total * correction + ntl.sum(weights, axis=1)
        maximum = new_maximum

    # A query that sees nothing finds zeros.
    output = accumulator / ntl.maximum(total, 1e-30)[:, None]


tensors = (sdpa.query, sdpa.key, sdpa.value, Tensor(4), Tensor(0), sdpa.output)

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="attention_with_mask")


def attention_with_mask(query, key, value, mask, scale=None):
    """The attention of (b, h, m, d) over (b, h / group, n, d), where the mask (..., m, n) is true.

    A query that sees nothing finds zeros. The scale is 1 / sqrt(d) unless given.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    output = query.new_empty(query.shape)
    shape = (*query.shape[:3], key.shape[2])

    kernel(query, key, value, mask.expand(shape), scale, output)

    return output
