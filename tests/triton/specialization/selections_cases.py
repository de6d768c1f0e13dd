"""Selections beyond their level: whatever is selected, no access leaves its tensor."""

from __future__ import annotations

import functools

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import bmm, mm
from ninetoothed import Symbol, Tensor

BLOCK = Symbol("BLOCK", constexpr=True)

#: Where the cases run.
DEVICE = "cpu"


def within(*shape, before=4096, after=2**17):
    """A tensor of ones with NaN on both sides: what is read of those shows."""
    count = int(torch.Size(shape).numel())
    whole = torch.full((before + count + after,), torch.nan, device=DEVICE)
    inner = whole[before : before + count]
    inner.fill_(1)
    return inner.reshape(shape), whole


def reading_zeros(module, ndim):
    """An example's kernel for operands that go on in zeros, so that their sizes need not agree."""
    tensors = (Tensor(ndim, other=0), Tensor(ndim, other=0), Tensor(ndim))
    return ninetoothed.make(module.arrangement, mm.application, tensors)


def case_a_product_whose_sums_differ_in_length():
    """The sizes divide, so that each operand alone would need no masks."""
    kernel = reading_zeros(mm, 2)
    for left, right in (((64, 1024), (64, 64)), ((64, 128), (64, 64)), ((64, 100), (70, 64))):
        input, _ = within(*left)
        other, _ = within(*right)
        output = torch.full((left[0], right[1]), torch.nan, device=DEVICE)
        kernel(input, other, output)
        assert bool((output == min(left[1], right[0])).all()), (left, right)


def case_batches_of_products_whose_sums_differ_in_length():
    input, other = within(2, 32, 256)[0], within(2, 32, 64)[0]
    output = torch.full((2, 32, 64), torch.nan, device=DEVICE)
    reading_zeros(bmm, 3)(input, other, output)
    assert bool((output == 32).all())


def case_rows_by_an_index_that_is_read():
    """Beyond the table on both sides there is nothing."""

    def arrangement(table, index, output):
        arranged = table.tile((1, BLOCK)).tile((-1, 1)).expand((index.shape[0], -1))
        index = index.tile((1,)).unsqueeze(1).expand((-1, arranged.shape[1]))
        return arranged, index, output.tile((1, BLOCK))

    def application(table, index, output):
        output = table[ntl.sum(index, 0), 0]

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1), Tensor(2)))
    table, _ = within(4, 8)
    wanted = torch.tensor([0, 3, -1, 4, -300, 300, 2], device=DEVICE)
    output = torch.full((len(wanted), 8), torch.nan, device=DEVICE)
    kernel(table, wanted, output, BLOCK=8)
    is_there = (wanted >= 0) & (wanted < 4)
    assert torch.equal(output, is_there.float()[:, None].expand(-1, 8)), output


def case_one_past_the_last():
    """A loop looks one round ahead."""

    def arrangement(input, output):
        arranged = input.tile((BLOCK,)).tile((-1,))
        return arranged, output.tile((BLOCK,)).tile((-1,))

    def application(input, output):
        for k in range(output.shape[0]):
            output[k] = input[k] + input[k + 1] + input[k - 1]

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    input, _ = within(32)
    output = torch.full((32,), torch.nan, device=DEVICE)
    kernel(input, output, BLOCK=8)
    ends = torch.tensor([2.0] * 8 + [3.0] * 16 + [2.0] * 8, device=DEVICE)
    assert torch.equal(output, ends), output


def case_a_store_beyond_the_level_is_dropped():
    def arrangement(input, output):
        return input.tile((BLOCK,)).tile((-1,)), output.tile((BLOCK,)).tile((-1,))

    def application(input, output):
        for k in range(input.shape[0]):
            output[k - 1] = input[k]

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    input, _ = within(64)
    output, whole = within(32)
    output.fill_(7)
    kernel(input, output, BLOCK=8)
    assert bool((output == 1).all())
    output.fill_(torch.nan)
    assert bool(whole.isnan().all())


