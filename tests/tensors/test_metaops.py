"""Each meta-operation: its shape, what it checks, and that its operand stays as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError
from ninetoothed.tensors.arrange import arrange

B = Symbol("B", constexpr=True)
S = Symbol("S", constexpr=True)
D = Symbol("D", constexpr=True)


def shapes(tensor):
    return [tuple(map(str, level.shape)) for level in tensor.levels]


def tensor(*shape):
    return Tensor(shape=shape, name="x")


SHAPES = [
    # Tiles: ceil((size - dilation * (tile - 1) - 1) / stride) + 1, floor in floor mode.
    (lambda: tensor(10).tile((3,)), [("4",), ("3",)]),
    (lambda: tensor(10).tile((3,), floor_mode=True), [("3",), ("3",)]),
    (lambda: tensor(10).tile(3), [("4",), ("3",)]),
    (lambda: tensor(10).tile((3,), strides=(2,)), [("5",), ("3",)]),
    (lambda: tensor(10).tile((3,), strides=(2,), floor_mode=True), [("4",), ("3",)]),
    (lambda: tensor(10).tile((3,), strides=(-1,)), [("4",), ("3",)]),
    (lambda: tensor(10).tile((3,), strides=(2,), dilation=(3,)), [("3",), ("3",)]),
    (lambda: tensor(10).tile((-1,)), [("1",), ("10",)]),
    (lambda: tensor(4, 6).tile((2, -1)), [("2", "1"), ("2", "6")]),
    (lambda: tensor(0).tile((4,)), [("0",), ("4",)]),
    (lambda: tensor(2).tile((8,)), [("1",), ("8",)]),
    (lambda: tensor(2).tile((8,), floor_mode=True), [("0",), ("8",)]),
    (lambda: tensor(2).tile((8,), strides=(2,)), [("0",), ("8",)]),
    (lambda: tensor(None).tile((B,)), [("(B + x_size_0 - 1) // B",), ("B",)]),
    (lambda: tensor(None).tile((4,), strides=(1,), floor_mode=True), [("x_size_0 - 3",), ("4",)]),
    (lambda: tensor(None).tile((-1,)), [("1",), ("x_size_0",)]),
    (lambda: tensor().tile(()), [(), ()]),
    # Tiles of tiles: the outer level is tiled.
    (lambda: tensor(12).tile((2,)).tile((3,)), [("2",), ("3",), ("2",)]),
    (lambda: tensor(12).tile((2,)).tile((-1,)), [("1",), ("6",), ("2",)]),
    (lambda: tensor(1, 1, None).expand((2, 3, -1)), [("2", "3", "x_size_2")]),
    (lambda: tensor(1, 5).expand(4, 5), [("4", "5")]),
    (lambda: tensor(1).expand((B,)), [("B",)]),
    (lambda: tensor(1).expand((1,)), [("1",)]),
    (lambda: tensor(1, 4, 1).squeeze(0), [("4", "1")]),
    (lambda: tensor(1, 4, 1).squeeze(-1), [("1", "4")]),
    (lambda: tensor(1, 4, 1).squeeze((0, -1)), [("4",)]),
    (lambda: tensor(1, 4, 1).squeeze([0, 2]), [("4",)]),
    (lambda: tensor(1, 4).squeeze(()), [("1", "4")]),
    (lambda: tensor(None).squeeze(0), [()]),
    (lambda: tensor(4, 5).unsqueeze(0), [("1", "4", "5")]),
    (lambda: tensor(4, 5).unsqueeze(2), [("4", "5", "1")]),
    (lambda: tensor(4, 5).unsqueeze(-1), [("4", "5", "1")]),
    (lambda: tensor(4, 5).unsqueeze(-3), [("1", "4", "5")]),
    (lambda: tensor(2, 3, 4).permute((2, 0, 1)), [("4", "2", "3")]),
    (lambda: tensor(2, 3, 4).permute(-1, 0, 1), [("4", "2", "3")]),
    (lambda: tensor().permute(()), [()]),
    (lambda: tensor(2, 3, 4).flatten(), [("24",)]),
    (lambda: tensor(2, 3, 4).flatten(start_dim=1), [("2", "12")]),
    (lambda: tensor(2, 3, 4).flatten(end_dim=2), [("6", "4")]),
    (lambda: tensor(2, 3, 4).flatten(end_dim=-1), [("6", "4")]),
    (lambda: tensor(2, 3, 4).flatten(-2, 3), [("2", "12")]),
    (lambda: tensor(2, 3, 4).flatten(1, 2), [("2", "3", "4")]),
    (lambda: tensor(None, 4).flatten(), [("x_size_0 * 4",)]),
    (lambda: tensor(4, 6).tile((2, 3)).ravel(), [("2", "2", "2", "3")]),
    (lambda: tensor(12).tile((2,)).tile((3,)).ravel(), [("2", "3", "2")]),
    (lambda: tensor(4, 6).ravel(), [("4", "6")]),
    (lambda: tensor(4, 6).pad(((1, 2), (0, 0))), [("7", "6")]),
    (lambda: tensor(None).pad(((B, 1),)), [("B + x_size_0 + 1",)]),
    (lambda: tensor(4, 6)[1], [("6",)]),
    (lambda: tensor(4, 6)[-1, -6], [()]),
    (lambda: tensor(4, 6)[1:3, ::2], [("2", "3")]),
    (lambda: tensor(4, 6)[::-1, 5:0:-2], [("4", "3")]),
    (lambda: tensor(4, 6)[None, ..., None], [("1", "4", "6", "1")]),
    (lambda: tensor(4, 6)[..., 2], [("4",)]),
    (lambda: tensor(4, 6)[...], [("4", "6")]),
    (lambda: tensor(4)[7:], [("0",)]),
    (lambda: tensor(4)[-9:9], [("4",)]),
    (lambda: tensor(None)[::-1], [("x_size_0",)]),
    (lambda: tensor(None)[:4], [("min(x_size_0, 4)",)]),
    (lambda: tensor(None)[np.int64(2)], [()]),
]


@pytest.mark.parametrize(("make", "expected"), SHAPES)
def test_shape(make, expected):
    arranged = make()
    sizes = [
        tuple(s.replace("min(4, x_size_0)", "min(x_size_0, 4)") for s in l)
        for l in shapes(arranged)
    ]

    assert sizes == expected


def test_sizes_of_other_tensors_are_welcome_everywhere():
    query, key = Tensor(4, name="q"), Tensor(4, name="k")
    heads = query.shape[-3] // key.shape[-3]

    assert shapes(key.unsqueeze(2).expand((-1, -1, heads, -1, -1)))[0][2] == "q_size_1 // k_size_1"
    assert shapes(query.tile((1, 1, key.shape[2], -1)))[1][2] == "k_size_2"
    assert shapes(query.pad(((0, key.shape[0]),) + ((0, 0),) * 3))[0][0] == "k_size_0 + q_size_0"


def test_strides_and_dilation_may_be_symbols():
    tiled = tensor(None).tile((B,), strides=(S,), dilation=(D,))
    values = {tiled.source: {"shape": (11,)}, B: 3, S: 2, D: 4}

    np.testing.assert_array_equal(tiled.eval(values), [[0, 4, 8], [2, 6, 10]])


OPERATIONS = [
    ("tile", ((2, 2),), {}),
    ("expand", ((-1, 4),), {}),
    ("squeeze", (1,), {}),
    ("unsqueeze", (0,), {}),
    ("permute", ((1, 0),), {}),
    ("flatten", (), {}),
    ("ravel", (), {}),
    ("pad", (((1, 1), (0, 0)),), {}),
    ("__getitem__", (0,), {}),
]


@pytest.mark.parametrize(("name", "arguments", "keywords"), OPERATIONS)
def test_gives_a_new_tensor_and_leaves_its_operand(name, arguments, keywords):
    operand = tensor(4, 6).tile((2, 6))
    inner, before = operand.dtype, operand.eval()
    result = getattr(operand, name)(*arguments, **keywords)

    assert result is not operand
    assert operand.dtype is inner
    assert operand.shape == (2, 1) and inner.shape == (2, 6)
    np.testing.assert_array_equal(operand.eval(), before)
    if name != "ravel":
        result.levels[-2].dtype = result.levels[-1].permute((1, 0))
    assert operand.dtype is inner


ERRORS = [
    # (what is done, words of the message after "`operation` on `x` of shape …")
    (lambda x: x.tile((1,)), "tile", "1 entries.*each of the 2 dimensions"),
    (lambda x: x.tile((1, 2.5)), "tile", "2.5 in tile_shape.*ints or Symbols"),
    (lambda x: x.tile((1, True)), "tile", "True in tile_shape"),
    (lambda x: x.tile(None), "tile", "tile_shape None"),
    (lambda x: x.tile((0, 1)), "tile", "tile size of 0 in dimension 0.*at least 1"),
    (lambda x: x.tile((1, -2)), "tile", "tile size of -2 in dimension 1.*at least 1"),
    (lambda x: x.tile((1, 1), strides=(1,)), "tile", "strides.*1 entries.*2 dimensions"),
    (lambda x: x.tile((1, 1), strides=(0, 1)), "tile", "stride of 0 in dimension 0.*at least 1"),
    (lambda x: x.tile((1, 1), strides=(1, -3)), "tile", "stride of -3 in dimension 1.*at least 1"),
    (lambda x: x.tile((1, 1), dilation=(1, 1, 1)), "tile", "dilation.*3 entries.*2 dimensions"),
    (lambda x: x.tile((1, 1), dilation=(1, 0)), "tile", "dilation of 0 in dimension 1.*at least 1"),
    (lambda x: x.expand((1,)), "expand", "1 entries.*2 dimensions"),
    (lambda x: x.expand((5, -1)), "expand", "5 for dimension 0, whose size is 4.*size of 1"),
    (lambda x: x[:1].expand((-4, -1)), "expand", "-4 for dimension 0.*at least 0"),
    (lambda x: x.expand(("a", -1)), "expand", "'a' in shape.*ints or Symbols"),
    (lambda x: x.squeeze(0), "squeeze", "dimension 0, whose size is 4.*of size 1"),
    (lambda x: x.squeeze(2), "squeeze", "dimension 2.*from -2 to 1"),
    (lambda x: x[:1].squeeze((0, -2)), "squeeze", r"dimensions \(0, -2\).*each dimension once"),
    (lambda x: x.squeeze("0"), "squeeze", "'0'.*an int"),
    (lambda x: x.unsqueeze(3), "unsqueeze", "dimension 3.*from -3 to 2"),
    (lambda x: x.unsqueeze(-4), "unsqueeze", "dimension -4.*from -3 to 2"),
    (lambda x: x.permute((0,)), "permute", r"\(0,\).*each of the 2 dimensions once"),
    (lambda x: x.permute((0, 0)), "permute", r"\(0, 0\).*each of the 2 dimensions once"),
    (lambda x: x.permute((0, -2)), "permute", "each of the 2 dimensions once"),
    (lambda x: x.permute((0, 2)), "permute", "dimension 2.*from -2 to 1"),
    (lambda x: x.permute(None), "permute", "None.*every dimension once"),
    (lambda x: x.flatten(start_dim=2), "flatten", "dimension 2.*from -2 to 1"),
    (lambda x: x.flatten(1, 1), "flatten", "start_dim=1, end_dim=1.*at least one"),
    (lambda x: x.flatten(0, 3), "flatten", "end_dim=3.*at least one"),
    (lambda x: x.flatten(end_dim="b"), "flatten", "end_dim='b'.*an int"),
    (lambda x: x.pad(((0, 0),)), "pad", "1 pairs.*each of 2 dimensions"),
    (lambda x: x.pad((1, 2)), "pad", r"\(1, 2\).*\(left, right\)"),
    (lambda x: x.pad(((0, 0), (0, -1))), "pad", "-1 in dimension 1.*at least 0"),
    (lambda x: x.pad(((0, 0.5), (0, 0))), "pad", "0.5 in dimension 0.*ints or Symbols"),
    (lambda x: x[4], r"\[...\]", "index 4.*inside the dimension of size 4"),
    (lambda x: x[-5], r"\[...\]", "index -5.*inside the dimension of size 4"),
    (lambda x: x[0, 0, 0], r"\[...\]", "3 indices.*at most 2"),
    (lambda x: x[..., ...], r"\[...\]", "several `...`.*one at most"),
    (lambda x: x["a"], r"\[...\]", "'a'.*ints, slices, None"),
    (lambda x: x[1.0], r"\[...\]", "1.0.*ints, slices, None"),
    (lambda x: x[::0], r"\[...\]", "step 0.*not 0"),
    (lambda x: x[::"a"], r"\[...\]", "step a.*an int"),
    (lambda x: x["a":], r"\[...\]", "bound 'a'.*an int or a Symbol"),
]


@pytest.mark.parametrize(("operate", "operation", "words"), ERRORS)
def test_errors_say_which_tensor_which_operation_what_it_got_and_what_it_needs(
    operate, operation, words
):
    with pytest.raises(ArrangementError) as caught:
        operate(Tensor(shape=(4, 6), name="x"))

    error = caught.value
    assert error.location.file == __file__
    assert re.search(rf"`{operation}` on `x` of shape \(\d, 6\) got .*it needs", error.message)
    assert re.search(words, error.message, re.DOTALL)


LATE_ERRORS = [
    # Known only once the sizes are: (what is done, sizes, operation, words)
    (lambda x: x.squeeze(0), (4, 6), "squeeze", "dimension 0, whose size is 4.*a size of 1"),
    (
        lambda x: x.expand((B, -1)),
        (4, 6),
        "expand",
        "3 for dimension 0, whose size is 4.*size of 1",
    ),
    (lambda x: x[5], (4, 6), r"\[...\]", "index 5.*from -4 to 3"),
    (lambda x: x[-5], (4, 6), r"\[...\]", "index -5.*from -4 to 3"),
    (lambda x: x.tile((B - 3, 1)), (4, 6), "tile", "tile size of 0 in dimension 0.*at least 1"),
    (
        lambda x: x.tile((1, 1), (B - 4, 1)),
        (4, 6),
        "tile",
        "stride of -1 in dimension 0.*at least 1",
    ),
    (lambda x: x.tile((1, 1), (1, 1), (1, B - 3)), (4, 6), "tile", "dilation of 0.*at least 1"),
    (
        lambda x: x.pad(((B - 5, 0), (0, 0))),
        (4, 6),
        "pad",
        "a padding of -[0-9]+.* in dimension 0.*at least 0",
    ),
]


@pytest.mark.parametrize(("operate", "sizes", "operation", "words"), LATE_ERRORS)
def test_what_only_the_sizes_show_is_an_error_when_they_are_known(operate, sizes, operation, words):
    x = Tensor(2, name="x")
    arranged = operate(x)
    with pytest.raises(ArrangementError) as caught:
        arranged.eval({x: {"shape": sizes}, B: 3})

    error = caught.value
    assert error.location.file == __file__
    assert re.search(rf"`{operation}` on `x` of shape \(4, 6\) got .*it needs", error.message)
    assert re.search(words, error.message, re.DOTALL)


def test_a_tensor_without_a_name_is_called_as_the_arrangement_calls_it():
    def arrangement(input, *others):
        return input.tile((2,)), others[0].tile((2, 2))

    with pytest.raises(ArrangementError, match="`tile` on `input` of shape"):
        arrange(arrangement, lambda a, b: None, (Tensor(2), Tensor(2)))
    with pytest.raises(ArrangementError, match=r"`tile` on `others\[0\]` of shape"):
        arrange(arrangement, lambda a, b: None, (Tensor(1), Tensor(1)))


def test_a_tensor_without_any_name_is_a_tensor():
    with pytest.raises(ArrangementError, match=r"`squeeze` on a tensor of shape \(3,\)"):
        Tensor(shape=(3,)).squeeze(0)
