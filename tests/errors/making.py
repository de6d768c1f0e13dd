"""What `make` says of an application that cannot be."""

from __future__ import annotations

import pytest

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def whole(*tensors):
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def refusal(application):
    """The error of an application of two matrices, whose place is in the application's file."""
    with pytest.raises(ApplicationError) as raised:
        ninetoothed.make(whole, application, (Tensor(2), Tensor(2)))
    assert raised.value.location.file == application.__code__.co_filename
    return str(raised.value)
