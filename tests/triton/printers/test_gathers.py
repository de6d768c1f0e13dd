"""Triton's compiler takes each gather, with an index that is longer than its source too.

3.6 does not where it gives each warp a part of the index: it asserts that the source's part is there.
"""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="needs Triton's compiler")
torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.contract.tensors.test_gathers import along_0, along_1, whole  # noqa: E402


@pytest.mark.parametrize("num_warps", [2, 4, 8])
@pytest.mark.parametrize(
    ("application", "source", "index"),
    [
        (along_0, (2, 4), (16, 4)),
        (along_0, (16, 1), (256, 1)),
        (along_0, (3, 2, 4), (60, 2, 4)),
        (along_1, (4, 16), (4, 128)),
        (along_1, (1, 128), (1, 256)),
    ],
)
def test_an_index_longer_than_its_source_compiles(application, source, index, num_warps):
    rank = len(source)
    kernel = ninetoothed.make(whole, application, (Tensor(rank), Tensor(rank), Tensor(rank)))
    places = torch.zeros(index, dtype=torch.int32)
    where = {"target": ("cuda", 90), "num_warps": num_warps}
    kernel.compile(torch.zeros(source), places, torch.zeros(index), **where)
