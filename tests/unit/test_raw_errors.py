"""Mistakes that once raised errors of Python's own, without a place: each is ours now, or is right."""

import pytest
import torch

from ninetoothed import Tensor, make
from ninetoothed.errors import ApplicationError, NineToothedError


def _tiled(*tensors):
    return tuple(t.tile((64,)) if t.ndim else t for t in tensors)


def _kernel(application, is_constant=False):
    return make(_tiled, application, (Tensor(1), Tensor(1), Tensor(0, constexpr=is_constant)))


def _branch(x, o, n):
    if n > 1:
        y = x + 1
    o = y  # noqa: F841


def _known_in_a_branch(x, o, n):
    if n > 1:
        y = 3
    o = x + y  # noqa: F841


def _loop(x, o, n):
    for _ in range(n):
        y = x + 1
    o = y  # noqa: F841


def _while(x, o, n):
    i = 0
    while i < n:
        y = x + 1
        i += 1
    o = y  # noqa: F841


def _branch_on_a_size(x, o, n):
    if x.source.shape[0] > 3:
        y = x
    o = y  # noqa: F841


@pytest.mark.parametrize(
    "application", [_branch_on_a_size, _branch, _known_in_a_branch, _loop, _while]
)
def test_a_variable_that_only_one_way_assigns_is_refused_where_it_is_read(application):
    with pytest.raises(ApplicationError, match=r"(?s)'y' is read before it is assigned.*o = .*y"):
        _kernel(application)


def test_a_constant_decides_whether_a_variable_is_assigned():
    kernel = _kernel(_branch, is_constant=True)
    x, out = torch.rand(10), torch.full((10,), float("nan"))

    kernel(x, out, 2)
    torch.testing.assert_close(out, x + 1)
    with pytest.raises(NineToothedError, match=r"(?s)'y'.*File .*o = y"):
        kernel(x, out, 0)


def test_a_variable_of_a_branch_may_be_read_there():
    def application(x, o, n):
        o = x  # noqa: F841
        if n > 1:
            y = x + 1
            o = y * 2  # noqa: F841

    kernel = _kernel(application)
    x, out = torch.rand(10), torch.full((10,), float("nan"))

    kernel(x, out, 2)
    torch.testing.assert_close(out, (x + 1) * 2)
    kernel(x, out, 1)
    torch.testing.assert_close(out, x)
    assert kernel.compile(x, out, 2, target=("cuda", 90)).asm["ptx"]
