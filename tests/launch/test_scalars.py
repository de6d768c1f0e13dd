"""Numbers passed by value: the type of each, in the key and on every call, and what fits none."""

from __future__ import annotations

import contextlib
import enum
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError, DeclarationWarning
from ninetoothed.language import dtypes
from ninetoothed.launch import scalars
from ninetoothed.launch.kernel import Kernel

torch = pytest.importorskip("torch", reason="calls with PyTorch's tensors")


def make(application, *tensors):
    def arrangement(*tensors):
        return tuple(t.tile((4,)) if t.ndim else t for t in tensors)

    return ninetoothed.make(arrangement, application, tensors)


def stored(scale, y):
    y = scale  # noqa: F841


def times(x, scale, y):
    y = x * scale  # noqa: F841


def kept(dtype, scalar=None):
    """A function that stores a number into elements of a type, and reads them back."""
    kernel = make(stored, Tensor(0, dtype=scalar), Tensor(1))

    def store(number):
        y = torch.zeros(4, dtype=dtype)
        kernel(number, y)
        return y.tolist()

    return store


@pytest.fixture
def types(monkeypatch):
    """The element type of the scalar in each call that was planned."""
    seen = []
    original = Kernel.new_plan

    def new_plan(kernel, definition, frontend, given, values):
        seen.append(str(given["scale"][0]))
        return original(kernel, definition, frontend, given, values)

    monkeypatch.setattr(Kernel, "new_plan", new_plan)
    return seen


def test_each_class_of_integers_is_a_key(types):
    store = kept(torch.float64)
    for number in (2**63, -(2**40), 3, 2**63, -(2**40), 2**31, -(2**31), 2**64 - 1, -(2**63)):
        assert store(number) == [float(number)] * 4
    assert types == ["uint64", "int64", "int32"]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**70, 10**4000])
def test_what_fits_no_integer_is_an_error_known_kernel_or_not(number):
    store = kept(torch.float64)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="`scale` is .*fits no integer type: int64 .-92"):
            store(number)
        store(1)


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("int8", (127, -128), (300, 128, -129)),
        ("uint8", (0, 255), (-1, 256)),
        ("int16", (-(2**15),), (2**15,)),
        ("int32", (2**31 - 1,), (2**31, -(2**31) - 1)),
        ("uint32", (2**32 - 1,), (-1, 2**32)),
        ("int64", (-(2**63),), (2**63,)),
        ("uint64", (2**64 - 1,), (-1,)),
        ("float16", (65504.0, -65504, float("inf"), float("-inf")), (65505.0, 70000, -1e9)),
        ("float32", (1.5, 2**30), ()),
        ("float64", (1e300, 2**40), ()),
    ],
)
def test_what_does_not_fit_the_declared_type_is_taken_as_it_is(dtype, good, bad):
    store = kept(torch.float64, dtypes.by_name(dtype))
    for number in good:
        assert store(number) == [float(number)] * 4
    told = rf"`scale` was declared with dtype={dtype}; it is given (u?int|float)\d\d"
    with pytest.warns(DeclarationWarning, match=told) if bad else contextlib.nullcontext():
        for number in bad:
            assert store(number) == [float(number)] * 4
    with warnings.catch_warnings(action="error"):
        for number in (*good, *bad):
            assert store(number) == [float(number)] * 4


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_an_integer_that_no_type_holds_is_an_error(dtype):
    store = kept(torch.float64, dtypes.by_name(dtype))
    with pytest.raises(ArgumentError, match="fits no integer type"):
        store(10**400)


def test_the_warning_points_at_the_declaration():
    kernel = make(stored, Tensor(0, dtype=dtypes.int8), Tensor(1))
    with pytest.warns(DeclarationWarning, match="int8; it is given int32") as caught:
        kernel(300, torch.zeros(4))
    assert "Tensor(0, dtype=dtypes.int8)" in str(caught[0].message)


def test_no_number_fits_float16_and_is_planned_once(types):
    store = kept(torch.float64, dtypes.float16)
    for _ in range(3):
        assert np.isnan(store(float("nan"))).all()
        assert store(float("inf")) == [float("inf")] * 4
    assert len(types) == 1


def test_whatever_is_not_0_is_true():
    store = kept(torch.int32, dtypes.bool)
    for _ in range(2):
        assert [store(number)[0] for number in (True, False, 1, 0, 300, -1)] == [1, 0, 1, 0, 1, 1]


