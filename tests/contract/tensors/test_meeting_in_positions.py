"""LANGUAGE.md, "The rule of meeting", where several lanes or a flattened level make a position together."""

from __future__ import annotations

import random

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size
from ninetoothed.errors import ArgumentError, ArrangementError

ROWS, COLUMNS = block_size(), block_size()


def flattened_grid(t):
    return t.tile((2, 4)).flatten()


def flattened_grid_of_permuted(t):
    return t.permute((1, 0)).tile((4, 2)).flatten()


def flattened_grid_that_is_tuned(t):
    return t.tile((ROWS, COLUMNS)).flatten()


def tiles_of_tiles_in_one(t):
    return t.flatten().tile((2,)).tile((4,)).ravel().tile((1, 4, 2))


def flattened_tile(t):
    arranged = t.tile((2, 4))
    arranged.dtype = arranged.dtype.flatten()
    return arranged


ARRANGEMENTS = [
    flattened_grid,
    flattened_grid_of_permuted,
    flattened_grid_that_is_tuned,
    tiles_of_tiles_in_one,
    flattened_tile,
]


def more(x, y):
    y = x + 1  # noqa: F841


def more_in_rounds(x, y):
    total = ntl.full(x.shape, 0.0, ntl.float32)
    for _ in range(3):
        total += ntl.exp(x)
    y = total  # noqa: F841


def made(arranged, application):
    return ninetoothed.make(
        lambda x, y: (arranged(x), arranged(y)), application, (Tensor(2), Tensor(2))
    )


@pytest.mark.parametrize("application", [more, more_in_rounds])
@pytest.mark.parametrize("arranged", ARRANGEMENTS)
def test_there_must_be_as_many_elements(arranged, application):
    kernel = made(arranged, application)
    x, y = torch.zeros(4, 7), torch.full((4, 8), torch.nan)
    with pytest.raises(ArgumentError, match="`x` of shape .4, 7. is stored to `y` of shape .4, 8."):
        kernel(x, y)
    assert y.isnan().all()

    y = torch.full((4, 7), torch.nan)
    kernel(x, y)
    assert torch.equal(y, torch.full((4, 7), 1.0 if application is more else 3.0))


@pytest.mark.parametrize(
    ("arranged", "sizes"),
    [
        # As many tiles, which end elsewhere.
        (lambda t: t.tile((3, 4)).flatten(), [(5, 9), (9, 5)]),
        (lambda t: t.tile((4, 3)).flatten(), [(9, 2), (2, 9)]),
        # One row of tiles.
        (lambda t: t.tile((-1, 4)).flatten(), [(7, 5), (7, 6)]),
        # A column of tiles.
        (lambda t: t.tile((2, 4)).flatten(), [(4, 1), (4, 3)]),
        # A tile without columns.
        (lambda t: t[:, :-2].tile((4, -1)), [(7, 1), (7, 3)]),
    ],
)
def test_a_tile_has_an_element_wherever_one_is_stored(arranged, sizes):
    x, y = (torch.full(size, 5.0) for size in sizes)
    with pytest.raises(ArgumentError, match="have not the same elements"):
        made(arranged, more)(x, y)
    assert (y == 5).all()


def drawn(draw):
    """An arrangement of a matrix, at random: cut, in tiles, and the grid or the tile flattened."""
    cuts = [
        lambda t: t.permute((1, 0)),
        lambda t: t[1:, :],
        lambda t: t[:, ::-1],
        lambda t: t[:, ::2],
        lambda t: t[:-1, :],
    ]
    cut, shape = draw.choices(cuts, k=draw.randrange(3)), draw.choices([2, 3, 4, 4, -1], k=2)
    end = draw.choice(["flattened", "grid", "tile", "as it is"])

    def arranged(t):
        for each in cut:
            t = each(t)
        if end == "flattened":
            return t.flatten().tile((shape[0],))
        t = t.tile(tuple(shape))
        if end == "tile":
            t.dtype = t.dtype.flatten()
        return t.flatten() if end == "grid" else t

    return arranged


def test_whatever_sizes_meet_nothing_is_read_that_is_not_there():
    draw, refused, stored = random.Random(7), 0, 0
    for _ in range(120):
        kernel = made(drawn(draw), more)
        sizes = [draw.randrange(1, 10), draw.randrange(1, 10)]
        rows, columns = sizes
        others = draw.choice([sizes, [columns, rows], [rows, columns + 1], [rows + 2, columns]])
        x, y = torch.full(sizes, 5.0), torch.full(others, torch.nan)
        try:
            kernel(x, y)
        except (ArgumentError, ArrangementError):
            assert y.isnan().all()
            refused += 1
        else:
            assert (y.isnan() | (y == 6)).all()
            stored += 1
    assert refused > 20 and stored > 10


