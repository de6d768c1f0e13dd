"""docs/language.md, "Elements of a tile": what the compiler knows and is negative counts from the end, what only a call
or the running kernel tells is before the tile, where no element exists, and nothing of the memory around it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Symbol, Tensor  # noqa: E402

BS = Symbol("BS", constexpr=True)

#: Beside it lies what no kernel may touch.
ROOM = 16


def within(values):
    """The values, in the middle of a longer tensor of 1000s, and that."""
    around = torch.full((2 * ROOM + len(values),), 1000.0)
    around[ROOM:-ROOM] = values
    return around[ROOM:-ROOM], around


def whole(x, y):
    return x.tile((-1,)), y.tile((1,))


def last_thirteen(x, y):
    y = ntl.sum(x[x.shape[0] - 13 :], 0)  # noqa: F841


def each_second(x, y):
    y = ntl.sum(x[x.shape[0] - 13 :: 2], 0)  # noqa: F841


def from_half(x, y):
    y = ntl.sum(x[x.shape[0] // 2 - 6 :], 0)  # noqa: F841


def up_to_five(x, y):
    y = ntl.sum(x[x.shape[0] - 13 : 5], 0)  # noqa: F841


@pytest.mark.parametrize("length", [20, 13, 12, 11, 4, 1])
@pytest.mark.parametrize(
    ("application", "start", "stop", "step"),
    [
        (last_thirteen, lambda n: n - 13, lambda n: n, 1),
        (each_second, lambda n: n - 13, lambda n: n, 2),
        (from_half, lambda n: n // 2 - 6, lambda n: n, 1),
        (up_to_five, lambda n: n - 13, lambda n: min(5, n), 1),
    ],
)
def test_a_slice_that_begins_before_the_tile(application, start, stop, step, length):
    x, _ = within(torch.arange(1.0, length + 1))
    y = torch.full((1,), 1000.0)
    kernel = ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))
    places = range(start(length), stop(length), step)
    if not places:
        with pytest.raises(ninetoothed.errors.ApplicationError, match="has no element"):
            kernel(x, y)
        return
    kernel(x, y)
    assert y.item() == sum(place + 1.0 for place in places if place >= 0)


def all_but_the_first(x, y):
    y[1:] = x[1:]


def all_but_the_last(x, y):
    y = x[:-1]  # noqa: F841


@pytest.mark.parametrize(
    ("application", "said"),
    [
        (all_but_the_first, "A slice of `y` has no element in this call: `y_size_0 - 1` is 0."),
        (all_but_the_last, "A slice of `x` has no element in this call: `x_size_0 - 1` is 0."),
    ],
)
def test_a_slice_without_an_element_is_told_in_the_same_words_everywhere(application, said):
    arrangement = lambda x, y: (x.tile((-1,)), y.tile((-1,)))  # noqa: E731
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    with pytest.raises(ninetoothed.errors.ApplicationError) as raised:
        kernel(torch.zeros(1), torch.zeros(1))
    assert raised.value.message == said
    assert raised.value.location.file == __file__


@pytest.mark.parametrize("length", [13, 11, 3])
def test_a_store_to_a_slice_that_begins_before_the_tile(length):
    def application(x, y):
        y[y.shape[0] - 13 :] = 7.0

    def added(x, y):
        ntl.atomic_add(y[y.shape[0] - 13 :], 7.0)

    for each in (application, added):
        y, around = within(torch.zeros(length))
        arrangement = lambda x, y: (x.tile((-1,)), y.tile((-1,)))  # noqa: E731
        ninetoothed.make(arrangement, each, (Tensor(1), Tensor(1)))(torch.zeros(length), y)
        assert around.tolist() == [1000.0] * ROOM + [7.0] * length + [1000.0] * ROOM


def known_variable(x, n, y):
    k = -1
    y = x[k]  # noqa: F841


def unrolled(x, n, y):
    for k in ntl.static_range(2):
        y = x[k - 1]  # noqa: F841
        y = x[k - 2]


def of_a_size_that_is_declared(x, n, y):
    y = x[x.shape[0] - 5]  # noqa: F841


def of_a_constant(x, n, y):
    y = x[n - 3]  # noqa: F841


def of_a_slice(x, n, y):
    y = ntl.sum(x[n - 3 :], 0)  # noqa: F841


@pytest.mark.parametrize(
    "application", [known_variable, unrolled, of_a_size_that_is_declared, of_a_constant, of_a_slice]
)
@pytest.mark.parametrize("size", [4, BS])
def test_what_the_compiler_knows_counts_from_the_end(application, size):
    def arrangement(x, n, y):
        return x.tile((size,)), n, y.tile((1,))

    x, y = torch.arange(8.0), torch.full((2,), 1000.0)
    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(
        x, 2, y, **({"BS": 4} if size is BS else {})
    )
    assert y.tolist() == [3.0, 7.0]


@pytest.mark.parametrize("tensor", [Tensor(1), Tensor(shape=(11,))])
def test_a_tile_of_a_level_that_is_declared(tensor):
    def application(x, y):
        y = x[x.shape[0] - 4]  # noqa: F841

    x, y = torch.arange(11.0), torch.full((4,), 1000.0)
    arrangement = lambda x, y: (x.tile((4,)).tile((-1,)), y.tile((4,)))  # noqa: E731
    ninetoothed.make(arrangement, application, (tensor, Tensor(1)))(x, y)
    is_known = isinstance(tensor.shape[0], int)
    assert y.tolist() == ([8.0, 9.0, 10.0, 0.0] if is_known else [0.0] * 4)
