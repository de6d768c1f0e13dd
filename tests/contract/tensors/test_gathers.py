"""What is gathered, with an index longer or shorter than its source, against plain PyTorch.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

torch = pytest.importorskip("torch")


def whole(*tensors):
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def along_0(x, index, y):
    y = ntl.gather(x, index, 0)


def along_1(x, index, y):
    y = x.gather(index, axis=1)


def along_the_last_but_one(x, index, y):
    y = ntl.gather(src=x, index=index, axis=-2)


def of_what_is_there(x, index, y):
    y = ntl.gather(x, index * 9 - 18, 0)


def of_what_is_there_by_name(x, index, y):
    y = ntl.gather(x, axis=0, index=index * 9 - 18)


@pytest.mark.parametrize(
    ("application", "dim", "source", "index"),
    [
        (along_0, 0, (2, 4), (16, 4)),
        (along_0, 0, (16, 4), (128, 4)),
        (along_0, 0, (1, 4), (16, 4)),
        (along_0, 0, (3,), (9,)),
        (along_0, 0, (2, 3, 4), (33, 3, 4)),
        (along_1, 1, (3, 5), (3, 19)),
        (along_1, 1, (3, 5), (3, 2)),
        (along_1, 1, (8, 16), (8, 64)),
        (along_the_last_but_one, 0, (3, 5), (64, 5)),
        (along_the_last_but_one, 1, (2, 3, 4), (2, 35, 4)),
    ],
)
def test_an_index_has_any_length(application, dim, source, index):
    x = torch.randn(source)
    places = torch.randint(source[dim], index, dtype=torch.int32)
    y = torch.zeros(index)
    ninetoothed.make(whole, application, tuple(map(Tensor, [len(source)] * 3)))(x, places, y)
    assert torch.equal(y, x.gather(dim, places.long()))


@pytest.mark.parametrize("application", [of_what_is_there, of_what_is_there_by_name])
def test_a_position_that_does_not_exist_may_be_any(application):
    """The three last of eight would be -18."""
    x, y = torch.tensor([3.0, 1.0, 2.0]), torch.zeros(5)
    index = torch.full((5,), 2)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1), Tensor(1)))(x, index, y)
    assert y.tolist() == [3.0] * 5
