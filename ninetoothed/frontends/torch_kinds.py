"""Which of PyTorch's tensors a kernel may be given: what they say of themselves beside their elements.

A kernel reads memory by address. PyTorch has tensors whose memory says something else than they do
(negated views), or that have none (stand-ins of transformations and tracers), and it keeps account
of what is stored to for the sake of gradients. Each kind is refused by name, or taken into account.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ninetoothed.bounded import keep
from ninetoothed.errors import ArgumentError

if TYPE_CHECKING:
    from ninetoothed.kernels.operator import OperatorDefinition

#: Classes and dispatch keys of tensors that are of none of `_KINDS`.
_USUAL: dict[tuple[type, int], None] = {}
_MOST_USUAL = 256

#: So many quick tests of usual tensors a launch function has: one for each element type, device, use in
#: place or need of gradients that it is called with.
_MOST_TESTS = 16


def never(*tensors: Any) -> bool:
    """The test that nothing passes."""
    return False


def state_of(guards: Any, stored: Sequence[int]) -> Callable[..., Any]:
    """The function that `Frontend.state` makes: a number for all that is the same.

    Args:
        stored: the places of the tensors that are stored to.
        guards: PyTorch's `TensorGuards`, which compare the classes, element types, devices, dispatch keys
            and gradients of tensors of whatever sizes with others' in one C call.
    """
    import torch

    (_, modes), forward_ad = _tracing_functions(), _forward_ad()
    is_recorded = torch.is_grad_enabled
    #: Tests that usual tensors pass, with their number and whether some of them require grad.
    tests: list[tuple[Callable[..., bool], int, bool]] = []
    numbers: dict[Any, int] = {}

    def state(*tensors: Any) -> int:
        if not modes() and forward_ad._current_level < 0:
            for is_usual, number, requires_grad in tests:
                if is_usual(*tensors) and not (requires_grad and is_recorded()):
                    return number
        found = _state(tensors)
        types = [(each.__class__, each.dtype, each.device) for each in tensors]
        has_versions = [not tensors[place].is_inference() for place in stored]
        number = numbers.setdefault((found, *types, *has_versions), len(numbers))
        if found is None and len(tests) < _MOST_TESTS:
            requires_grad = any(tensor.requires_grad for tensor in tensors)
            test = alike_test(guards, tensors, stored, any_sizes=True)
            tests.append((test, number, requires_grad))
        return number

    return state


def alike_test(
    guards: Any, tensors: Sequence[Any], stored: Sequence[int] = (), any_sizes: bool = False
) -> Callable[..., bool]:
    """The test that tensors like these pass, of whatever sizes and strides if so wanted.

    PyTorch's comparison takes no tensor twice, as calls in place give one: it is made of each tensor once,
    and that the others are the same ones again is asked besides. So is which of those that are stored to
    have versions, where the comparison takes what inference mode made, outside of it, for any other within.

    Args:
        guards: PyTorch's `TensorGuards`.
        stored: the places of the tensors that are stored to.
    """
    check = _alike(guards, tensors, any_sizes)
    is_below = _is_below_autograd()
    made = [(place, tensors[place].is_inference()) for place in stored]
    unsure = [(place, is_inference) for place, is_inference in made if is_inference is not is_below]
    if not unsure:
        return check

    def is_alike(*others: Any) -> bool:
        return check(*others) and all(
            others[place].is_inference() is is_inference for place, is_inference in unsure
        )

    return is_alike


def _alike(guards: Any, tensors: Sequence[Any], any_sizes: bool) -> Callable[..., bool]:
    """As `alike_test`, as far as PyTorch's comparison tells."""
    places: dict[int, int] = {}
    firsts = [places.setdefault(id(tensor), place) for place, tensor in enumerate(tensors)]
    once = list(dict.fromkeys(firsts))
    sizes = [[None] * tensors[place].dim() for place in once] if any_sizes else None
    compared = [tensors[place] for place in once]
    check = guards(*compared, dynamic_dims_sizes=sizes, dynamic_dims_strides=sizes).check
    again = [(place, first) for place, first in enumerate(firsts) if place != first]
    if not again:
        return check  # type: ignore[no-any-return]

    def is_alike(*others: Any) -> bool:
        for place, first in again:
            if others[place] is not others[first]:
                return False
        return check(*[others[place] for place in once])  # type: ignore[no-any-return]

    return is_alike


def _state(tensors: Sequence[Any]) -> Any:
    """None where no recorded gradient, tangent, negation or tracer is near, else all that there is of them."""
    import torch

    is_recorded = torch.is_grad_enabled()
    is_special = _tracer() is not None, any(map(is_dual, tensors))
    parts = [
        (is_recorded and each.requires_grad and (True, _is_of_a_leaf(each)), each.is_neg())
        for each in tensors
    ]
    return (*is_special, *parts) if any(is_special) or any(map(any, parts)) else None


