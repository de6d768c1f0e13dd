"""What Triton's language refuses is refused here, with what was found and what to do."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.tile import SeveralElementsError, Tile
from ninetoothed.errors import CompilationError, NineToothedError, OutOfBoundsError
from ninetoothed.language import dtypes
from tests.numpy.language.cases import FlatMemory, random_array


def _tile(spec: str) -> Tile:
    return Tile(*random_array(spec, "errors"))


def _pointer(spec: str = "fp32[8]") -> PointerTile:
    return PointerTile(FlatMemory(*random_array(spec, "pointer")))


#: (what is tried, what the error says)
_REFUSED = {
    # Shapes
    "the sum of a number": (lambda: ntl.sum(ntl.max(_tile("fp32[4]"))), "ntl.sum.*one number"),
    # Types
    "exp of float16": (
        lambda: ntl.exp(_tile("fp16[4]")),
        r"float32 or float64, but got float16.*cast",
    ),
    "exp of an int": (lambda: ntl.exp(_tile("i32[4]")), "but got int32"),
    "sqrt_rn of float64": (lambda: ntl.sqrt_rn(_tile("fp64[4]")), "takes float32, but got float64"),
    "sigmoid of bfloat16": (lambda: ntl.sigmoid(_tile("bf16[4]")), "but got bfloat16"),
    "bits of floats": (lambda: _tile("fp32[4]") & 1, "& needs integers"),
    "inversion of floats": (lambda: ~_tile("fp32[4]"), "`~` needs integers"),
    "division of two signs": (lambda: _tile("i32[4]") // _tile("u32[4]"), "one signedness"),
    "a number too large": (lambda: _tile("i8[4]") + 1000, "1000 does not fit a tile of int8"),
    "a negative number": (lambda: _tile("u32[4]") + -1, "-1 does not fit a tile of uint32"),
    "clamp of ints": (lambda: ntl.clamp(_tile("i32[4]"), 0, 1), "clamp takes floats"),
    "fdiv of ints": (lambda: ntl.fdiv(_tile("i32[4]"), _tile("i32[4]")), "fdiv needs floats"),
    "xor_sum of floats": (lambda: ntl.xor_sum(_tile("fp32[4]")), "takes integers"),
    "a bitcast of another width": (
        lambda: _tile("fp32[4]").to(ntl.int16, bitcast=True),
        "float32 has 32 bits and int16 has 16",
    ),
    "rounding that is none": (
        lambda: _tile("fp16[4]").to(ntl.float32, fp_downcast_rounding="rtz"),
        "narrower float",
    ),
    "an unknown rounding": (
        lambda: _tile("fp32[4]").to(ntl.float16, fp_downcast_rounding="up"),
        "'rtne' or 'rtz'",
    ),
    "a cast to no type": (lambda: _tile("fp32[4]").to("float16"), "but got 'float16'"),
    "a string": (lambda: _tile("fp32[4]") + "1", "a number is needed here, but got str"),
    "propagate_nan of another kind": (
        lambda: ntl.maximum(_tile("fp32[4]"), 0, propagate_nan=True),
        "PropagateNan.ALL",
    ),
    # Shapes
    "shapes that do not match": (lambda: _tile("fp32[4]") + _tile("fp32[8]"), r"\(4,\) and \(8,\)"),
    "where's shapes": (
        lambda: ntl.where(_tile("i1[4]"), _tile("fp32[8]"), 0.0),
        r"ntl.where needs shapes that match",
    ),
    "broadcast": (lambda: ntl.broadcast(_tile("fp32[4]"), _tile("fp32[8]")), "do not broadcast"),
    "broadcast_to": (
        lambda: _tile("fp32[4]").broadcast_to(8),
        r"\(4,\) does not broadcast to \(8,\)",
    ),
    "broadcast_to another rank": (
        lambda: _tile("fp32[4]").broadcast_to(2, 4),
        r"does not broadcast to \(2, 4\)",
    ),
    "reshape": (lambda: _tile("fp32[4]").reshape(8), "has 4 elements and cannot become"),
    "permute": (lambda: ntl.permute(_tile("fp32[2, 4]"), 0, 0), r"once, but got \(0, 0\)"),
    "a transposed vector": (lambda: _tile("fp32[4]").T, "`.T` needs two dimensions"),
    "an axis out of range": (lambda: ntl.sum(_tile("fp32[4]"), axis=1), "Axis 1 is out of range"),
    "an axis twice": (lambda: ntl.expand_dims(_tile("fp32[4]"), (0, 0)), "an axis twice"),
    "an element by index": (lambda: _tile("fp32[4]")[0], "takes `None` and `:`.*ntl.gather"),
    "a slice": (lambda: _tile("fp32[4]")[1:3], "takes `None` and `:`"),
    "too many dimensions": (lambda: _tile("fp32[4]")[:, :], "too many `:`"),
    "split": (lambda: ntl.split(_tile("fp32[4]")), "last dimension of size 2"),
    "cat without reorder": (lambda: ntl.cat(_tile("i8[4]"), _tile("i8[4]")), "can_reorder=True"),
    "join of types": (lambda: ntl.join(_tile("i8[4]"), _tile("i16[4]")), "tiles of one type"),
    "arange backwards": (lambda: ntl.arange(4, 0), "end must not be less than its start"),
    "a tile too large": (lambda: ntl.zeros((2048, 1024), ntl.int8), "at most 1048576 elements"),
    "a size below 0": (lambda: ntl.zeros((-1,), ntl.int8), "must be 0 or more"),
    "a size that is no integer": (lambda: ntl.zeros((1.5,), ntl.int8), "must be an integer"),
    "a type that is none": (lambda: ntl.full((4,), 0, "int8"), "element type such as"),
    "full of a tile": (lambda: ntl.full((4,), _tile("i32[4]"), ntl.int32), "one value"),
    "sort along another dimension": (
        lambda: ntl.sort(_tile("i32[2, 4]"), dim=0),
        "last dimension only",
    ),
    "topk's k": (lambda: ntl.topk(_tile("i32[8]"), 3), "power of two from 1 to 8, but got 3"),
    "a gather of another rank": (
        lambda: ntl.gather(_tile("fp32[4]"), _tile("i32[2, 2]"), 0),
        "index of the source's rank",
    ),
    "a gather out of range": (
        lambda: ntl.gather(_tile("fp32[4]"), ntl.arange(2, 6), 0),
        "leaves axis 0",
    ),
    "indices without an axis": (
        lambda: ntl.max(_tile("fp32[4]"), return_indices=True),
        "needs an axis to return indices",
    ),
    "a histogram of floats": (
        lambda: ntl.histogram(_tile("fp32[4]"), 4),
        "one dimension of integers",
    ),
    # Products
    "dot's inner sizes": (
        lambda: ntl.dot(_tile("fp32[4, 8]"), _tile("fp32[4, 8]")),
        r"\(…, M, K\)",
    ),
    "dot of too few": (
        lambda: ntl.dot(_tile("fp32[4, 4]"), _tile("fp32[4, 4]")),
        "inner size is 16 or more.*but got 4",
    ),
    "dot of vectors": (
        lambda: ntl.dot(_tile("fp32[4]"), _tile("fp32[4]")),
        "two dimensions or more",
    ),
    "dot of types": (
        lambda: ntl.dot(_tile("fp32[4, 4]"), _tile("fp16[4, 4]")),
        "two tiles of one type",
    ),
    "dot of integers": (
        lambda: ntl.dot(_tile("i32[16, 16]"), _tile("i32[16, 16]")),
        "needs int8, but got int32",
    ),
    "a pointer cast": (
        lambda: _pointer().to(dtypes.int32, bitcast=True),
        "`.to` is of a tile: .*cast what was loaded",
    ),
    "a sum of pointers": (lambda: _pointer().sum(), "`.sum` is of a tile"),
    "dot's precision": (
        lambda: ntl.dot(_tile("fp32[4, 4]"), _tile("fp32[4, 4]"), input_precision="fp8"),
        "input_precision is one of",
    ),
    "dot's result": (
        lambda: ntl.dot(_tile("fp16[4, 4]"), _tile("fp16[4, 4]"), out_dtype=ntl.bfloat16),
        "float32 or float16",
    ),
    "dot's accumulator": (
        lambda: ntl.dot(_tile("fp32[4, 16]"), _tile("fp32[16, 4]"), _tile("fp16[4, 4]")),
        r"must be float32\[4, 4\].*but got float16\[4, 4\]",
    ),
    # Memory
    "a load from no pointer": (lambda: ntl.load(_tile("i64[4]")), "needs a pointer such as"),
    "a mask of ints": (
        lambda: ntl.load(_pointer() + ntl.arange(0, 4), mask=_tile("i32[4]")),
        "A mask must be of int1",
    ),
    "other without a mask": (
        lambda: ntl.load(_pointer(), other=0),
        "`other` has a meaning only with",
    ),
    "a pointer and a float": (lambda: _pointer() + 0.5, "integer offsets"),
    "a value larger than its pointer": (
        lambda: ntl.store(_pointer(), _tile("fp32[4]")),
        "pointer in the shape of the value",
    ),
    "boundary_check": (lambda: ntl.load(_pointer(), boundary_check=(0,)), "block pointers only"),
    "an atomic of 8 bits": (lambda: ntl.atomic_add(_pointer("i8[4]"), 1), "does not support int8"),
    "an atomic maximum of float16": (
        lambda: ntl.atomic_max(_pointer("fp16[4]"), 1.0),
        "does not support float16",
    ),
    "an atomic and of floats": (lambda: ntl.atomic_and(_pointer(), 1), "needs integers"),
    "advance": (lambda: ntl.advance(_pointer(), (1,)), "needs a block pointer"),
    "a block pointer's lists": (
        lambda: ntl.make_block_ptr(_pointer(), (4,), (1, 1), (0,), (4,), (0,)),
        "as many entries",
    ),
    "a descriptor's stride": (
        lambda: ntl.make_tensor_descriptor(_pointer(), [2, 4], [4, 2], [2, 4]),
        "last stride must be 1",
    ),
    "an offset of floats": (lambda: ntl.rand(1, _tile("fp64[4]")), "An offset is an integer"),
    "a seed of floats": (lambda: ntl.rand(0.5, ntl.arange(0, 4)), "A seed is an integer"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_it_is_refused_with_a_reason(name):
    attempt, reason = _REFUSED[name]

    with pytest.raises(CompilationError, match=f"(?s){reason}") as caught:
        attempt()

    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("use", [bool, int, float, lambda x: x.__index__()])
def test_a_tile_of_several_elements_is_no_number(use):
    with pytest.raises(SeveralElementsError, match=r"shape is \(4,\).*ntl.where"):
        use(_tile("i32[4]"))


def test_one_element_is_a_number():
    x = Tile(np.array([[3]], np.int32), dtypes.int32)

    assert bool(x) and int(x) == 3 and float(x) == 3.0 and [0, 1, 2, 7][x] == 7
    assert f"{x + 1.5:.2f}" == "4.50"


def test_a_float_is_no_index():
    with pytest.raises(CompilationError, match="An integer is needed here"):
        [1, 2][Tile(np.float32(1), dtypes.float32)]


def test_a_tile_is_not_equal_to_what_is_no_number():
    assert (_tile("i32[4]") == None) is False  # noqa: E711 - what a user may write
    assert (_tile("i32[4]") != "text") is True


def test_an_access_out_of_bounds_goes_through():
    class Bounded(FlatMemory):
        def locate(self, offsets, mask, access):
            raise OutOfBoundsError(access)

    pointer = PointerTile(Bounded(*random_array("fp32[8]", "bounded"))) + ntl.arange(0, 16)

    for access, use in {
        "load": lambda: ntl.load(pointer),
        "store": lambda: ntl.store(pointer, 1.0),
        "atomic": lambda: ntl.atomic_add(pointer, 1.0),
    }.items():
        with pytest.raises(NineToothedError, match=access):
            use()


def test_numpy_does_not_take_over():
    x = Tile(np.arange(4, dtype=np.int32), dtypes.int32)

    assert isinstance(np.float32(2) * x, Tile)
    assert (np.int64(2) + x).dtype is dtypes.int32
    assert np.asarray(x).tolist() == [0, 1, 2, 3]


def test_inverting_unsigned_bits():
    x = Tile(np.array([0, 5], np.uint8), dtypes.uint8)

    assert (~x).data.tolist() == [255, 250]
    assert (~Tile(np.array([True, False]), dtypes.bool)).data.tolist() == [False, True]


def test_truth_values_count():
    x = Tile(np.array([True, False]), dtypes.bool)

    assert (x + x).data.tolist() == [2, 0]
    assert (-x).data.tolist() == [-1, 0]


def test_negative_zero_is_kept_apart():
    x = Tile(np.array([1.0], np.float32), dtypes.float32)

    assert np.signbit((x * -0.0).data[0]) and not np.signbit((x * 0.0).data[0])
    assert not np.signbit((x * 0).data[0])


def test_integer_upper_halves_are_unsigned():
    x = Tile(np.array([-1], np.int32), dtypes.int32)

    assert ntl.umulhi(x, x).data.tolist() == [-2]


def test_nan_is_left_out_unless_it_propagates():
    x = Tile(np.array([np.nan, 1.0], np.float32), dtypes.float32)

    assert ntl.maximum(x, 0.5).data.tolist() == [0.5, 1.0]
    assert np.isnan(ntl.maximum(x, 0.5, propagate_nan=ntl.PropagateNan.ALL).data[0])
    assert np.isnan(ntl.clamp(x, 0.0, 1.0, propagate_nan=ntl.PropagateNan.ALL).data[0])
    assert ntl.max(x).data == 1.0


def test_an_unknown_member_is_refused_with_a_near_one():
    with pytest.raises(AttributeError, match="A tile has no 'summ'. Did you mean 'sum'"):
        _tile("fp32[4]").summ()
