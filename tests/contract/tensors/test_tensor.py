"""LANGUAGE.md, "Tensor"."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.symbols.simplify import simplify
from tests.contract.kernels import B, arange, empty, rows, run, tiles, vectors


def test_sizes_and_strides_print():
    """`Tensor(2, name="x").shape` prints `(x_size_0, x_size_1)`, `.strides` prints …"""
    x = Tensor(2, name="x")

    assert str(x.shape) == "(x_size_0, x_size_1)"
    assert str(x.strides) == "(x_stride_0, x_stride_1)"


def test_shape_entries_are_ints_symbols_or_none():
    """`shape` entries are ints, Symbols, or None for "symbolic"."""
    n = Symbol("n", constexpr=True)

    assert str(Tensor(shape=(4, n, None), name="x").shape) == "(4, n, x_size_2)"


def test_a_size_that_was_fixed_is_required_of_the_argument():
    def application(x, y):
        y = x  # noqa: F841

    kernel = ninetoothed.make(tiles, application, (Tensor(shape=(6,)), Tensor(1)))
    x, y = arange(6), empty(6)
    kernel(x, y, B=4)

    assert torch.equal(x, y)
    with pytest.raises(ArgumentError, match="`x` has size 7 in dimension 0"):
        kernel(arange(7), empty(7), B=4)


def test_a_symbol_may_stand_for_a_size():
    """The size is then found from the argument, and shared by all that are declared with it."""
    n = Symbol("n")

    def application(x, y):
        y = x + n  # noqa: F841

    kernel = ninetoothed.make(tiles, application, (Tensor(shape=(n,)), Tensor(shape=(n,))))
    y = empty(6)
    kernel(arange(6), y, B=4)

    assert torch.equal(y, arange(6) + 6)
    with pytest.raises(ArgumentError, match="`y` has size 5.*`n` is 6"):
        kernel(arange(6), empty(5), B=4)


def test_a_constexpr_symbol_that_stands_for_a_size_is_given_and_must_agree():
    n = Symbol("n", constexpr=True)

    def application(x, y):
        y = x + n  # noqa: F841

    kernel = ninetoothed.make(tiles, application, (Tensor(shape=(n,)), Tensor(1)))
    y = empty(6)
    kernel(arange(6), y, n=6, B=4)

    assert torch.equal(y, arange(6) + 6)
    with pytest.raises(ArgumentError, match="`x` has size 6.*`n` is 5"):
        kernel(arange(6), y, n=5, B=4)


def test_shape_options_are_one_dict_or_a_tuple_of_dicts_or_none():
    """each the keywords of that size's `Symbol`"""
    everywhere = Tensor(2, shape_options={"constexpr": True}).shape
    second = Tensor(2, shape_options=(None, {"constexpr": True, "upper_bound": 128})).shape

    assert [size.constexpr for size in everywhere] == [True, True]
    assert [size.constexpr for size in second] == [False, True]
    assert second[1].upper_bound == 128


def test_a_constexpr_size_is_a_compile_time_constant():
    def application(x, y):
        if x.shape[0] == 6:
            y = x  # noqa: F841
        else:
            y = x.undefined_in_this_branch  # noqa: F841

    tensors = (Tensor(1, shape_options={"constexpr": True}), Tensor(1))
    kernel = ninetoothed.make(lambda x, y: (x.tile((-1,)), y.tile((-1,))), application, tensors)
    y = empty(6)
    kernel(arange(6), y)

    assert torch.equal(y, arange(6))


def test_other_is_what_an_out_of_bounds_element_reads_as():
    """`other`: what an out-of-bounds element reads as"""

    def application(x, y):
        y = ntl.max(x)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y

    y = empty(2)
    ninetoothed.make(arrangement, application, (Tensor(1, other=1000), Tensor(1)))(arange(7), y)
    assert y.tolist() == [4, 1000]


