"""Kernels as PyTorch's operators: known to `torch.compile`, `torch.export`, autograd and `vmap`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.operator import OperatorDefinition
from ninetoothed.tensors.arrange import NO_VALUE

#: What a kind of input is in PyTorch's schemas.
_TYPES = {
    "tensor": "Tensor",
    "number": "Scalar",
    "int": "SymInt",
    "float": "float",
    "bool": "bool",
    "str": "str",
}

#: A library goes with its operators when it is collected.
_LIBRARIES: list[Any] = []


def registered(
    definition: OperatorDefinition, functions: Callable[..., Any]
) -> tuple[Callable[..., Any], tuple[type, ...]]:
    """The operator, registered; see `Frontend.operator`.

    Raises:
        ArgumentError: there is an operator of this name.
    """
    import torch

    namespace, _, name = definition.name.partition("::")
    if hasattr(getattr(torch.ops, namespace), name):
        raise ArgumentError(
            f"PyTorch has an operator {definition.name!r}; give this one another name"
        )
    allocate, forward = functions(_empty)
    library = torch.library.Library(namespace, "FRAGMENT")
    _LIBRARIES.append(library)
    library.define(f"{name}{_schema(definition)}", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, forward, "CompositeExplicitAutograd")
    torch.library.register_fake(definition.name, allocate, lib=library)
    operator = getattr(getattr(torch.ops, namespace), name).default
    apply = None
    if definition.backward is not None:
        setup_context = _setup_context(definition)
        backward = _backward(definition, definition.backward)
        torch.library.register_autograd(
            definition.name, backward, setup_context=setup_context, lib=library
        )
        apply = _recorded(definition, forward, setup_context, backward)
    function = _short_way(operator, forward, apply)
    if not any(entry.is_changed for entry in definition.inputs):
        torch.library.register_vmap(definition.name, _over_batch(function), lib=library)
    return function, (torch.Tensor, torch.nn.Parameter)


def _recorded(
    definition: OperatorDefinition,
    forward: Callable[..., Any],
    setup_context: Callable[..., None],
    backward: Callable[..., Any],
) -> Callable[..., Any]:
    """The operator as a function of autograd's, which `torch.func` transforms too."""
    import torch

    parts = {
        "forward": forward,
        "setup_context": setup_context,
        "backward": backward,
        "vmap": _over_batch(lambda *arguments: apply(*arguments)),
    }

    def forward_with_context(ctx: Any, *arguments: Any) -> Any:
        output = forward(*arguments)
        setup_context(ctx, arguments, output)
        return output

    # Where nothing is transformed: with `setup_context` PyTorch binds the arguments anew at each call.
    plain = _function(definition, {"forward": forward_with_context, "backward": backward})
    transformable = _function(definition, parts)
    is_transformed = torch._C._are_functorch_transforms_active
    parameters = [
        inspect.Parameter(e.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=e.default)
        for e in definition.inputs
    ]
    signature = inspect.Signature(parameters)

    def apply(*arguments: Any, **keywords: Any) -> Any:
        if keywords or len(arguments) < len(parameters):
            bound = signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            arguments = tuple(bound.arguments.values())
        return (transformable if is_transformed() else plain).apply(*arguments)

    return apply


def _function(definition: OperatorDefinition, parts: dict[str, Callable[..., Any]]) -> Any:
    import torch

    static = {name: staticmethod(function) for name, function in parts.items()}
    return type(definition.name.partition("::")[2], (torch.autograd.Function,), static)


def _short_way(
    operator: Any, forward: Callable[..., Any], apply: Callable[..., Any] | None
) -> Callable[..., Any]:
    """The operator as it is called: past PyTorch's dispatcher where that would only come back here.

    Compilers, tracers, modes and subclasses of tensors are shown the registered operator.
    """
    import torch

    usual = (torch.Tensor, torch.nn.Parameter)
    is_compiling, is_recorded = torch.compiler.is_compiling, torch.is_grad_enabled
    is_transformed = torch._C._are_functorch_transforms_active
    modes, is_traced = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state

    def call(*arguments: Any, **keywords: Any) -> Any:
        if is_compiling():
            return operator(*arguments, **keywords)
        requires_grad = False
        for each in (*arguments, *keywords.values()) if keywords else arguments:
            if each.__class__ in usual:
                requires_grad = requires_grad or each.requires_grad
            elif isinstance(each, torch.Tensor):
                return operator(*arguments, **keywords)
        if modes() or is_traced() is not None:
            return operator(*arguments, **keywords)
        if is_transformed():
            return (apply or operator)(*arguments, **keywords)
        if requires_grad and apply is not None and is_recorded():
            return apply(*arguments, **keywords)
        return forward(*arguments, **keywords)

    return call


def _empty(beside: Any, shape: Any, dtype: Any) -> Any:
    return beside.new_empty(shape, dtype=dtype)


def _schema(definition: OperatorDefinition) -> str:
    """Its arguments and results in PyTorch's language of schemas."""
    parts = []
    for place, entry in enumerate(definition.inputs):
        type_ = f"Tensor(a{place}!)" if entry.is_changed else _TYPES[entry.kind]
        default = "" if entry.default is NO_VALUE else f"={_shown(entry.default)}"
        parts.append(f"{type_} {entry.name}{default}")
    results = ", ".join("Tensor" for _ in definition.outputs)
    return f"({', '.join(parts)}) -> {results if len(definition.outputs) == 1 else f'({results})'}"


def _shown(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _setup_context(definition: OperatorDefinition) -> Callable[..., None]:
    places = {entry.name: place for place, entry in enumerate(definition.inputs)}
    made = {entry.name: place for place, entry in enumerate(definition.outputs)}
    is_single = len(definition.outputs) == 1

    def setup_context(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        outputs = (output,) if is_single else output
        kept = [inputs[places[n]] if n in places else outputs[made[n]] for n in definition.saved]
        tensors = [value for value in kept if hasattr(value, "requires_grad")]
        ctx.save_for_backward(*tensors)
        ctx.kept = [None if hasattr(value, "requires_grad") else (value,) for value in kept]

    return setup_context


def _backward(definition: OperatorDefinition, derivative: Callable[..., Any]) -> Callable[..., Any]:
    tensors = [place for place, entry in enumerate(definition.inputs) if entry.kind == "tensor"]

    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        kept = [next(saved) if value is None else value[0] for value in ctx.kept]
        keywords = {}
        if definition.is_selective:
            keywords["needed"] = [ctx.needs_input_grad[place] for place in tensors]
        found = definition.checked_gradients(derivative(*gradients, *kept, **keywords))
        result: list[Any] = [None] * len(definition.inputs)
        for place, gradient in zip(tensors, found):
            result[place] = gradient
        return tuple(result)

    return backward


def _over_batch(operator: Any) -> Callable[..., Any]:
    """The operator for `torch.vmap`: once for each element of the batch."""

    def over_batch(info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
        import torch

        results = [
            operator(
                *(
                    argument if dim is None else argument.select(dim, index)
                    for argument, dim in zip(arguments, in_dims)
                )
            )
            for index in range(info.batch_size)
        ]
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        return tuple(map(torch.stack, zip(*results))), (0,) * len(results[0])

    return over_batch
