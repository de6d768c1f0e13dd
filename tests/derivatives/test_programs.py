"""Derived backwards of programs by hand, against autograd of what they compute."""

from __future__ import annotations

import pytest

from tests.derivatives.program_cases import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_torch(name):
    PROGRAMS[name].check()
