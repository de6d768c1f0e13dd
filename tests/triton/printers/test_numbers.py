"""Numbers through Triton's compiler, which knows more of them than its interpreter; no device is needed."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from tests.contract.atomics import test_atomics as atomics
from tests.contract.numbers import test_operators as operators
from tests.contract.numbers import test_shifts as shifts
from tests.contract.numbers import test_signs_of_zero as zeros
from tests.contract.numbers import test_types_compared as types

pytest.importorskip("triton", reason="needs Triton")


def compiled(application, *arguments):
    """The kernel over whole vectors, for a device."""
    kernel = ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((-1,)) for tensor in tensors),
        application,
        tuple(Tensor(argument.ndim) for argument in arguments),
    )
    return kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]


FLOATS = [
    *(zeros.either, zeros.both, zeros.neither, zeros.chosen_by_it, zeros.compared_with_it),
    *(zeros.behind_a_condition, zeros.behind_a_choice, zeros.behind_a_number),
]


@pytest.mark.parametrize("application", FLOATS)
def test_a_float_that_is_known_may_stand_in_a_condition(application):
    assert compiled(application, torch.ones(4), torch.ones(4))


SHIFTED = [shifts.of_the_greatest_byte, shifts.of_a_truth, shifts.to_the_right]


@pytest.mark.parametrize("application", SHIFTED)
def test_a_number_that_is_shifted_has_the_tiles_type(application):
    a = torch.ones(4, dtype=torch.uint8)
    assert compiled(application, a, torch.ones(4, dtype=torch.int64))


@pytest.mark.parametrize(
    "application", [atomics.exchanged_for_a_number, atomics.exchanged_for_numbers]
)
@pytest.mark.parametrize("size", [3, 4])
def test_an_exchange_takes_numbers(application, size):
    assert compiled(application, torch.arange(size), torch.zeros(size, dtype=torch.int32))


LARGE = [operators.large_divided, operators.divided_by_large, operators.large_shifted]


@pytest.mark.parametrize("application", LARGE)
def test_truth_values_count_beside_large_numbers(application):
    assert compiled(application, operators.TRUTH, torch.zeros(4, dtype=torch.int64))


@pytest.mark.parametrize("application", types.APPLICATIONS)
def test_types_are_compared_beside_unsigned_integers(application):
    assert compiled(application, torch.ones(4, dtype=torch.uint8), torch.ones(4))


@pytest.mark.parametrize("application", types.APPLICATIONS)
def test_types_by_names_are_no_variables_of_the_way_of_whole_tiles(application):
    """Triton takes no element type out of a branch: where tiles are whole, and where they are not."""
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.ones(5, dtype=torch.int8), torch.zeros(5, dtype=torch.int32)
    assert kernel.compile(x, y, target=("cuda", 90)).asm["cubin"]
