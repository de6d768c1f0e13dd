"""The conformance kit on a GPU: PyTorch's tensors, and Paddle's where a GPU build is installed."""

from __future__ import annotations

import importlib.util

import pytest

from tests.frontends.kits import PaddleGpuKit, TorchCudaKit


class TestTorchCuda(TorchCudaKit):
    pass


def _paddle_is_missing() -> bool:
    if importlib.util.find_spec("paddle") is None:
        return True
    import paddle

    return not paddle.is_compiled_with_cuda()


@pytest.mark.skipif(_paddle_is_missing(), reason="needs a build of Paddle for CUDA")
class TestPaddleGpu(PaddleGpuKit):
    pass
