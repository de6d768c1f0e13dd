"""The recording driver has devices for these tests alone: a process that has loaded it keeps it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_devices_for_others() -> Iterator[None]:
    _set_devices(2)
    yield
    _set_devices(0)


def _set_devices(count: int) -> None:
    making = sys.modules.get("tests.aot.making")
    if making is not None and making.Loaded.driver is not None:
        ctypes.c_int.in_dll(making.Loaded.driver, "fake_devices").value = count
