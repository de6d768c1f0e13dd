"""Symbolic tensors: how they are made, print, and are rearranged level by level."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError
from ninetoothed.language import dtypes
from ninetoothed.tensors.level import owner_of


def texts(values):
    return tuple(map(str, values))


def test_sizes_and_strides_print_with_the_tensors_name():
    x = Tensor(2, name="x")

    assert str(x.shape) == "(x_size_0, x_size_1)"
    assert str(x.strides) == "(x_stride_0, x_stride_1)"
    assert x.ndim == 2
    assert x.name == "x"


def test_a_size_knows_its_tensor():
    x = Tensor(2, name="x")

    assert owner_of(x.shape[1]) is x
    assert owner_of(x.strides[0]) is x
    assert owner_of(Symbol("n")) is None
    assert owner_of(x.shape[0] + 1) is None


def test_shape_entries_are_ints_symbols_or_none():
    n = Symbol("n", constexpr=True)
    x = Tensor(shape=(None, 64, n, n * 2), name="x")

    assert texts(x.shape) == ("x_size_0", "64", "n", "n * 2")
    assert type(x.shape[1]) is int
    assert type(Tensor(shape=(np.int64(3),)).shape[0]) is int


@pytest.mark.parametrize(
    ("options", "dim", "constexpr", "bounds"),
    [
        (None, 0, False, (None, None)),
        ({"constexpr": True}, 1, True, (None, None)),
        ((None, {"constexpr": True}), 0, False, (None, None)),
        ((None, {"constexpr": True}), 1, True, (None, None)),
        (({"lower_bound": 2, "upper_bound": 8}, None), 0, False, (2, 8)),
        ({"constexpr": True, "upper_bound": 8}, 0, True, (None, 8)),
    ],
)
def test_shape_options_are_the_sizes_keywords(options, dim, constexpr, bounds):
    size = Tensor(2, shape_options=options).shape[dim]

    assert size.constexpr is constexpr
    assert (size.lower_bound, size.upper_bound) == bounds


def test_shape_options_pass_over_sizes_that_are_given():
    n = Symbol("n", constexpr=True)
    x = Tensor(shape=(n, None, 4), shape_options={"constexpr": True, "upper_bound": 16})

    assert x.shape[0] is n
    assert x.shape[1].constexpr and x.shape[1].upper_bound == 16
    assert x.shape[2] == 4


@pytest.mark.parametrize(
    ("given", "element"),
    [
        (None, None),
        (ninetoothed.float16, dtypes.float16),
        (ninetoothed.bool, dtypes.bool),
        (ninetoothed.float8_e4m3, dtypes.float8_e4m3),
        (int, dtypes.int64),
        (float, dtypes.float64),
        (bool, dtypes.bool),
    ],
)
def test_dtype_is_an_element_type_or_whatever_is_given(given, element):
    assert Tensor(1, dtype=given).dtype is element


def test_defaults():
    x = Tensor(1)

    assert x.dtype is None
    assert x.other is None
    assert x.jagged_dim is None
    assert x.value is None and not x.has_default
    assert x.constexpr is False
    assert x.source is x
    assert x.levels == (x,)


def test_keeps_what_it_is_told():
    x = Tensor(2, other=float("-inf"), jagged_dim=-1)
    causal = Tensor(0, constexpr=True, value=False)

    assert x.other == float("-inf")
    assert x.jagged_dim == 1
    assert causal.constexpr and causal.has_default and causal.value is False
    assert Tensor(0, constexpr=True, value=None).has_default


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({}, "needs `ndim` or `shape`"),
        ({"ndim": 2, "shape": (1,)}, "ndim=2.*1 dimension"),
        ({"ndim": -1}, "-1"),
        ({"ndim": "2"}, "'2'"),
        ({"ndim": True}, "True"),
        ({"shape": (1.5,)}, "1.5"),
        ({"shape": (-1,)}, "-1"),
        ({"shape": (None, "n")}, "'n'"),
        ({"ndim": 2, "jagged_dim": 2}, "jagged_dim.*2 dimensions.*-2 to 1"),
        ({"ndim": 2, "jagged_dim": "1"}, "jagged_dim.*an int"),
        ({"ndim": 1, "constexpr": True}, "constexpr.*shape_options"),
        ({"ndim": 0, "value": 3}, "value.*constexpr=True"),
        ({"ndim": 2, "shape_options": (None,)}, "shape_options.*1 entries for 2"),
        ({"ndim": 1, "shape_options": {"costexpr": True}}, "shape_options.*costexpr"),
        ({"ndim": 1, "shape_options": {"lower_bound": 3, "upper_bound": 2}}, "3 to 2"),
    ],
    ids=str,
)
def test_what_is_no_tensor_is_an_error(keywords, words):
    with pytest.raises(ArrangementError, match=words) as caught:
        Tensor(**keywords)

    assert caught.value.location.file == __file__


def test_prints_its_levels():
    x = Tensor(shape=(4, 6), name="x")

    assert repr(x) == "Tensor(x: (4, 6))"
    assert repr(x.tile((2, 3))) == "Tensor(x: (2, 2) of (2, 3))"
    assert repr(Tensor(shape=(4,))) == "Tensor((4,))"


def test_dtype_is_the_inner_level_where_there_is_one():
    x = Tensor(2, dtype=ninetoothed.float16).tile((2, 3)).tile((1, -1))

    assert x.dtype.shape[0] == 1
    assert x.dtype.dtype.shape == (2, 3)
    assert x.dtype.dtype.dtype is ninetoothed.float16
    assert len(x.levels) == 3
    assert x.levels[-1].dtype is ninetoothed.float16


def test_source_and_strides_are_the_first_tensors():
    x = Tensor(2, name="x")
    arranged = x.tile((2, 3)).permute((1, 0))

    assert arranged.source is x
    assert arranged.dtype.source is x
    assert arranged.strides is x.strides


def test_an_inner_level_may_be_assigned():
    x = Tensor(shape=(4, 6)).tile((1, 3))
    x.dtype = x.dtype.squeeze(0)

    assert x.shape == (4, 2)
    assert x.dtype.shape == (3,)


def test_the_innermost_of_three_levels_may_be_assigned():
    x = Tensor(shape=(4, 6)).tile((1, 3)).tile((1, -1))
    x.dtype = x.dtype.squeeze(0)
    x.dtype.dtype = x.dtype.dtype.squeeze(0)

    assert [level.shape for level in x.levels] == [(4, 1), (2,), (3,)]


def test_assigning_an_inner_level_changes_no_other_tensor():
    tiled = Tensor(shape=(4, 6)).tile((1, 3))
    expanded = tiled.unsqueeze(0)
    expanded.dtype = expanded.dtype.squeeze(0)

    assert expanded.dtype.shape == (3,)
    assert tiled.dtype.shape == (1, 3)


def test_assigning_the_innermost_level_changes_no_other_tensor():
    tiled = Tensor(shape=(4, 6)).tile((1, 3)).tile((1, -1))
    flat = tiled.flatten()
    flat.dtype.dtype = flat.dtype.dtype.squeeze(0)

    assert flat.dtype.dtype.shape == (3,)
    assert tiled.dtype.dtype.shape == (1, 3)


def test_the_element_type_of_the_innermost_level_may_be_assigned():
    x = Tensor(shape=(4,)).tile((2,))
    x.dtype.dtype = ninetoothed.float32

    assert x.levels[-1].dtype is ninetoothed.float32


def test_a_shape_may_be_assigned():
    n = Symbol("n", constexpr=True)
    x = Tensor(2).tile((1, -1))
    x.shape = (n + n, 1)

    assert texts(x.shape) == ("n * 2", "1")


@pytest.mark.parametrize("shape", [(1,), (1, "n"), (1, 2, 3)])
def test_a_shape_of_another_rank_or_kind_may_not_be_assigned(shape):
    x = Tensor(2, name="x").tile((1, -1))

    with pytest.raises(ArrangementError, match="keeps its 2 dimensions"):
        x.shape = shape


def test_does_not_pretend_to_be_a_sequence():
    x = Tensor(2)

    with pytest.raises(TypeError, match="cannot be iterated"):
        iter(x)
    with pytest.raises(TypeError, match=r"\.shape\[0\]"):
        len(x)
    assert bool(x)


def test_an_unused_tensor_is_forgotten_although_its_sizes_live_on():
    x = Tensor(1)
    size, reference = x.shape[0] + 1, weakref.ref(x)
    del x
    gc.collect()

    assert reference() is None
    assert owner_of(next(size.leaves())) is None
