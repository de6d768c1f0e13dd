"""Scaled dot-product attention with the backward of FlashAttention-2.

Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", algorithms 1
and 2. The scores are computed again in backward; one kernel walks over keys for the gradient of a
block of queries, one over queries for those of a block of keys and values.
"""

import math

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import operator
from ninetoothed import Tensor, block_size, like

LOG2_E = math.log2(math.e)

#: Rows that a program keeps, and rows that it takes each round: of heads of 128, 128 of these would not fit
#: the registers beside the gradients of 64 keys and values (0.45 of the speed on an H200, 2026-11-23).
HELD = block_size(lower_bound=32, upper_bound=128)
WALKED = block_size(lower_bound=32, upper_bound=64)


def held(tensor, size):
    """A block of rows of one head a program: (b, h, blocks, 1) tiles (size, d)."""
    arranged = tensor.permute((0, 2, 1, 3)).tile((1, 1, size, -1))
    arranged.dtype = arranged.dtype.squeeze((0, 1))

    return arranged


def walked(tensor, size, beside):
    """All blocks of rows of a head for every program of it."""
    arranged = tensor.permute((0, 2, 1, 3)).tile((1, 1, size, -1)).tile((1, 1, -1, -1))
    arranged = arranged.expand((-1, -1, beside.shape[2], -1))
    arranged.dtype = arranged.dtype.squeeze((0, 1, 3))
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

    return arranged


def held_statistic(tensor, size):
    arranged = tensor.tile((1, 1, size)).unsqueeze(3)
    arranged.dtype = arranged.dtype.squeeze((0, 1))

    return arranged


def walked_statistic(tensor, size, beside):
    arranged = tensor.tile((1, 1, size)).tile((1, 1, -1))
    arranged = arranged.expand((-1, -1, beside.shape[2])).unsqueeze(3)
    arranged.dtype = arranged.dtype.squeeze((0, 1))
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

    return arranged


def last_first(arranged):
    """Blocks from the last to the first, which causal attention has more work for."""
    return arranged[:, :, ::-1]


def backwards(arranged):
    """A walk from the last block to the first: what causal attention masks comes last."""
    arranged.dtype = arranged.dtype[::-1]
    return arranged


