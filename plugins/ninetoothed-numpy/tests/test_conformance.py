"""The conformance kit on NumPy's arrays."""

from __future__ import annotations

from ninetoothed.testing import FrontendConformance


class TestNumpy(FrontendConformance):
    frontend_name = "numpy"

    def from_numpy(self, array):
        return array.copy()

    def to_numpy(self, tensor):
        return tensor

    def transposed(self, tensor):
        return tensor.swapaxes(-1, -2)

    def sliced(self, tensor, slices):
        return tensor[slices]
