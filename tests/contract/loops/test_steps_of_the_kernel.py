"""LANGUAGE.md, "Application": `for k in range(...)`, of which only the running kernel knows the step: Python's rounds,
whatever types the bounds have."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402
from ninetoothed.kernels.assertions import assertions  # noqa: E402
from ninetoothed.kernels.steps import steps  # noqa: E402

INTEGERS = {
    name: getattr(torch, name)
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")
}


def loaded(x, start, stop, step, y):
    total = 0.0
    for k in range(start[0], stop[0], step[0]):
        total += x.source[k]
    y = total  # noqa: F841


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "bounds", [(1, 9, 3), (5, 1, 3), (0, 9, 3), (0, 120, 50), (100, 3, -20), (-100, 100, 50)]
)
def test_bounds_that_are_loaded(bounds, dtype):
    if min(bounds) < 0 and dtype.startswith("u"):
        pytest.skip("no such numbers")
    arrangement = lambda x, *others: (x, *[each.tile((1,)) for each in others])  # noqa: E731
    x, y = torch.arange(300.0), torch.full((1,), float("nan"))
    given = [torch.tensor([bound], dtype=INTEGERS[dtype]) for bound in bounds]
    ninetoothed.make(arrangement, loaded, tuple(Tensor(1) for _ in range(5)))(x, *given, y)
    assert y.item() == sum(k for k in range(*bounds) if k >= 0)


@pytest.mark.parametrize(
    "bounds",
    [
        (-2_000_000_000, 2_000_000_000, 1_000_000_000),
        (2_000_000_000, -2_000_000_000, -1_000_000_000),
        (0, 10, 3),
        (10, 0, -3),
        (3, 3, 1),
    ],
)
def test_bounds_whose_difference_32_bits_do_not_hold(bounds):
    def application(start, stop, step, y):
        rounds, last = 0, 0
        for k in range(start, stop, step):
            rounds += 1
            last = k
        y[0] = rounds
        y[1] = last

    y = torch.full((2,), -1, dtype=torch.int32)
    arrangement = lambda *given: (*given[:3], given[3].tile((-1,)))  # noqa: E731
    tensors = (*(Tensor(0) for _ in range(3)), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(*bounds, y)
    rounds = range(*bounds)
    assert y.tolist() == [len(rounds), rounds[-1] if rounds else 0]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int8", "int32"])
def test_a_narrow_step_to_a_size(dtype):
    def application(x, step, y):
        total = 0
        for k in range(0, x.shape[0], step[0]):
            total += k
        y = total  # noqa: F841

    arrangement = lambda x, step, y: (x.tile((-1,)), step.tile((1,)), y.tile((1,)))  # noqa: E731
    y = torch.full((1,), -1, dtype=torch.int32)
    step = torch.tensor([3], dtype=INTEGERS[dtype])
    ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(3)))(
        torch.zeros(11), step, y
    )
    assert y.item() == sum(range(0, 11, 3))


def by_a_number(x, n, y):
    total = 0.0
    for k in range(0, 4, n):
        total += 1.0
    y = x + total  # noqa: F841


def by_a_number_and_a_size(x, n, y):
    total, step = 0.0, n * x.source.shape[0]
    for k in range(4, 0, -step):
        total += 1.0
    y = x + total  # noqa: F841


def by_a_number_in_rounds_that_there_are(x, n, y):
    total = 0.0
    if n < 1:
        for j in range(2):
            for k in range(0, 4, n):
                total += 1.0
    y = x + total  # noqa: F841


def by_a_size(x, n, y):
    total = 0.0
    for k in range(0, 4, x.source.shape[0] - 4):
        total += 1.0
    y = x + total  # noqa: F841


def _blocks(x, n, y):
    return x.tile((4,)), n, y.tile((4,))


def _made(application):
    return ninetoothed.make(_blocks, application, (Tensor(1), Tensor(0), Tensor(1)))


@pytest.mark.parametrize(
    "application",
    [by_a_number, by_a_number_and_a_size, by_a_number_in_rounds_that_there_are, by_a_size],
)
def test_a_step_that_a_call_makes_0_is_refused(application):
    kernel, x, y = _made(application), torch.ones(4), torch.zeros(4)
    with pytest.raises(ArgumentError, match="The step of this range is 0 in this call") as caught:
        kernel(x, 0, y)
    assert caught.value.location.file == __file__
    assert not y.any()


@pytest.mark.parametrize("application", [by_a_number, by_a_number_and_a_size, by_a_size])
def test_where_a_step_of_0_is_asked_of_a_call(application):
    """Before a launch, so on every backend."""
    definition = _made(application).definition
    asked = [each for each in assertions(definition) if each.kind is ArgumentError]
    assert len(asked) == (application is by_a_size)
    assert len(steps(definition)) == (application is not by_a_size)


def not_come_to(x, n, y):
    if n > 0:
        for k in range(0, 4, n):
            y = x  # noqa: F841


@pytest.mark.parametrize("number", [0, 2])
def test_a_step_of_0_to_which_no_program_comes(number):
    x, y = torch.ones(4), torch.zeros(4)
    _made(not_come_to)(x, number, y)
    assert torch.equal(y, x * bool(number))