def blocks_seen(query, key, is_causal):
    """How many blocks of keys a block of queries sees some of."""
    count = key.shape[0]

    if is_causal:
        count = ntl.minimum(count, ntl.max(query.offsets(1)) // key.dtype.shape[0] + 1)

    return count


def forward_arrangement(query, key, value, scale, is_causal, output, log_sum):
    queries = held(query, HELD)

    return (
        queries,
        walked(key, WALKED, queries),
        walked(value, WALKED, queries),
        scale,
        is_causal,
        held(output, HELD),
        held_statistic(log_sum, HELD),
    )


def forward(query, key, value, scale, is_causal, output, log_sum):
    exponent_scale = scale * LOG2_E
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    maximum = ntl.full((query.shape[0],), float("-inf"), dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)

    for i in range(blocks_seen(query, key, is_causal)):
        scores = ntl.dot(query, ntl.trans(key[i]))
        position = key[i].offsets(1)[None, :]
        is_seen = position < key.source.shape[1]

        if is_causal:
            is_seen = is_seen & (position <= query.offsets(1)[:, None])

        scores = ntl.where(is_seen, scores * exponent_scale, float("-inf"))
        new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
        weights = ntl.exp2(scores - new_maximum[:, None])
        correction = ntl.exp2(maximum - new_maximum)

        accumulator = accumulator * correction[:, None]
        accumulator += ntl.dot(ntl.cast(weights, value.dtype.dtype), value[i])
        total = total * correction + ntl.sum(weights, axis=1)
        maximum = new_maximum

    output = accumulator / total[:, None]
    log_sum = maximum + ntl.log2(total)


def query_arrangement(
    gradient, output, query, key, value, scale, is_causal, log_sum, query_gradient, delta
):
    queries = held(query, HELD)

    return (
        last_first(held(gradient, HELD)),
        last_first(held(output, HELD)),
        last_first(queries),
        walked(key, WALKED, queries),
        walked(value, WALKED, queries),
        scale,
        is_causal,
        last_first(held_statistic(log_sum, HELD)),
        last_first(held(query_gradient, HELD)),
        last_first(held_statistic(delta, HELD)),
    )


def query_backward(
    gradient, output, query, key, value, scale, is_causal, log_sum, query_gradient, delta
):
    exponent_scale = scale * LOG2_E
    total = ntl.zeros(query_gradient.shape, dtype=ntl.float32)
    changes = ntl.cast(gradient, ntl.float32) * ntl.cast(output, ntl.float32)
    change_of_sum = ntl.sum(changes, axis=1)

    for i in range(blocks_seen(query, key, is_causal)):
        scores = ntl.dot(query, ntl.trans(key[i]))
        change = ntl.dot(ntl.cast(gradient, value.dtype.dtype), ntl.trans(value[i]))
        position = key[i].offsets(1)[None, :]
        is_seen = position < key.source.shape[1]

        if is_causal:
            is_seen = is_seen & (position <= query.offsets(1)[:, None])

        weights = ntl.exp2(scores * exponent_scale - log_sum[:, None])
        weights = ntl.where(is_seen, weights, 0) * (change - change_of_sum[:, None])
        total += ntl.dot(ntl.cast(weights, key.dtype.dtype), key[i])

    query_gradient = total * scale
    delta = change_of_sum


def key_arrangement(
    gradient, query, key, value, scale, is_causal, log_sum, delta, key_gradient, value_gradient
):
    keys = held(key, HELD)

    return (
        backwards(walked(gradient, WALKED, keys)),
        backwards(walked(query, WALKED, keys)),
        keys,
        held(value, HELD),
        scale,
        is_causal,
        backwards(walked_statistic(log_sum, WALKED, keys)),
        backwards(walked_statistic(delta, WALKED, keys)),
        held(key_gradient, HELD),
        held(value_gradient, HELD),
    )


def key_backward(
    gradient, query, key, value, scale, is_causal, log_sum, delta, key_gradient, value_gradient
):
    of_keys = ntl.zeros(key_gradient.shape, dtype=ntl.float32)
    of_values = ntl.zeros(value_gradient.shape, dtype=ntl.float32)

    exponent_scale = scale * LOG2_E
    count = query.shape[0]

    if is_causal:
        # No query before sees a key of this block.
        count -= ntl.min(key.offsets(1)) // query.dtype.shape[0]

    # Keys by queries, so that no weights are transposed. Queries past the end add nothing: their gradients
    # and scores are zeros.
    for i in range(count):
        scores = ntl.dot(key, ntl.trans(query[i]))
        change = ntl.dot(value, ntl.trans(gradient[i]))
        weights = ntl.exp2(scores * exponent_scale - log_sum[i][None, :])

        if is_causal:
            is_seen = key.offsets(1)[:, None] <= query[i].offsets(1)[None, :]
            weights = ntl.where(is_seen, weights, 0)

        of_values += ntl.dot(ntl.cast(weights, gradient.dtype.dtype), gradient[i])
        change = weights * (change - delta[i][None, :])
        of_keys += ntl.dot(ntl.cast(change, query.dtype.dtype), query[i])

    key_gradient = of_keys * scale
    value_gradient = of_values


def heads():
    """Symbolic (batch, length, heads, size), as a projection gives them."""
    return Tensor(4, shape_options=(None, None, None, {"constexpr": True}))


def scalars():
    """The scale, and whether queries see no later keys."""
    return Tensor(0, dtype=ninetoothed.float32), Tensor(0, constexpr=True, value=False)


scale, _ = scalars()
causal = Tensor(0, constexpr=True)


def statistic_of(tensor):
    """An output of (batch, heads, length)."""
    batch, length, heads, _ = tensor.shape

    return (batch, heads, length), ninetoothed.float32


def _operators(is_causal):
    """Forward, and the two backward ones, causal or not."""
    name = "causal_attention" if is_causal else "attention"
    constants = {"is_causal": is_causal}
    query = heads()

    of_queries = operator(
        f"{name}_query_backward",
        query_arrangement,
        query_backward,
        (
            *(heads() for _ in range(2)),
            query,
            heads(),
            heads(),
            scale,
            causal,
            Tensor(3),
            heads(),
            Tensor(3),
        ),
        {"query_gradient": like("query"), "delta": statistic_of(query)},
        constants=constants,
    )
    of_keys = operator(
        f"{name}_key_backward",
        key_arrangement,
        key_backward,
        (*(heads() for _ in range(4)), scale, causal, Tensor(3), Tensor(3), heads(), heads()),
        {"key_gradient": like("key"), "value_gradient": like("value")},
        constants=constants,
    )

    def gradients(gradient, query, key, value, scale, output, log_sum):
        others = query, key, value, scale
        query_gradient, delta = of_queries(gradient, output, *others, log_sum)

        return query_gradient, *of_keys(gradient, *others, log_sum, delta)

    return operator(
        name,
        forward_arrangement,
        forward,
        (query, heads(), heads(), scale, causal, heads(), Tensor(3)),
        {"output": like("query"), "log_sum": statistic_of(query)},
        backward=gradients,
        saved=("query", "key", "value", "scale", "output", "log_sum"),
        hidden=("log_sum",),
        constants=constants,
    )


plain, causal_one = _operators(False), _operators(True)


def attention(query, key, value, is_causal=False, scale=None):
    """The attention of queries (b, m, h, d) over keys and values (b, n, h, d).

    With `is_causal`, query i sees keys 0 to i. The scale is 1 / sqrt(d) unless given.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale

    return (causal_one if is_causal else plain)(query, key, value, scale)
