"""`ntl.view` keeps the order of elements, which Triton's own does not promise: it is a `reshape`."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402


def arrangement(input, output):
    return input.tile((2, 4)).flatten(), output.tile((1,))


def by_function(input, output):
    output = ntl.argmax(ntl.view(input, (8,)), axis=0)  # noqa: F841


def by_method(input, output):
    output = ntl.argmax(input.view((8,)), axis=0)  # noqa: F841


def by_method_of_numbers(input, output):
    output = ntl.argmax(input.view(8, 1), axis=0)  # noqa: F841


@pytest.mark.parametrize("application", (by_function, by_method, by_method_of_numbers))
def test_a_view_is_emitted_as_a_reshape(application):
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    assert "reshape(" in kernel.source
    assert "view(" not in kernel.source
