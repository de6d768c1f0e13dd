"""Attention over a cache in pages: new positions are turned, written to the cache, and look back.

When decoding, each request has one new position. Its keys are split over programs, each of which leaves a
maximum, a sum of weights and a weighted sum of values, which a second kernel puts together, as
Flash-Decoding does (Dao et al., 2023). Requests may have different lengths.
"""

import math

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size

LOG2_E = math.log2(math.e)
BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)

#: Less than any score, and no infinity: two of it can be subtracted.
LEAST = -1e30


def arrange_pages(pages, shape, block, columns):
    """Pages (pages, heads, positions, size): all blocks of a head for each program of it.

    A program is given (pages, blocks of a page, parts of a row) of (block, columns).
    """
    arranged = pages.tile((1, 1, block, columns)).tile((-1, 1, -1, -1))
    arranged.dtype = arranged.dtype.squeeze(1)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

    return arranged.squeeze(3).expand(shape)


def arrange_table(table, shape):
    """The table of pages (requests, pages of a request): a request's row for each program of it."""
    arranged = table.tile((1, 1)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)

    return arranged.unsqueeze(2).expand(shape)


def arrange_angles(angles, shape):
    """A table of sines or cosines (positions, pairs): all of it for each program."""
    arranged = angles.tile((1, -1)).tile((-1, -1))
    arranged.dtype = arranged.dtype.squeeze(1)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)

    return arranged.unsqueeze(2).expand(shape)


def rotated(pair, sin, cos):
    """The halves of heads, turned by the angles of their position."""
    first = ntl.cast(pair[0], ntl.float32)
    second = ntl.cast(pair[1], ntl.float32)

    return first * cos - second * sin, first * sin + second * cos


def page_of(block, request, table, blocks, is_paged):
    """The page that a request's block is in, and the block's place there."""
    if is_paged:
        return table[block // blocks], block % blocks
    else:
        return request, block


def attended(scores, value, state):
    """The state (weighted sum of values, sum of weights, maximum) after scores of further keys.

    Scores are in units of log 2.
    """
    accumulator, total, maximum = state
    new_maximum = ntl.maximum(maximum, ntl.max(scores, axis=1))
    weights = ntl.exp2(scores - new_maximum[:, None])
    correction = ntl.exp2(maximum - new_maximum)
    accumulator = accumulator * correction[:, None]
    accumulator += ntl.dot(ntl.cast(weights, value.dtype), value)

    return accumulator, total * correction + ntl.sum(weights, axis=1), new_maximum


def decode_arrangement(
    query,
    key,
    value,
    position,
    sin,
    cos,
    key_pages,
    value_pages,
    key_slot,
    value_slot,
    table,
    scale,
    is_paged,
    partial,
    maximum,
    total,
):
    half = query.shape[2] // 2
    group = query.shape[1] // key.shape[1]
    requests, heads, splits = key.shape[0], key.shape[1], partial.shape[2]
    repeat = (-1, -1, splits)

    def arrange_pairs(tensor, heads):
        arranged = tensor.tile((1, heads, half)).tile((1, 1, 2)).expand(repeat)
        arranged.dtype = arranged.dtype.squeeze((0, 1))
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)

        return arranged

    def arrange_parts(tensor, *columns):
        arranged = tensor.tile((1, group, 1, *columns))
        arranged.dtype = arranged.dtype.squeeze((0, 2))

        return arranged.squeeze(3) if columns else arranged

    def arrange_row(angles):
        arranged = angles.tile((1, -1)).unsqueeze(2).expand((-1, heads, splits))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    value_arranged = value.tile((1, 1, -1)).expand(repeat)
    value_arranged.dtype = value_arranged.dtype.squeeze(0)

    return (
        arrange_pairs(query, group),
        arrange_pairs(key, 1),
        value_arranged,
        position.tile((1,)).unsqueeze(1).unsqueeze(2).expand((-1, heads, splits)),
        arrange_row(sin),
        arrange_row(cos),
        arrange_pages(key_pages, (requests, -1, splits), BLOCK_SIZE, half),
        arrange_pages(value_pages, (requests, -1, splits), BLOCK_SIZE, -1),
        arrange_pages(key_slot, (requests, -1, splits), 1, half),
        arrange_pages(value_slot, (requests, -1, splits), 1, -1),
        arrange_table(table, (-1, heads, splits)),
        scale,
        is_paged,
        arrange_parts(partial, -1),
        arrange_parts(maximum),
        arrange_parts(total),
    )


