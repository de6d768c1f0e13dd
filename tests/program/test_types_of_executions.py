"""What types say of variables, executions have: shapes, element types, signs."""

from __future__ import annotations

import contextlib
import linecache
import warnings

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import NineToothedError
from tests.contract import test_validity as padded
from tests.contract.application.meanings import CASES, made
from tests.examples.cases import EXAMPLES
from tests.examples.maker import Maker
from tests.hunt import generate
from tests.hunt.executions import _run as run_program
from tests.program.typed_execution import types_compared


def whole(*tensors):
    return tuple(t.tile((-1,)) for t in tensors)


def shapes(x, y, out):
    column, row = x[:, None], y[None, :]
    both = column + row
    turned = both.T
    swapped = ntl.permute(both[None, :, :], (2, 0, 1))
    summed = ntl.sum(both, axis=0)
    kept = ntl.max(both, axis=-1, keep_dims=True)
    most, place = ntl.max(both, axis=1, return_indices=True)
    beside = ntl.join(x, x)
    one, other = ntl.split(beside)
    turns = ntl.interleave(x, x * 2)
    chain = ntl.ravel(both)
    spread = ntl.broadcast_to(column, both.shape[0], both.shape[1])
    folded = ntl.reshape(turns, (x.shape[0], 2))
    counts = ntl.histogram(place, 8)
    ordered = ntl.flip(ntl.sort(x))
    running = ntl.cumsum(both, axis=1)
    halves = ntl.arange(0, 4) / 2
    wide = ntl.zeros(summed.shape, ntl.float64)
    product = ntl.dot(ntl.zeros((16, 16), ntl.float16), ntl.zeros((16, 32), ntl.float16))
    number = ntl.sum(product)
    total = ntl.sum(turned) + ntl.sum(swapped) + ntl.sum(spread) + ntl.sum(folded) + number
    total += ntl.sum(counts) + ntl.sum(running) + ntl.sum(halves) + ntl.sum(chain)
    out = one + other + summed + ntl.ravel(kept) + most + ordered + wide + total  # noqa: F841


def types(x, y, out):
    truth = x > y
    counted = truth + truth
    quotient = counted / 2
    floors = counted // 2
    narrow = x.to(ntl.float16)
    narrower = narrow * 2
    divided = narrow / narrow
    small = x.to(ntl.int8)
    summed = ntl.sum(small)
    greatest = ntl.max(narrow)
    chosen = ntl.where(truth, x, 1)
    brain = ntl.maximum(x.to(ntl.bfloat16), 0)
    mixed = small + x.to(ntl.uint8)
    bits = small & 1
    negative = -truth
    power = ntl.exp(x)
    integer = ntl.cast(x, ntl.int64)
    longer = integer + small
    total = ntl.zeros((8,), ntl.float32)
    for k in range(3):
        total = total + x * k
        shifted = small << 1
        total += ntl.sum(shifted)
    out = quotient + floors + narrower + divided + summed + greatest + chosen + brain  # noqa: F841
    rest = mixed + bits + negative + power + longer + total  # noqa: F841


@pytest.mark.parametrize(("application", "size"), [(shapes, 8), (shapes, 5), (types, 8)])
def test_shapes_and_types_of_operations(application, size):
    x, y, out = torch.randn(size), torch.randn(size), torch.zeros(size)
    kernel = ninetoothed.make(whole, application, (Tensor(1),) * 3)

    with types_compared() as held:
        kernel(x, y, out)

    assert not held.differing
    assert held.compared > 15


def test_what_they_say_of_the_language():
    with types_compared() as held:
        for case in CASES.values():
            kernel, arguments, _ = made(case)
            kernel(*arguments)

    assert not held.differing
    assert held.compared > 10


def test_what_they_say_of_padding():
    with types_compared() as held:
        for name in padded.CASES:
            kernel, arguments, _ = padded.made(name)
            kernel(*arguments)

    assert not held.differing
    assert held.padded > 20


def test_what_they_say_of_programs_that_are_drawn():
    with types_compared() as held:
        for seed in range(150):
            with contextlib.suppress(NineToothedError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                linecache.clearcache()
                run_program(generate.program(seed), "numpy")

    assert not held.differing
    assert held.padded > 100


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_what_they_say_of_the_examples(example):
    parameters = next(iter(example.small.values()))
    with types_compared() as held:
        example.actual(example.arguments(Maker(torch.float16), parameters))

    assert not held.differing
