"""A call like the last one makes no key; whatever differs from it is seen."""

from __future__ import annotations

import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor

torch = pytest.importorskip("torch", reason="needs PyTorch")


def doubling():
    BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)

    def arrangement(x, y):
        return x.tile((BLOCK_SIZE,)), y.tile((BLOCK_SIZE,))

    def application(x, y):
        y = x * 2

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))


@pytest.fixture
def kernel():
    """A kernel that has served two float32 tensors of 8 elements until they need no key."""
    kernel = doubling()
    for _ in range(4):
        kernel(torch.ones(8), torch.empty(8), BLOCK_SIZE=4)
    return kernel


def guarded(kernel):
    """The launch function's record of its last plan."""
    return kernel.func.__globals__["last_"][0]


def check(kernel, x, **options):
    y = torch.full(x.shape, torch.nan).to(x.dtype)
    kernel(x, y, BLOCK_SIZE=4, **options)
    assert torch.equal(y, (x * 2).detach())


class Asked(BaseException):
    """No `Exception`: a launch function goes another way after one."""


class Unasked(dict):
    """Plans that nobody may look up."""

    def __getitem__(self, key):
        raise Asked


def test_a_call_like_the_last_makes_no_key(kernel, monkeypatch):
    monkeypatch.setitem(kernel.func.__globals__, "plans_", Unasked())
    check(kernel, torch.randn(8))
    with pytest.raises(Asked):
        check(kernel, torch.randn(9))


def test_a_call_in_place_like_the_last_makes_no_key(kernel, monkeypatch):
    """PyTorch's comparison passes no tensor twice."""
    x = torch.ones(8)
    for _ in range(3):
        kernel(x, x, BLOCK_SIZE=4)
    monkeypatch.setitem(kernel.func.__globals__, "plans_", Unasked())
    kernel(x, x, BLOCK_SIZE=4)
    assert torch.equal(x, torch.full((8,), 16.0))


def test_calls_in_place_and_others_are_told_apart(kernel):
    x, y, z = torch.ones(8), torch.empty(8), torch.ones(8, dtype=torch.float64)
    for _ in range(3):
        kernel(x, x, BLOCK_SIZE=4)
        kernel(x, y, BLOCK_SIZE=4)
        kernel(z, z, BLOCK_SIZE=4)
    assert torch.equal(x, torch.full((8,), 8.0))
    assert torch.equal(y, torch.full((8,), 16.0))
    assert torch.equal(z, torch.full((8,), 8.0, dtype=torch.float64))


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(9),
        torch.randn(0),
        torch.randn(8, dtype=torch.float64),
        torch.randn(16)[::2],
        torch.randn(9)[1:],
        torch.randn(1).expand(8),
        torch.nn.Parameter(torch.randn(8)),
    ],
    ids=["longer", "empty", "dtype", "strided", "unaligned", "expanded", "class"],
)
def test_what_differs_from_the_last_call_is_seen(kernel, x):
    for _ in range(4):
        check(kernel, x)
        check(kernel, torch.randn(8))


def test_another_constant_is_another_plan(kernel):
    plan = guarded(kernel)
    for _ in range(2):
        kernel(torch.ones(8), torch.empty(8), BLOCK_SIZE=8)
    assert guarded(kernel) is not plan


def test_a_guard_that_no_longer_holds_is_made_again(kernel):
    plan = guarded(kernel)
    alike = plan[4]
    with torch.inference_mode():
        # PyTorch's guards tell it from others; a kernel has no reason to.
        x = torch.randn(8)
    for _ in range(3):
        kernel(x, torch.empty(8), BLOCK_SIZE=4)
    assert guarded(kernel) is plan and plan[4] is not alike


def test_a_guard_keeps_no_tensor_alive(kernel):
    import weakref

    x = torch.ones(8)
    alive = weakref.ref(x)
    for _ in range(3):
        kernel(x, torch.empty(8), BLOCK_SIZE=4)
    del x
    assert alive() is None


def test_wrong_arguments_are_still_errors(kernel):
    with pytest.raises(TypeError, match="wrong"):
        kernel(torch.ones(8), torch.empty(8), BLOCK_SIZE=4, wrong=1)
    with pytest.raises(TypeError, match="arguments"):
        kernel(torch.ones(8), torch.empty(8), 4, 5)
    with pytest.raises(ninetoothed.errors.ArgumentError):
        kernel(torch.ones(8), 1, BLOCK_SIZE=4)
    check(kernel, torch.randn(8))