def refused(tensor: Any, is_stored: bool) -> str | None:
    """Why no kernel may be given a tensor now, or None; see `Frontend.refused`."""
    kind = tensor.__class__, _keys_function()(tensor).raw_repr()
    if kind not in _USUAL:
        for applies, why in _KINDS:
            if applies(tensor):
                return why
        keep(_USUAL, kind, None, _MOST_USUAL)
    for applies, why in (*_MOMENTARY_KINDS, *(_STORED_KINDS if is_stored else ())):
        if applies(tensor):
            return why
    tracer = _tracer()
    if tracer is not None:
        return (
            f"is traced by {tracer}, which would leave the kernel out. Make an operator of the kernel, "
            "as with `ninetoothed.op`, and trace a call of that."
        )
    return _storage_too_small(tensor)


def check_inputs(definition: OperatorDefinition, arguments: Sequence[Any]) -> None:
    """`ArgumentError` for a tensor that no kernel may be given, and of which no output could be made."""
    import torch

    for entry, value in zip(definition.inputs, arguments):
        why = None
        if isinstance(value, torch.Tensor):
            why = refused(value, entry.is_changed)
        elif entry.kind == "tensor":
            why = f"must be a tensor, not {type(value).__name__}"
        if why is not None:
            raise ArgumentError(f"operator {definition.name!r}: `{entry.name}` {why}") from None


def check_stored(definition: OperatorDefinition, arguments: Sequence[Any]) -> None:
    """`ArgumentError` for a tensor that is changed, and which nothing may be stored to now."""
    for entry, value in zip(definition.inputs, arguments):
        for applies, why in _STORED_KINDS if entry.is_changed else ():
            if applies(value):
                raise ArgumentError(f"operator {definition.name!r}: `{entry.name}` {why}")


def remark(tensor: Any, is_stored: bool) -> str | None:
    """What a user is warned of, or None; see `Frontend.remark`."""
    import torch

    if not (tensor.requires_grad and torch.is_grad_enabled()):
        return None
    return (
        "requires grad, and what the kernel computes is cut off from it: autograd does not see a kernel. "
        "Call it in a `torch.autograd.Function`, or under `torch.no_grad()`."
    )


def _tracer() -> str | None:
    tracing_state, num_modes = _tracing_functions()
    if tracing_state() is not None:
        return "torch.jit.trace"
    if num_modes() == 0:
        return None
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return None if get_proxy_mode() is None else "make_fx"


def _is_of_a_leaf(tensor: Any) -> bool:
    """Whether storing changes a leaf that requires grad."""
    if not tensor._is_view():
        return bool(tensor.is_leaf)
    return bool(tensor._base.is_leaf and tensor._base.requires_grad)


def _is_leaf_now(tensor: Any) -> bool:
    import torch

    return tensor.requires_grad and torch.is_grad_enabled() and _is_of_a_leaf(tensor)


@functools.lru_cache(maxsize=1)
def _tracing_functions() -> tuple[Callable[[], Any], Callable[[], int]]:
    import torch

    return torch._C._get_tracing_state, torch._C._len_torch_dispatch_stack


@functools.lru_cache(maxsize=1)
def _keys_function() -> Callable[[Any], Any]:
    import torch

    return torch._C._dispatch_keys


def _is_uninitialized(tensor: Any) -> bool:
    from torch.nn.parameter import is_lazy

    return bool(is_lazy(tensor))


def _is_fake(tensor: Any) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor)


def _is_functional(tensor: Any) -> bool:
    import torch
    from torch._subclasses.functional_tensor import FunctionalTensor

    return isinstance(tensor, FunctionalTensor) or torch._is_functional_tensor(tensor)


def _is_transformed(tensor: Any) -> bool:
    import torch

    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _is_wrapper(tensor: Any) -> bool:
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    return not tensor.is_nested and is_traceable_wrapper_subclass(tensor)


def _is_sparse(tensor: Any) -> bool:
    import torch

    return not tensor.is_nested and tensor.layout not in (torch.strided, torch.jagged)


def is_dual(tensor: Any) -> bool:
    """Whether a tensor has a tangent, of what the operation is given that is called now."""
    forward_ad = _forward_ad()
    # Outside of a level there are no tangents, and below autograd they have been seen to.
    return forward_ad._current_level >= 0 and not _is_below_autograd() and has_tangent(tensor)


