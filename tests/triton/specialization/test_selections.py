"""No selection takes an access out of its tensor: on CPUs, in Triton's interpreter, in the text."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from examples import mm  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.specialization import loose_selections_cases, selections_cases  # noqa: E402

CASES = [
    getattr(module, name)
    for module in (selections_cases, loose_selections_cases)
    for name in vars(module)
    if name.startswith("case_")
]


@pytest.mark.parametrize("case", CASES)
def test_on_numpy(case: Callable[[], None]) -> None:
    case()


@pytest.mark.parametrize("options", [None, "loop_splitting=1"])
@pytest.mark.parametrize("module", [selections_cases, loose_selections_cases])
def test_in_the_interpreter(module: ModuleType, options: str | None) -> None:
    assert failures(module.__name__, options) == {}


def text(inner: int, other: int) -> str:
    kernel = mm.kernel
    call = kernel.call_of(*map(torch.empty, ((64, inner), (other, 64), (64, 64))))
    values = tuple((kernel.names[symbol], 64) for symbol in kernel.definition.meta_symbols)
    return specialize(kernel.definition, call, Config(values, 4, 3)).emitted.text


def test_a_position_is_known_to_be_0_or_more() -> None:
    rows = torch.empty(3, 64)
    for offset, is_masked in ((0, False), (-1, True)):
        kernel = selections_cases.blocks_from(offset)
        found = specialize(kernel.definition, kernel.call_of(rows, rows), Config((), 4, 3))
        assert ("mask" in found.emitted.text) == is_masked


def test_nothing_is_paid_where_the_numbers_agree() -> None:
    assert "mask" not in text(1024, 1024)
    assert "mask" in text(1024, 64)
