"""LANGUAGE.md, "Application": a tile may be indexed at its innermost level too."""

from __future__ import annotations

import numpy
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError

NAN = float("nan")


def poisoned(*shape):
    return torch.full(shape, NAN)


def run(application, *arguments, tile=None, others=None):
    """Calls a kernel of which each vector, or matrix, is in tiles of this shape."""

    def arrangement(*tensors):
        return tuple(t.tile(tile or (-1,) * t.ndim) if t.ndim else t for t in tensors)

    ranks = [a.ndim if isinstance(a, torch.Tensor) else 0 for a in arguments]
    tensors = tuple(Tensor(rank, other=others) for rank in ranks)
    device = arguments[-1].device
    given = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]
    ninetoothed.make(arrangement, application, tensors)(*given)
    return arguments[-1]


X = torch.arange(1.0, 8.0)
M = torch.arange(1.0, 36.0).reshape(5, 7)


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        (lambda x: x[2], X[2]),
        (lambda x: x[-1], X[-1]),
        (lambda x: x[-7], X[0]),
        (lambda x: ntl.sum(x[1:]), X[1:].sum()),
        (lambda x: ntl.sum(x[:-2]), X[:-2].sum()),
        (lambda x: ntl.max(-x[1:]), (-X[1:]).max()),
        (lambda x: ntl.min(x[::2]), X[::2].min()),
        (lambda x: ntl.sum(x[1:6:3] * ntl.arange(1, 3)), (X[1:6:3] * torch.tensor([1, 2])).sum()),
        (lambda x: ntl.sum(x[::-1] * x), (X.flip(0) * X).sum()),
        (lambda x: ntl.sum(x[:100]), X.sum()),
        (lambda x: ntl.max(ntl.abs(x[1:] - x[:-1])), torch.tensor(1.0)),
        (lambda x: ntl.sum(x[ntl.arange(0, 4)]), X[:4].sum()),
        (lambda x: ntl.sum(x[3 - ntl.arange(0, 4)] * x[ntl.arange(0, 4)]), (X[:4].flip(0) * X[:4]).sum()),
        (lambda x: ntl.sum(x[: x.shape[0] // 2]), X[:3].sum()),
        (lambda x: ntl.min(x[ntl.arange(0, 16)]), X.min()),
        (lambda x: ntl.sum(ntl.sum(x[1:][:, None] * x[:-1][None, :], 0)), (X[1:, None] * X[:-1]).sum()),
    ],
)  # fmt: skip
def test_elements_of_a_vector(selected, expected):
    def application(x, y):
        y[0] = selected(x)

    y = poisoned(1)
    torch.testing.assert_close(run(application, X, y)[0].cpu(), expected)


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        (lambda x: x[2, 3], M[2, 3]),
        (lambda x: ntl.max(-x[1:, 2]), -M[1, 2]),
        (lambda x: ntl.sum(x[2]), M[2].sum()),
        (lambda x: ntl.sum(x[..., -1]), M[:, -1].sum()),
        (lambda x: ntl.min(ntl.sum(x[1:-1, ::2], axis=1)), M[1:-1, ::2].sum(1).min()),
        (lambda x: ntl.max(ntl.max(-x[1:, 1:], axis=0)), -M[1, 1]),
        (lambda x: ntl.max(ntl.max(-ntl.trans(x[1:, 3:]), axis=1)), -M[1, 3]),
        (lambda x: ntl.sum(x[ntl.arange(0, 4), 1 + ntl.arange(0, 4)]), M.diag(1)[:4].sum()),
        (lambda x: ntl.max(-ntl.sum(x[ntl.arange(0, 2) + 1, :], 1)), -M[1].sum()),
        (lambda x: ntl.min(ntl.sum(x[:, ntl.arange(0, 2) + 1], 1)), M[0, 1:3].sum()),
        (lambda x: ntl.min(ntl.sum(x[1:, ntl.arange(0, 2) + 1], 0)), M[1:, 1].sum()),
        (
            lambda x: ntl.sum(ntl.sum(x[ntl.arange(0, 2)[:, None], ntl.arange(0, 4)[None, :]], 0)),
            M[:2, :4].sum(),
        ),
    ],
)
def test_elements_of_a_matrix(selected, expected):
    def application(x, y):
        y[0, 0] = selected(x)

    y = poisoned(1, 1)
    torch.testing.assert_close(run(application, M, y)[0, 0].cpu(), expected)


