"""Which of Paddle's tensors a kernel may be given, and what Paddle's autograd is told of stores.

A kernel writes to memory by address, of which Paddle sees nothing: what its own operations in place check
and keep account of is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError


def remark(tensor: Any, is_stored: bool) -> str | None:
    """What a user is warned of, or None; see `Frontend.remark`."""
    import paddle

    if tensor.stop_gradient or not paddle.is_grad_enabled():
        return None
    return (
        "requires grad, and what the kernel computes is cut off from it: autograd does not see a kernel. "
        "Call it in a `paddle.autograd.PyLayer`, or under `paddle.no_grad()`."
    )


def stored(tensors: Sequence[Any]) -> Callable[[Sequence[Any]], object]:
    """The function that `Frontend.stored` makes: it raises the versions that autograd compares.

    A leaf is asked for at each call: whether gradients are recorded is no part of what plans are found by.
    """
    import paddle

    is_recorded = paddle.is_grad_enabled

    def tell(others: Sequence[Any]) -> None:
        for tensor in others:
            if not tensor.stop_gradient and tensor.is_leaf and is_recorded():
                raise ArgumentError(
                    f"The Paddle tensor {tensor.name!r} is stored to, and is a leaf that requires grad. As "
                    "for Paddle's own operations in place, call the kernel under `paddle.no_grad()`, or "
                    "give `.detach()` of it."
                )
            tensor._bump_inplace_version()

    return tell
