"""The kit, for the toy framework. The tests of the kit itself run it on the toy's broken frontends."""

from __future__ import annotations

from ninetoothed.testing import FrontendConformance
from tests.frontends import toy_framework as toy


class ToyConformance(FrontendConformance):
    frontend_name = "toy"
    device = toy.DEVICE
    stream_work = (4096, 30)

    def from_numpy(self, array):
        return toy.array(array)

    def to_numpy(self, tensor):
        return tensor.numpy()

    def transposed(self, tensor):
        return tensor.swapped()

    def sliced(self, tensor, slices):
        return tensor[slices]

    def streams(self):
        return toy.Stream(), toy.Stream()
