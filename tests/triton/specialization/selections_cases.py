"""Selections beyond their level: whatever is selected, no access leaves its tensor."""

from __future__ import annotations

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
