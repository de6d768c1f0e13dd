"""A gate times a value: silu(gate) * value. Shazeer, "GLU Variants Improve Transformer", 2020."""

import ninetoothed.language as ntl
from examples.training.common import BLOCK_SIZE, by_rows, operator, precise
from ninetoothed import Tensor, like


def arrangement(*tensors):
    return tuple(tensor.tile((1, BLOCK_SIZE)) for tensor in tensors)


def forward(gate, value, output):
    a = precise(gate)

    output = a / (1 + ntl.exp(-a)) * precise(value)


def backward(gradient, gate, value, gate_gradient, value_gradient):
    g, a = precise(gradient), precise(gate)
    sigmoid = 1 / (1 + ntl.exp(-a))

    gate_gradient = g * precise(value) * sigmoid * (1 + a * (1 - sigmoid))
    value_gradient = g * a * sigmoid


backward_operator = operator(
    "swiglu_backward",
    arrangement,
    backward,
    tuple(Tensor(2) for _ in range(5)),
    {"gate_gradient": like("gate"), "value_gradient": like("value")},
)

forward_operator = operator(
    "swiglu",
    arrangement,
    forward,
    tuple(Tensor(2) for _ in range(3)),
    {"output": like("gate")},
    backward=lambda gradient, gate, value: backward_operator(gradient, gate, value),
    saved=("gate", "value"),
)


def swiglu(gate, value):
    """silu(gate) * value, element by element."""
    return by_rows(forward_operator, gate, value.flatten(end_dim=-2))
