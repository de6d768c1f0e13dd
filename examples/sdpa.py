"""Scaled dot-product attention, as FlashAttention-2 has it.

Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", algorithm 1.
A program holds a block of queries and walks over the keys and values, with a running maximum and a
running sum. Groups of query heads may share a head of keys and values.
"""

import math

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size

LOG2_E = math.log2(math.e)


def arrangement(
    query,
    key,
    value,
    scale,
    is_causal,
    output,
    BLOCK_SIZE_M=block_size(lower_bound=32, upper_bound=128),
    BLOCK_SIZE_N=block_size(lower_bound=32, upper_bound=128),
):
    def arrange_queries(tensor):
        arranged = tensor.tile((1, 1, BLOCK_SIZE_M, -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged

    query_arranged = arrange_queries(query)

    def arrange_keys(tensor):
        arranged = tensor.tile((1, 1, BLOCK_SIZE_N, -1))
        arranged = arranged.tile((1, 1, -1, -1))
        arranged = arranged.expand((-1, -1, query_arranged.shape[2], -1))
        arranged.dtype = arranged.dtype.squeeze((0, 1, 3))
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

        # Each head is there as often as there are query heads that share it.
        heads_in_group = query.shape[-3] // key.shape[-3]
        arranged = arranged.unsqueeze(2).expand((-1, -1, heads_in_group, -1, -1))

        return arranged.flatten(start_dim=1, end_dim=3)

    return (
        query_arranged,
        arrange_keys(key),
        arrange_keys(value),
        scale,
        is_causal,
        arrange_queries(output),
    )


def application(query, key, value, scale, is_causal, output):
    exponent_scale = scale * LOG2_E
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    maximum = ntl.full((query.shape[0],), float("-inf"), dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)

    num_blocks = key.shape[0]

    if is_causal:
        # No query of this block sees a key past the block's last position.
        last = ntl.max(query.offsets(-2))
        num_blocks = ntl.minimum(num_blocks, last // key.dtype.shape[0] + 1)

    for i in range(num_blocks):
        scores = ntl.dot(query, ntl.trans(key[i]))
        position = key[i].offsets(-2)
        is_seen = position < key.source.shape[-2]

        if is_causal:
            is_seen = is_seen & (position[None, :] <= query.offsets(-2)[:, None])

        scores = ntl.where(is_seen, scores, float("-inf"))

        new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
        weights = ntl.exp2(scores * exponent_scale - (new_maximum * exponent_scale)[:, None])
        correction = ntl.exp2((maximum - new_maximum) * exponent_scale)

        accumulator = accumulator * correction[:, None]
        accumulator += ntl.dot(ntl.cast(weights, value.dtype.dtype), value[i])
        total = total * correction + ntl.sum(weights, axis=1)
        maximum = new_maximum

    output = accumulator / total[:, None]


shape_options = (None, None, None, {"constexpr": True})
query, key, value, output = (Tensor(4, shape_options=shape_options) for _ in range(4))
tensors = (query, key, value, Tensor(0), Tensor(0, constexpr=True), output)

kernel = ninetoothed.make(arrangement, application, tensors)


def sdpa(query, key, value, is_causal=False, scale=None):
    """The attention of queries (b, h, m, d) over keys and values (b, h / group, n, d).

    With `is_causal`, query i sees keys 0 to i. The scale is 1 / sqrt(d) unless given.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    output = query.new_empty(query.shape)

    kernel(query, key, value, scale, is_causal, output)

    return output
