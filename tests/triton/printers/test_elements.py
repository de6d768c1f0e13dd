"""Elements of tiles, and atomic operations on accesses, through Triton's compiler; no device is needed."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

pytest.importorskip("triton", reason="needs Triton")

B = Symbol("B", constexpr=True)

TARGETS = [("cuda", 90), ("hip", "gfx942")]


def rows(x, n, y):
    for i in range(3):
        y[i, :] = x[i, :] + x[n, :]
    places = ntl.arange(0, 4)
    y[places, 0] = x[places, 3] * ntl.max(ntl.max(x[1:, ::2], 1))
    y[:, places] = x[:, places + 1]
    y[places, 1:] = x[places, :-1]
    x[1:, :] = x[:-1, :]
    x[0, 0] = ntl.max(ntl.max(ntl.trans(x[1:, 3:]), axis=1))


def changed(x, n, y):
    ntl.atomic_cas(y, x, 100)
    ntl.atomic_cas(y[n, 0], 1, 2)
    ntl.atomic_add(y[1:, :], x[:-1, :])
    ntl.atomic_max(y.source[n, x], 3)
    x = ntl.atomic_xchg(y, 3, mask=x > 2, sem="relaxed")  # noqa: F841


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("application", [rows, changed])
def test_it_compiles(application, target):
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((5, 16)), n, y.tile((5, 16))),
        application,
        (Tensor(2), Tensor(0), Tensor(2)),
    )
    x, y = (torch.zeros(13, 19, dtype=torch.int32) for _ in range(2))

    compiled = kernel.compile(x, 3, y, target=target)

    assert len(compiled.asm["cubin" if target[0] == "cuda" else "hsaco"]) > 1000


def test_an_atomic_operation_is_masked_along_one_dimension_alone():
    """Of rows all exist, and of a row five of eight lanes do."""

    def application(x, y):
        ntl.atomic_add(y, ntl.max(ntl.max(x, 1), 0))

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4, -1)), y.tile((4, -1))), application, (Tensor(2), Tensor(2))
    )
    x, y = torch.zeros(20, 5), torch.zeros(20, 5)

    assert kernel.compile(x, y, target=("cuda", 90)).asm["cubin"]


def test_slices_of_a_size_given_at_the_call_compile():
    def application(x, y):
        y[:-1] = x[1:]
        y[2:] = x[:-2] * ntl.max(x[-3:])

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((B,)), y.tile((B,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.zeros(13), torch.zeros(13)

    assert kernel.compile(x, y, B=6, target=("cuda", 90)).asm["cubin"]


def test_a_mask_stays_with_its_elements():
    """Where a slice is not of a power of two, what is beyond it takes no part in a maximum."""

    def application(x, y):
        y[0, 0] = ntl.max(ntl.max(x[1:, :], 0))

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4, 16)), y.tile((4, 16))), application, (Tensor(2), Tensor(2))
    )

    assert "exclude_lowest" in kernel.source
