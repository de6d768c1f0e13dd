"""Rotary position embedding. Su et al., 2021."""

import functools

from examples.rope import application, arrangement, tensors
from examples.training.common import operator
from ninetoothed import like


def _operator(name, interleaved):
    return operator(
        name,
        functools.partial(arrangement, interleaved=interleaved),
        application,
        tensors,
        {"output": like("input")},
        backward="derive",
        wrt=("input",),
    )


neighbours, halves = _operator("rope", True), _operator("rope_halves", False)


def rope(input, sin_table, cos_table, interleaved=True):
    """Turn (batch, sequence, heads, size); the tables (sequence or more, size / 2) get no gradient."""
    length = input.shape[1]
    turned = neighbours if interleaved else halves

    return turned(input, sin_table[:length], cos_table[:length])