def decode(
    query,
    key,
    value,
    position,
    sin,
    cos,
    key_pages,
    value_pages,
    key_slot,
    value_slot,
    table,
    scale,
    is_paged,
    partial,
    maximum,
    total,
):
    request, here = position.offsets(0), position
    split = partial.offsets(2)
    # All that is not in the cache is on its way before the loop; what is done with it comes after.
    new_value = ntl.cast(value, ntl.float32)
    first, second = rotated(query, sin, cos)
    new_first, new_second = rotated(key, sin, cos)
    # As they are read from the cache later.
    first, second = ntl.cast(first, key.dtype.dtype), ntl.cast(second, key.dtype.dtype)
    new_first = ntl.cast(new_first, key.dtype.dtype)
    new_second = ntl.cast(new_second, key.dtype.dtype)

    exponent_scale = scale * LOG2_E
    num_blocks = (here + key_pages.dtype.shape[0] - 1) // key_pages.dtype.shape[0]
    blocks_each = (num_blocks + partial.source.shape[2] - 1) // partial.source.shape[2]
    begin = split * blocks_each
    num_heads, size = partial.shape[0], value.shape[1]
    state = (
        ntl.zeros((num_heads, size), dtype=ntl.float32),
        ntl.zeros((num_heads,), dtype=ntl.float32),
        ntl.full((num_heads,), LEAST, dtype=ntl.float32),
    )

    for block in range(begin, ntl.minimum(begin + blocks_each, num_blocks)):
        page, place = page_of(block, request, table, key_pages.shape[1], is_paged)
        scores = ntl.dot(first, ntl.trans(key_pages[page, place, 0]))
        scores += ntl.dot(second, ntl.trans(key_pages[page, place, 1]))
        is_past = block * key_pages.dtype.shape[0] + ntl.arange(0, scores.shape[1]) < here
        scores = ntl.where(is_past[None, :], scores * exponent_scale, LEAST)
        state = attended(scores, value_pages[page, place, 0], state)

    # The new key is the last one of the first split.
    score = ntl.sum(ntl.cast(first, ntl.float32) * new_first, axis=1)
    score += ntl.sum(ntl.cast(second, ntl.float32) * new_second, axis=1)
    score = ntl.where(split == 0, score * exponent_scale, LEAST)
    new_maximum = ntl.maximum(state[2], score)
    weight, correction = ntl.exp2(score - new_maximum), ntl.exp2(state[2] - new_maximum)

    partial = state[0] * correction[:, None] + weight[:, None] * new_value
    total = state[1] * correction + weight
    maximum = new_maximum

    if split == 0:
        page, row = page_of(here, request, table, key_slot.shape[1], is_paged)
        key_slot[page, row, 0] = new_first
        key_slot[page, row, 1] = new_second
        value_slot[page, row, 0] = value


def options(*is_constant):
    """The shape options of a tensor, of which some sizes are constants."""
    return tuple({"constexpr": True} if constant else None for constant in is_constant)


def heads():
    """(requests, heads, size), where all but the requests are constants."""
    return Tensor(3, shape_options=options(False, True, True))


def pages():
    """(pages, heads, positions, size)."""
    return Tensor(4, shape_options=options(False, True, True, True))


decode_tensors = (
    *(heads() for _ in range(3)),
    Tensor(1),
    *(Tensor(2, shape_options=options(False, True)) for _ in range(2)),
    *(pages() for _ in range(4)),
    Tensor(2),
    Tensor(0),
    Tensor(0, constexpr=True),
    Tensor(4, shape_options=options(False, True, True, True)),
    *(Tensor(3, shape_options=options(False, True, True)) for _ in range(2)),
)
decode_kernel = ninetoothed.make(
    decode_arrangement, decode, decode_tensors, kernel_name="decode_attention", num_warps=4
)


def combine_arrangement(partial, maximum, total, output):
    def arrange(tensor):
        arranged = tensor.tile((1, 1, -1, -1)[: tensor.ndim])
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged.squeeze(2)

    partial_arranged = partial.tile((1, 1, -1, -1)).squeeze((2, 3))
    partial_arranged.dtype = partial_arranged.dtype.squeeze((0, 1))
    output_arranged = output.tile((1, 1, -1)).squeeze(2)
    output_arranged.dtype = output_arranged.dtype.squeeze((0, 1))

    return partial_arranged, arrange(maximum), arrange(total), output_arranged


def combine(partial, maximum, total, output):
    weights = ntl.exp2(maximum - ntl.max(maximum))
    output = ntl.sum(weights[:, None] * partial, axis=0) / ntl.sum(weights * total)


combine_kernel = ninetoothed.make(
    combine_arrangement,
    combine,
    (*decode_tensors[-3:], heads()),
    kernel_name="combine_splits",
    num_warps=4,
)


def arrange_pairs_of_position(tensor):
    """The two halves of all heads (requests, positions, heads, size), a program for each position."""
    arranged = tensor.tile((1, 1, -1, tensor.shape[3] // 2)).tile((1, 1, 1, 2)).squeeze((2, 3))
    arranged.dtype = arranged.dtype.squeeze((0, 1, 2))
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 1))

    return arranged


