"""Triton scans no tile in a layout in which its scans are wrong, or its compiler stops.

So it was in 3.6 on an H200 where threads hold several copies of an element because a dimension has size 1.
"""

from __future__ import annotations

import re

import pytest

pytest.importorskip("triton", reason="needs Triton's compiler")
torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.contract.application import test_scans as scans  # noqa: E402

_LAYOUT = re.compile(
    r"^(#\w+) = #ttg\.blocked<\{sizePerThread = \[(.*?)\], threadsPerWarp = \[(.*?)\], "
    r"warpsPerCTA = \[(.*?)\], order = \[(.*?)\]",
    re.MULTILINE,
)
_SCAN = re.compile(r'"tt\.scan".*?\}\) : \(tensor<([\dx]+)x\w+, (#\w+)>', re.DOTALL)


def arrangement(x, y):
    return x.tile((scans.S, -1)), y.tile((scans.S, -1))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("shape", [(8, 8), (4, 8), (16, 2), (1, 64)])
@pytest.mark.parametrize(
    "application",
    [scans.of_a_column, scans.of_a_column_reduced, scans.of_a_flipped_column, scans.of_several],
    ids=lambda each: each.__name__,
)
def test_copies_are_along_the_slowest_dimension_alone(application, shape, num_warps):
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    x, where = torch.zeros(shape), {"target": ("cuda", 90), "num_warps": num_warps}
    text = kernel.compile(x, x.clone(), S=shape[0], **where).asm["ttgir"]
    layouts = {
        label: [list(map(int, part.split(", "))) for part in parts]
        for label, *parts in _LAYOUT.findall(text)
    }
    scanned = _SCAN.findall(text)
    assert scanned or 1 in shape
    for sizes, layout in scanned:
        each, lanes, warps, order = layouts[layout]
        for dim, size in enumerate(map(int, sizes.split("x"))):
            held = each[dim] if dim == order[-1] else each[dim] * lanes[dim] * warps[dim]
            assert held <= size