def blocks_of_rows(rows, BLOCK=8):
    """All blocks of a row for its program."""
    arranged = rows.tile((1, BLOCK)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    return arranged


def case_a_loop_that_ends_before_some_sizes_of_its_class():
    """Rows of 1100 elements go on beyond the last round, those of 1030 end in it."""

    def application(input, output):
        total = ntl.zeros((1, 64), ntl.float32)
        for k in range(ntl.minimum(input.shape[0], 17)):
            total += input[k]
        output = total

    kernel = ninetoothed.make(
        lambda input, output: (blocks_of_rows(input, 64), output.tile((1, 64))),
        application,
        (Tensor(2), Tensor(2)),
    )
    for count in (1100, 1030):
        input = within(4, 2048)[0]
        input[:, count:] = torch.nan
        output = torch.full((4, 64), torch.nan, device=DEVICE)
        kernel(input[:, :count], output)
        whole = torch.arange(64, device=DEVICE) < count - 1024
        assert torch.equal(output, (16 + whole.float()).expand(4, -1)), count


def blocks_from(offset):
    """A kernel: for each block of a row the sum of those from the block `offset` behind it on."""

    def arrangement(input, output):
        blocks = blocks_of_rows(input).expand((-1, output.tile((1, 8)).shape[1]))
        return blocks, output.tile((1, 8))

    def application(input, output):
        total = ntl.zeros((1, 8), ntl.float32)
        first = ntl.min(output.offsets(1)) // 8 + offset
        for k in range(first, input.shape[0]):
            total += input[k]
        output = total

    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))


def case_a_loop_that_begins_where_a_position_says():
    for offset in (0, -1):
        for count in (64, 60):
            input, _ = within(3, count)
            output = torch.full((3, count), torch.nan, device=DEVICE)
            blocks_from(offset)(input, output)
            block, lane = torch.arange(count, device=DEVICE) // 8, torch.arange(count) % 8
            wanted = 8 - (block + offset).clamp(min=0) - (lane.to(DEVICE) >= count - 56).float()
            assert torch.equal(output, wanted.expand(3, -1)), (offset, count, output[0])


def single_rows(rows):
    """For each column of tiles, all its rows, one a tile."""
    arranged = rows.tile((1, 8)).tile((-1, 1))
    arranged.dtype = arranged.dtype.squeeze(1)
    return arranged


def case_a_constant_row_beyond_the_last():
    """A tile of one row has no condition on it but that it is in its level."""

    def loading(input, output):
        output = input[5] + 1  # noqa: F841

    def storing(input, output):
        output[5] = input

    into, out_of = (single_rows, lambda rows: rows.tile((1, 8))), (Tensor(2), Tensor(2))
    load = ninetoothed.make(lambda x, y: (into[0](x), into[1](y)), loading, out_of)
    store = ninetoothed.make(lambda x, y: (into[1](x), into[0](y)), storing, out_of)
    for count in (4, 5, 6, 7, 8):
        one = torch.ones((1, 20), device=DEVICE)
        input, _ = within(count, 20)
        output = torch.full((1, 20), torch.nan, device=DEVICE)
        load(input, output)
        assert bool((output == 1 + (count > 5)).all()), count
        output, whole = within(count, 20)
        output.fill_(torch.nan)
        store(one, output)
        assert int((~whole.isnan()).sum()) == (20 if count > 5 else 0), count


def case_a_loop_over_more_rows_than_some_sizes_of_a_class_have():
    """Calls of 5 to 7 rows share their source: what leaves the level in one is asked in all."""

    def reading(input, output):
        total = ntl.zeros((1, 8), ntl.float32)
        for k in range(6):
            total += input[k]
        output = total

    def writing(input, output):
        for k in range(6):
            output[k] = input

    def whole_row(rows):
        return rows.tile((1, 8))

    tensors = (Tensor(2), Tensor(2))
    read = ninetoothed.make(lambda x, y: (single_rows(x), whole_row(y)), reading, tensors)
    write = ninetoothed.make(lambda x, y: (whole_row(x), single_rows(y)), writing, tensors)
    for count in (7, 6, 5):
        input, _ = within(count, 20)
        output = torch.full((1, 20), torch.nan, device=DEVICE)
        read(input, output)
        assert bool((output == min(count, 6)).all()), count
        output, whole = within(count, 20)
        output.fill_(torch.nan)
        write(torch.ones((1, 20), device=DEVICE), output)
        assert int((~whole.isnan()).sum()) == 20 * min(count, 6), count
        assert bool((output[:6] == 1).all()), count


