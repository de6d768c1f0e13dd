"""Constants that decide, elements of tiles, atomic operations and tensors without tiles, on a device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

from tests.contract.application import (  # noqa: E402
    test_constants,
    test_selecting,
    test_sources,
    test_types_of_indices,
)
from tests.contract.atomics import test_atomics, test_in_order  # noqa: E402

pytestmark = pytest.mark.usefixtures("on_device")

#: What is told of a slice that turns out empty, of a value that is no place, and of indices that do not meet
#: is Triton's there; and what compiles alone needs no device.
_ELSEWHERE = {
    "test_a_value_is_no_place",
    "test_indices_that_do_not_meet_are_refused_with_their_place",
    "test_what_takes_a_flattened_index_apart_compiles",
}

_MODULES = (
    test_atomics,
    test_in_order,
    test_constants,
    test_selecting,
    test_sources,
    test_types_of_indices,
)
for module in _MODULES:
    globals().update(
        {
            name: test
            for name, test in vars(module).items()
            if name.startswith("test_") and name not in _ELSEWHERE
        }
    )
