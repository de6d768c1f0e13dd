"""Kernels as PyTorch's operators: known to `torch.compile`, `torch.export`, autograd and `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import FRAMEWORKS, ArgumentError, NineToothedError
from ninetoothed.frontends.torch_derivatives import (
    function_of,
    guarding,
    jvp_of,
    kept_values,
    refusing_numbers,
    saves_tensors,
)
from ninetoothed.frontends.torch_dispatch import (
    changing_below,
    dispatched_by,
    duals,
    is_for_dispatcher,
    is_of_a_batch,
    shown,
)
from ninetoothed.frontends.torch_in_place import check_in_place, in_place, no_rule
from ninetoothed.frontends.torch_kinds import check_inputs
from ninetoothed.kernels.operator import OperatorDefinition, completing, with_any_backward
from ninetoothed.kernels.sharding import Sharding, operator_shardings
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

    FRAMEWORKS.add("torch")
    namespace, _, name = definition.name.partition("::")
    if hasattr(getattr(torch.ops, namespace), name):
        raise ArgumentError(
            f"PyTorch has an operator {definition.name!r}; give this one another name"
        )
    is_changing = any(entry.is_changed for entry in definition.inputs)
    if not is_changing:
        definition = with_any_backward(definition)
    contiguous = torch.contiguous_format
    like = functools.partial(torch.empty_like, memory_format=contiguous)
    allocate, forward = functions(_empty, like)
    library = torch.library.Library(namespace, "FRAGMENT")
    _LIBRARIES.append(library)
    library.define(f"{name}{_schema(definition)}", tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, forward, "CompositeExplicitAutograd")
    torch.library.register_fake(definition.name, allocate, lib=library)
    operator = getattr(getattr(torch.ops, namespace), name).default
    if definition.backward is not None:
        plain, apply, below = _recorded(definition, operator, forward)
    else:
        plain, below = in_place(definition, forward), changing_below(definition, operator)
        apply = operator
    dispatched = dispatched_by(definition, operator, forward, below)
    library.impl(name, dispatched, "Autograd", with_keyset=True)
    if definition.autocast is not None:
        for key in ("AutocastCPU", "AutocastCUDA"):
            library.impl(name, _lowered(definition, operator, key), key)
    function = _short_way(definition, operator, forward, plain, apply)
    over_batch = _no_batch(definition) if is_changing else _over_batch(definition, function)
    torch.library.register_vmap(definition.name, over_batch, lib=library)
    return function, (torch.Tensor, torch.nn.Parameter, torch.fx.Proxy)


def _recorded(
    definition: OperatorDefinition, operator: Any, forward: Callable[..., Any]
) -> tuple[Callable[..., Any], ...]:
    """The operator as a function of autograd's: where nothing is transformed, for `torch.func`, and for the
    dispatcher.

    All take all arguments in order; the last the keys of what is below it before them.
    """
    import torch

    assert definition.backward is not None
    is_transformed = torch._C._are_functorch_transforms_active
    set_forward_mode = torch.autograd.forward_ad._set_fwd_grad_enabled
    setup_context = _setup_context(definition)
    backward = _backward(definition, definition.backward)
    jvp_below = jvp_of(definition, is_dispatched=True)

    def setup_transformable(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        ctx.save_for_forward(*setup_context(ctx, inputs, output))
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.outputs = [(each.shape, each.dtype, each.device) for each in outputs]

    def forward_with_context(ctx: Any, *arguments: Any) -> Any:
        output = forward(*arguments)
        setup_context(ctx, arguments, output)
        return output

    def forward_below(ctx: Any, keys: Any, *arguments: Any) -> Any:
        # What a transformation of torch.func is within may record too.
        is_outer = is_transformed()
        with (
            torch._C._AutoDispatchBelowAutograd(),
            torch.set_grad_enabled(is_outer),
            set_forward_mode(is_outer),
        ):
            output = operator.redispatch(keys, *arguments)
        setup_transformable(ctx, arguments, output)
        return output

    # With `setup_context` PyTorch binds the arguments anew at each call, and `Function.apply` asks once
    # more what the short way knows: that no transformation is near. The dispatcher has seen to them.
    plain = function_of(definition, {"forward": forward_with_context, "backward": backward})
    below = function_of(
        definition,
        {
            "forward": forward_below,
            "backward": lambda ctx, *gradients: (None, *backward(ctx, *gradients, skipped=1)),
            "jvp": lambda ctx, _, *tangents: jvp_below(ctx, *tangents),
        },
    )
    with_memory = _with_memory()
    parts = {
        "forward": lambda *arguments: forward(*with_memory(arguments)),
        "setup_context": setup_transformable,
        "backward": backward,
        "vmap": _over_batch(definition, lambda *arguments: transformable.apply(*arguments)),
        "jvp": jvp_of(definition),
    }
    transformable: Any = function_of(definition, parts)
    function: Any = torch.autograd.Function
    return super(function, plain).apply, transformable.apply, super(function, below).apply


def _short_way(
    definition: OperatorDefinition,
    operator: Any,
    forward: Callable[..., Any],
    plain: Callable[..., Any],
    apply: Callable[..., Any],
) -> Callable[..., Any]:
    """The operator as it is called: past PyTorch's dispatcher where that would only come back here.

    Compilers, tracers, modes and subclasses of tensors are shown the registered operator.
    """
    import torch

    usual = (torch.Tensor, torch.nn.Parameter)
    is_compiling, is_recorded = torch.compiler.is_compiling, torch.is_grad_enabled
    is_transformed = torch._C._are_functorch_transforms_active
    modes, is_traced = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state
    is_cast = torch._C._is_any_autocast_enabled if definition.autocast is not None else bool
    show = shown(definition, operator)
    has_duals, complete = duals(), completing(definition)
    unwrap = torch._C._functorch.unwrap_if_dead
    is_changing = any(entry.is_changed for entry in definition.inputs)
    count = len(definition.inputs)

    def unwrapped(given: Sequence[Any]) -> list[Any]:
        """A tensor of a transformation that has ended has one in it, as `Function.apply` knows."""
        return [unwrap(each) if each.__class__ in usual else each for each in given]

    def call(*arguments: Any, **keywords: Any) -> Any:
        if is_compiling():
            return show(*arguments, **keywords)
        requires_grad = False
        for each in (*arguments, *keywords.values()) if keywords else arguments:
            if each.__class__ in usual:
                requires_grad = requires_grad or each.requires_grad
            elif isinstance(each, torch.Tensor):
                if each.__class__.__name__ == "DTensor":
                    _shard(definition, operator)
                elif each.is_nested:
                    raise ArgumentError(
                        f"operator {definition.name!r} takes no nested tensors, which PyTorch knows "
                        "operators for one by one. Call its kernel, with `jagged_dim` declared"
                    )
                return show(*arguments, **keywords)
            elif isinstance(each, torch.fx.Proxy):
                return show(*arguments, **keywords)
        if modes() or is_traced() is not None:
            if is_changing and is_transformed():
                check_in_place(definition, (*arguments, *keywords.values()))
            return show(*arguments, **keywords)
        if is_cast():
            arguments, keywords = _cast(definition, arguments, keywords)
        if is_transformed() or has_duals():
            if is_changing:
                check_in_place(definition, (*arguments, *keywords.values()))
            given = complete(arguments, keywords)
            return show(*given) if is_changing or is_for_dispatcher() else apply(*given)
        try:
            if requires_grad and is_recorded():
                return plain(*unwrapped(complete(arguments, keywords)))
            return forward(*arguments, **keywords)
        except (RuntimeError, TypeError, AttributeError) as error:
            if is_of_a_batch((*arguments, *keywords.values())):
                return show(*arguments, **keywords)
            if len(arguments) + len(keywords) == count:
                given = complete(arguments, keywords)
                if any(isinstance(each, torch.Tensor) and each.is_meta for each in given):
                    return show(*given)
                alive = unwrapped(given)
                if any(one is not other for one, other in zip(given, alive)):
                    return call(*alive)
                if not isinstance(error, NineToothedError):
                    check_inputs(definition, given)
            raise

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


def _setup_context(definition: OperatorDefinition) -> Callable[..., list[Any]]:
    """Keeps what backward needs; gives the tensors among it."""
    places = {entry.name: place for place, entry in enumerate(definition.inputs)}
    made = {entry.name: -1 - place for place, entry in enumerate(reversed(definition.outputs))}
    taken = [(made | places)[name] for name in definition.saved]
    are_tensors = saves_tensors(definition)

    def setup_context(ctx: Any, inputs: Sequence[Any], output: Any) -> list[Any]:
        known = (*inputs, *output) if isinstance(output, tuple) else (*inputs, output)
        kept = [known[place] for place in taken]
        if are_tensors:
            ctx.save_for_backward(*kept)
            return kept
        tensors = [value for value in kept if hasattr(value, "requires_grad")]
        ctx.save_for_backward(*tensors)
        ctx.kept = [None if hasattr(value, "requires_grad") else (value,) for value in kept]
        return tensors

    return setup_context


def _with_memory() -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Gives what autograd made without memory of its own, zeros and negated views, that which a kernel reads."""
    import torch

    is_zeros, is_negated = torch._is_zerotensor, torch.is_neg
    return lambda given: [
        each.clone() if torch.is_tensor(each) and (is_zeros(each) or is_negated(each)) else each
        for each in given
    ]


