"""Attention for the published package, which takes nine of our ten examples as they are, but not this.

As `examples.sdpa`, without the causal branch, and with a bound for the size of a head.
"""

import math

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size


def arrangement(
    query,
    key,
    value,
    scale,
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

        return arranged

    return query_arranged, arrange_keys(key), arrange_keys(value), scale, arrange_queries(output)


def application(query, key, value, scale, output):
    exponent_scale = scale * 1.4426950408889634
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    maximum = ntl.full((query.shape[0],), float("-inf"), dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)

    for i in range(key.shape[0]):
        scores = ntl.dot(query, ntl.trans(key[i]))
        is_seen = key[i].offsets(-2) < key.source.shape[-2]
        scores = ntl.where(is_seen, scores, float("-inf"))

        new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
        weights = ntl.exp2(scores * exponent_scale - (new_maximum * exponent_scale)[:, None])
        correction = ntl.exp2((maximum - new_maximum) * exponent_scale)

        accumulator = accumulator * correction[:, None]
        accumulator += ntl.dot(ntl.cast(weights, value.dtype.dtype), value[i])
        total = total * correction + ntl.sum(weights, axis=1)
        maximum = new_maximum

    output = accumulator / total[:, None]


shape_options = (None, None, None, {"constexpr": True, "upper_bound": 128})
query, key, value, output = (Tensor(4, shape_options=shape_options) for _ in range(4))
tensors = (query, key, value, Tensor(0), output)

kernel = ninetoothed.make(arrangement, application, tensors)


def sdpa(query, key, value):
    """The attention of queries (b, h, m, d) over keys and values (b, h, n, d)."""
    output = query.new_empty(query.shape)

    kernel(query, key, value, 1 / math.sqrt(query.shape[-1]), output)

    return output
