"""Kernels with a loop that carries a sum over a product's columns, and what they should give."""

from __future__ import annotations

import itertools

import torch

import ninetoothed
import ninetoothed.language as ntl
from examples import sdpa
from ninetoothed import Symbol, Tensor
from tests.corpus.products import exponentials, half_of_the_last, sums_of_columns
from tests.examples import references
from tests.examples.compare import assert_matches

ROWS = Symbol("ROWS", constexpr=True)
COLUMNS = Symbol("COLUMNS", constexpr=True)


def twice(left, right, output):
    result = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    for _ in range(2):
        total = ntl.zeros((left.shape[0],), dtype=ntl.float32)
        for k in range(right.shape[0]):
            total = total + ntl.sum(ntl.dot(left, ntl.trans(right[k])), axis=1)
        result += total
    output = result  # noqa: F841


def read_in_the_loop(left, right, output):
    total = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    largest = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    for k in range(right.shape[0]):
        total += ntl.sum(ntl.dot(left, ntl.trans(right[k])), axis=1)
        largest = ntl.maximum(largest, total)
    output = largest  # noqa: F841


def from_one(left, right, output):
    total = ntl.zeros((left.shape[0],), dtype=ntl.float32) + 1
    for k in range(right.shape[0]):
        total += ntl.sum(ntl.dot(left, ntl.trans(right[k])), axis=1)
    output = total  # noqa: F841


def no_product(left, right, output):
    total = ntl.zeros((left.shape[0],), dtype=ntl.float32)
    for k in range(right.shape[0]):
        total += ntl.sum(left * k, axis=1)
    output = total  # noqa: F841


def products(left, right):
    return [left @ tile.T for tile in right]


def largest_so_far(left, right):
    totals = torch.stack([p.sum(1) for p in products(left, right)]).cumsum(0)
    return totals.amax(0).clamp(min=0)


def scaled_reference(left, right):
    total = torch.zeros_like(left[:, 0])
    for product in products(left, right):
        total = product.sum(1) + 0.5 * total
    return total + 1


#: Application -> what it gives, from a matrix and the tiles of another.
REFERENCES = {
    exponentials: lambda left, right: sum(p.exp().sum(1) for p in products(left, right)),
    half_of_the_last: scaled_reference,
    twice: lambda left, right: 2 * sum(p.sum(1) for p in products(left, right)),
    read_in_the_loop: largest_so_far,
    from_one: lambda left, right: 1 + sum(p.sum(1) for p in products(left, right)),
    no_product: lambda left, right: sum(k * left.sum(1) for k in range(len(right))),
}

KERNELS = {
    application.__name__: ninetoothed.make(
        sums_of_columns,
        application,
        (Tensor(2), Tensor(2, shape_options=(None, {"constexpr": True})), Tensor(1)),
    )
    for application in REFERENCES
} | {"sdpa": sdpa.kernel}


#: Where the cases run.
DEVICE = "cpu"


def random(*shape):
    generator = torch.Generator(DEVICE).manual_seed(0)
    return torch.randn(*shape, generator=generator, device=DEVICE)


def poisoned(*shape):
    return torch.full(shape, float("nan"), device=DEVICE)


def case_sums():
    for (application, reference), columns in itertools.product(REFERENCES.items(), (4, 16, 32)):
        left, right = random(32, 16), random(4 * columns, 16)
        output = poisoned(32)
        KERNELS[application.__name__](left, right, output, ROWS=16, COLUMNS=columns)
        tiles = right.double().view(4, columns, 16)
        assert_matches(output, reference(left.double(), tiles), 64 * columns)


def case_attention():
    for (m, n), is_causal in itertools.product(((32, 32), (33, 31), (70, 100)), (False, True)):
        query, key, value = random(1, 2, m, 16), random(1, 2, n, 16), random(1, 2, n, 16)
        exact = (tensor.double() for tensor in (query, key, value))
        expected = references.sdpa_reference(*exact, is_causal=is_causal)
        assert_matches(sdpa.sdpa(query, key, value, is_causal), expected, n)
