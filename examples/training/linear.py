"""The product of matrices, and of a tensor with a weight; both gradients are products again."""

from examples.mm import application, arrangement, tensors
from examples.training.common import operator

input, other, _ = tensors

mm = operator(
    "mm",
    arrangement,
    application,
    tensors,
    {"output": ((input.shape[0], other.shape[1]), "input")},
    backward=lambda gradient, input, other: (mm(gradient, other.T), mm(input.T, gradient)),
    saved=("input", "other"),
)


def linear(input, weight):
    """A tensor (..., k) times the transpose of a weight (n, k)."""
    return mm(input.flatten(end_dim=-2), weight.T).view(*input.shape[:-1], weight.shape[0])
