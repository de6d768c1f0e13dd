"""The debug mode: accesses between the elements of a tensor, and positions beyond a tile."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.numpy.execution.checking import check
from ninetoothed.errors import OutOfBoundsError
from tests.numpy.execution.test_checking import copy, make

torch = pytest.importorskip("torch", reason="needs PyTorch")


@pytest.mark.parametrize("by", [0, 1])
def test_an_access_between_the_elements_of_a_strided_tensor_is_reported(by):
    def stores(x, out):
        ntl.store(out.data_ptr() + out.offsets() + by, x, mask=out.offsets(0) < 8 - by)

    def loads(x, out):
        out = ntl.load(x.data_ptr() + x.offsets() + by, mask=x.offsets(0) < 8 - by, other=0.0)

    def adds(x, out):
        ntl.atomic_add(out.data_ptr() + out.offsets() + by, x, mask=out.offsets(0) < 8 - by)

    for application, words in (
        (stores, "A store leaves `out`"),
        (loads, "A load leaves `x`"),
        (adds, "An atomic operation leaves `out`"),
    ):
        x, out = torch.arange(16.0)[::2], torch.zeros(16)[::2]
        kernel = make(application)
        with check():
            if not by:
                kernel(x, out)
                assert torch.equal(out, x)
                continue
            with pytest.raises(OutOfBoundsError, match=rf"(?s){words}: offset 1 is between.*\+ by"):
                kernel(x, out)


def test_an_expanded_tensor_has_no_more_to_look_at_than_its_memory():
    x, out = torch.ones(1).expand(2**31 - 1), torch.empty(8)
    kernel = make(copy, lambda x, out: (x.tile((4,))[:2], out.tile((4,))))
    with check():
        kernel(x, out)
    assert out.tolist() == [1.0] * 8


def thirds(x, places, out):
    return x.tile((3,)), places.tile((3,)), out.tile((3,))


def placed(x, places, out):
    out[places] = x


def taken(x, places, out):
    out = x[places]


def added(x, places, out):
    ntl.atomic_add(out[places], x)


@pytest.mark.parametrize("application", [placed, taken, added], ids=lambda each: each.__name__)
@pytest.mark.parametrize("place", [7, 3, -1])
def test_a_position_beyond_a_tile_is_reported(application, place):
    kernel = make(application, thirds, 3)
    name, way = ("x", "read") if application is taken else ("out", "written")
    # Three elements are held in four lanes; of a short last tile no position beyond it is one.
    right = torch.tensor([2, 0, 1, 1, 0])
    out = torch.zeros(5)
    with check():
        kernel(torch.arange(5.0), right, out)
    assert out.tolist() == ([2, 0, 1, 4, 3] if application is taken else [1, 2, 0, 4, 3])
    wrong = torch.tensor([2, 0, 1, 0, place])
    with (
        check(),
        pytest.raises(OutOfBoundsError, match=rf"`{name}` is {way} at position {place} in .* is 3"),
    ):
        kernel(torch.arange(5.0), wrong, torch.zeros(5))


def test_a_position_within_a_short_last_tile_is_dropped():
    with check():
        kernel = make(added, thirds, 3)
        kernel(torch.ones(2), torch.tensor([0, 2]), out := torch.zeros(2))
    assert out.tolist() == [1, 0]


def test_what_other_says_of_positions_beyond_a_tile_is_no_mistake():
    kernel = ninetoothed.make(thirds, taken, (Tensor(1, other=-1), Tensor(1), Tensor(1)))
    out = torch.empty(3)
    with check():
        kernel(torch.arange(3.0), torch.tensor([2, 7, 0]), out)
    assert out.tolist() == [2, -1, 0]


def test_memory_between_the_elements_of_one_tensor_may_be_anothers():
    def application(x, out):
        ntl.store(out.data_ptr() + out.offsets(), x)

    buffer = torch.arange(16.0)
    with check():
        make(application)(buffer[::2], buffer[1::2])
    assert buffer.tolist() == [2.0 * (place // 2) for place in range(16)]
