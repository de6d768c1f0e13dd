"""Operators of ours where PyTorch's dispatcher comes to autograd: of compilers, tracers, modes, subclasses.

`torch.library.register_autograd` has no rule for the transformations of torch.func, and none for tangents, which
it drops: here is what has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ninetoothed.frontends.torch_derivatives import check_nesting
from ninetoothed.frontends.torch_in_place import check_tangents, in_place
from ninetoothed.frontends.torch_kinds import has_tangent
from ninetoothed.kernels.operator import OperatorDefinition


def dispatched_by(
    definition: OperatorDefinition, operator: Any, recorded: Callable[..., Any]
) -> Callable[..., Any]:
    """The operator where autograd is, for the dispatcher.

    Args:
        recorded: the operator, given the keys below autograd and all arguments, where gradients are recorded or
            there are tangents.
    """
    import torch
    from torch._functorch.utils import enable_single_level_autograd_function

    after, complete = torch._C._after_autograd_keyset, completing(definition)
    requires_grad, is_recorded = torch._C._any_requires_grad, torch.is_grad_enabled
    is_forward = _forward()

    def dispatched(keys: Any, *arguments: Any, **keywords: Any) -> Any:
        given = complete(arguments, keywords)
        is_derived = is_recorded() and requires_grad(*given)
        if is_derived or (is_forward() and any(map(has_tangent, given))):
            check_nesting()
            with enable_single_level_autograd_function():
                return recorded(keys & after, *given)
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keys & after, *given)

    return dispatched


def changing_below(definition: OperatorDefinition, operator: Any) -> Callable[..., Any]:
    """What `dispatched_by` takes, of an operator that changes tensors."""
    import torch

    is_forward = _forward()

    def recorded(keys: Any, *arguments: Any) -> Any:
        def below(*arguments: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return operator.redispatch(keys, *arguments)

        if is_forward():
            check_tangents(definition, arguments)
        return in_place(definition, below)(*arguments)

    return recorded


def is_for_dispatcher() -> bool:
    """Whether among transformations an operator is asked for, not a function: `torch.func.functionalize` has no
    rule for functions, and within the dispatcher no transformation can be begun."""
    import torch

    functorch, front = torch._C._functorch, torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode
    key = functorch.TransformType.Functionalize
    return torch._C._dispatch_tls_is_dispatch_key_excluded(front) or any(
        each.key() == key for each in functorch.get_interpreter_stack() or ()
    )


def duals() -> Callable[[], bool]:
    """Whether tensors may be dual numbers, of forward mode; within its own formulas they are not."""
    import torch

    forward_ad, is_forward = torch.autograd.forward_ad, torch._C._is_fwd_grad_enabled
    return lambda: forward_ad._current_level >= 0 and is_forward()


def _forward() -> Callable[[], bool]:
    """As `duals`, for the dispatcher: the code that `torch.compile` makes opens levels without Python's knowing."""
    import torch

    is_transformed, functorch = torch._C._are_functorch_transforms_active, torch._C._functorch
    has_duals = duals()

    def is_forward() -> bool:
        if is_transformed():
            return functorch.peek_interpreter_stack().key() == functorch.TransformType.Jvp
        return has_duals()

    return is_forward


def completing(definition: OperatorDefinition) -> Callable[..., tuple[Any, ...]]:
    """What gives all arguments of a call in order."""
    parameters = [
        inspect.Parameter(e.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=e.default)
        for e in definition.inputs
    ]
    signature = inspect.Signature(parameters)

    def complete(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if not keywords and len(arguments) == len(parameters):
            return arguments
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    return complete
