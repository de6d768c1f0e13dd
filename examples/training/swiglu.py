"""A gate times a value: silu(gate) * value. Shazeer, "GLU Variants Improve Transformer", 2020."""

import ninetoothed.language as ntl
from examples.training.common import blocks, operator, precise, vector
from ninetoothed import like


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
    blocks,
    backward,
    tuple(vector() for _ in range(5)),
    {"gate_gradient": like("gate"), "value_gradient": like("value")},
)

forward_operator = operator(
    "swiglu",
    blocks,
    forward,
    tuple(vector() for _ in range(3)),
    {"output": like("gate")},
    backward=lambda gradient, gate, value: backward_operator(gradient, gate, value),
    saved=("gate", "value"),
)


def swiglu(gate, value):
    """silu(gate) * value, element by element."""
    return forward_operator(gate.flatten(), value.flatten()).view(gate.shape)