def write_arrangement(query, key, value, start, sin, cos, key_slot, value_slot, table, is_paged):
    """One program for each new position of a request, with all its heads."""
    requests, length, half = query.shape[0], query.shape[1], query.shape[3] // 2

    def arrange_slots(pages, columns):
        arranged = pages.tile((1, -1, 1, columns)).tile((-1, 1, -1, -1)).squeeze((2, 3))
        arranged.dtype = arranged.dtype.squeeze(1)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze((0, 2))

        return arranged.expand((requests, length))

    value_arranged = value.tile((1, 1, -1, -1)).squeeze((2, 3))
    value_arranged.dtype = value_arranged.dtype.squeeze((0, 1))

    return (
        arrange_pairs_of_position(query),
        arrange_pairs_of_position(key),
        value_arranged,
        start.tile((1,)).unsqueeze(1).expand((-1, length)),
        arrange_angles(sin, (requests, length, 1)).squeeze(2),
        arrange_angles(cos, (requests, length, 1)).squeeze(2),
        arrange_slots(key_slot, half),
        arrange_slots(value_slot, -1),
        arrange_table(table, (-1, length, 1)).squeeze(2),
        is_paged,
    )


def write(query, key, value, start, sin, cos, key_slot, value_slot, table, is_paged):
    position = start + value.offsets(1)
    query_first, query_second = rotated(query, sin[position], cos[position])
    key_first, key_second = rotated(key, sin[position], cos[position])

    query[0] = query_first
    query[1] = query_second
    key[0] = key_first
    key[1] = key_second

    page, row = page_of(position, start.offsets(0), table, key_slot.shape[1], is_paged)
    key_slot[page, row, 0] = key_first
    key_slot[page, row, 1] = key_second
    value_slot[page, row, 0] = value


def positions_of_heads():
    """(requests, positions, heads, size)."""
    return Tensor(4, shape_options=options(False, False, True, True))


write_kernel = ninetoothed.make(
    write_arrangement,
    write,
    (
        *(positions_of_heads() for _ in range(3)),
        Tensor(1),
        *decode_tensors[4:6],
        *(pages() for _ in range(2)),
        Tensor(2),
        Tensor(0, constexpr=True),
    ),
    kernel_name="rope_and_write",
    num_warps=4,
)


def prefill_arrangement(
    query,
    key_pages,
    value_pages,
    start,
    table,
    scale,
    is_paged,
    output,
    BLOCK_SIZE_M=block_size(lower_bound=32, upper_bound=128),
    BLOCK_SIZE_N=block_size(lower_bound=16, upper_bound=64),
):
    def arrange_queries(tensor):
        arranged = tensor.tile((1, 1, BLOCK_SIZE_M, -1)).squeeze(3)
        arranged.dtype = arranged.dtype.squeeze((0, 1))

        return arranged

    query_arranged = arrange_queries(query)
    requests, num_heads, blocks = query_arranged.shape
    group = query.shape[1] // key_pages.shape[1]

    def arrange_heads(tensor):
        """Each head is there for all the query heads that share it."""
        arranged = arrange_pages(tensor, (requests, -1, blocks), BLOCK_SIZE_N, -1)
        arranged = arranged.unsqueeze(2).expand((-1, -1, group, -1))

        return arranged.flatten(1, 3)

    return (
        query_arranged,
        arrange_heads(key_pages),
        arrange_heads(value_pages),
        start.tile((1,)).unsqueeze(1).unsqueeze(2).expand((-1, num_heads, blocks)),
        arrange_table(table, (-1, num_heads, blocks)),
        scale,
        is_paged,
        arrange_queries(output),
    )


def prefill(query, key_pages, value_pages, start, table, scale, is_paged, output):
    request = start.offsets(0)
    size = key_pages.dtype.shape[0]
    places = start + query.offsets(-2)
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    total = ntl.zeros((query.shape[0],), dtype=ntl.float32)
    maximum = ntl.full((query.shape[0],), LEAST, dtype=ntl.float32)
    state = (accumulator, total, maximum)
    end = start + ntl.minimum(query.source.shape[2], ntl.max(query.offsets(-2)) + 1)

    for block in range((end + size - 1) // size):
        page, place = page_of(block, request, table, key_pages.shape[1], is_paged)
        scores = ntl.dot(query, ntl.trans(key_pages[page, place, 0])) * (scale * LOG2_E)
        keys = block * size + ntl.arange(0, scores.shape[1])
        scores = ntl.where(keys[None, :] <= places[:, None], scores, LEAST)
        state = attended(scores, value_pages[page, place, 0], state)

    output = state[0] / state[1][:, None]


prefill_kernel = ninetoothed.make(
    prefill_arrangement,
    prefill,
    (
        Tensor(4, shape_options=options(False, True, False, True)),
        *(pages() for _ in range(2)),
        Tensor(1),
        Tensor(2),
        Tensor(0),
        Tensor(0, constexpr=True),
        Tensor(4, shape_options=options(False, True, False, True)),
    ),
    kernel_name="prefill_attention",
)
