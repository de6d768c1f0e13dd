"""The conformance kit for our own frontends, on any device. The tests on a GPU use it too."""

from __future__ import annotations

import numpy

from ninetoothed.backends.base import Device
from ninetoothed.language import dtypes
from ninetoothed.testing import FrontendConformance


def bits(array: numpy.ndarray) -> numpy.ndarray:
    """The elements as integers where NumPy itself does not know their type."""
    if array.dtype.name.startswith(("bfloat", "float8")):
        return array.view(f"u{array.dtype.itemsize}")
    return array


class TorchKit(FrontendConformance):
    """PyTorch's tensors."""

    frontend_name = "torch"
    #: PyTorch's name of the device.
    place = "cpu"

    def from_numpy(self, array):
        import torch

        dtype = self.frontend.native_dtype(dtypes.element_type(array.dtype))
        return torch.from_numpy(bits(array).copy()).view(dtype).to(self.place)

    def to_numpy(self, tensor):
        import torch

        integers = {1: torch.uint8, 2: torch.int16}
        if tensor.dtype in self._unknown_to_numpy():
            tensor = tensor.view(integers[tensor.itemsize])
        return tensor.cpu().numpy()

    def transposed(self, tensor):
        return tensor.transpose(-1, -2)

    def sliced(self, tensor, slices):
        return tensor[slices]

    def _unknown_to_numpy(self):
        names = ("bfloat16", "float8_e4m3", "float8_e5m2")
        return [self.frontend.native_dtype(dtypes.by_name(name)) for name in names]


class TorchCudaKit(TorchKit):
    device = Device("cuda", 0)
    place = "cuda:0"

    def streams(self):
        import torch

        return torch.cuda.stream(torch.cuda.Stream()), torch.cuda.stream(torch.cuda.Stream())


class PaddleKit(FrontendConformance):
    """PaddlePaddle's tensors; the float8 types and unsigned ones are in Paddle 3 alone."""

    frontend_name = "paddle"

    def from_numpy(self, array):
        import paddle

        dtype = dtypes.element_type(array.dtype)
        made = paddle.to_tensor(self._known_to_paddle(array), place=self.place)
        return made if dtype is self._element_type(made) else self._seen_as(made, dtype)

    def to_numpy(self, tensor):
        import paddle

        if self.device.kind != "cpu":
            # `numpy` copies in a stream of its own, which waits for nothing.
            paddle.device.current_stream().synchronize()
        return tensor.numpy()

    def transposed(self, tensor):
        dims = list(range(tensor.ndim))
        return tensor.transpose([*dims[:-2], dims[-1], dims[-2]])

    def sliced(self, tensor, slices):
        return tensor[slices]

    @property
    def place(self):
        import paddle

        return paddle.CPUPlace() if self.device.kind == "cpu" else paddle.CUDAPlace(0)

    def _element_type(self, tensor):
        return self.frontend.dtype_of(self.frontend.evaluate("dtype", tensor))

    def _seen_as(self, tensor, dtype):
        """The same bits as elements of another type."""
        return tensor.view(self.frontend.native_dtype(dtype))

    @staticmethod
    def _known_to_paddle(array):
        """The elements, as integers where Paddle does not take the type from NumPy."""
        if array.dtype.name.startswith(("bfloat", "float8")):
            return array.view(f"i{array.dtype.itemsize}")
        if array.dtype.name in ("uint16", "uint32", "uint64"):
            return array.view(array.dtype.name[1:])
        return array


class PaddleGpuKit(PaddleKit):
    device = Device("cuda", 0)

    def streams(self):
        import paddle

        return tuple(paddle.device.stream_guard(paddle.device.Stream(self.place)) for _ in range(2))
