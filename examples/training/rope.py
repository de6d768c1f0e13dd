"""Rotary position embedding, whose backward turns the other way. Su et al., 2021."""

import functools

from examples.rope import application, arrangement, tensors
from examples.training.common import operator
from ninetoothed import like


def _operator(name, interleaved):
    def gradients(gradient, sin_table, cos_table):
        return turned(gradient, -sin_table, cos_table), None, None

    turned = operator(
        name,
        functools.partial(arrangement, interleaved=interleaved),
        application,
        tensors,
        {"output": like("input")},
        backward=gradients,
        saved=("sin_table", "cos_table"),
    )
    return turned


neighbours, halves = _operator("rope", True), _operator("rope_halves", False)


def rope(input, sin_table, cos_table, interleaved=True):
    """Turn (batch, sequence, heads, size); the tables (sequence or more, size / 2) get no gradient."""
    length = input.shape[1]
    turned = neighbours if interleaved else halves

    return turned(input, sin_table[:length], cos_table[:length])
