"""Where a program's tile lies in its source: indices, offsets, and only the needed conditions."""

from __future__ import annotations

import numpy as np
import pytest

from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ArrangementError
from ninetoothed.tensors.access import access_of, is_power_of_two, offset_of, positions

B = Symbol("B", constexpr=True)
BLOCK = block_size()


def texts(values):
    return [str(value) for value in values]


def test_a_tile_of_a_vector():
    access = access_of(Tensor(1, name="x").tile((BLOCK,)))

    assert texts(access.indices) == ["BLOCK_SIZE * program_0 + coordinate_0"]
    assert texts(access.conditions) == ["BLOCK_SIZE * program_0 + coordinate_0 < x_size_0"]
    assert str(access.offset) == "(BLOCK_SIZE * program_0 + coordinate_0) * x_stride_0"
    assert texts(access.programs) == ["program_0"]
    assert texts(access.coordinates) == ["coordinate_0"]
    assert access.selections == ()


def test_a_single_level_has_a_program_for_each_element():
    access = access_of(Tensor(2, name="x"))

    assert texts(access.indices) == ["program_0", "program_1"]
    assert access.coordinates == access.selections == access.conditions == ()


def test_middle_levels_are_selections_outermost_first():
    x = Tensor(2).tile((1, 2)).tile((1, 3)).tile((1, -1))
    access = access_of(x)

    assert texts(access.selections) == [
        "selection_0_0",
        "selection_0_1",
        "selection_1_0",
        "selection_1_1",
    ]
    assert len(access.coordinates) == 2


@pytest.mark.parametrize(
    ("tensor", "conditions"),
    [
        # Sizes that divide need no condition.
        (Tensor(shape=(8,)).tile((4,)), []),
        (Tensor(shape=(4, 8)).tile((1, -1)), []),
        (Tensor(shape=(4, 8)).tile((2, 4)).tile((1, -1)), []),
        # Sizes that do not divide need one.
        (Tensor(shape=(7,)).tile((4,)), ["coordinate_0 + program_0 * 4 < 7"]),
        # A lane beyond a tile that is no power of two is not the tile's.
        (Tensor(shape=(6,)).tile((3,)), ["coordinate_0 < 3"]),
        (Tensor(shape=(3,)).tile((-1,)), ["coordinate_0 < 3"]),
        (Tensor(shape=(7,)).tile((3,)), ["coordinate_0 < 3", "coordinate_0 + program_0 * 3 < 7"]),
        # A whole dimension of a size that is not known may be padded too.
        (Tensor(2, name="x").tile((1, -1)), ["coordinate_1 < x_size_1"]),
        # That a tile exists follows from its element's existing.
        (
            Tensor(1, name="x").tile((4,)).tile((2,)),
            ["coordinate_0 + program_0 * 8 + selection_0_0 * 4 < x_size_0"],
        ),
        # In floor mode the last tile is full.
        (Tensor(shape=(7,)).tile((2,), floor_mode=True), []),
        # Padding on the left needs a lower bound, on the right an upper one.
        (Tensor(shape=(4,)).pad(((1, 0),)).tile((1,)), ["program_0 - 1 >= 0"]),
        (Tensor(shape=(4,)).pad(((0, 2),)).tile((1,)), ["program_0 < 4"]),
    ],
    ids=str,
)
def test_only_what_is_needed_is_a_condition(tensor, conditions):
    assert sorted(texts(access_of(tensor).conditions)) == sorted(conditions)


def test_a_tile_shape_of_symbols_that_are_no_powers_of_two_has_a_condition_on_its_lanes():
    assert "coordinate_0 < B" in texts(access_of(Tensor(1).tile((B,))).conditions)
    promised = Symbol("B", constexpr=True, power_of_two=True)
    assert "coordinate_0 < B" in texts(access_of(Tensor(1).tile((promised,))).conditions)
    assert "coordinate_0 < B" not in texts(access_of(Tensor(1).tile((BLOCK,))).conditions)


def test_that_a_lane_lies_in_a_small_tile_is_not_taken_for_granted():
    """Symbols of one possible value are as good as numbers, and no better."""
    three = Symbol("B", constexpr=True, lower_bound=3, upper_bound=3)

    assert "coordinate_0 < B" in texts(access_of(Tensor(1).tile((three,))).conditions)


def test_programs_may_be_shared():
    x, y = Tensor(1).tile((4,)), Tensor(1).tile((2,))
    programs = positions("program", x.shape)

    assert access_of(x, programs).programs is access_of(y, programs).programs


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, True), (2, True), (3, False), (0, False), (64, True), (BLOCK, True), (B, False)]
    + [(Tensor(1).shape[0], False), (BLOCK * 2, False)],
)
def test_powers_of_two_are_known(size, expected):
    assert is_power_of_two(size) is expected


def test_the_offset_of_a_scalar_is_zero():
    assert offset_of(Tensor(0), ()) == 0


def test_a_jagged_tensor_is_addressed_through_its_sequences():
    access = access_of(Tensor(3, name="x", jagged_dim=1).tile((1, 4, -1)))

    assert "coordinate_1 + program_1 * 4 < sequence_length(program_0)" in " ".join(
        texts(access.conditions)
    ).replace("coordinate_0 + program_0", "program_0")
    # The sequence's number chooses its start; the offset has no part of a batch stride.
    assert "sequence_start" in str(access.offset)
    assert "x_stride_0" not in str(access.offset)
    assert not any("x_size_1" in condition for condition in texts(access.conditions))


def test_levels_that_do_not_belong_together_are_an_error():
    x = Tensor(2, name="x")
    tiled = x.tile((1, 4))
    tiled.dtype = x.tile((1, 4)).dtype

    with pytest.raises(ArrangementError, match="do not belong together.*t.dtype.squeeze"):
        access_of(tiled)


def test_a_level_of_another_tensor_is_an_error_where_it_is_assigned():
    x, y = (Tensor(2, name=name).tile((1, 4)) for name in "xy")

    with pytest.raises(
        ArrangementError, match="level of `x`.* cannot be.*t.dtype.squeeze"
    ) as error:
        x.dtype = y.dtype
    assert error.value.location is not None


def test_an_inner_level_from_before_the_tile_is_an_error():
    x = Tensor(2, name="x").tile((1, 4))
    tiled = x.tile((1, -1))
    tiled.dtype = x.dtype

    with pytest.raises(ArrangementError, match="do not belong together"):
        access_of(tiled)


def test_the_window_of_a_convolution_is_read_off_the_chain():
    """Unfolded rows: (batch, p, q) by (channel, r, s), as conv2d's implicit product has them."""
    x = Tensor(shape=(2, 3, 5, 6), name="x")
    windows = x.tile((1, 3, 3, 2), strides=(-1, -1, 1, 2), floor_mode=True).squeeze(1)
    windows.dtype = windows.dtype.squeeze(0)
    rows = windows.ravel().flatten(end_dim=3).flatten(start_dim=1)
    access = access_of(rows)
    row, column = np.indices((2 * 3 * 3, 3 * 3 * 2), sparse=True)
    values = {access.programs[0]: row, access.programs[1]: column}

    data = np.arange(2 * 3 * 5 * 6).reshape(2, 3, 5, 6)
    unfolded = np.lib.stride_tricks.sliding_window_view(data, (3, 2), axis=(2, 3))[:, :, :, ::2]
    expected = unfolded.transpose(0, 2, 3, 1, 4, 5).reshape(18, 18)
    found = data[tuple(index.evaluate(values) for index in access.indices)]
    np.testing.assert_array_equal(np.broadcast_to(found, (18, 18)), expected)
    assert access.conditions == ()
