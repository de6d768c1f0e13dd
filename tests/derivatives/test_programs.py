"""Derived backwards of programs by hand, against autograd of what they compute."""

from __future__ import annotations

import pytest

from tests.derivatives.choice_cases import CHOICES
from tests.derivatives.keyword_cases import KEYWORDS
from tests.derivatives.program_cases import PROGRAMS

ALL = {**PROGRAMS, **CHOICES, **KEYWORDS}


@pytest.mark.parametrize("name", ALL)
def test_gradients_are_those_of_torch(name):
    ALL[name].check()
