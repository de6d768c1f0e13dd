"""Causal attention of new positions over a cache, into which their keys and values are written.

The parts of the cache are views: what was there before, and the slots for what is new.
"""

import math

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size

BLOCK_SIZE_M = block_size(lower_bound=16, upper_bound=64)
BLOCK_SIZE_N = block_size(lower_bound=16, upper_bound=64)


def arrangement(
    query,
    past_key,
    past_value,
    key,
    value,
    key_block,
    value_block,
    key_slot,
    value_slot,
    scale,
    output,
    BLOCK_SIZE_M=BLOCK_SIZE_M,
    BLOCK_SIZE_N=BLOCK_SIZE_N,
):
    def arrange_block(tensor):
        arranged = tensor.tile((1, 1, BLOCK_SIZE_M, -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged

    query_arranged = arrange_block(query)

    def arrange_all(tensor):
        arranged = tensor.tile((1, 1, BLOCK_SIZE_N, -1)).tile((1, 1, -1, -1))
        arranged = arranged.expand((-1, -1, query_arranged.shape[2], -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1, 3))
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

        return arranged

    return (
        query_arranged,
        *(arrange_all(tensor) for tensor in (past_key, past_value, key, value)),
        *(arrange_block(tensor) for tensor in (key_block, value_block, key_slot, value_slot)),
        scale,
        arrange_block(output),
    )


def attend(query, key, value, scale, is_seen, state):
    """The state (sum of values, sum of weights, maximum) after one more block of keys."""
    accumulator, total, maximum = state

    scores = ntl.where(is_seen, ntl.dot(query, ntl.trans(key)) * scale, float("-inf"))
    new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
    weights = ntl.exp(scores - new_maximum[:, None])
    correction = ntl.exp(maximum - new_maximum)

    accumulator = accumulator * correction[:, None]
    accumulator += ntl.dot(ntl.cast(weights, value.dtype), value)

    return accumulator, total * correction + ntl.sum(weights, axis=1), new_maximum


def application(
    query,
    past_key,
    past_value,
    key,
    value,
    key_block,
    value_block,
    key_slot,
    value_slot,
    scale,
    output,
):
    key_slot = key_block
    value_slot = value_block

    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)
    maximum = ntl.full((query.shape[0],), -1e30, dtype=ntl.float32)

    for i in range(past_key.shape[0]):
        is_there = past_key[i].offsets(-2)[None, :] < past_key.source.shape[-2]
        accumulator, total, maximum = attend(
            query, past_key[i], past_value[i], scale, is_there, (accumulator, total, maximum)
        )

    for i in range(key.shape[0]):
        is_seen = key[i].offsets(-2)[None, :] <= query.offsets(-2)[:, None]
        accumulator, total, maximum = attend(
            query, key[i], value[i], scale, is_seen, (accumulator, total, maximum)
        )

    output = accumulator / total[:, None]


shape_options = (None, None, None, {"constexpr": True})
tensors = (
    *(Tensor(4, shape_options=shape_options) for _ in range(9)),
    Tensor(0),
    Tensor(4, shape_options=shape_options),
)

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="attention_with_cache")


def attention_with_cache(query, key, value, key_cache, value_cache, position):
    """Attention of (b, h, m, d) at `position` and after; the caches (b, h, longest, d) are written to.

    Query i sees the `position` keys that are in the cache and the new keys 0 to i.
    """
    output = query.new_empty(query.shape)
    end = position + key.shape[2]

    kernel(
        query,
        key_cache[:, :, :position],
        value_cache[:, :, :position],
        key,
        value,
        key,
        value,
        key_cache[:, :, position:end],
        value_cache[:, :, position:end],
        1 / math.sqrt(query.shape[-1]),
        output,
    )

    return output
