"""Declarations, the rule of arrangement and premake functions, on a device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from tests.contract import test_habits  # noqa: E402
from tests.contract.tensors import test_declarations, test_rule  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_device")

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
