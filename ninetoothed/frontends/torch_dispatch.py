"""Operators of ours where PyTorch's dispatcher comes to autograd: of compilers, tracers, modes, subclasses.

`torch.library.register_autograd` has no rule for the transformations of torch.func, and none for tangents, which
it drops: here is what has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.frontends.torch_derivatives import check_nesting, refusing_numbers
from ninetoothed.frontends.torch_in_place import check_tangents, in_place
from ninetoothed.frontends.torch_kinds import has_tangent, is_dual
from ninetoothed.kernels.operator import OperatorDefinition, completing


def dispatched_by(
    definition: OperatorDefinition,
    operator: Any,
    forward: Callable[..., Any],
    recorded: Callable[..., Any],
) -> Callable[..., Any]:
    """The operator where autograd is, for the dispatcher.

    Args:
        forward: the operator as it computes.
        recorded: the operator, given the keys below autograd and all arguments, where gradients are recorded or
            there are tangents.
    """
    import torch
    from torch._functorch.utils import enable_single_level_autograd_function

    after, complete = torch._C._after_autograd_keyset, completing(definition)
    requires_grad, is_recorded = torch._C._any_requires_grad, torch.is_grad_enabled
    is_forward, past = _forward(), torch._C._after_ADInplaceOrView_keyset
    devices = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)

    def dispatched(keys: Any, *arguments: Any, **keywords: Any) -> Any:
        given = complete(arguments, keywords)
        is_derived = is_recorded() and requires_grad(*given)
        if is_derived or (is_forward() and any(map(has_tangent, given))):
            check_nesting()
            with enable_single_level_autograd_function():
                return recorded(keys & after, *given)
        if (keys & past).highestPriorityTypeId() in devices:
            # Nobody is in between.
            return forward(*given)
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


def shown(definition: OperatorDefinition, operator: Any) -> Callable[..., Any]:
    """The operator for compilers, tracers, modes and subclasses.

    A number may be given as a tensor of no dimensions, which a schema's numbers are not.
    """
    import torch

    are_numbers = [entry.kind != "tensor" for entry in definition.inputs]
    if not any(are_numbers):
        return operator  # type: ignore[no-any-return]
    refuse, functorch = refusing_numbers(definition), torch._C._functorch

    def number(value: Any, place: int) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if torch.compiler.is_compiling():
            # It cannot look into tensors: any tangent may be the number's.
            is_derived = torch.autograd.forward_ad._current_level >= 0
        else:
            is_derived = (
                functorch.is_batchedtensor(value)
                or functorch.is_gradtrackingtensor(value)
                or is_dual(value)
            )
        if is_derived or (value.requires_grad and torch.is_grad_enabled()):
            refuse([place == each for each in range(len(are_numbers))])
        return value.item() if value.ndim == 0 else value

    def called(*arguments: Any, **keywords: Any) -> Any:
        given = [
            number(value, place) if is_number else value
            for place, (value, is_number) in enumerate(zip(arguments, are_numbers))
        ]
        for place, entry in enumerate(definition.inputs):
            if entry.name in keywords and are_numbers[place]:
                keywords[entry.name] = number(keywords[entry.name], place)
        return operator(*given, *arguments[len(given) :], **keywords)

    return called


def is_for_dispatcher() -> bool:
    """Whether among transformations an operator is asked for, not a function: `torch.func.functionalize` has no
    rule for functions, and within the dispatcher no transformation can be begun."""
    import torch

    functorch, front = torch._C._functorch, torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode
    key = functorch.TransformType.Functionalize
    return torch._C._dispatch_tls_is_dispatch_key_excluded(front) or any(
        each.key() == key for each in functorch.get_interpreter_stack() or ()
    )


def is_of_a_batch(arguments: Sequence[Any]) -> bool:
    """Whether one is a stand-in of `is_grads_batched`, which the dispatcher runs operators for one by one."""
    import torch

    is_batched = torch._C._functorch.is_legacy_batchedtensor
    return any(isinstance(each, torch.Tensor) and is_batched(each) for each in arguments)


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