@pytest.mark.parametrize("shape", [(5, 7), (4, 8), (1, 3), (9, 2)])
def test_a_row_at_a_run_time_position(shape):
    def application(x, n, y):
        for i in range(x.shape[0]):
            y[i, :] = x[i, :] * 2 + x[n, :]

    x, y = torch.randn(shape), poisoned(*shape)
    torch.testing.assert_close(run(application, x, 0, y), x * 2 + x[0])


@pytest.mark.parametrize("place", [-1, 5, 100])
def test_a_run_time_position_outside_does_not_exist(place):
    """Known only to the running kernel, a negative position does not count from the end."""

    def application(x, n, y):
        y[0] = x[n] + 1.0
        y[1] = ntl.max(x[n + ntl.arange(0, 2)])

    x, y = torch.arange(-5.0, 0.0), torch.full((2,), 7.0)
    run(application, x, place, y)
    expected = -5.0 if place == -1 else float("-inf")
    assert y.tolist() == [7.0, expected]


def test_where_a_tensor_has_another_value_outside_it_exists():
    def application(x, n, y):
        y[0] = x[n] + 1.0
        y[1] = ntl.max(x[n + ntl.arange(0, 2)])

    y = poisoned(2)
    assert run(application, torch.arange(-5.0, 0.0), 4, y, others=3.0).tolist() == [0.0, 3.0]


def test_a_position_that_does_not_exist_selects_nothing_of_a_tensor_with_another_value():
    def arrangement(*tensors):
        return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)

    def application(places, x, y):
        y[0, 0] = ntl.sum(x[places, 0] + 1)
        y[0, 1] = ntl.sum(x[0, places] + 1)
        y[0, 2] = ntl.sum(ntl.sum(x[places, :4] + 1, axis=1))

    places, x = torch.tensor([0, 1, 9], dtype=torch.int32), torch.ones(4, 4)
    y, tensors = poisoned(1, 3), (Tensor(1), Tensor(2, other=5), Tensor(2))
    ninetoothed.make(arrangement, application, tensors)(places, x, y)
    assert y.tolist() == [[2 + 2 + 6, 2 + 2 + 6, 8 + 8 + 24]]


def test_what_exists_nowhere_along_a_dimension_is_reduced_to_nothing():
    """Columns whose positions are all beyond the tile, but for the lanes below the last row."""

    def application(places, x, y):
        y[0, 0] = ntl.min(ntl.sum(x[places, 0] + 5, axis=0))

    places = torch.full((3, 3), -1, dtype=torch.int32)
    places[0, 1] = 0
    y = run(application, places, torch.ones(3, 3), poisoned(1, 1))
    assert y.item() == 6.0


def added(a, b):
    return a + b * 1


def both(a, b, c, d):
    return a + c, b + d


@pytest.mark.parametrize(
    "reduced",
    [
        lambda e: ntl.sum(e, axis=2),
        lambda e: e.sum(-1, keep_dims=True),
        lambda e: ntl.reduce(e, 2, added),
        lambda e: ntl.reduce((e, e), 2, both)[0],
    ],
)
def test_one_element_has_to_be_in_all_that_is_reduced(reduced):
    """`places` has a fourth lane, position 0, where `x` has none: it says of no row that it is there."""

    def application(places, x, y):
        y[0, 0] = ntl.sum(reduced(x[:, places] / x) + 1)

    def arrangement(places, x, y):
        return places.tile((3, -1)), x.tile((3, -1)), y.tile((1, 1))

    places = torch.tensor([[0, 9, 2], [9, 9, 9], [1, 2, 9]], dtype=torch.int32)
    x, y = torch.rand(3, 3) + 1, poisoned(1, 1)
    tensors = Tensor(2, other=0), Tensor(2), Tensor(2)
    ninetoothed.make(arrangement, application, tensors)(places, x, y)
    chosen = torch.where(places < 3, x[:, places.clamp(max=2)] / x, 0)
    there = (places < 3).any(dim=1).expand(3, 3)
    torch.testing.assert_close(y[0, 0], (chosen.sum(dim=2) + 1)[there].sum())


def test_positions_lie_in_the_tile_not_in_the_source():
    def application(x, y):
        y[0] = ntl.sum(x[1:])
        y[1] = ntl.max(x[ntl.arange(0, 8)])

    x, y = torch.arange(1.0, 11.0), poisoned(6)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((2,))), application, (Tensor(1), Tensor(1))
    )
    kernel(x, y)
    assert y.tolist() == [9.0, 4.0, 21.0, 8.0, 10.0, 10.0]


