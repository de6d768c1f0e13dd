"""The applications compiled by Triton itself, for a device that is not here."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.agreement.kernels import APPLICATIONS, kernel_of  # noqa: E402


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda item: item.__name__)
def test_application(application: Any) -> None:
    values = {"n": 3, "FLAG": True}
    names = inspect.signature(application).parameters
    arguments = [values[name] if name in values else torch.empty(40, 40) for name in names]

    compiled = kernel_of(application).compile(*arguments, M=16, N=20, target=("cuda", 90))

    assert compiled.asm["cubin"]
