"""The conformance kit on JAX's arrays, on whatever device is JAX's default here."""

from __future__ import annotations

import numpy as np
import pytest

from ninetoothed import plugins
from ninetoothed.testing import FrontendConformance

jax = pytest.importorskip("jax", reason="needs JAX")


class TestJax(FrontendConformance):
    frontend_name = "jax"
    # JAX has 64-bit types only where it is told to.
    dtype_names = (
        "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 float8_e4m3 float8_e5m2"
    ).split()

    @property
    def device(self):
        return plugins.frontend_named("jax").device_of(jax.devices()[0])

    def from_numpy(self, array):
        # A copy: on the CPU JAX may use the array's own memory.
        return jax.numpy.array(array, copy=True)

    def to_numpy(self, tensor):
        return np.asarray(tensor)

    def transposed(self, tensor):
        return tensor.swapaxes(-1, -2)

    def sliced(self, tensor, slices):
        return tensor[slices]
