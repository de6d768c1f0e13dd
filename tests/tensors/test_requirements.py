"""What an arrangement asks of sizes, as expressions: they hold just where `Arrangement.verify` takes the sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ninetoothed import Tensor
from ninetoothed.errors import ArrangementError
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.arrange import arrange
from ninetoothed.tensors.requirements import requirements


def expanded(x: Tensor, y: Tensor) -> Any:
    return x.tile((4,)), y.tile((1,)).expand((x.tile((4,)).shape[0],))


def squeezed(x: Tensor, y: Tensor) -> Any:
    return x.tile((4, 8)).squeeze(1), y.tile((4, 8)).squeeze(1)


def flattened(x: Tensor, y: Tensor) -> Any:
    inner = x.tile((3, 3), strides=(1, 1), floor_mode=True)
    return inner.flatten(), y.tile((3, 3), strides=(1, 1), floor_mode=True).flatten()


def indexed(x: Tensor, y: Tensor) -> Any:
    return x[2, :].tile((4,)), y[2, :].tile((4,))


def padded(x: Tensor, y: Tensor) -> Any:
    return x.pad(((0, y.shape[0] - 3),)).tile((4,)), y.tile((4,))


def strided(x: Tensor, y: Tensor) -> Any:
    return x.tile((4,), strides=(y.shape[0] - 2,)), y.tile((-1,))


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "expanded": (expanded, 1),
    "squeezed": (squeezed, 2),
    "flattened": (flattened, 2),
    "indexed": (indexed, 2),
    "padded": (padded, 1),
    "strided": (strided, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_they_hold_just_where_the_sizes_fit(name: str) -> None:
    arrangement, rank = CASES[name]

    def application(x: Any, y: Any) -> None:
        y = x  # noqa: F841

    tensors = (Tensor(rank), Tensor(rank))
    arranged = arrange(arrangement, application, tensors)
    asked = list(requirements(arranged))
    source, fitting, refused = random.Random(name), 0, 0
    for _ in range(300):
        values = {
            as_symbol(size): source.choice((0, 1, 2, 3, 4, 5, 8))
            for tensor in tensors
            for size in tensor.shape
        }
        holds = all(
            r.low
            <= (value := r.expression.evaluate(values))
            <= (value if r.high is None else r.high)
            for r in asked
        )
        try:
            arranged.verify(lambda e, values=values: int(as_symbol(e).evaluate(values)))
            assert holds, values
            fitting += 1
        except ArrangementError:
            assert not holds, values
            refused += 1
    assert fitting > 5 and refused > 5


def test_what_holds_for_every_size_is_not_asked() -> None:
    arranged = arrange(lambda x: x.tile((4, 4)).flatten(), lambda x: None, (Tensor(2),))
    assert [each.given({}) for each in requirements(arranged)] == [None] * len(
        list(requirements(arranged))
    )
