"""What an application asserts: of constants at `make`, of sizes and element types at a call, on every backend."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ShapeError


def _whole(x, y):
    return x.tile((-1,)), y.tile((-1,))


def _blocks(x, y):
    return x.tile((4,)), y.tile((4,))


def five(x, y):
    assert x.shape[0] == 5, "five"
    y = x


def five_of_the_tensor(x, y):
    ntl.static_assert(x.source.shape[0] == 5, "five")
    y = x


def five_on_the_device(x, y):
    ntl.device_assert(x.source.shape[0] == 5, "five")
    y = x


def five_taken_for_granted(x, y):
    ntl.assume(x.source.shape[0] == 5)
    y = x


def between(x, y):
    assert 4 < x.source.shape[0] < 6 and x.dtype == ntl.float32, "five"
    y = x


def one_shape(x, y):
    assert x.shape == (5,), "five"
    y = x


def where_sizes_say(x, y):
    n = x.source.shape[0]
    if n > 3:
        for _ in range(n):
            assert n == 5, "five"
    else:
        assert n == 0, "five"
    y = x


@pytest.mark.parametrize(
    ("application", "arrangement"),
    [
        (five, _whole),
        (five_of_the_tensor, _blocks),
        (five_on_the_device, _blocks),
        (five_taken_for_granted, _blocks),
        (between, _blocks),
        (one_shape, _whole),
        (where_sizes_say, _blocks),
    ],
)
def test_what_sizes_decide_is_asked_of_a_call(application, arrangement):
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    for size in (5, 6, 5, 3):
        x, y = torch.arange(float(size)), torch.zeros(size)
        if size == 5:
            kernel(x, y)
            assert torch.equal(x, y)
            continue
        with pytest.raises(ShapeError, match="five|taken|assume") as raised:
            kernel(x, y)
        assert raised.value.location.file == __file__
        assert not y.any()


def of_integers(x, y):
    assert x.dtype == ntl.int32, "integers"
    y = x


def of_made_integers(x, y):
    assert (x + 1).dtype == ntl.int32, "integers"
    y = x


@pytest.mark.parametrize("application", [of_integers, of_made_integers])
def test_what_element_types_decide_is_asked_of_a_call(application):
    kernel = ninetoothed.make(_whole, application, (Tensor(1), Tensor(1)))
    x, y = torch.arange(5, dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
    kernel(x, y)
    assert torch.equal(x, y)
    with pytest.raises(ApplicationError, match="integers") as raised:
        kernel(x.float(), y.float())
    assert raised.value.location.file == __file__


def never_come_to(x, n, y):
    if n > 3:
        assert x.source.shape[0] == 5, "five"
    y = x


def test_what_no_program_comes_to_is_not_asked():
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)), n, y.tile((4,))),
        never_come_to,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.arange(6.0), torch.zeros(6)
    kernel(x, 1, y)
    assert torch.equal(x, y)
    none = torch.zeros(0)
    ninetoothed.make(_blocks, five_of_the_tensor, (Tensor(1), Tensor(1)))(none, none.clone())


def of_elements(x, y):
    assert x > 0, "positive"
    y = x


def test_padding_is_not_asked():
    kernel = ninetoothed.make(_whole, of_elements, (Tensor(1), Tensor(1)))
    x, y = torch.arange(1.0, 6.0), torch.zeros(5)
    kernel(x, y)
    assert torch.equal(x, y)
