"""The parts of an operator's derivatives in PyTorch: what is kept for backward, and forward mode of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.operator import OperatorDefinition, number_has_no_gradient

_WITHIN_FORWARD_MODE = (
    "a transformation of an operator within forward mode (jvp of vmap, jacfwd of grad, hessian) cannot be had where "
    "torch.compile, make_fx, functionalize, a mode or a subclass of tensors sees the call. Use reverse mode there "
    "(`jacrev(jacrev(f))` for a Hessian), or compute it outside"
)


def function_of(definition: OperatorDefinition, parts: dict[str, Callable[..., Any]]) -> Any:
    import torch

    static = {name: staticmethod(function) for name, function in parts.items()}
    return type(definition.name.partition("::")[2], (torch.autograd.Function,), static)


def saves_tensors(definition: OperatorDefinition) -> bool:
    """Whether all that backward needs are tensors; what is passed by value may be one too, or not."""
    may_be_other = {entry.name for entry in definition.inputs if entry.kind != "tensor"}
    return may_be_other.isdisjoint(definition.saved)


def kept_values(definition: OperatorDefinition) -> Callable[..., Sequence[Any]]:
    """What gives the values that were kept for backward, of a context and its tensors."""
    if saves_tensors(definition):
        return lambda ctx, tensors: tensors  # type: ignore[no-any-return]

    def kept(ctx: Any, tensors: Iterable[Any]) -> list[Any]:
        saved = iter(tensors)
        return [next(saved) if value is None else value[0] for value in ctx.kept]

    return kept


def guarding(definition: OperatorDefinition) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What has those of the saved values refuse a gradient which `backward` would not be given."""
    import torch

    def refused(ctx: Any, gradient: Any) -> Any:
        raise ArgumentError(
            f"operator {definition.name!r} is derived twice, and its `backward` is not given the gradients of "
            f"what is hidden: {', '.join(sorted(definition.ungiven))}. Return that, or, where it does not "
            "depend on the inputs, `detach` it in `backward`"
        )

    parts: dict[str, Any] = {
        "forward": lambda value: value.view_as(value),
        "setup_context": lambda ctx, inputs, output: None,
        "backward": refused,
    }
    guard = function_of(definition, parts)
    guard.generate_vmap_rule = True
    is_recorded = torch.is_grad_enabled
    are_guarded = [name in definition.ungiven for name in definition.saved]

    def guarded(saved: Sequence[Any]) -> Sequence[Any]:
        if not any(are_guarded) or not is_recorded():
            return saved
        return [guard.apply(v) if is_guarded else v for v, is_guarded in zip(saved, are_guarded)]

    return guarded


def jvp_of(definition: OperatorDefinition, is_dispatched: bool = False) -> Callable[..., Any]:
    """Forward mode, of backward: what multiplies by the transpose of a matrix is linear in its factor.

    Its own derivative by that factor is the matrix, so backward must have a derivative.

    Args:
        is_dispatched: whether the dispatcher asks for it, within which no transformation can be begun.
    """
    import torch

    derivative = definition.backward
    assert derivative is not None
    tensors = [place for place, entry in enumerate(definition.inputs) if entry.kind == "tensor"]
    keep, refuse = kept_values(definition), refusing_numbers(definition)
    set_forward_mode = torch.autograd.forward_ad._set_fwd_grad_enabled
    is_forward = torch._C._is_fwd_grad_enabled

    def jvp(ctx: Any, *tangents: Any) -> Any:
        # Without the tangents that they have: what is computed here is linear in those.
        unpack = torch.autograd.forward_ad.unpack_dual
        kept = keep(ctx, [unpack(each).primal for each in ctx.saved_tensors])
        refuse([tangent is not None for tangent in tangents])
        moved = [tangents[place] for place in tensors]
        keywords = {}
        if definition.is_selective:
            keywords["needed"] = [tangent is not None for tangent in moved]
        used: list[Any] = []

        def gradients(*cotangents: Any) -> tuple[Any, ...]:
            found = definition.checked_gradients(derivative(*cotangents, *kept, **keywords))
            pairs = [(g, t) for g, t in zip(found, moved) if g is not None and t is not None]
            if not all(gradient.requires_grad for gradient, _ in pairs):
                raise ArgumentError(
                    f"operator {definition.name!r} has no derivative in forward mode (jvp): it would be "
                    "the derivative of its `backward`, which is made of operators that have none. Give "
                    'these a `backward` too, or derive both: backward="derive"'
                )
            used[:] = [tangent for _, tangent in pairs]
            return tuple(gradient for gradient, _ in pairs)

        zeros = [
            torch.zeros(size, dtype=dtype, device=at, requires_grad=is_dispatched)
            for size, dtype, at in ctx.outputs
        ]
        if is_dispatched:
            found = _pulled(gradients, zeros, used, (*kept, *moved))
        else:
            with set_forward_mode(_is_within_forward_mode() or is_forward()):
                found = torch.func.vjp(gradients, *zeros)[1](tuple(used))
        return found if len(zeros) > 1 else found[0]

    return jvp


def _is_within_forward_mode() -> bool:
    """Whether what is computed here is derived once more by `torch.func.jvp`: PyTorch's own operations are to know."""
    import torch

    functorch = torch._C._functorch
    stack = functorch.get_interpreter_stack() or ()
    return any(each.key() == functorch.TransformType.Jvp for each in stack)


def _pulled(
    function: Callable[..., tuple[Any, ...]],
    zeros: Sequence[Any],
    cotangents: list[Any],
    values: Sequence[Any],
) -> tuple[Any, ...]:
    """As `torch.func.vjp` of a function at zeros that require grad, by autograd alone.

    Args:
        cotangents: by what its results are multiplied; known once it was called.
        values: all that the function depends on besides.
    """
    import torch

    # Of tensors of a transformation only those know that are within it.
    is_recorded = torch._C._are_functorch_transforms_active() or (
        torch.is_grad_enabled() and any(getattr(each, "requires_grad", False) for each in values)
    )
    try:
        with torch.enable_grad():
            results = function(*zeros)
            return torch.autograd.grad(
                results, zeros, cotangents, create_graph=is_recorded, materialize_grads=True
            )
    except RuntimeError as error:
        # Where another transformation is within this one, what PyTorch keeps of it is gone by now.
        if "savedLocalDispatchKeySet_" in str(error):
            raise ArgumentError(_WITHIN_FORWARD_MODE) from None
        raise


def check_nesting() -> None:
    """`ArgumentError` where the dispatcher asks for a derivative within forward mode."""
    import torch

    functorch = torch._C._functorch
    jvp, grad = functorch.TransformType.Jvp, functorch.TransformType.Grad
    *outer, own = [each.key() for each in functorch.get_interpreter_stack() or ()] or [None]
    if jvp in outer and own in (jvp, grad):
        raise ArgumentError(_WITHIN_FORWARD_MODE)


def refusing_numbers(definition: OperatorDefinition) -> Callable[[Sequence[Any]], None]:
    """Refuses a gradient, or a tangent, of what is passed by value: it has none.

    Given for each input whether there is one.
    """
    import torch

    names = [entry.name if entry.kind != "tensor" else None for entry in definition.inputs]
    is_compiling = torch.compiler.is_compiling

    def refuse(wanted: Sequence[Any]) -> None:
        for name, is_wanted in zip(names, wanted):
            if name is not None and is_wanted:
                # What is traced has no application to point at.
                raise number_has_no_gradient(definition, name, not is_compiling())

    return refuse
