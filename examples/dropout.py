"""Dropout: each element is zeroed with probability ``p``, the others are scaled by ``1 / (1 - p)``.

The random numbers are a function of the seed and of the element's position in the output, so equal
calls drop equal elements, on every backend.
"""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(input, p, seed, output, BLOCK_SIZE=BLOCK_SIZE):
    return input.tile((BLOCK_SIZE,)), p, seed, output.tile((BLOCK_SIZE,))


def application(input, p, seed, output):
    is_kept = ntl.rand(seed, output.offsets()) >= p
    output = ntl.where(is_kept, input / (1 - p), 0.0)


tensors = (Tensor(1), Tensor(0), Tensor(0), Tensor(1))

kernel = ninetoothed.make(arrangement, application, tensors)


def dropout(input, p=0.5, seed=0):
    """Dropout of a tensor of any shape, as a new tensor; ``p`` is a float in [0, 1)."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(), p, seed, output.flatten(), BLOCK_SIZE=1024)

    return output
