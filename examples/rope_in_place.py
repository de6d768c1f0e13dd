"""Rotary position embedding in place: as `examples.rope`, but the turned pairs replace the others."""

import functools

import ninetoothed
from examples import rope


def arrangement(input, sin_table, cos_table, interleaved=True):
    return rope.arrangement(input, sin_table, cos_table, input, interleaved)[:3]


def application(input, sin_table, cos_table):
    rope.application(input, sin_table, cos_table, input)


kernel = ninetoothed.make(arrangement, application, rope.tensors[:3], kernel_name="rope_in_place")

halves_kernel = ninetoothed.make(
    functools.partial(arrangement, interleaved=False),
    application,
    rope.tensors[:3],
    kernel_name="rope_halves_in_place",
)


def rope_(input, sin_table, cos_table, interleaved=True):
    """Turn (batch, sequence, heads, size) in place; the tables are (sequence or more, size / 2)."""
    length = input.shape[1]

    (kernel if interleaved else halves_kernel)(input, sin_table[:length], cos_table[:length])

    return input