def _backward(definition: OperatorDefinition, derivative: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    tensors = [place for place, entry in enumerate(definition.inputs) if entry.kind == "tensor"]
    is_recorded, is_plain = torch.is_grad_enabled, len(tensors) == len(definition.inputs)
    kept, guarded = kept_values(definition), guarding(definition)
    refuse, with_memory = refusing_numbers(definition), _with_memory()

    def backward(ctx: Any, *gradients: Any, skipped: int = 0) -> Any:
        needed = ctx.needs_input_grad[skipped:]
        if not is_plain:
            refuse(needed)
        saved = guarded(kept(ctx, ctx.saved_tensors))
        given = with_memory(gradients)
        if definition.is_selective:
            asked = needed if is_plain else tuple([needed[place] for place in tensors])
            found = derivative(*given, *saved, needed=asked, is_last=not is_recorded())
        else:
            found = derivative(*given, *saved)
        found = definition.checked_gradients(found)
        if is_plain:
            return found
        result: list[Any] = [None] * len(definition.inputs)
        for place, gradient in zip(tensors, found):
            result[place] = gradient
        return tuple(result)

    return backward


def _over_batch(definition: OperatorDefinition, operator: Any) -> Callable[..., Any]:
    """The operator for `torch.vmap`: of a kernel over the batch, or once for each of its elements."""
    names = [entry.name for entry in definition.inputs]
    defaults = tuple(entry.default for entry in definition.inputs)
    with_memory = _with_memory()

    def over_batch(info: Any, in_dims: Sequence[Any], *given: Any) -> Any:
        arguments = with_memory(given)
        batches = frozenset(name for name, dim in zip(names, in_dims) if dim is not None)
        function = definition.batched(batches) if definition.batched is not None else None
        if function is None:
            return _one_by_one(operator, info.batch_size, in_dims, arguments)
        first = (
            argument if dim is None else argument.movedim(dim, 0)
            for argument, dim in zip(arguments, in_dims)
        )
        results = function(*first, *defaults[len(arguments) :])
        return results, (0,) * len(results) if isinstance(results, tuple) else 0

    return over_batch


def _no_batch(definition: OperatorDefinition) -> Callable[..., Any]:
    def refused(info: Any, in_dims: Sequence[Any], *arguments: Any) -> Any:
        raise no_rule(definition, "vmap")

    return refused


def _one_by_one(
    operator: Any, count: int, in_dims: Sequence[Any], arguments: Sequence[Any]
) -> tuple[Any, Any]:
    import torch

    if not count:
        # One that is not there says what the results are like, and what they depend on.
        alike = [
            argument if dim is None else torch.cat((argument, _a_zero(argument, dim)), dim)
            for argument, dim in zip(arguments, in_dims)
        ]
        found, dims = _one_by_one(operator, 1, in_dims, alike)
        return tuple(each[:0] for each in found) if isinstance(dims, tuple) else found[:0], dims
    results = [
        operator(
            *(
                argument if dim is None else argument.select(dim, index)
                for argument, dim in zip(arguments, in_dims)
            )
        )
        for index in range(count)
    ]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results), 0
    return tuple(map(torch.stack, zip(*results))), (0,) * len(results[0])


