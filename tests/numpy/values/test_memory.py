"""Raw memory as NumPy arrays, with bounds."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ninetoothed.backends.numpy.values.memory import Memory, element_indices, reach
from ninetoothed.errors import OutOfBoundsError
from ninetoothed.language import dtypes


def memory_of(view):
    strides = [stride // view.itemsize for stride in view.strides]
    return Memory("x", view.ctypes.data, view.shape, strides, dtypes.element_type(view.dtype))


VIEWS = {
    "whole": lambda base: base,
    "transposed": lambda base: base.T,
    "sliced": lambda base: base[1:, ::2],
    "reversed": lambda base: base[::-1, ::-3],
    "repeated": lambda base: np.broadcast_to(base[:, :1], (4, 5)),
    "scalar": lambda base: base[2, 3],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("name", dtypes.NAMES)
def test_every_element_of_a_view_is_found(view, name):
    dtype = dtypes.by_name(name)
    base = np.arange(24).reshape(4, 6) % 2 if name == "bool" else np.arange(24).reshape(4, 6)
    base = base.astype(dtype.numpy)
    array = np.asarray(view(base)) if view is not VIEWS["scalar"] else base[2:3, 3:4].reshape(())
    memory = memory_of(array)
    offsets = element_indices(memory.shape, memory.strides)
    np.testing.assert_array_equal(memory.array[memory.locate(offsets, None, "load")], array)


def test_a_store_is_seen_by_the_owner():
    base = np.zeros(6, ml_dtypes.bfloat16)
    memory = memory_of(base[1::2])
    memory.array[memory.locate(np.array([2, 4]), None, "store")] = 1.5
    assert base.astype(float).tolist() == [0, 0, 0, 1.5, 0, 1.5]


def test_a_tensor_without_elements_has_no_memory_to_touch():
    memory = Memory("x", 0, (3, 0), (1, 1), dtypes.float32)
    assert memory.array.size == 0
    with pytest.raises(OutOfBoundsError):
        memory.locate(np.array([0]), None, "load")


@pytest.mark.parametrize("offset", [-1, 6])
def test_an_offset_outside_is_an_error_that_says_what_is_inside(offset):
    memory = memory_of(np.zeros((2, 3)))
    with pytest.raises(OutOfBoundsError, match=rf"store leaves `x`: offset {offset}.*0 to 5"):
        memory.locate(np.array([0, offset]), None, "store")


def test_masked_lanes_may_lie_outside():
    memory = memory_of(np.zeros(3))
    located = memory.locate(np.array([2, 3]), np.array([True, False]), "load")
    assert located[0] == 2


def test_an_index_is_told_of_an_element():
    memory = memory_of(np.zeros((4, 6))[::-1, 1:3])
    flat = memory.locate(np.array([-6 * 2 + 1]), None, "load")[0]
    assert memory.index_of(int(flat)) == (2, 1)
    assert memory.index_of(int(flat) + 1) is None


def test_the_reach_of_strides_of_both_signs():
    assert reach((2, 3), (-10, 2)) == (-10, 5)
    assert reach((), ()) == (0, 1)
    assert reach((0, 3), (3, 1)) == (0, 0)
