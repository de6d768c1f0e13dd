"""What Paddle's autograd is told: of kernels as operators with gradients, and of what kernels store.

A kernel writes to memory by address, of which Paddle sees nothing: what its own operations in place check
and keep account of is done here.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import FRAMEWORKS, ArgumentError
from ninetoothed.kernels.operator import (
    OperatorDefinition,
    completing,
    number_has_no_gradient,
    with_any_backward,
)


def registered(
    definition: OperatorDefinition, functions: Callable[..., Any], empty: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[type, ...]]:
    """The operator; see `Frontend.operator`.

    Args:
        empty: makes a tensor beside another, of a shape and an element type.
    """
    import paddle

    FRAMEWORKS.add("paddle")
    _, forward = functions(empty)
    types = (paddle.Tensor,)
    if definition.backward is None and not definition.outputs:
        return forward, types
    layer, complete = _layer(with_any_backward(definition), forward), completing(definition)
    changed = [place for place, entry in enumerate(definition.inputs) if entry.is_changed]
    is_recorded, tell = paddle.is_grad_enabled, stored(())

    def function(*arguments: Any, **keywords: Any) -> Any:
        given = complete(arguments, keywords)
        asking = [each for each in given if isinstance(each, types) and not each.stop_gradient]
        if not asking or not is_recorded():
            return forward(*given)
        if changed:
            # Within the layer no gradients are recorded, and nothing is said.
            tell([given[place] for place in changed])
            stored_to = [id(given[place]) for place in changed]
            for each in asking:
                if id(each) not in stored_to and (text := remark(each, True)):
                    warnings.warn(f"operator {definition.name!r}: a tensor {text}", stacklevel=3)
        return layer.apply(*given)

    return function, types


def _layer(definition: OperatorDefinition, forward: Callable[..., Any]) -> Any:
    """The operator as a function of autograd's, of all arguments in order."""
    import paddle

    derivative: Any = definition.backward
    names = [entry.name for entry in definition.inputs]
    made = [entry.name for entry in definition.outputs]
    tensors = [entry.name for entry in definition.tensors]

    class Layer(paddle.autograd.PyLayer):  # type: ignore[misc]
        """Runs the kernel, and what was given as its backward."""

        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            output = forward(*arguments)
            known = dict(zip(names, arguments))
            known |= dict(zip(made, (output,) if len(made) == 1 else output))
            kept = [known[name] for name in definition.saved]
            ctx.save_for_backward(*(each for each in kept if isinstance(each, paddle.Tensor)))
            ctx.kept = [None if isinstance(each, paddle.Tensor) else (each,) for each in kept]
            ctx.versions = [
                each.inplace_version for each in kept if isinstance(each, paddle.Tensor)
            ]
            # Paddle asks for a gradient of each tensor that was given, of a number that is one too.
            ctx.asked = [
                (name, not each.stop_gradient, each.shape)
                for name, each in zip(names, arguments)
                if isinstance(each, paddle.Tensor)
            ]
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved_tensors = ctx.saved_tensor()
            if any(e.inplace_version != was for e, was in zip(saved_tensors, ctx.versions)):
                raise ArgumentError(
                    f"operator {definition.name!r}: a tensor that its backward needs was stored to after "
                    "the call. Store to a `.clone()` of it, or give the operator one."
                )
            for name, is_asked, _ in ctx.asked:
                if is_asked and name not in tensors:
                    raise number_has_no_gradient(definition, name)
            saved = iter(saved_tensors)
            kept = [next(saved) if each is None else each[0] for each in ctx.kept]
            found = dict(zip(tensors, definition.checked_gradients(derivative(*gradients, *kept))))
            # Paddle takes one of any shape.
            for name, is_asked, shape in ctx.asked:
                gradient = found.get(name) if is_asked else None
                if isinstance(gradient, paddle.Tensor) and gradient.shape != shape:
                    raise ArgumentError(
                        f"operator {definition.name!r}: `backward` gave a gradient of shape "
                        f"{tuple(gradient.shape)} for `{name}`, whose shape is {tuple(shape)}"
                    )
            # It takes none of what asks for none.
            given = tuple(found.get(name) if is_asked else None for name, is_asked, _ in ctx.asked)
            return given if len(given) > 1 else given[0]

    return Layer


def remark(tensor: Any, is_stored: bool) -> str | None:
    """What a user is warned of, or None; see `Frontend.remark`."""
    import paddle

    if tensor.stop_gradient or not paddle.is_grad_enabled():
        return None
    return (
        "requires grad, and what the kernel computes is cut off from it: autograd does not see a kernel. "
        "Call it in a `paddle.autograd.PyLayer`, or under `paddle.no_grad()`."
    )


#: What views begin their history with, which Paddle does not tell from other tensors.
_OF_VIEWS = frozenset(
    f"{name}GradNode"
    for name in (
        "Slice StridedSlice AsStrided Reshape ViewShape ViewDtype Transpose Squeeze Unsqueeze Flatten Unbind "
        "Diagonal TensorUnfold"
    ).split()
)


def stored(tensors: Sequence[Any]) -> Callable[[Sequence[Any]], object]:
    """The function that `Frontend.stored` makes: it raises the versions that autograd compares.

    What is no leaf gets a new history, as of Paddle's own operations in place, which no gradient passes. A leaf is
    asked for at each call: whether gradients are recorded is no part of what plans are found by. So is a view: Paddle
    follows no store from it to what it is a view of, whose gradient would be that of what was there before.
    """
    import paddle

    is_recorded, end = paddle.is_grad_enabled, _ending()

    def tell(others: Sequence[Any]) -> None:
        for tensor in others:
            if tensor.stop_gradient or not is_recorded():
                tensor._bump_inplace_version()
            elif not tensor.is_leaf:
                if tensor.grad_fn.name() in _OF_VIEWS:
                    raise ArgumentError(
                        f"The Paddle tensor {tensor.name!r} is stored to, and is a view of another that requires "
                        "grad, which Paddle would derive as if nothing were stored. Store to a `.clone()` of the "
                        "view, or call the kernel under `paddle.no_grad()` where no gradient passes it."
                    )
                end(tensor)
            else:
                raise ArgumentError(
                    f"The Paddle tensor {tensor.name!r} is stored to, and is a leaf that requires grad. As "
                    "for Paddle's own operations in place, call the kernel under `paddle.no_grad()`, or "
                    "give `.detach()` of it."
                )

    return tell


@functools.lru_cache(maxsize=1)
def _ending() -> Callable[[Any], Any]:
    """What ends the history of a tensor: a gradient that is asked of it raises."""
    import paddle

    class Stored(paddle.autograd.PyLayer):  # type: ignore[misc]
        """Stands for what a kernel stored."""

        @staticmethod
        def forward(ctx: Any, tensor: Any) -> Any:
            return tensor

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise ArgumentError(
                "a gradient is asked of a tensor that a kernel has stored to: autograd does not see a kernel. "
                "Make an operator of it, with the tensor among its `outputs` and a `backward`, or store under "
                "`paddle.no_grad()` to what needs no gradient"
            )

    return Stored.apply  # type: ignore[no-any-return]
