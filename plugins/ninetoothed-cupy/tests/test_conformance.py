"""The conformance kit on CuPy's arrays, where there is a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from ninetoothed.backends.base import Device
from ninetoothed.language import dtypes
from ninetoothed.testing import FrontendConformance


def _has_device() -> bool:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:
        return False


def _made(dtype) -> bool:
    """Whether this CuPy has arrays of an element type; those of ml_dtypes came late."""
    import cupy

    try:
        cupy.asarray(np.zeros(3, dtype.numpy))
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


@pytest.mark.skipif(not _has_device(), reason="needs CuPy and a GPU")
class TestCupy(FrontendConformance):
    frontend_name = "cupy"
    device = Device("cuda", 0)

    @property
    def dtype_names(self):
        return [name for name in dtypes.NAMES if _made(dtypes.by_name(name))]

    def from_numpy(self, array):
        import cupy

        return cupy.asarray(array)

    def to_numpy(self, tensor):
        return tensor.get()

    def transposed(self, tensor):
        return tensor.swapaxes(-1, -2)

    def sliced(self, tensor, slices):
        return tensor[slices]

    def streams(self):
        import cupy

        return cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
