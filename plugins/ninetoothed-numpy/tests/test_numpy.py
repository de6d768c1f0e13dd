"""Kernels on NumPy's arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor, plugins
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.language import dtypes

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrangement(x, output):
    return x.tile((BLOCK_SIZE,)), output.tile((BLOCK_SIZE,))


def application(x, output):
    output = x + x


def copy(x, output):
    output = x


@pytest.fixture(scope="module")
def double():
    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))


@pytest.fixture(scope="module")
def frontend():
    return plugins.frontend_named("numpy")


def test_it_writes_in_place_and_returns_nothing(double):
    x = np.arange(100, dtype=np.float32)
    output = np.zeros_like(x)
    assert double(x, output, BLOCK_SIZE=32) is None
    assert np.array_equal(output, 2 * x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[3:],
        lambda x: x[::3],
        lambda x: x[::-1],
        lambda x: x.reshape(10, 10).T[2],
        lambda x: x[:0],
        lambda x: np.broadcast_to(x[5:6], (40,)),
    ],
    ids=["offset", "strided", "reversed", "column", "empty", "broadcast"],
)
def test_views_are_read_where_they_are(double, view):
    x = view(np.arange(100, dtype=np.float32))
    output = np.zeros(x.shape, np.float32)
    double(x, output, BLOCK_SIZE=32)
    assert np.array_equal(output, 2 * x)


def test_a_reversed_view_is_written_where_it_is(double):
    x = np.arange(100, dtype=np.float32)
    output = np.zeros_like(x)
    double(x, output[::-1], BLOCK_SIZE=32)
    assert np.array_equal(output, 2 * x[::-1])


@pytest.mark.parametrize("name", [name for name in dtypes.NAMES if name != "bool"])
def test_every_element_type(double, frontend, name):
    dtype = dtypes.by_name(name)
    x = np.arange(10).astype(dtype.numpy)
    output = np.zeros_like(x)
    if name.startswith("float8"):
        # No device computes with these.
        copied = ninetoothed.make(arrangement, copy, (Tensor(1), Tensor(1)))
        copied(x, output, BLOCK_SIZE=32)
        assert np.array_equal(output, x)
    else:
        double(x, output, BLOCK_SIZE=32)
        assert np.array_equal(output, x + x)
    assert frontend.native_dtype(dtype) == x.dtype


@pytest.mark.parametrize("dtype", [">f4", "complex64", "U3"])
def test_an_array_that_kernels_cannot_take_is_refused(double, dtype):
    x = np.zeros(10, dtype)
    with pytest.raises(ArgumentError, match="`x`.*cannot be passed to a kernel"):
        double(x, x.copy(), BLOCK_SIZE=32)


def test_a_read_only_array_may_be_read_and_not_written(double):
    x = np.arange(100, dtype=np.float32)
    kept, output = x.copy(), np.zeros_like(x)
    x.flags.writeable = False
    double(x, output, BLOCK_SIZE=32)
    assert np.array_equal(output, 2 * x)
    double(output, kept, BLOCK_SIZE=32)
    with pytest.raises(
        ArgumentError, match="`output` is written to, and the argument is read-only"
    ):
        double(output, x, BLOCK_SIZE=32)
    assert np.array_equal(x, np.arange(100))


def test_a_field_of_a_structured_array_is_refused_where_it_is_not_made_of_elements(double):
    records = np.zeros(10, [("flag", "i1"), ("value", "f4")])
    with pytest.raises(ArgumentError, match="no multiples of its elements' 4 bytes") as caught:
        double(records["value"], np.zeros(10, np.float32), BLOCK_SIZE=32)
    assert caught.value.location.file == __file__


class Larger(np.ndarray):
    """Tells of more elements than it has."""

    @property
    def shape(self):
        return (1000,)


class Wider(np.ndarray):
    """Tells of another element type."""

    @property
    def dtype(self):
        return np.dtype("f8")


@pytest.mark.parametrize("kind", [Larger, Wider])
def test_an_array_that_answers_for_itself_is_no_argument(double, kind):
    x = np.zeros(10, np.float32).view(kind)
    with pytest.raises(ArgumentError, match="`x` must be a tensor, not "):
        double(x, np.zeros(1000, np.float32), BLOCK_SIZE=32)


def test_a_masked_array_is_no_argument(double):
    masked = np.ma.masked_array(np.zeros(10, np.float32), mask=True)
    with pytest.raises(ArgumentError, match="`x` must be a tensor, not numpy.ma"):
        double(masked, np.zeros(10, np.float32), BLOCK_SIZE=32)


def test_a_subclass_is_owned(double):
    class Own(np.ndarray):
        pass

    x = np.arange(10, dtype=np.float32).view(Own)
    output = np.zeros(10, np.float32)
    double(x, output, BLOCK_SIZE=32)
    assert np.array_equal(output, 2 * np.arange(10))


def test_an_address_is_numpys_own(frontend):
    base = np.zeros((6, 8), np.float16)
    for array in (base, base[2:, 3:], base[::-1], base.T, base[:0], np.zeros(()), np.empty(0)):
        assert frontend.evaluate("pointer", array) == array.ctypes.data


def test_empty_arrays_are_made_on_the_cpu_only(frontend):
    made = frontend.empty((2, 3), dtypes.bfloat16, Device("cpu"))
    assert (made.shape, made.dtype) == ((2, 3), dtypes.bfloat16.numpy)
    with pytest.raises(DeviceError, match="not on cuda:0"):
        frontend.empty((2, 3), dtypes.float32, Device("cuda"))


def test_the_plugin_imports_no_numpy_until_an_array_arrives():
    script = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import ninetoothed_numpy\n"
        "from ninetoothed import plugins\n"
        "plugins.find_frontend(list)\n"
        "print(sorted({'numpy', 'ml_dtypes', 'torch'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr
