"""A variable has one shape and one element type after an ``if``, whatever it had before.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

import pytest
import torch

from tests.contract.variables.types_after_ways import CASES, kernel_of


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(("application", "expected"), CASES)
def test_both_ways_may_give_it_others(application, expected, number):
    kernel = kernel_of(application)
    # Tiles that end early, and tiles whose elements all exist.
    for shape in ((5, 3), (8, 4)):
        x = torch.randn(shape) * 4
        y = torch.full(shape, torch.nan)
        kernel(x, number, y)
        wanted = expected(x.double().cpu().numpy(), number)
        torch.testing.assert_close(y.double().cpu(), torch.from_numpy(wanted), rtol=1e-5, atol=1e-4)