def has_tangent(tensor: Any) -> bool:
    """As `is_dual`, where there is a level, autograd comes next, and whatever may be asked."""
    import torch

    # As `forward_ad.unpack_dual`, which asks Python for the level; there are none within a level.
    is_tensor = isinstance(tensor, torch.Tensor)
    return is_tensor and torch._VF._unpack_dual(tensor, level=0)[1] is not None  # type: ignore[attr-defined]


def _is_below_autograd() -> bool:
    import torch

    # The name that stands for autograd of all devices.
    return torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradOther)


@functools.lru_cache(maxsize=1)
def _forward_ad() -> Any:
    from torch.autograd import forward_ad

    return forward_ad


def _is_told_otherwise(tensor: Any) -> bool:
    import torch

    if type(tensor) in (torch.Tensor, torch.nn.Parameter) or tensor.is_nested:
        return False
    told = tuple(tensor.shape), tuple(tensor.stride()), tensor.data_ptr(), tensor.dtype
    own: Any = torch.Tensor
    with torch._C.DisableTorchFunctionSubclass():
        shape, dtype = (field.__get__(tensor) for field in (own.shape, own.dtype))
        return told != (tuple(shape), own.stride(tensor), own.data_ptr(tensor), dtype)


def _storage_too_small(tensor: Any) -> str | None:
    if tensor.is_nested or tensor.device.type == "meta" or not tensor.numel():
        return None
    held = tensor.untyped_storage().nbytes()
    if tensor.is_contiguous():
        last = tensor.storage_offset() + tensor.numel() - 1
    else:
        steps = zip(tensor.shape, tensor.stride())
        last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in steps)
    needed = (last + 1) * tensor.element_size()
    if needed <= held:
        return None
    return (
        f"of shape {tuple(tensor.shape)} needs {needed} bytes of its storage, which has {held}: it was "
        "freed or made smaller, as `untyped_storage().resize_()` does. Make it again."
    )


#: A test of a tensor, and why a kernel may not be given what passes it; the first counts.
_Kinds = tuple[tuple[Callable[[Any], bool], str], ...]

#: What a tensor's class and dispatch keys decide.
_KINDS: _Kinds = (
    (
        _is_uninitialized,
        "has no memory: it is an uninitialized parameter of a lazy module. Run the module once before.",
    ),
    (
        _is_transformed,
        "is a stand-in of a transformation of torch.func (vmap, grad, jvp), which holds no elements of "
        "its own. Make an operator of the kernel, as with "
        "`ninetoothed.op`, which has a rule for `vmap` and, given a `backward`, for `grad`.",
    ),
    (
        _is_fake,
        "is a FakeTensor, which has a shape and no elements. Make an operator of the kernel, as with "
        "`ninetoothed.op`, which says what comes out for fake tensors.",
    ),
    (
        _is_functional,
        "is a functional tensor, which torch.func.functionalize or torch.compile puts in another's "
        "place; storing to it is not seen. Make an operator of the kernel, as with "
        "`ninetoothed.op`.",
    ),
    (
        _is_wrapper,
        "is of a class that wraps other tensors and has no elements of its own. Give the tensor that it "
        "holds, as `.to_local()` does of a DTensor.",
    ),
    (
        _is_sparse,
        "is sparse, or of another layout that a kernel has no address into. Give `.to_dense()` of it.",
    ),
    (
        lambda tensor: tensor.is_quantized,
        "is quantized: its elements mean something with its scale only. Give `.int_repr()` of it, or "
        "`.dequantize()`.",
    ),
    (
        lambda tensor: tensor.is_conj(),
        "is a conjugated view, whose memory holds what is not conjugated. Give `.resolve_conj()` of it.",
    ),
    (
        lambda tensor: tensor.is_neg(),
        "is a negated view, whose memory holds its elements with the other sign, as the imaginary part "
        "of a conjugated tensor is. Give `.resolve_neg()` of it.",
    ),
    (
        lambda tensor: tensor._is_zerotensor(),
        "is a tensor of zeros that autograd made without memory. Give `.clone()` of it.",
    ),
)

#: What a tensor may be now, and another time not.
_MOMENTARY_KINDS: _Kinds = (
    (
        is_dual,
        "has a tangent of forward-mode differentiation, which the kernel would drop. Give "
        "`forward_ad.unpack_dual(tensor).primal`.",
    ),
    (
        _is_told_otherwise,
        "is of a class that tells another shape, stride, address or element type than the tensor has. "
        "Give `.as_subclass(torch.Tensor)` of it.",
    ),
)

_STORED_KINDS: _Kinds = (
    (
        _is_leaf_now,
        "is stored to, and is a leaf that requires grad, or a view of one. As for PyTorch's own "
        "operations in place, call the kernel under `torch.no_grad()`, or give `.detach()` of it.",
    ),
)
