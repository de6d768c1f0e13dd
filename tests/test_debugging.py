"""What an arrangement gives to which program, with no device; and the debug mode's door."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import ninetoothed
from examples import mm
from ninetoothed import Symbol, Tensor, debugging
from ninetoothed.errors import ArrangementError

B = Symbol("B", constexpr=True)


def arrangement(x, y, size=2):
    return x.tile((size,)), y.tile((size,))


def test_shows_the_elements_of_each_program():
    sources, targets = debugging.simulate_arrangement(
        arrangement, (Tensor(shape=(5,)), Tensor(shape=(6,)))
    )

    np.testing.assert_array_equal(sources[0], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(targets[0], [[0, 1], [2, 3], [4, -1]])
    np.testing.assert_array_equal(targets[1], [[0, 1], [2, 3], [4, 5]])


def test_levels_follow_each_other_outermost_first():
    tensors = [Tensor(shape=shape) for shape in ((4, 6), (6, 2), (4, 2))]
    blocks = {mm.BLOCK_SIZE_M: 2, mm.BLOCK_SIZE_N: 2, mm.BLOCK_SIZE_K: 3}
    simulation = debugging.simulate_arrangement(mm.arrangement, tensors, subs=blocks)

    assert [target.shape for target in simulation.targets] == [
        (2, 1, 2, 2, 3),
        (2, 1, 2, 3, 2),
        (2, 1, 2, 2),
    ]
    # Program (1, 0), second block of columns.
    np.testing.assert_array_equal(simulation.targets[0][1, 0, 1], [[15, 16, 17], [21, 22, 23]])
    np.testing.assert_array_equal(simulation.sources[2], np.arange(8).reshape(4, 2))


def test_sizes_and_symbols_may_come_as_substitutions():
    x, y = Tensor(1), Tensor(1)
    _, targets = debugging.simulate_arrangement(
        lambda x, y: arrangement(x, y, B), (x, y), {x: {"shape": (3,)}, y: Tensor(shape=(2,)), B: 2}
    )

    np.testing.assert_array_equal(targets[0], [[0, 1], [2, -1]])
    np.testing.assert_array_equal(targets[1], [[0, 1]])


@pytest.mark.parametrize("array", [np.zeros((2, 3)), pytest.param("torch", id="torch")])
def test_a_frameworks_tensor_stands_for_its_shape(array):
    if isinstance(array, str):
        array = pytest.importorskip("torch").zeros(2, 3)
    _, targets = debugging.simulate_arrangement(lambda x: x.tile((1, -1)), (array,))

    np.testing.assert_array_equal(targets[0], [[[[0, 1, 2]]], [[[3, 4, 5]]]])


def test_scalars_and_values_that_are_no_tensors_are_there_as_well():
    sources, targets = debugging.simulate_arrangement(
        lambda x, scale, causal: (x.tile((2,)), scale, causal),
        (Tensor(shape=(2,)), Tensor(0), True),
    )

    assert targets[1].shape == sources[1].shape == ()
    assert targets[2] is sources[2] is True


def test_a_size_that_is_not_known_is_an_error_that_names_it():
    with pytest.raises(ArrangementError, match="x_size_0 must be known"):
        debugging.simulate_arrangement(arrangement, (Tensor(1, name="x"), Tensor(shape=(3,))))


def test_the_debug_mode_is_here_too():
    from ninetoothed.backends.numpy.execution import checking

    assert not checking.is_on()
    with debugging.check():
        assert checking.is_on()
    assert not checking.is_on()


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="simulate_arrangment"):
        debugging.simulate_arrangment


def test_importing_it_loads_neither_numpy_nor_a_backend():
    code = (
        "import sys, ninetoothed.debugging;"
        "assert not {'numpy', 'torch', 'triton', 'ninetoothed.backends'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_is_reached_from_the_package():
    assert ninetoothed.debugging is debugging
