"""Offsets have 32 bits where these hold each of them in a call, and 64 where not, whatever other tensors there are."""

from __future__ import annotations

import torch

import ninetoothed
from ninetoothed import Tensor


def four(tensor):
    return tensor.tile((4,))


def last_four(tensor):
    return tensor.tile((4,))[-1:]


def test_of_a_small_tensor_beside_a_large_one():
    def application(x, z, y):
        y = (z.offsets(0) + 2**30) * 4 + x.offsets(0) // 2**31  # noqa: F841

    y = torch.empty(4, dtype=torch.int64)
    kernel = ninetoothed.make(
        lambda x, z, y: (last_four(x), four(z), four(y)),
        application,
        (Tensor(1), Tensor(1), Tensor(1)),
    )
    kernel(torch.ones(1).expand(2**32), torch.ones(4), y)
    # As int32 has it, and one more.
    assert y.tolist() == [1, 5, 9, 13]


def test_of_a_tensor_of_which_every_index_fits():
    def application(x, y):
        y = x.offsets(0) * 4  # noqa: F841

    y = torch.empty(4, dtype=torch.int64)
    kernel = ninetoothed.make(
        lambda x, y: (last_four(x), four(y)), application, (Tensor(1), Tensor(1))
    )
    kernel(torch.ones(1).expand(2**31 - 4), y)
    assert y.tolist() == [-32, -28, -24, -20]
    kernel(torch.ones(1).expand(2**31 + 4), y)
    assert y.tolist() == [2**33, 2**33 + 4, 2**33 + 8, 2**33 + 12]


def test_along_dimensions_of_which_one_is_large():
    def application(x, y):
        y = (x.offsets(1) + 2**30) * 4 + x.offsets(0) // 2**31  # noqa: F841

    def arrangement(x, y):
        arranged = x.tile((1, 4))[-1:].squeeze(0)
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged, four(y)

    y = torch.empty(4, dtype=torch.int64)
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    kernel(torch.ones(1, 1).expand(2**31 + 4, 4), y)
    assert y.tolist() == [1, 5, 9, 13]


def test_of_elements_far_apart_in_a_tile():
    """Beyond the tensor too they go on counting."""

    def application(x, y):
        y = x.offsets(0) // 2**30  # noqa: F841

    y = torch.empty(4, dtype=torch.int64)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,), dilation=(2**30,), floor_mode=False), y.tile((4,))),
        application,
        (Tensor(1), Tensor(1)),
    )
    kernel(torch.ones(1).expand(2**31 + 2**30 + 1), y)
    assert y.tolist() == [0, 1, 2, 3]


def test_of_a_tensor_with_a_stride_that_no_int32_holds():
    def application(x, y):
        y = (x.offsets() + 2**30) * 4  # noqa: F841

    def arrangement(x, y):
        arranged = x.tile((1, 4)).squeeze(0)
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged, four(y)

    y = torch.empty(4, dtype=torch.int64)
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    kernel(torch.empty(1).as_strided((1, 4), (2**33, 0)), y)
    assert y.tolist() == [2**32] * 4


def test_next_to_a_large_number():
    def application(x, y):
        y = x.offsets(0) * 4  # noqa: F841

    y = torch.empty(4, dtype=torch.int64)
    first = 2**29 - 1
    kernel = ninetoothed.make(
        lambda x, y: (four(x)[first : first + 1], four(y)), application, (Tensor(1), Tensor(1))
    )
    kernel(torch.ones(1).expand(2**31 - 1), y)
    assert y.tolist() == [-16, -12, -8, -4]
