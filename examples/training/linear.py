"""The product of matrices, and of a tensor with a weight; all gradients are products again."""

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


def linear_arrangement(input, weight, output):
    return arrangement(input, weight.permute((1, 0)), output)


# Its gradients are contiguous, as the weight and the input are.
matrices = operator(
    "linear",
    linear_arrangement,
    application,
    tensors,
    {"output": ((input.shape[0], other.shape[0]), "input")},
    backward=lambda gradient, input, other: (mm(gradient, other), mm(gradient.T, input)),
    saved=("input", "other"),
)


def linear(input, weight):
    """A tensor (..., k) times the transpose of a weight (n, k)."""
    if input.ndim == 2:
        return matrices(input, weight)

    return matrices(input.flatten(end_dim=-2), weight).view(*input.shape[:-1], weight.shape[0])
