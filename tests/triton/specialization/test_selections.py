"""No selection takes an access out of its tensor: on CPUs, in Triton's interpreter, in the text."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from examples import mm  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.ahead.assumptions import Assumptions  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.language import dtypes  # noqa: E402
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


def far_places(jagged, rows, others, places, output):
    """A tile of the row that a number selects, and as many tiles as the row's sequence has."""
    total = rows[ntl.maximum(ntl.sum(places), 0)] + jagged
    for k in range(ntl.cdiv(jagged.source.shape[1], 4)):
        total += others[k]
    output = total


def test_beside_a_sequence_what_nothing_bounds_is_asked_and_its_own_loop_is_not() -> None:
    """64 bits do not hold every place of 64 bits times the tile's size."""

    def in_fours(tensor: Tensor) -> Tensor:
        blocks = tensor.tile((1, 4)).tile((1, -1))
        blocks.dtype = blocks.dtype.squeeze(0)
        return blocks

    kernel = ninetoothed.make(
        lambda jagged, rows, others, places, output: (
            jagged.tile((1, 4))[:, :1],
            *map(in_fours, (rows, others)),
            places.tile((1, 1)),
            output.tile((1, 4)),
        ),
        far_places,
        (Tensor(2, jagged_dim=1), *(Tensor(2) for _ in range(4))),
    )
    jagged = torch.nested.nested_tensor([torch.empty(n) for n in (9, 3)], layout=torch.jagged)
    row = torch.empty(2, 12)
    places = torch.empty(2, 1, dtype=torch.int64)
    call = kernel.call_of(jagged, row, row, places, torch.empty(2, 4))
    text = specialize(kernel.definition, call, Config((), 4, 3)).emitted.text
    assert "rows_selected >= 0" in text
    assert "k >= 0" not in text


def test_ahead_the_positions_of_what_conditions_leave_out_fit_too() -> None:
    """Else a product with the tile's size would pass them."""

    def application(input: Tensor, places: Tensor, output: Tensor) -> None:
        output = input[ntl.minimum(ntl.maximum(ntl.sum(places), 0), 2**30)]  # noqa: F841

    kernel = ninetoothed.make(
        lambda input, places, output: (
            input.tile((4,)).tile((-1,)),
            places.tile((-1,)),
            output.tile((-1,)),
        ),
        *(application, (Tensor(1), Tensor(shape=(1,)), Tensor(shape=(4,)))),
    ).definition
    types = dict.fromkeys(("input", "output"), dtypes.float32) | {"places": dtypes.int32}
    _, narrow, *_ = Assumptions(kernel, {}, types).chain()
    (asked,) = [c for c in narrow.added if str(c.expression) == "coordinate_0 + selection_0_0 * 4"]
    assert "selection_0_0, 0, 1073741824" in str(asked.positions)
