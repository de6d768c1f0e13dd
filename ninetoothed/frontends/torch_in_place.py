"""What is stored to in place, for autograd's sake.

Of what a kernel stores autograd knows nothing, and the history of a tensor that is stored to says what it held
before. As PyTorch's own operations in place do, ours give it a new one; it ends at a node that no gradient passes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError, Location, caller_location
from ninetoothed.frontends.torch_kinds import check_stored, has_tangent, is_dual
from ninetoothed.kernels.operator import OperatorDefinition

#: Why no gradient passes what a kernel that is no operator has stored to.
_PLAINLY = (
    "a gradient is asked of a tensor that a kernel called plainly has stored to: autograd does not see a kernel. "
    "Make an operator of it, as with `ninetoothed.op`, or store to what needs no gradient under `torch.no_grad()`"
)


@functools.lru_cache(maxsize=1)
def _ending() -> Callable[..., Any]:
    """A function of why no gradient passes, of a tensor and of what its elements depend on besides: the
    history of the tensor ends there."""
    import torch

    class Stored(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, why: tuple[str, Location | None], tensor: Any, *others: Any) -> Any:
            ctx.why = why
            ctx.mark_dirty(tensor)
            return tensor

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            raise ArgumentError(*ctx.why)

    # `Function.apply` asks for transformations, whose stand-ins are refused before.
    return super(torch.autograd.Function, Stored).apply  # type: ignore[no-any-return]


def ends(why: str, tensors: Sequence[Any], others: Sequence[Any] = ()) -> None:
    """Ends the history of tensors that are stored to.

    Args:
        why: says, when a gradient is asked of them, why there is none.
        others: tensors that their elements depend on besides.

    Raises:
        ArgumentError: autograd lets nothing be stored to one of them.
    """
    reason = why, caller_location()
    for tensor in dict.fromkeys(tensors):
        if not (tensor.is_floating_point() or tensor.is_complex()):
            continue
        try:
            _ending()(reason, tensor, *others)
        except RuntimeError as error:
            raise ArgumentError(
                f"a tensor is stored to while gradients are recorded, which autograd does not allow: {error} "
                "Store to a copy of it, or call under `torch.no_grad()`"
            ) from None


def stored(tensors: Sequence[Any]) -> Callable[[Sequence[Any]], object]:
    """The function that `Frontend.stored` makes: it raises the versions that autograd compares.

    They tell it that a tensor which it kept for a gradient has changed since. What is made in inference
    mode has none. The history of a tensor that has one ends.
    """
    import torch

    ended = _ending_of(tensors)
    if ended is not None:
        return ended
    raise_versions = torch._C._increment_version
    versioned = [place for place, tensor in enumerate(tensors) if not tensor.is_inference()]
    if len(versioned) == len(tensors):
        return raise_versions  # type: ignore[no-any-return]
    if not versioned:
        # Nothing is told; of all functions that do nothing this costs a call the least.
        return len
    return lambda others: raise_versions([others[place] for place in versioned])


def _ending_of(tensors: Sequence[Any]) -> Callable[[Sequence[Any]], object] | None:
    """The function of tensors like these for those of them that have a history; None where none has."""
    import torch

    recorded = [place for place, tensor in enumerate(tensors) if tensor.requires_grad]
    if not recorded or not torch.is_grad_enabled():
        return None
    others = [place for place, tensor in enumerate(tensors) if not tensor.requires_grad]
    tell = stored([tensors[place] for place in others]) if others else len

    def end(given: Sequence[Any]) -> None:
        ends(_PLAINLY, [given[place] for place in recorded])
        tell([given[place] for place in others])

    return end


def check_in_place(definition: OperatorDefinition, arguments: Sequence[Any]) -> None:
    """`ArgumentError` for what a transformation of `torch.func` would lose of a change in place."""
    import torch

    functorch = torch._C._functorch
    is_recorded = torch.is_grad_enabled()
    for tensor in arguments:
        while isinstance(tensor, torch.Tensor):
            if functorch.is_batchedtensor(tensor):
                raise no_rule(definition, "vmap")
            if torch._is_functional_tensor(tensor):
                raise no_rule(definition, "functionalize")
            if is_dual(tensor) or (is_recorded and tensor.requires_grad):
                raise no_rule(definition, "a gradient")
            is_wrapped = functorch.is_functorch_wrapped_tensor(tensor)
            tensor = functorch.get_unwrapped(tensor) if is_wrapped else None


def check_tangents(definition: OperatorDefinition, arguments: Sequence[Any]) -> None:
    """As `check_in_place`, for forward mode, where the dispatcher asks."""
    if any(map(has_tangent, arguments)):
        raise no_rule(definition, "a gradient")


def no_rule(definition: OperatorDefinition, asked: str) -> ArgumentError:
    """Why a transformation that is asked of an operator which changes tensors has none."""
    return ArgumentError(
        f"operator {definition.name!r} changes tensors in place, and transformations of torch.func have no rule "
        f"for that: {asked} is asked of it. List what it changes under `outputs`, so that it is made anew"
    )


def in_place(definition: OperatorDefinition, forward: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that changes tensors, where gradients are recorded and one of its tensors requires one.

    Args:
        forward: the operator as it computes, of all arguments in order.
    """
    import torch

    changed = [place for place, entry in enumerate(definition.inputs) if entry.is_changed]
    why = (
        f"operator {definition.name!r} changes tensors in place, so it has no `backward`, and a gradient is "
        "asked of what it changed. List what it changes under `outputs`, so that it is made anew and can "
        "have one, or call it under `torch.no_grad()`"
    )

    def recorded(*arguments: Any) -> Any:
        check_stored(definition, arguments)
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        depends_on = [each for each in tensors if each.requires_grad]
        # Before anything is stored: where autograd does not allow it, nothing is.
        ends(why, [arguments[place] for place in changed], depends_on)
        with torch.no_grad():
            result = forward(*arguments)
        if result is not None:
            ends(why, result if isinstance(result, tuple) else (result,), depends_on)
        return result

    return recorded