def test_a_scalar_is_passed_by_value():
    """`Tensor(0)` is a scalar argument, passed by value."""

    def application(x, scale, offset, y):
        y = x * scale + offset  # noqa: F841

    y = run(application, arange(5), 2.5, 3, empty(5))
    assert torch.equal(y, arange(5) * 2.5 + 3)

    y = empty(5)
    kernel = ninetoothed.make(
        tiles, application, (Tensor(1), Tensor(0), Tensor(0, dtype=float), Tensor(1))
    )
    kernel(arange(5), torch.tensor(2.0), 1, y, B=4)
    assert torch.equal(y, arange(5) * 2 + 1)


@pytest.mark.parametrize("value", [True, 3, 2.5, "relu", None, (1, 2), ntl.float16], ids=str)
def test_a_constant_of_any_type_is_given_at_the_call(value):
    """`Tensor(0, constexpr=True)` is a compile-time constant of any type given at the call"""

    def application(x, constant, expected, y):
        if constant == expected:
            y = x + 1  # noqa: F841
        else:
            y = x  # noqa: F841

    kernel = ninetoothed.make(
        tiles,
        application,
        (Tensor(1), Tensor(0, constexpr=True), Tensor(0, constexpr=True), Tensor(1)),
    )
    y = empty(5)
    kernel(arange(5), value, value, y, B=4)
    assert torch.equal(y, arange(5) + 1)
    kernel(arange(5), value, "another", y, B=4)
    assert torch.equal(y, arange(5))


def doubled_if(constant, position):
    """A kernel that doubles where the constant holds; the constant at a position of three."""

    def arrangement(*tensors):
        return tiles(*tensors)

    if position == 2:

        def application(x, y, doubles):
            y = x * 2 if doubles else x  # noqa: F841

    else:

        def application(doubles, x, y):
            y = x * 2 if doubles else x  # noqa: F841

    tensors = [Tensor(1), Tensor(1)]
    tensors.insert(position, constant)
    return ninetoothed.make(arrangement, application, tuple(tensors))


def test_value_is_the_default_when_the_argument_is_omitted():
    """`value=` is its default, used when the argument is omitted too"""
    x, y = arange(5), empty(5)
    last = doubled_if(Tensor(0, constexpr=True, value=True), 2)
    last(x, y, B=4)
    assert torch.equal(y, x * 2)
    last(x, y, False, 4)
    assert torch.equal(y, x)
    last(x, y, doubles=False, B=4)
    assert torch.equal(y, x)

    first = doubled_if(Tensor(0, constexpr=True, value=True), 0)
    first(x, y, B=4)
    assert torch.equal(y, x * 2)
    first(False, x, y, B=4)
    assert torch.equal(y, x)


def test_a_constant_without_a_default_must_be_given():
    with pytest.raises(ArgumentError, match="missing: doubles"):
        doubled_if(Tensor(0, constexpr=True), 2)(arange(5), empty(5), B=4)


# Element types and attributes.


@pytest.mark.parametrize("dtype", [ninetoothed.float16, float, int, bool, None], ids=str)
def test_dtype_takes(dtype):
    """`dtype` takes our element types, Python's `int`, `float`, `bool`, or None"""
    Tensor(1, dtype=dtype)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.int64, torch.int8, torch.bfloat16], ids=str
)
def test_none_is_whatever_is_given(dtype):
    """None for "whatever is given"."""

    def application(x, y):
        y = x + x  # noqa: F841

    kernel = ninetoothed.make(tiles, application, vectors(2))
    for size in (5, 6):
        y = empty(size, dtype=dtype)
        kernel(arange(size, dtype=dtype), y, B=4)
        assert torch.equal(y, arange(size, dtype=dtype) * 2)