@pytest.mark.parametrize("of_other", ["flattened", "rows", "parts"])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_one_that_ends_is_named_whatever_its_sizes_are(of_other, is_first):
    def lines(t, tile):
        return (t if tile is None else t.tile(tile).ravel()).flatten().tile((4,))

    tile = {"flattened": None, "rows": (1, -1), "parts": (1, 4)}[of_other]

    def arrangement(x, z, y):
        tiles = ((3, -1), tile) if is_first else (tile, (3, -1))
        return lines(x, tiles[0]), lines(z, tiles[1]), y.tile((4,))

    def added(x, z, y):
        y = x + z  # noqa: F841

    kernel = ninetoothed.make(arrangement, added, (Tensor(2), Tensor(2), Tensor(1)))
    given = torch.ones(4, 4), torch.ones(2, 12)
    ends, x, z = ("x", *given) if is_first else ("z", *given[::-1])
    with pytest.raises(ArgumentError, match=f"24 in dimensions 0, 1 .*say what `{ends}` has"):
        kernel(x, z, torch.empty(24))


def test_tiles_may_lie_elsewhere():
    """As many tiles, none of which has padding: each is at its number in either tensor."""
    x, y = torch.arange(32.0).reshape(4, 8), torch.full((8, 4), torch.nan)
    made(flattened_grid, more)(x, y)
    tiles = x.reshape(2, 2, 2, 4).swapaxes(1, 2).reshape(8, 4)
    assert torch.equal(y, tiles + 1)


def test_a_product_of_flattened_grids_contracts_what_both_have():
    def arrangement(x, w, y):
        y_arranged = y.tile((4, 4))
        x_arranged = x.tile((4, 4)).tile((1, -1)).expand((-1, y_arranged.shape[1]))
        x_arranged.dtype = x_arranged.dtype.squeeze(0)
        w_arranged = w.tile((4, 4)).tile((-1, 1)).expand((y_arranged.shape[0], -1))
        w_arranged.dtype = w_arranged.dtype.squeeze(1)
        return x_arranged.flatten(), w_arranged.flatten(), y_arranged.flatten()

    def application(x, w, y):
        total = ntl.zeros((4, 4), ntl.float32)
        for k in range(x.shape[0]):
            total += ntl.sum(x[k][:, :, None] * w[k][None, :, :], 1)
        y = total  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, tuple(Tensor(2) for _ in range(3)))
    x, w, y = torch.rand(6, 7), torch.rand(7, 9), torch.full((6, 9), torch.nan)
    kernel(x, w, y)
    torch.testing.assert_close(y, x @ w)
    with pytest.raises(ArgumentError, match="7 in dimension 1 of `x` and 8 in dimension 0 of `w`"):
        kernel(x, torch.rand(8, 9), y)


@pytest.mark.parametrize(
    ("places", "values", "fits"),
    [((4, 2), (4, 2, 2), True), ((3, 2), (3, 2, 2), True), ((2, 1), (3, 2, 1), False)],
)
def test_positions_meet_what_is_stored_there_before_the_slices_behind_them(places, values, fits):
    """`z` has the dimensions of `x[:, z]` that stand before the last one, which is a slice."""

    def arrangement(x, z, w):
        return x.tile((4, 2, 2)), z.tile((4, 2)), w.tile((4, 2, 2))

    def application(x, z, w):
        x[:, z] = w

    kernel = ninetoothed.make(arrangement, application, (Tensor(3), Tensor(2), Tensor(3)))
    z = torch.zeros(places, dtype=torch.int32)
    z[:, 1:] = 1
    x, w = torch.zeros(4, 2, 2), torch.ones(values)
    if not fits:
        with pytest.raises(ArgumentError, match=r"1 in dimension 1 of `z` and 2 in dimension 1"):
            kernel(x, z, w)
        return
    kernel(x, z, w)
    assert (x[:, :2] == 1).all()


def loaded(x, z, w, y):
    y = x[z] + w  # noqa: F841


def loaded_and_stored(x, z, w, y):
    y = x[z]  # noqa: F841


def stored(x, z, w, y):
    x[z] = w


def added(x, z, w, y):
    ntl.atomic_add(x[z], w)


def of_two(x, z, w, y):
    x[z] = x[z] * w


@pytest.mark.parametrize("application", [loaded, loaded_and_stored, stored, added, of_two])
def test_what_positions_select_exists_where_they_do(application):
    def arrangement(x, *others):
        return x.tile((-1,)), *(other.tile((8,)) for other in others)

    kernel = ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(4)))
    x, z, y = torch.arange(9.0), torch.arange(3, dtype=torch.int32), torch.zeros(5)
    with pytest.raises(
        ArgumentError, match=r"`z` of shape \(3,\).* and 5 in dimension 0 of `[wy]`"
    ):
        kernel(x, z, torch.ones(5), y)
    kernel(x, z, torch.ones(3), torch.zeros(3))


def test_positions_meet_each_other():
    def arrangement(x, z, w, y):
        return x.tile((-1, -1)), z.tile((8,)), w.tile((8,)), y.tile((8,))

    def application(x, z, w, y):
        y = x[z, w]  # noqa: F841

    tensors = Tensor(2), Tensor(1), Tensor(1), Tensor(1)
    kernel = ninetoothed.make(arrangement, application, tensors)
    z, w = torch.arange(3, dtype=torch.int32), torch.arange(2, dtype=torch.int32)
    with pytest.raises(ArgumentError, match=r"3 in dimension 0 of `z` and 2 in dimension 0 of `w`"):
        kernel(torch.ones(3, 3), z, w, torch.zeros(3))
    y = torch.zeros(3)
    kernel(torch.ones(3, 3), z, z, y)
    assert y.tolist() == [1, 1, 1]
