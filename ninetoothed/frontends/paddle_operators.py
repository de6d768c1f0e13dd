"""Kernels as operators on PaddlePaddle's tensors, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninetoothed.kernels.operator import OperatorDefinition


def registered(
    definition: OperatorDefinition, functions: Callable[..., Any], empty: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[type, ...]]:
    """The operator; see `Frontend.operator`.

    Args:
        empty: makes a tensor beside another, of a shape and an element type.
    """
    import paddle

    _, forward = functions(empty)
    types = (paddle.Tensor,)
    if definition.backward is None:
        return forward, types
    function = _layer(definition, definition.backward, forward)
    return function.apply, types


def _layer(
    definition: OperatorDefinition, derivative: Callable[..., Any], forward: Callable[..., Any]
) -> Any:
    import paddle

    names = [entry.name for entry in definition.inputs]
    made = [entry.name for entry in definition.outputs]
    defaults = {entry.name: entry.default for entry in definition.inputs}

    class Layer(paddle.autograd.PyLayer):  # type: ignore[misc]
        """Runs the kernel, and what was given as its backward."""

        @staticmethod
        def forward(ctx: Any, *arguments: Any, **keywords: Any) -> Any:
            output = forward(*arguments, **keywords)
            known = {**defaults, **dict(zip(names, arguments)), **keywords}
            known |= dict(zip(made, (output,) if len(made) == 1 else output))
            kept = [known[name] for name in definition.saved]
            ctx.save_for_backward(*(each for each in kept if isinstance(each, paddle.Tensor)))
            ctx.kept = [None if isinstance(each, paddle.Tensor) else (each,) for each in kept]
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            saved = iter(ctx.saved_tensor())
            kept = [next(saved) if each is None else each[0] for each in ctx.kept]
            found = definition.checked_gradients(derivative(*gradients, *kept))
            return found if len(found) > 1 else found[0]

    return Layer
