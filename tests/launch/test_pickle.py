"""Kernels in pickles: by the name that a module has for them, as functions; else an error that says why."""

import copy
import multiprocessing
import pickle

import pytest
import torch

from examples import add
from ninetoothed import Tensor, make
from ninetoothed.errors import ArgumentError


def _arrangement(x, o):
    return x.tile((64,)), o.tile((64,))


def _double(x, o):
    o = x * 2  # noqa: F841


#: Its application is called otherwise, and it has a plan already when it is pickled.
DOUBLE = make(_arrangement, _double, (Tensor(1), Tensor(1)))


def _doubled(kernel, values):
    out = torch.full((len(values),), float("nan"))
    kernel(torch.tensor(values), out)
    return out.tolist()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_kernel_of_a_module_is_itself_again(protocol):
    assert pickle.loads(pickle.dumps(DOUBLE, protocol)) is DOUBLE
    assert pickle.loads(pickle.dumps({"kernels": [add.kernel]}, protocol))["kernels"] == [
        add.kernel
    ]


def test_another_process_makes_it_itself():
    assert _doubled(DOUBLE, [1.0, 2.0]) == [2.0, 4.0]

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_doubled, (DOUBLE, [1.5, 3.0])) == [3.0, 6.0]


def test_a_kernel_that_no_module_names_says_why():
    kernel = make(_arrangement, _double, (Tensor(1), Tensor(1)))

    with pytest.raises(
        ArgumentError, match=r"(?s)`_double` cannot be pickled.*variable of a module"
    ):
        pickle.dumps(kernel)
    assert copy.deepcopy(kernel) is kernel