@pytest.mark.parametrize("size", [1, 4, 7, 8, 13])
def test_storing_to_slices_leaves_the_rest(size):
    def application(x, y):
        y[1:] = x[:-1]
        y[0] = 0

    x, y = torch.randn(size), poisoned(size)
    if size == 1:
        x, y = torch.randn(2), poisoned(2)
    run(application, x, y)
    torch.testing.assert_close(y, torch.cat([torch.zeros(1), x[:-1]]))


def test_storing_to_every_other_element():
    def application(x, y):
        y[::2] = x[1::2]
        y[1::2] = -x[::2]

    x, y = torch.randn(10), poisoned(10)
    run(application, x, y)
    expected = torch.stack([x[1::2], -x[::2]], dim=1).flatten()
    torch.testing.assert_close(y, expected)


@pytest.mark.parametrize("size", [5, 8])
def test_storing_to_positions_that_are_loaded(size):
    def application(x, places, y):
        y[places] = x

    places = torch.randperm(size).to(torch.int32)
    x, y = torch.randn(size), poisoned(size)
    run(application, x, places, y)
    expected = poisoned(size)
    expected[places.long()] = x
    torch.testing.assert_close(y, expected)


def test_positions_that_do_not_exist_select_no_rows():
    """Three positions are held in four lanes: the fourth is of no row, in any column."""

    def application(places, x, y, most):
        y[places, :] = 5.0
        most[0] = ntl.max(ntl.max(x[places, :], 0))

    x = -torch.arange(1.0, 5.0)[:, None].expand(4, 4).contiguous()
    y, most = torch.zeros(4, 3), poisoned(1)
    run(application, torch.tensor([1, 3, 2], dtype=torch.int32), x, y, most)
    assert most.item() == -2.0
    assert y[:, 0].tolist() == [0.0, 5.0, 5.0, 5.0]


def test_a_store_outside_of_the_tile_is_dropped():
    def application(x, y):
        y[ntl.arange(0, 8) - 2] = ntl.arange(0, 8)
        y[100 + x[0].to(ntl.int32)] = 5.0

    y = poisoned(12)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )
    kernel(torch.zeros(10), y[:10])
    numpy.testing.assert_array_equal(y.cpu().numpy(), [2, 3, 4, 5, 2, 3, 4, 5, 2, 3, NAN, NAN])


@pytest.mark.parametrize("size", [6, 8, 64, 100])
def test_a_store_to_elements_is_seen_by_later_loads(size):
    def application(x):
        first = x
        x[1:] = x[:-1]
        x[0] = 10
        x = x + first
        x[1] += 100
        x[ntl.arange(0, 2)] = x[ntl.arange(0, 2) + 1]

    x = torch.randn(size)
    expected = torch.cat([torch.tensor([10.0]), x[:-1]]) + x
    expected[1] += 100
    expected[:2] = expected[1:3].clone()
    run(application, x)
    torch.testing.assert_close(x, expected)


def test_elements_of_a_selected_tile():
    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y.tile((-1,))

    def application(x, y):
        total = 0.0
        for k in range(x.shape[0]):
            total += ntl.max(x[k][1:]) + x[k][0]
        y[0] = total

    x, y = -torch.arange(1.0, 15.0), poisoned(1)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(x, y)
    assert y.item() == sum(x[i + 1].item() + x[i].item() for i in range(0, 14, 4))


def test_storing_to_elements_of_a_selected_tile():
    def arrangement(x, y):
        return x.tile((1, -1)).tile((-1, 1)), y.tile((1, -1)).tile((-1, 1))

    def application(x, y):
        for k in range(x.shape[0]):
            y[k, 0][0, 1:] = x[k, 0][0, 1:] - x[k, 0][0, :-1]
            y[k, 0][0, 0] = x[k, 0][0, 0]

    x, y = torch.randn(3, 11), poisoned(3, 11)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(x, y)
    expected = torch.cat([x[:, :1], x[:, 1:] - x[:, :-1]], dim=1)
    torch.testing.assert_close(y, expected)


