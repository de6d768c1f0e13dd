"""Kernels whose loops only add, and others; run in Triton's interpreter with ``split_k`` fixed."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from tests.corpus.kernels import moments, sum_of_pieces
from tests.examples.cases import BY_NAME
from tests.examples.checking import check
from tests.examples.maker import Maker

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, output, BLOCK_SIZE=BLOCK_SIZE):
    """Rows of blocks; of each row one element a block."""
    input_arranged = input.tile((1, BLOCK_SIZE)).tile((1, -1))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)
    input_arranged.dtype.dtype = input_arranged.dtype.dtype.squeeze(0)
    output_arranged = output.tile((1, BLOCK_SIZE))
    output_arranged.dtype = output_arranged.dtype.squeeze(0)

    return input_arranged, output_arranged


def halves(input, output):
    """A sum of an accumulator of 16 bits, written out."""
    total = ntl.full(output.shape, 0, dtype=ntl.float16)
    for k in range(input.shape[0]):
        block = ntl.cast(input[k], ntl.float16)
        total = block + total
    output = total


def carried(input, output):
    """What one round leaves to the next cannot be cut."""
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    sign = 1.0
    for k in range(input.shape[0]):
        total += input[k] * sign
        sign = -sign
    output = total


def scaled(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += input[k] + 0.5 * total
    output = total


def last_round(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    block = total
    for k in range(input.shape[0]):
        block = input[k]
        total += block
    output = total + block


def started(input, output):
    """An accumulator that does not begin with zeros."""
    total = ntl.full(output.shape, 1, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += input[k]
    output = total


def begun(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    total += 2.0
    for k in range(input.shape[0]):
        total += input[k]
    output = total


def counted(input, output):
    """Whole numbers would be rounded."""
    total = ntl.zeros(output.shape, dtype=ntl.int32)
    for k in range(input.shape[0]):
        total += ntl.cast(input[k], ntl.int32)
    output = total


def stored(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += input[k]
        output = total


def largest(input, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total = ntl.maximum(total, input[k])
    output = total


CUT = {f.__name__: f for f in (sum_of_pieces, halves, moments)}
WHOLE = {
    f.__name__: f for f in (carried, scaled, last_round, started, begun, counted, stored, largest)
}

KERNELS = {
    name: ninetoothed.make(arrangement, function, (Tensor(2), Tensor(2)), kernel_name=name)
    for name, function in {**CUT, **WHOLE}.items()
}


def summed(name: str, blocks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A kernel's output and the input, in rows of blocks of 8."""
    input = torch.randn(5, 8 * blocks)
    output = torch.full((5, 8), torch.nan)
    KERNELS[name](input, output, BLOCK_SIZE=8)
    return output, input.view(5, blocks, 8)


def case_sums():
    for blocks in (1, 2, 3, 7, 20):
        output, input = summed("sum_of_pieces", blocks)
        torch.testing.assert_close(output, input.sum(1))


def case_sums_of_halves():
    output, input = summed("halves", 7)
    torch.testing.assert_close(output, input.sum(1), rtol=1e-2, atol=1e-2)


def case_two_accumulators():
    for blocks in (1, 5, 20):
        output, input = summed("moments", blocks)
        squares = (input * input).sum((1, 2))[:, None]
        torch.testing.assert_close(output, input.sum(1) + squares, rtol=1e-4, atol=1e-4)


def case_nothing_to_sum():
    output = torch.full((5, 8), torch.nan)
    KERNELS["sum_of_pieces"](torch.empty(5, 0), output, BLOCK_SIZE=8)
    torch.testing.assert_close(output, torch.zeros(5, 8))


def case_what_cannot_be_cut():
    for blocks in (1, 7):
        output, input = summed("last_round", blocks)
        torch.testing.assert_close(output, input.sum(1) + input[:, -1])


def _case(name: str, label: str, dtype: torch.dtype, layout: str):
    def run():
        check(name, BY_NAME[name].small[label], Maker(dtype, layout=layout))

    return run


for _name in ("mm", "addmm", "bmm", "conv2d"):
    for _label in BY_NAME[_name].small:
        _case_of_label = _case(_name, _label, torch.float16, "contiguous")
        globals()[f"case_{_name}_{_label}"] = _case_of_label
    globals()[f"case_{_name}_sliced"] = _case(_name, "odd", torch.float16, "sliced")
    globals()[f"case_{_name}_of_32_bits"] = _case(_name, "odd", torch.float32, "contiguous")
