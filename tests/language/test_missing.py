"""What a message says where people look for functions under the names of array libraries."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ArgumentError, UnresolvedNameError


def tiled(*tensors):
    return tuple(t.tile((4,)) for t in tensors)


def made(application):
    return ninetoothed.make(tiled, application, (Tensor(1), Tensor(1)))


@pytest.mark.parametrize(
    "name, words",
    [
        ("relu", "`ntl.maximum(x, 0)`"),
        ("mean", "`ntl.sum(x) / x.shape[0]`"),
        ("ones", "`ntl.full(shape, 1, dtype)`"),
        ("matmul", "`ntl.dot(a, b)`"),
        ("tanh", "`ntl.libdevice.tanh`"),
        ("pow", "`ntl.libdevice.pow`"),
        ("maximun", "Did you mean 'maximum'"),
    ],
)
def test_a_function_under_another_name_is_pointed_at(name, words):
    with pytest.raises(AttributeError) as caught:
        getattr(ntl, name)
    assert words in str(caught.value)


def test_in_an_application_with_its_place():
    def application(x, y):
        y = ntl.relu(x)  # noqa: F841

    with pytest.raises(UnresolvedNameError, match="Write `ntl.maximum") as caught:
        made(application)
    assert caught.value.location.file == __file__


def test_every_function_that_is_named_instead_is_there():
    from ninetoothed.language import _INSTEAD

    for text in _INSTEAD.values():
        for part in text.split("ntl.")[1:]:
            found = ntl
            for name in part.partition("(")[0].split("."):
                found = getattr(found, name)


def test_the_length_of_a_tile_is_in_its_shape():
    def application(x, y):
        y = x / len(x)  # noqa: F841

    with pytest.raises(ApplicationError, match=r"in its `\.shape`"):
        made(application)


def test_a_slice_in_a_loop_is_told_of_static_range():
    def application(x, y):
        for k in range(2):
            y = x[k : k + 4]  # noqa: F841

    with pytest.raises(ApplicationError, match=r"`ntl\.static_range`"):
        made(application)


def test_a_kernel_takes_no_grid():
    def application(x, y):
        y = x  # noqa: F841

    with pytest.raises(ArgumentError, match="follows from the arrangement"):
        made(application)[(1,)]


def test_a_tile_of_one_element_decides_a_branch_as_a_number():
    """Triton warns of a condition that has a dimension."""

    def application(x, y):
        if x > 0:
            y = x
        else:
            y = -x  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((1,)), y.tile((1,))), application, (Tensor(1), Tensor(1))
    )
    assert "if (x_tile > 0).item():" in kernel.source
