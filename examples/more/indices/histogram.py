"""How often each number occurs: atomic additions to elements that the input chooses."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, counts):
    # Only `counts.source` is used: it needs no tile.
    return input.tile((BLOCK_SIZE,)), counts


def application(input, counts):
    is_counted = (input >= 0) & (input < counts.source.shape[0])
    ntl.atomic_add(counts.source[input], 1, mask=is_counted)


tensors = (Tensor(1), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="histogram")


def histogram(input, num_bins):
    """The counts (num_bins,) of the integers 0 to num_bins - 1 in a tensor; others count nowhere."""
    counts = input.new_zeros(num_bins)

    kernel(input.flatten(), counts, BLOCK_SIZE=256)

    return counts