@pytest.mark.parametrize("given", [np.float64(0.1), np.float64(0.0), 2.5, 3, True])
def test_a_truth_value_is_pythons(given):
    kernel, flag = SimpleNamespace(name="k"), SimpleNamespace(name="flag", dtype=dtypes.bool)
    assert scalars.number(kernel, None, flag, given) is bool(given)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2**40


@pytest.mark.parametrize(
    ("number", "type_"),
    [
        (True, "bool"),
        (2.5, "float32"),
        (np.int8(3), "int32"),
        (np.uint64(2**63), "uint64"),
        (np.bool_(True), "bool"),
        (np.float16(2.5), "float32"),
        (np.float64(2.5), "float32"),
        (torch.tensor(3), "int32"),
        (torch.tensor(2**40), "int64"),
        (torch.tensor(2.5), "float32"),
        (torch.tensor(True), "bool"),
        (Level.LOW, "int32"),
        (Level.HIGH, "int64"),
    ],
    ids=repr,
)
def test_a_number_of_a_library_is_taken_as_pythons(types, number, type_):
    store = kept(torch.float32)
    for _ in range(2):
        assert store(number) == [float(number)] * 4
    assert types == [type_]


def test_members_of_an_enumeration_have_types_of_their_own():
    store = kept(torch.float64)
    for _ in range(2):
        assert [store(level)[0] for level in Level] == [1.0, 2.0**40]


def test_a_float_is_float64_beside_float64(types):
    kernel = make(times, Tensor(1), Tensor(0), Tensor(1))
    for dtype in (torch.float32, torch.float64, torch.float16) * 2:
        x, y = torch.ones(4, dtype=dtype), torch.zeros(4, dtype=torch.float32)
        kernel(x, 0.1, y)
    assert types == ["float32", "float64", "float32"]
    x, y = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    kernel(x, 0.1, y)
    assert y.tolist() == [0.1] * 4


@pytest.mark.parametrize("kind", [float, np.float64, type("Factor", (float,), {})])
def test_whether_a_float_of_any_class_is_a_scale_is_in_the_key(kind, monkeypatch):
    seen = []
    original = Kernel.new_plan

    def new_plan(kernel, definition, frontend, given, values):
        seen.append(given["scale"][1])
        return original(kernel, definition, frontend, given, values)

    def greatest(x, scale, y):
        y = ntl.max(ntl.where(x < 9, x, float("-inf")) * scale) + 0 * x  # noqa: F841

    monkeypatch.setattr(Kernel, "new_plan", new_plan)
    kernel = make(greatest, Tensor(1), Tensor(0), Tensor(1))
    for factor in (2.0, -2.0, 0.5, 0.0):
        y = torch.empty(4)
        kernel(torch.tensor([-3.0, 1.0, -4.0, 2.0]), kind(factor), y)
        assert y.tolist() == [max(-4 * factor, 2 * factor)] * 4
    assert seen == [True, False]


def test_a_tensor_that_is_not_touched_decides_no_type(types):
    def plain(x, scale, unused, y):
        y = x * scale  # noqa: F841

    kernel = make(plain, Tensor(1), Tensor(0), Tensor(1), Tensor(1))
    kernel(torch.ones(4), 0.1, torch.ones(4, dtype=torch.float64), torch.zeros(4))
    assert types == ["float32"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "tensor",
    [
        lambda: torch.tensor(2.0, device="meta"),
        lambda: torch.nested.nested_tensor([torch.tensor(2.0)]),
        lambda: _freed(torch.tensor(2.0)),
    ],
)
def test_a_scalar_tensor_that_holds_nothing_is_refused_by_name(tensor):
    kernel = make(_scaled, Tensor(1), Tensor(0), Tensor(1))
    kernel(torch.ones(6), 3.0, torch.zeros(6))

    with pytest.raises(ArgumentError, match="`s` is passed by value, and the tensor has none"):
        kernel(torch.ones(6), tensor(), torch.zeros(6))


def _freed(tensor):
    tensor.untyped_storage().resize_(0)
    return tensor


def _scaled(x, s, o):
    o = x * s  # noqa: F841


def test_a_scalar_tensor_that_requires_grad_warns_once():
    kernel = make(_scaled, Tensor(1), Tensor(0), Tensor(1))
    kernel(torch.ones(6), 3.0, torch.zeros(6))
    factor = torch.tensor(2.0, requires_grad=True)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            kernel(torch.ones(6), factor, torch.zeros(6))
    assert [str(each.message)[:28] for each in told] == ["kernel `_scaled`: `s` requir"]
