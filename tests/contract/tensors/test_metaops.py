"""LANGUAGE.md, "Meta-operations": one test a row, and one a sentence around the table.

The property test of random chains is ``tests/tensors/test_metaops_property.py``; each error has its
test in ``tests/tensors/test_metaops.py``.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError
from tests.contract.kernels import arange, empty


def tensor(*shape):
    return Tensor(shape=shape)


def assert_elements(arranged, expected):
    np.testing.assert_array_equal(arranged.eval(), expected)


def data(*shape):
    return np.arange(math.prod(shape)).reshape(shape)


def test_each_returns_a_new_tensor_and_changes_not_its_operand():
    """each returns a new tensor; none moves data; none changes its operand"""
    x = tensor(4, 1)
    results = [
        x.tile((2, 1)),
        x.expand((-1, 3)),
        x.squeeze(1),
        x.unsqueeze(0),
        x.permute((1, 0)),
        x.flatten(),
        x.ravel(),
        x.pad(((1, 1), (0, 0))),
        x[1:],
    ]

    assert all(result is not x and result.source is x for result in results)
    assert x.shape == (4, 1)
    assert_elements(x, data(4, 1))


def test_they_act_on_the_outermost_level_and_reach_inner_ones_through_dtype():
    """They act on the outermost level; the inner ones are reached through `.dtype`."""
    x = tensor(4, 6).tile((1, 3))
    outer = x.permute((1, 0))
    assert (outer.shape, outer.dtype.shape) == ((2, 4), (1, 3))

    x.dtype = x.dtype.permute((1, 0))
    assert (x.shape, x.dtype.shape) == ((4, 2), (3, 1))
    assert_elements(x, data(4, 2, 3, 1))


def test_negative_dimensions_count_from_the_end():
    assert tensor(2, 1).squeeze(-1).shape == (2,)
    assert tensor(2, 3).unsqueeze(-1).shape == (2, 3, 1)
    assert tensor(2, 3, 4).permute((-1, -3, -2)).shape == (4, 2, 3)
    assert tensor(2, 3, 4).flatten(start_dim=-2).shape == (2, 12)
    assert tensor(2, 3, 4).flatten(end_dim=-1).shape == (6, 4)


def test_sizes_strides_dilations_and_paddings_may_be_symbols():
    """Sizes, tile sizes, strides, dilations and paddings may be Symbols and expressions of them"""
    size, stride, gap, edge = (Symbol(name, constexpr=True) for name in "TSDP")
    values = {size: 1, stride: 2, gap: 2, edge: 1}
    arranged = tensor(5).pad(((edge, edge - 1),)).tile((size + 1,), (stride,), (gap,))

    assert_elements(arranged.subs(values), [[-1, 1], [1, 3], [3, -1]])
    expanded = tensor(1).expand((size * 2,))
    assert_elements(expanded.subs(values), [0, 0])


def test_other_tensors_sizes_may_be_among_them():
    """other tensors' sizes included (`query.shape[-3] // key.shape[-3]`)"""
    query, key = Tensor(4), Tensor(4)
    arranged = key.unsqueeze(2).expand((-1, -1, query.shape[-3] // key.shape[-3], -1, -1))
    sizes = {query: {"shape": (1, 6, 1, 1)}, key: {"shape": (1, 3, 1, 1)}}

    np.testing.assert_array_equal(arranged.flatten(1, 3).eval(sizes).ravel(), [0, 0, 1, 1, 2, 2])


# The table.


def test_tile_makes_two_levels():
    """two levels: the outer counts tiles, the inner is one tile"""
    x = tensor(4, 6).tile((2, 3))

    assert (x.shape, x.dtype.shape) == ((2, 2), (2, 3))
    assert_elements(x, data(4, 6).reshape(2, 2, 2, 3).transpose(0, 2, 1, 3))


def test_minus_one_in_a_tile_shape_is_the_whole_dimension():
    assert_elements(tensor(2, 3).tile((1, -1)), data(2, 3).reshape(2, 1, 1, 3))


def test_minus_one_in_strides_is_the_tile_size_the_default():
    assert_elements(tensor(6).tile((2,), strides=(-1,)), data(3, 2))
    assert_elements(tensor(6).tile((2,)), data(3, 2))


def test_strides_and_dilation():
    assert_elements(tensor(6).tile((2,), strides=(1,), dilation=(4,)), [[0, 4], [1, 5]])


@pytest.mark.parametrize("floor_mode", [False, True])
@pytest.mark.parametrize("size", range(1, 12))
def test_the_outer_size(size, floor_mode):
    """`ceil((size − dilation·(tile−1) − 1) / stride) + 1`, floor instead of ceil with `floor_mode`"""
    rounded = math.floor if floor_mode else math.ceil
    for tile in range(1, 5):
        for stride in range(1, 4):
            for dilation in range(1, 3):
                arranged = tensor(size).tile((tile,), (stride,), (dilation,), floor_mode)
                count = rounded((size - dilation * (tile - 1) - 1) / stride) + 1
                assert arranged.shape == (max(count, 0),)


def test_expand_repeats_singleton_dimensions_and_minus_one_keeps_one():
    assert_elements(tensor(1, 3).expand((2, -1)), [[0, 1, 2], [0, 1, 2]])


def test_squeeze_removes_one_or_several():
    assert_elements(tensor(1, 3, 1).squeeze(0), [[0], [1], [2]])
    assert_elements(tensor(1, 3, 1).squeeze((0, 2)), [0, 1, 2])


def test_unsqueeze_inserts_one():
    assert_elements(tensor(3).unsqueeze(0), [[0, 1, 2]])


def test_permute_reorders():
    assert_elements(tensor(2, 3).permute((1, 0)), data(2, 3).T)


def test_flatten_merges_dimensions_with_an_exclusive_end():
    """merges dimensions of one level (`end_dim` exclusive)"""
    assert_elements(tensor(2, 3, 4).flatten(), data(24))
    assert_elements(tensor(2, 3, 4).flatten(start_dim=1), data(2, 12))
    assert_elements(tensor(2, 3, 4).flatten(end_dim=2), data(6, 4))
    nested = tensor(4, 6).tile((2, 3)).flatten()
    assert (nested.shape, nested.dtype.shape) == ((4,), (2, 3))


def test_two_negative_numbers_of_tiles_are_not_multiplied():
    """ceil((size − dilation·(tile−1) − 1) / stride) + 1"""

    def arrangement(x, y):
        return tuple(t.tile((3, 3), strides=(1, 1)).flatten() for t in (x, y))

    def application(x, y):
        y = x  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    with pytest.raises(ArrangementError, match="a size of -1 in dimension 0.*No tile fits"):
        kernel(arange(1, 1), empty(1, 1))


def test_windows_that_do_not_fit_make_no_program():
    """An empty grid launches nothing."""

    def arrangement(x, y):
        return tuple(t.tile((3, 3), strides=(1, 1)).flatten() for t in (x, y))

    def application(x, y):
        y = x  # noqa: F841

    y = empty(1, 4)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(arange(1, 4), y)
    assert (y == empty(1, 4)).all()


def test_ravel_merges_all_levels_outermost_first():
    raveled = tensor(4, 6).tile((2, 3)).ravel()

    assert raveled.shape == (2, 2, 2, 3)
    assert_elements(raveled, tensor(4, 6).tile((2, 3)).eval())


def test_pad_adds_positions():
    """`((left, right), …)`"""
    assert_elements(tensor(1, 2).pad(((0, 1), (1, 0))), [[-1, 0, 1], [-1, -1, -1]])


def test_padded_positions_read_as_other_and_stores_there_are_dropped():
    """padded positions read as `other`, stores there are dropped"""

    def arrangement(x, y):
        return x.pad(((2, 2),)).tile((4,)), y.tile((4,))

    def read(x, y):
        y = x  # noqa: F841

    x, y = arange(3), empty(7)
    ninetoothed.make(arrangement, read, (Tensor(1, other=5), Tensor(1)))(x, y)
    assert y.tolist() == [5, 5, 1, 2, 3, 5, 5]

    def write(x, y):
        x = y  # noqa: F841

    beside = empty(9)
    ninetoothed.make(arrangement, write, (Tensor(1), Tensor(1)))(beside[3:6], arange(7))
    assert beside.tolist() == [-99, -99, -99, 3, 4, 5, -99, -99, -99]


@pytest.mark.parametrize(
    "key",
    [
        0,
        (1, 2),
        (-1, slice(None)),
        (slice(None), slice(None, None, -1)),
        (slice(3, 0, -2), slice(1, None, 3)),
        (None, slice(1, 3)),
        (..., None, 0),
        (slice(None), ..., slice(-2, None)),
    ],
    ids=str,
)
def test_subscripts(key):
    """ints, slices with any step, `None`, one `...`"""
    assert_elements(tensor(4, 6)[key], data(4, 6)[key])


# Around the table.


@pytest.mark.parametrize(
    "key",
    [slice(None, sys.maxsize), slice(1, 2**70, 3), slice(2**70, None, -2), slice(2**70, None)],
    ids=str,
)
def test_slices_are_clamped_as_in_python(key):
    """slices with any step"""

    def application(x, y):
        y = x  # noqa: F841

    expected = data(5)[key]
    for x in (Tensor(1), tensor(5)):
        y = empty(len(expected))
        kernel = ninetoothed.make(
            lambda x, y: (x[key].tile((2,)), y.tile((2,))), application, (x, Tensor(1))
        )
        kernel(arange(5) - 1, y)
        np.testing.assert_array_equal(y.cpu(), expected)


def test_eval_gives_source_indices_shaped_by_the_levels():
    """a NumPy array of source indices, `-1` where out of bounds, shaped (outermost…, next level…, …)"""
    x = Tensor(2)
    arranged = x.tile((1, 2)).tile((1, -1))

    found = arranged.eval({x: {"shape": (2, 3)}})
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 1, 1, 2, 1, 2)
    assert found.reshape(2, 2, 2).tolist() == [[[0, 1], [2, -1]], [[3, 4], [5, -1]]]


def test_subs_gives_a_tensor_with_symbols_replaced():
    """`subs` maps a `Tensor` to `{"shape": …}` or a `Tensor`, and a `Symbol` to an int."""
    block = Symbol("B", constexpr=True)
    x = Tensor(1)
    for given in ({"shape": (6,)}, Tensor(shape=(6,))):
        replaced = x.tile((block,)).subs({x: given, block: 4})
        assert isinstance(replaced, Tensor)
        assert (replaced.shape, replaced.dtype.shape) == ((2,), (4,))


def test_the_functions_are_the_same():
    """`ninetoothed.eval(t, subs)` and `ninetoothed.subs(t, subs)` are the same."""
    x = Tensor(1)
    arranged, values = x.tile((2,)), {x: {"shape": (3,)}}

    np.testing.assert_array_equal(ninetoothed.eval(arranged, values), arranged.eval(values))
    assert ninetoothed.subs(arranged, values).shape == arranged.subs(values).shape == (2,)


@pytest.mark.parametrize(
    ("operate", "operation", "got", "needs"),
    [
        (lambda x: x.tile((2,)), "tile", "1 entries", "2 dimensions"),
        (lambda x: x.tile((1, 1), strides=(0, 1)), "tile", "a stride of 0", "at least 1"),
        (lambda x: x.permute((0, 0)), "permute", "(0, 0)", "once"),
        (lambda x: x.squeeze(1), "squeeze", "size is 3", "size 1"),
        (lambda x: x.expand((-1, 5)), "expand", "size is 3", "size of 1"),
        (lambda x: x.unsqueeze(5), "unsqueeze", "dimension 5", "from -3 to 2"),
        (lambda x: x.flatten(2), "flatten", "dimension 2", "from -2 to 1"),
        (lambda x: x.pad(((0, 0), (-1, 0))), "pad", "-1", "at least 0"),
        (lambda x: x[2], "[...]", "index 2", "inside"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_say_which_tensor_which_operation_what_it_got_what_it_needs(
    operate, operation, got, needs
):
    """Every meta-operation checks its arguments … and says which tensor, which operation, …"""
    with pytest.raises(ArrangementError) as caught:
        operate(Tensor(shape=(2, 3), name="weights"))

    message = caught.value.message
    assert message.startswith(f"`{operation}` on `weights` of shape (2, 3) got ")
    before, after = message.split("; it needs ")
    assert got in before
    assert needs in after


def assigned(x, size):
    x.shape = (size,)
    return x


@pytest.mark.parametrize(
    "operate",
    [
        lambda x, size: x.tile((1,)).expand((size,)),
        lambda x, size: x.tile((1,)).expand((2 * size,)),
        lambda x, size: assigned(x.tile((1,)), size),
    ],
    ids=["expand", "an expression", "shape"],
)
def test_a_size_that_a_constant_makes_negative_is_refused(operate):
    """Every meta-operation checks its arguments; of an int -1 keeps a dimension, of a Symbol it does not."""
    size = Symbol("S", constexpr=True)

    def application(x, y):
        y = x  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (operate(x, size), operate(y, size)), application, (Tensor(1), Tensor(1))
    )
    with pytest.raises(
        ArrangementError, match="got .*-[12].* dimension 0; it needs a size of .* 0"
    ):
        kernel(arange(1), empty(1), S=-1)
    with pytest.raises(ArrangementError, match="got a size of -1 in dimension 0; it needs"):
        assigned(Tensor(1).tile((1,)), -1)

    y = empty(1)
    kernel(arange(1) + 4, y, S=1)
    assert y.tolist() == [5]


def test_as_many_as_no_window_fits_is_none():
    """where a window is longer than what it goes over there is none, and as often is expanded"""

    def arrangement(x, z, y):
        windows = x.tile((5,), strides=(1,), floor_mode=True)
        return windows, z.tile((1,)).expand((windows.shape[0],)), y.tile((1,))

    def application(x, z, y):
        y = ntl.sum(x) * z  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    for size, count in ((2, 0), (6, 2)):
        y = empty(count)
        kernel(arange(size), arange(1), y)
        assert y.tolist() == [15, 20][:count]
