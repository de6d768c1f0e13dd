"""Softmax along the last dimension."""

import ninetoothed.language as ntl
from examples.training.common import by_rows, matrix, operator, precise, row
from ninetoothed import like


def arrangement(*tensors):
    return tuple(map(row, tensors))


def forward(input, output):
    x = precise(input)
    numerator = ntl.exp(x - ntl.max(x))

    output = numerator / ntl.sum(numerator)


def backward(gradient, output, input_gradient):
    g, y = precise(gradient), precise(output)

    input_gradient = y * (g - ntl.sum(g * y))


backward_operator = operator(
    "softmax_backward",
    arrangement,
    backward,
    (matrix(), matrix(), matrix()),
    {"input_gradient": like("output")},
)

forward_operator = operator(
    "softmax",
    arrangement,
    forward,
    (matrix(), matrix()),
    {"output": like("input")},
    backward=lambda gradient, output: backward_operator(gradient, output),
    saved=("output",),
)


def softmax(input):
    """Softmax of a tensor (..., n) along its last dimension."""
    return by_rows(forward_operator, input)
