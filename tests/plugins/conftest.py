"""A plugin manager that knows no plugin."""

from __future__ import annotations

import pytest

from ninetoothed.plugins import PluginManager


@pytest.fixture
def manager():
    return PluginManager(built_in={}, group=None)