def test_attributes():
    """`.shape`, `.ndim`, `.dtype`, `.source`, `.strides`."""
    x = Tensor(2, dtype=ninetoothed.int8)
    arranged = x.tile((1, B))

    assert arranged.shape == (x.shape[0], simplify((x.shape[1] + B - 1) // B))
    assert arranged.ndim == 2
    assert arranged.source is x
    assert arranged.strides == x.strides


def test_dtype_is_the_inner_level_else_the_element_type():
    """`.dtype` is the inner level where there is one, else the element type."""
    x = Tensor(2, dtype=ninetoothed.int8)

    assert x.dtype is ninetoothed.int8
    assert x.tile((1, B)).dtype.shape == (1, B)
    assert x.tile((1, B)).dtype.dtype is ninetoothed.int8


def test_shape_and_dtype_may_be_assigned():
    """A user may assign `.shape` and `.dtype` (…, `t.dtype.dtype = …`)"""
    t = Tensor(shape=(4, 6)).tile((1, 3)).tile((1, -1))
    t.dtype = t.dtype.squeeze(0)
    t.dtype.dtype = t.dtype.dtype.squeeze(0)
    t.shape = (2, 1)

    assert [level.shape for level in t.levels] == [(2, 1), (2,), (3,)]
    assert t.eval().tolist() == [[[[0, 1, 2], [3, 4, 5]]], [[[6, 7, 8], [9, 10, 11]]]]


ASSIGNED = {
    "the source": lambda x: x[:],
    "reversed": lambda x: x[::-1],
    "permuted": lambda x: x.unsqueeze(0).permute((1, 0)).squeeze(1),
    "flattened": lambda x: x.unsqueeze(0).flatten(),
    "padded": lambda x: x.pad(((0, 0),)),
    "a slice": lambda x: x[0:3],
}


@pytest.mark.parametrize("arranged", ASSIGNED.values(), ids=ASSIGNED)
@pytest.mark.parametrize("shape", [None, (3,)], ids=["symbolic", "known"])
def test_a_shape_that_is_assigned_takes_the_first_positions_and_no_others(arranged, shape):
    """Whatever the sizes, no access leaves its tensor."""

    def application(x, y):
        y = x  # noqa: F841

    def kernel_of(size):
        def arrangement(x, y):
            x = arranged(x)
            x.shape = (size,)
            return x.tile((-1,)), y.tile((-1,))

        return ninetoothed.make(arrangement, application, (Tensor(1, shape), Tensor(1)))

    x, y = torch.arange(10.0)[4:7], empty(2)
    kernel_of(2)(x, y)
    assert y.tolist() == [4 + place for place in arranged(Tensor(shape=(3,))).eval()[:2]]

    with pytest.raises(
        ArrangementError, match="`.shape` on .* a size of 5 in dimension 0.*at most"
    ) as e:
        kernel_of(5)(x, empty(5))
    assert e.value.location is not None


def test_so_does_the_shape_of_a_tile():
    def arrangement(x, y):
        x = x.tile((4,))
        x.dtype.shape = (3,)
        return x, y.tile((3,))

    def application(x, y):
        y = ntl.max(x) + 0 * y  # noqa: F841

    y = torch.zeros(6)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(arange(8), y)
    assert y.tolist() == [3, 3, 3, 7, 7, 7]

    x = Tensor(1).tile((4,))
    with pytest.raises(ArrangementError, match="a size of 5.*at most the one there. `expand`"):
        x.dtype.shape = (5,)


def test_an_inner_level_that_was_rearranged_is_what_the_application_sees():
    """that is how an inner level is rearranged."""

    def application(x, y):
        y = ntl.sum(x, axis=0)  # noqa: F841

    y = run(application, arange(3, 5), empty(3), arrangement=rows)
    assert torch.equal(y, arange(3, 5).sum(1))


@pytest.mark.parametrize("other", [np.float32(2.5), np.array(2.5), torch.tensor(2.5, device="cpu")])
def test_other_may_be_any_librarys_number(other):
    assert Tensor(1, other=other).other == 2.5


@pytest.mark.parametrize("other", ["0", 1j, [0]], ids=str)
def test_other_is_a_number(other):
    with pytest.raises(ArrangementError, match="`other` of a Tensor is the number"):
        Tensor(1, other=other)


@pytest.mark.parametrize("name", ["x y", "1a", "a.b", 3, ("x",)], ids=str)
def test_a_name_is_an_identifier(name):
    with pytest.raises(ArrangementError, match="a Tensor's name is a Python identifier"):
        Tensor(1, name=name)