def case_a_loop_over_the_rows_of_another_tensor():
    def application(input, other, output):
        total = ntl.zeros((1, 8), ntl.float32)
        for k in range(other.shape[0]):
            total += input[k]
        output = total

    def arrangement(input, other, output):
        return single_rows(input), single_rows(other), output.tile((1, 8))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2), Tensor(2)))
    for rows, others in ((7, 7), (5, 7), (5, 6), (7, 5), (4, 8)):
        output = torch.full((1, 20), torch.nan, device=DEVICE)
        kernel(within(rows, 20)[0], within(others, 20)[0], output)
        assert bool((output == min(rows, others)).all()), (rows, others)


def case_the_next_programs_first_tile():
    def application(input, output):
        output = input[2] + ntl.full((4,), 1, ntl.float32)  # noqa: F841

    kernel = ninetoothed.make(
        lambda input, output: (input.tile((4,)).tile((BLOCK,)), output.tile((4,))),
        application,
        (Tensor(1), Tensor(1)),
    )
    output = torch.full((12,), torch.nan, device=DEVICE)
    kernel(within(24)[0], output, BLOCK=2)
    assert bool((output == 1).all()), output


def case_what_a_tile_beyond_its_level_is_reduced_to():
    """The identity, in the rows that are there; of rows that are not, a variable keeps what it had."""

    def greatest(rows, count, axis):
        def application(input, output):
            total = ntl.full((rows,), 1, ntl.float32)
            for k in range(count):
                total += ntl.max(input[0, k] if axis else input[k, 0], axis=1)
            output[0] = total

        return application

    def arrangement(tile, input, output):
        return input.tile(tile).tile((-1, -1)), output.tile((tile[0],)).tile((-1,))

    lowest = -float("inf")
    for tile, count, axis, expected in (
        ((4, 8), 3, 1, [4.0, 4.0, 4.0, 4.0]),
        ((4, 8), 4, 1, [lowest] * 4),
        ((4, 8), 4, 0, [3.0, 2.0, 2.0, 2.0]),
        ((1, 8), 5, 0, [6.0]),
        ((1, 8), 6, 0, [lowest]),
        ((8, 1), 23, 1, [21.0] * 5),
    ):
        kernel = ninetoothed.make(
            functools.partial(arrangement, tile),
            greatest(tile[0], count, axis),
            (Tensor(2), Tensor(1)),
        )
        output = torch.full((min(tile[0], 5),), torch.nan, device=DEVICE)
        kernel(within(5, 20)[0], output)
        assert output.tolist() == expected, (tile, count, axis, output)


def case_elements_of_a_tile_beyond_its_level():
    """They do not exist, so that what is made of them is not stored."""

    def application(input, output):
        for k in range(3):
            output[k][1] = 5.0
            output[0] = input[1] * 0 + input[k][3]

    def arrangement(*tensors):
        return tuple(tensor.tile((4,)).tile((2,)) for tensor in tensors)

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    output, whole = within(16)
    output.fill_(torch.nan)
    kernel(within(16)[0] * torch.arange(16, device=DEVICE), output)
    nan = torch.nan
    expected = [7.0] * 4 + [nan, 5.0, nan, nan] + [15.0] * 4 + [nan, 5.0, nan, nan]
    assert torch.equal(output.nan_to_num(-1), torch.tensor(expected).nan_to_num(-1).to(DEVICE)), (
        output
    )
    assert int((~whole.isnan()).sum()) == 10


def case_what_a_part_of_a_tile_that_has_no_element_is_reduced_to():
    """The identity, in the rows that are there."""

    def arrangement(input, output):
        return input.tile((2, 4)).tile((1, -1)), output.tile((2, 2)).tile((1, -1))

    def application(input, output):
        sums = ntl.sum(input[0, 1][:, 1:], axis=1) + 1
        output[0, 0] = ntl.join(sums, ntl.max(input[0, 1][:, 2:], axis=1))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    output = torch.full((3, 2), torch.nan, device=DEVICE)
    kernel(within(3, 5)[0], output)
    assert output.tolist() == [[1.0, -float("inf")]] * 3, output
