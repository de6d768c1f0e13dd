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


def test_a_call_like_the_last_makes_no_key(kernel):
    launch = kernel.func
    plans = launch.__globals__["plans_"]
    launch.__globals__["plans_"] = {}
    try:
        check(kernel, torch.randn(8))
    finally:
        launch.__globals__["plans_"] = plans


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
