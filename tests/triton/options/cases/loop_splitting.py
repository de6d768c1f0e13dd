"""Kernels with loops that can be split, and comparisons that hold; and what they should give."""

from __future__ import annotations

import itertools

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import addmm, mm, sdpa
from ninetoothed import Symbol, Tensor
from tests.corpus.kernels import after_the_first, banded, below, largest, pieces_of_rows, squares
from tests.examples import references
from tests.examples.compare import assert_matches

WIDTH = Symbol("WIDTH", constexpr=True)


#: Where the cases run.
DEVICE = "cpu"


def random(*shape):
    generator = torch.Generator(DEVICE).manual_seed(0)
    return torch.randn(*shape, generator=generator, device=DEVICE)


def poisoned(*shape):
    return torch.full(shape, float("nan"), device=DEVICE)


def case_products_of_odd_sizes():
    for m, n, k in itertools.product((1, 33), (40, 64), (1, 31, 32, 33, 64, 100)):
        left, right = random(m, k), random(k, n)
        assert_matches(mm.mm(left, right), left.double() @ right.double(), k)


def case_product_and_sum():
    input, left, right = random(33, 40), random(33, 70), random(70, 40)
    expected = 2 * input.double() + 3 * (left.double() @ right.double())
    assert_matches(addmm.addmm(input, left, right, beta=2, alpha=3), expected, 70)


def case_attention():
    sizes = ((32, 32), (1, 1), (33, 31), (64, 64), (70, 100), (100, 70), (128, 128))
    for (m, n), is_causal in itertools.product(sizes, (False, True)):
        query, key, value = random(1, 4, m, 16), random(1, 2, n, 16), random(1, 2, n, 16)
        exact = (tensor.double() for tensor in (query, key, value))
        expected = references.sdpa_reference(*exact, is_causal=is_causal)
        assert_matches(sdpa.sdpa(query, key, value, is_causal), expected, n)


def case_attention_of_halves():
    for (m, n), is_causal in itertools.product(((64, 64), (33, 40), (100, 72)), (False, True)):
        tensors = (random(1, 4, m, 16), random(1, 2, n, 16), random(1, 2, n, 16))
        query, key, value = (tensor.half() for tensor in tensors)
        exact = (tensor.double() for tensor in (query, key, value))
        expected = references.sdpa_reference(*exact, is_causal=is_causal)
        assert_matches(sdpa.sdpa(query, key, value, is_causal), expected, n, True)


# Rows, piece by piece.


row_tensors = (Tensor(2), Tensor(1))
largest_kernel = ninetoothed.make(pieces_of_rows, largest, row_tensors)
after_the_first_kernel = ninetoothed.make(pieces_of_rows, after_the_first, row_tensors)


def case_rows():
    for width, size in itertools.product((16, 12), (1, 11, 12, 16, 17, 24, 32, 50)):
        # All below 0: a lane that holds no element would be the largest.
        input = -1 - random(3, size).abs()
        output = poisoned(3)
        largest_kernel(input, output, WIDTH=width)
        torch.testing.assert_close(output, input.max(1).values)
        after_the_first_kernel(input, output, WIDTH=width)
        torch.testing.assert_close(output, input[:, width:].sum(1))


def largest_of_two(input, output):
    found = ntl.full((1,), float("-inf"), dtype=ntl.float32)
    for k in range(input.shape[0]):
        found = ntl.maximum(found, ntl.max(ntl.interleave(input[k], input[k] - 1)))
    output = found


def case_what_exists_of_an_interleaved_piece():
    """That all of a round's does before the last one says nothing of that."""
    kernel = ninetoothed.make(pieces_of_rows, largest_of_two, row_tensors)
    for columns in (1, 5, 8, 13, 16):
        input, output = -1 - random(3, columns).abs(), poisoned(3)
        input[:, -1] = -0.5
        kernel(input, output, WIDTH=4)
        torch.testing.assert_close(output, input.amax(1))


# Comparisons of positions.


def of_one_tile(input, output):
    """The two sides are of one tile, and have lanes of their own."""
    for k in range(input.shape[0]):
        rows = input[k].offsets(0)
        output[k] = ntl.where(rows[:, None] >= rows[None, :], 1.0, 0.0)


def always(input, output):
    for k in range(input.shape[0]):
        rows = input[k].offsets(0)
        holds = (rows[:, None] < input.source.shape[0]) & (rows[None, :] + 1 > 0)
        output[k] = ntl.where(holds, 1.0, 2.0)


banded_kernel, below_kernel, of_one_tile_kernel, always_kernel = (
    ninetoothed.make(squares, application, (Tensor(2), Tensor(2)))
    for application in (banded, below, of_one_tile, always)
)


def case_comparisons():
    for size, width in itertools.product((16, 23, 64), (8, 16, 6)):
        input = random(size, size)
        output = poisoned(*input.shape)
        rows = torch.arange(size, device=DEVICE)[:, None]
        columns = torch.arange(size, device=DEVICE)[None, :]

        banded_kernel(input, output, WIDTH=width)
        inside = (columns - rows <= 3) & (rows - columns < 5)
        torch.testing.assert_close(output, torch.where(inside, input, -1.0))

        below_kernel(input, output, WIDTH=width)
        torch.testing.assert_close(output, (rows >= columns).float())

        always_kernel(input, output, WIDTH=width)
        torch.testing.assert_close(output, torch.ones_like(input))

        of_one_tile_kernel(input, output, WIDTH=width)
        within = torch.arange(size, device=DEVICE) % width
        expected = (within[:, None] >= within[None, :]).float()
        torch.testing.assert_close(output, expected)


#: The kernels of the cases.
KERNELS = {
    each.name: each
    for each in (
        mm.kernel,
        addmm.kernel,
        sdpa.kernel,
        largest_kernel,
        after_the_first_kernel,
        banded_kernel,
        below_kernel,
        of_one_tile_kernel,
        always_kernel,
    )
}
