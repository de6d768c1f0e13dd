"""`eval` and `subs`: the elements of an arrangement once its sizes are known."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ArrangementError

B = Symbol("B", constexpr=True)


def test_an_unarranged_tensor_is_its_own_numbering():
    np.testing.assert_array_equal(Tensor(shape=(2, 3)).eval(), [[0, 1, 2], [3, 4, 5]])
    assert Tensor(shape=()).eval() == 0
    assert Tensor(shape=(0, 3)).eval().shape == (0, 3)


def test_gives_int64():
    assert Tensor(shape=(2,)).eval().dtype == np.int64


def test_is_shaped_by_the_levels_outermost_first():
    tiles = Tensor(shape=(4, 6)).tile((2, 3)).tile((1, -1))

    assert tiles.eval().shape == (2, 1, 1, 2, 2, 3)


def test_out_of_bounds_is_minus_one():
    np.testing.assert_array_equal(Tensor(shape=(3,)).tile((2,)).eval(), [[0, 1], [2, -1]])
    np.testing.assert_array_equal(Tensor(shape=(2,)).pad(((1, 2),)).eval(), [-1, 0, 1, -1, -1])


def test_a_tile_of_tiles_beyond_the_last_one_is_out_of_bounds():
    tiles = Tensor(shape=(5,)).tile((2,)).tile((2,))

    np.testing.assert_array_equal(tiles.eval(), [[[0, 1], [2, 3]], [[4, -1], [-1, -1]]])


def test_padding_is_not_read_by_what_lies_beside_it():
    """A padded column does not continue in the next row."""
    tiles = Tensor(shape=(2, 2)).pad(((0, 0), (0, 1))).flatten().tile((3,))

    np.testing.assert_array_equal(tiles.eval(), [[0, 1, -1], [2, 3, -1]])


def test_sizes_and_symbols_are_substituted():
    x = Tensor(1)
    tiles = x.tile((B,))

    np.testing.assert_array_equal(tiles.eval({x: {"shape": (3,)}, B: 2}), [[0, 1], [2, -1]])
    np.testing.assert_array_equal(tiles.eval({x: Tensor(shape=(2,)), B: 2}), [[0, 1]])


def test_a_tuned_size_may_be_given_any_value():
    x, block = Tensor(1), block_size()

    np.testing.assert_array_equal(x.tile((block,)).eval({x: {"shape": (2,)}, block: 1}), [[0], [1]])


def test_a_tuned_size_may_be_small_where_the_shape_was_known_before():
    block = block_size()

    assert Tensor(shape=(5,)).tile((block,)).eval({block: 2}).shape == (3, 2)


def test_other_tensors_sizes_are_substituted_too():
    x, y = Tensor(2), Tensor(1)
    expanded = y.tile((2,)).unsqueeze(0).expand((x.shape[0], -1))

    assert expanded.eval({x: {"shape": (3, 9)}, y: {"shape": (4,)}}).shape == (3, 2, 2)


def test_the_functions_of_the_package_are_the_same():
    x = Tensor(1)
    tiles, values = x.tile((B,)), {x: {"shape": (3,)}, B: 2}

    np.testing.assert_array_equal(ninetoothed.eval(tiles, values), tiles.eval(values))
    np.testing.assert_array_equal(
        ninetoothed.eval(ninetoothed.subs(tiles, values)), tiles.eval(values)
    )


def test_subs_gives_a_tensor_with_symbols_replaced():
    x = Tensor(2, name="x", other=1.0, dtype=ninetoothed.float16)
    tiles = x.tile((1, B))
    replaced = tiles.subs({B: 4})

    assert str(replaced.shape) == "(x_size_0, (x_size_1 + 3) // 4)"
    assert replaced.dtype.shape == (1, 4)
    assert replaced.source.name == "x"
    assert replaced.source.other == 1.0
    assert replaced.levels[-1].dtype is ninetoothed.float16
    assert "B" in str(tiles.shape)


def test_subs_may_leave_and_rename_symbols():
    c = Symbol("C", constexpr=True)
    x = Tensor(1, name="x")
    replaced = x.tile((B,)).subs({B: c * 2})

    assert replaced.dtype.shape == (c * 2,)
    assert str(replaced.subs({c: 3}).dtype.shape) == "(6,)"


def test_subs_in_steps_is_subs_at_once():
    x = Tensor(2)
    tiles = x.tile((B, -1)).permute((1, 0)).flatten()
    at_once = tiles.eval({x: {"shape": (5, 3)}, B: 2})

    in_steps = tiles.subs({B: 2})
    np.testing.assert_array_equal(in_steps.eval({in_steps: {"shape": (5, 3)}}), at_once)


@pytest.mark.parametrize("step", [2**70, -(2**70)])
def test_a_step_beyond_all_tensors_takes_one_element(step):
    x = Tensor(1)

    np.testing.assert_array_equal(x[::step].eval({x: {"shape": (5,)}}), np.arange(5)[::step])


def test_an_index_beyond_is_told_as_it_was_given():
    x = Tensor(1)
    given = {x: {"shape": (3,)}}

    with pytest.raises(ArrangementError, match="got index -1; it needs an index from 0 to 2"):
        x[B].eval({**given, B: -1})
    with pytest.raises(ArrangementError, match="got index -4; it needs an index from -3 to 2"):
        x[-4].eval(given)


def test_a_shape_that_was_assigned_is_kept():
    x = Tensor(shape=(8,)).tile((2,))
    x.shape = (2,)

    np.testing.assert_array_equal(x.eval(), [[0, 1], [2, 3]])
    np.testing.assert_array_equal(x.subs({B: 2}).eval(), [[0, 1], [2, 3]])


def test_jagged_tensors_count_the_longest_sequence():
    x = Tensor(shape=(2, None), jagged_dim=1)
    replaced = x.tile((1, 2)).subs({x: {"shape": (2, 3)}})

    assert replaced.shape == (2, 2)
    assert replaced.source.jagged_dim == 1
    np.testing.assert_array_equal(
        replaced.ravel().eval(), [[[[0, 1]], [[2, -1]]], [[[3, 4]], [[5, -1]]]]
    )


X = Tensor(shape=(None, 4), name="x")


@pytest.mark.parametrize(
    ("operate", "words"),
    [
        (lambda: X.tile((B, 1)).eval(), "B, x_size_0 must be known.*t.eval"),
        (lambda: X.tile((B, 1)).eval({X: {"shape": (3, 4)}}), "B must be known"),
        (lambda: X.eval({X: {"shape": (3,)}}), r"shape \(3,\).*2 dimensions"),
        (lambda: X.eval({X: {"shape": (3, 5)}}), r"\(3, 5\).*dimension 1 is 4"),
        (lambda: X.eval({X: {"size": (3, 4)}}), "needs.*shape.*size"),
        (lambda: X.eval({X: 3}), "needs.*shape.*3"),
        (lambda: X.eval({"x": 3}), "'x' is neither"),
        (lambda: X.eval({B + 1: 3}), "B \\+ 1 is neither"),
        (lambda: X.eval({B: 2.5}), "2.5 for `B`"),
        (lambda: X.tile((B, 1)).eval({B: 0}), "0 for `B`.*bounds of 1 to"),
        (lambda: X.eval({X: {"shape": (-1, 4)}}), "-1 for `x_size_0`.*bounds of 0"),
    ],
)
def test_what_cannot_be_substituted_is_an_error(operate, words):
    with pytest.raises(ArrangementError, match=words) as caught:
        operate()

    assert caught.value.location.file == __file__


def test_substituting_a_shape_changes_no_number_that_happens_to_be_equal():
    x = Tensor(shape=(4,))
    y = Tensor(shape=(None,))

    assert y.tile((4,)).subs({x: {"shape": (4,)}, y: {"shape": (8,)}}).dtype.shape == (4,)
