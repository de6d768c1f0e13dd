"""A variable gets another type after a tile was chosen while a kernel runs."""

import pytest
import torch

from tests.contract.application.retyped import CASES, OLD, kernel_of


@pytest.mark.parametrize(("application", "expected"), CASES)
def test_a_variable_may_get_another_type_after_a_choice(application, expected):
    x, y = torch.arange(1.0, 13), torch.full((12,), OLD)
    kernel_of(application)(x, y, 2, -1.5)
    assert y[:3].tolist() == expected
