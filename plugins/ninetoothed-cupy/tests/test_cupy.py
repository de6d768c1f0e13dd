"""Kernels on CuPy's arrays. What needs a device skips where there is none."""

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


def _has_device() -> bool:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        return False


needs_device = pytest.mark.skipif(not _has_device(), reason="needs CuPy and a GPU")


def arrangement(x, output):
    return x.tile((BLOCK_SIZE,)), output.tile((BLOCK_SIZE,))


def application(x, output):
    output = x + x


@pytest.fixture(scope="module")
def double():
    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))


@pytest.mark.parametrize("module", ["cupy", "cupy._core.core"])
def test_arrays_and_what_derives_from_them_are_owned(module):
    array = type("ndarray", (), {"__module__": module})
    assert plugins.frontend_of(array).name == "cupy"
    assert plugins.frontend_of(type("Own", (array,), {})).name == "cupy"


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_strides_are_in_elements(dtype):
    from ninetoothed_cupy import _element_strides

    # NumPy's arrays have these attributes with the same meaning.
    expression = plugins.frontend_named("cupy").strides.format(x="x")
    names = {"element_strides": _element_strides}
    x = np.zeros((4, 6), dtype)
    assert eval(expression, names, {"x": x}) == (6, 1)
    assert eval(expression, names, {"x": x.T[::-2, 1:]}) == (-2, 6)
    assert eval(expression, names, {"x": np.zeros((), dtype)}) == ()


def test_the_plugin_imports_no_cupy_until_an_array_arrives():
    script = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import ninetoothed_cupy\n"
        "from ninetoothed import plugins\n"
        "plugins.find_frontend(list)\n"
        "print(sorted({'cupy', 'numpy', 'torch'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


@needs_device
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[3:],
        lambda x: x[::3],
        lambda x: x.reshape(10, 10).T[2],
        lambda x: x[:0],
    ],
    ids=["whole", "offset", "strided", "column", "empty"],
)
def test_views_are_read_where_they_are(double, view):
    import cupy

    x = view(cupy.arange(100, dtype=cupy.float32))
    output = cupy.zeros(x.shape, cupy.float32)
    assert double(x, output, BLOCK_SIZE=32) is None
    assert np.array_equal(output.get(), 2 * x.get())


@needs_device
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int8", "uint64"])
def test_element_types(double, name):
    import cupy

    dtype = dtypes.by_name(name)
    try:
        x = cupy.asarray(np.arange(100).astype(dtype.numpy))
    except (TypeError, ValueError):
        assert name == "bfloat16", "only CuPy 14 and later has bfloat16"
        return
    output = cupy.zeros_like(x)
    double(x, output, BLOCK_SIZE=32)
    assert np.array_equal(output.get(), x.get() + x.get())


@needs_device
def test_the_current_stream_is_the_one_that_is_used():
    import cupy

    frontend = plugins.frontend_named("cupy")
    assert frontend.current_stream(0) == cupy.cuda.get_current_stream().ptr
    with cupy.cuda.Stream(non_blocking=True) as stream:
        assert frontend.current_stream(0) == stream.ptr


@needs_device
def test_events_measure_milliseconds():
    frontend = plugins.frontend_named("cupy")
    assert frontend.event is not None
    start, end = frontend.event(), frontend.event()
    start.record()
    end.record()
    assert 0 <= start.elapsed_time(end) < 1000


@needs_device
def test_empty_arrays_are_made_on_the_gpu_only():
    frontend = plugins.frontend_named("cupy")
    made = frontend.empty((2, 3), dtypes.float16, Device("cuda", 0))
    assert (made.shape, made.dtype) == ((2, 3), np.float16)
    with pytest.raises(DeviceError, match="not on cpu"):
        frontend.empty((2, 3), dtypes.float16, Device("cpu"))


@needs_device
def test_an_array_that_kernels_cannot_take_is_refused(double):
    import cupy

    x = cupy.zeros(10, cupy.complex64)
    with pytest.raises(ArgumentError, match="`x`.*cannot be passed to a kernel"):
        double(x, x.copy(), BLOCK_SIZE=32)
