"""The conformance kit, run on our own frontends' tensors on the CPU."""

from __future__ import annotations

import importlib.util

import pytest

from tests.frontends.kits import PaddleKit, TorchKit


def needs(module: str):
    """Skips a class where a framework is not installed."""
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"needs {module}")


@needs("torch")
class TestTorch(TorchKit):
    pass


@needs("paddle")
class TestPaddle(PaddleKit):
    pass