def _a_zero(tensor: Any, dim: int) -> Any:
    """A tensor's zero of size 1 along a dimension."""
    return tensor.new_zeros([1 if at == dim else size for at, size in enumerate(tensor.shape)])


def vmap(
    function: Callable[..., Any], in_dims: tuple[int | None, ...]
) -> Callable[..., tuple[Any, ...]]:
    """See `Frontend.vmap`."""
    import torch

    return torch.vmap(function, in_dims)  # type: ignore[no-any-return]


#: The operators whose shardings DTensor knows.
_SHARDED: set[Any] = set()


def _shard(definition: OperatorDefinition, operator: Any) -> None:
    """Tells DTensor, once, along which axes the operator's tensors may be divided."""
    if operator in _SHARDED:
        return
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    names = [entry.name if entry.kind == "tensor" else None for entry in definition.inputs]
    made = [entry.name for entry in definition.outputs]

    def placed(sharding: Sharding | None, name: str | None, whole: Any) -> Any:
        if sharding is None or name is None or name not in sharding.dims:
            return whole
        return Shard(sharding.dims[name])

    @register_sharding(operator)  # type: ignore[untyped-decorator]
    def placements(*arguments: Any, **keywords: Any) -> list[tuple[list[Any], list[Any]]]:
        found = []
        for sharding in (None, *operator_shardings(definition)):
            sums = () if sharding is None else sharding.sums
            outputs = [placed(sharding, n, Partial() if n in sums else Replicate()) for n in made]
            inputs = [None if n is None else placed(sharding, n, Replicate()) for n in names]
            found.append((outputs, inputs[: len(arguments)]))
        return found

    _SHARDED.add(operator)


def _lowered(definition: OperatorDefinition, operator: Any, key: str) -> Callable[..., Any]:
    """The operator where autocast is on, for the dispatcher."""
    import torch

    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))

    def lowered(*arguments: Any, **keywords: Any) -> Any:
        arguments, keywords = _cast(definition, arguments, keywords)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(*arguments, **keywords)

    return lowered


def _cast(
    definition: OperatorDefinition, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the types that autocast wants, as PyTorch's own rules have it: but float64."""
    import torch

    def cast(value: Any) -> Any:
        if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
            return value
        kind = value.device.type
        if value.dtype is torch.float64 or not torch.is_autocast_enabled(kind):
            return value
        is_lower = definition.autocast == "lower"
        return value.to(torch.get_autocast_dtype(kind) if is_lower else torch.float32)

    return tuple(map(cast, arguments)), {name: cast(each) for name, each in keywords.items()}