def test_a_slice_of_a_size_that_is_given_at_the_call():
    block = Symbol("BLOCK", constexpr=True)

    def arrangement(x, y):
        return x.tile((block,)), y.tile((block,))

    def application(x, y):
        half = block // 2
        y[:half] = x[half:]
        y[half:] = -x[:half]

    x, y = torch.randn(24), poisoned(24)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    for size in (4, 6, 12):
        kernel(x, y, BLOCK=size)
        parts = x.reshape(-1, 2, size // 2)
        torch.testing.assert_close(y, torch.stack([parts[:, 1], -parts[:, 0]], 1).flatten())


def test_a_halo():
    def application(x, y):
        y = x[2:] * 3 + x[1:-1] * 2 + x[:-2]  # noqa: F841

    x, y = torch.randn(16), poisoned(16)
    kernel = ninetoothed.make(
        lambda x, y: (x.pad(((2, 0),)).tile((10,), strides=(8,)), y.tile((8,))),
        application,
        (Tensor(1), Tensor(1)),
    )
    kernel(x, y)
    padded = torch.cat([torch.zeros(2), x])
    torch.testing.assert_close(y, padded[2:] * 3 + padded[1:-1] * 2 + padded[:-2])


def test_in_a_helper_and_a_condition():
    def first(tile):
        return tile[0]

    def application(x, y):
        value = first(x)
        if x[1] > 0:
            value += x[1]
        y[0] = value if x[2] > 100 else value + 1

    y = poisoned(1)
    assert run(application, X, y).item() == X[0] + X[1] + 1


@pytest.mark.parametrize(
    ("selected", "words"),
    [
        (lambda x: x[1, 2], "one tile here, of shape"),
        (lambda x: x[1.5], "indexed with 1.5"),
        (lambda x: x[None, 1:], "`None` cannot stand beside positions"),
        (lambda x: x[5:2], "no element"),
        (lambda x: x[5:2:-1], "backwards takes the whole dimension"),
        (lambda x: (x * 2)[1:], r"held by several threads.*`x\[1:\]`"),
        (lambda x: x[ntl.sum(x).to(ntl.int32) :], "bounds of a slice.*ntl.arange"),
    ],
)
def test_what_cannot_be_selected_is_told_with_its_place(selected, words):
    def application(x, y):
        y[0] = ntl.max(selected(x))

    with pytest.raises(ApplicationError, match=words) as raised:
        run(application, X, poisoned(1))
    assert raised.value.location.file == __file__


def test_a_position_that_is_known_to_be_outside_is_an_error():
    def application(x, y):
        y = x[4]  # noqa: F841

    with pytest.raises(ApplicationError, match="indexed with 4, and that dimension has size 4"):
        ninetoothed.make(
            lambda x, y: (x.tile((4,)), y.tile((1,))), application, (Tensor(1), Tensor(1))
        )


COUNT = Symbol("COUNT", constexpr=True)


def in_levels(application, *arguments):
    """Each program has two tiles of four elements of the first tensor, and one element of the last."""
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)).tile((COUNT,)), n, y.tile((1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    kernel(*arguments, COUNT=2)
    return arguments[0], arguments[-1]


@pytest.mark.parametrize("place", [-1, -3, 2, 3, 1 << 20, 1 << 62, -1 << 63])
def test_a_tile_outside_of_its_level_does_not_exist(place):
    """It is neither the next program's nor the one before."""

    def application(x, n, y):
        y = ntl.max(x[n])  # noqa: F841
        x[n] = 7.0

    x, y = in_levels(application, -torch.arange(1.0, 25.0), place, poisoned(3))
    assert x.tolist() == [float(-each) for each in range(1, 25)]
    assert y.tolist() == [float("-inf")] * 3


def test_of_a_loops_tiles_those_outside_of_the_level_do_not_exist():
    def application(x, n, y):
        total = ntl.zeros((4,), ntl.float32)
        for k in range(x.shape[0] + 2):
            total += x[k - 1] * n
        y = ntl.sum(total)  # noqa: F841

    x, y = in_levels(application, torch.arange(1.0, 25.0), 1, poisoned(3))
    assert y.tolist() == [x[:8].sum(), x[8:16].sum(), x[16:].sum()]


def test_a_constant_place_beyond_its_level_does_not_exist():
    def application(x, n, y):
        y = ntl.sum(x[2]) + ntl.sum(x[-3]) + ntl.sum(x[1]) * n  # noqa: F841

    x, y = in_levels(application, torch.arange(1.0, 25.0), 1, poisoned(3))
    assert y.tolist() == [x[4:8].sum(), x[12:16].sum(), x[20:].sum()]
