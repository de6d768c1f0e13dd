"""Dropout whose mask is made of a seed, so that backward makes the same again."""

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import blocks, operator, vector
from ninetoothed import Tensor, like


def application(input, probability, seed, output):
    # The output is contiguous whatever the input is: a gradient may be an expanded one.
    is_kept = ntl.rand(seed, output.offsets()) >= probability

    output = ntl.where(is_kept, input / (1 - probability), 0)


operator_of_blocks = operator(
    "dropout",
    blocks,
    application,
    (vector(), Tensor(0, dtype=ninetoothed.float32), Tensor(0, dtype=ninetoothed.int64), vector()),
    {"output": like("input")},
    backward=lambda gradient, probability, seed: operator_of_blocks(gradient, probability, seed),
    saved=("probability", "seed"),
)


def dropout(input, probability, seed):
    """Elements are 0 with this probability, else divided by the probability that they are not."""
    return operator_of_blocks(input.flatten(), probability, seed).view(input.shape)
