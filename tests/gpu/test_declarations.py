"""Declarations, the rule of arrangement and premake functions, on a device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.contract import test_habits  # noqa: E402
from tests.contract.tensors import test_declarations, test_rule  # noqa: E402

#: What counts something that a search on a device does differently.
_ELSEWHERE = {"test_the_call_checks_once_per_new_set_of_shapes"}

for module in (test_declarations, test_habits, test_rule):
    globals().update(
        {
            name: test
            for name, test in vars(module).items()
            if name.startswith("test_") and name not in _ELSEWHERE
        }
    )


@pytest.fixture(autouse=True)
def on_device(monkeypatch: pytest.MonkeyPatch):
    """Tensors are made on the device, and nothing is searched for."""
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    torch.set_default_device("cuda")
    yield
    torch.set_default_device(None)
