"""PyTorch's tensors. PyTorch is imported only once a tensor of it has arrived."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.frontends.base import Frontend, JaggedExpressions, owns_types
from ninetoothed.frontends.torch_in_place import stored
from ninetoothed.frontends.torch_kinds import alike_test, never, refused, remark, state_of
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from ninetoothed.backends.base import Device
    from ninetoothed.kernels.operator import OperatorDefinition

NINETOOTHED_CONTRACT = 1

#: PyTorch's name -> ours, where they differ.
_RENAMED = {"float8_e4m3fn": "float8_e4m3"}


def _dtypes() -> Mapping[Any, dtypes.DType]:
    import torch

    names = {name: name for name in dtypes.NAMES if name != "float8_e4m3"} | _RENAMED
    return {
        getattr(torch, native): dtypes.by_name(name)
        for native, name in names.items()
        if hasattr(torch, native)
    }


def _device_of(device: Any) -> Device:
    import torch

    from ninetoothed.backends.base import Device

    kind = device.type
    if kind == "meta":
        raise DeviceError(
            "A tensor on the meta device has no elements to compute with. Make it on a real one."
        )
    if kind == "cuda" and torch.version.hip is not None:
        kind = "hip"
    return Device(kind, device.index or 0)


def _native_device(device: Device) -> Any:
    import torch

    if device.kind == "cpu":
        return torch.device("cpu")
    return torch.device("cuda" if device.kind == "hip" else device.kind, device.index)


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> Any:
    import torch

    return torch.empty(shape, dtype=FRONTEND.native_dtype(dtype), device=_native_device(device))


def _device_guard(index: int) -> AbstractContextManager[Any]:
    import torch

    return torch.cuda.device(index)


def _synchronize(index: int) -> None:
    import torch

    torch.cuda.synchronize(index)


def _event() -> Any:
    import torch

    return torch.cuda.Event(enable_timing=True)


def _current_stream(index: int) -> int:
    import torch

    return torch.cuda.current_stream(index).cuda_stream


def _guard(*tensors: Any, stored: Sequence[int] = ()) -> Callable[..., bool]:
    """What guards the code that `torch.compile` makes: the tensors are compared in one C call.

    It tells negated views, `torch.jit.trace` and gradients too, but not whether gradients are recorded now,
    nor whether a tensor is a leaf, to which nothing may be stored then.
    """
    import torch

    alike = alike_test(_tensor_guards(), tensors, stored)
    if not any(tensor.requires_grad for tensor in tensors):
        return alike
    is_recorded, recorded = torch.is_grad_enabled, torch.is_grad_enabled()
    if recorded and any(tensors[place].requires_grad for place in stored):
        return never
    return lambda *others: is_recorded() is recorded and alike(*others)


@functools.lru_cache(maxsize=1)
def _tensor_guards() -> Any:
    from torch._C._dynamo.guards import TensorGuards

    return TensorGuards


def _state(stored: Sequence[int]) -> Callable[..., Any]:
    return state_of(_tensor_guards(), stored)


def _jagged_offsets(tensor: Any) -> Any:
    """The offsets of a jagged tensor, once it is seen that they tell all about the sequences."""
    import torch

    if tensor.layout is not torch.jagged:
        raise ArgumentError(
            f"A nested tensor must have the jagged layout, got {tensor.layout}. "
            "Make it with `layout=torch.jagged`."
        )
    if tensor._lengths is not None:
        raise ArgumentError(
            "The jagged tensor has holes between its sequences (it was made by "
            "`torch.nested.narrow`). Call `.contiguous()` on it."
        )
    offsets = tensor._offsets
    if offsets.dtype is not torch.int64 or not offsets.is_contiguous():
        raise ArgumentError(
            f"A jagged tensor's offsets must be contiguous int64, got {offsets.dtype} with "
            f"strides {offsets.stride()}."
        )
    return offsets


def _jagged_shape(tensor: Any) -> tuple[int, ...]:
    offsets = _jagged_offsets(tensor)
    sizes = list(tensor._values.shape)
    sizes[tensor._ragged_idx - 1] = tensor._get_max_seqlen() if len(offsets) > 1 else 0
    return (len(offsets) - 1, *sizes)


def _namespace() -> Mapping[str, object]:
    import torch

    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return {
        "current_stream": raw_stream or _current_stream,
        "data_ptr": torch.Tensor.data_ptr,
        "dispatch_modes": torch._C._len_torch_dispatch_stack,
        "forward_ad": torch.autograd.forward_ad,
        "jagged_offsets": _jagged_offsets,
        "jagged_shape": _jagged_shape,
    }


def _vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
    from ninetoothed.frontends.torch_operators import vmap

    return vmap(function, in_dims)


def _operator(definition: OperatorDefinition, functions: Callable[..., Any]) -> Any:
    from ninetoothed.frontends.torch_operators import registered

    return registered(definition, functions)


def _opaque(launch: Callable[..., Any]) -> None:
    """Under `torch.compile` a launch is one break of the graph: Dynamo does not look into it."""
    launch._torchdynamo_disable = True  # type: ignore[attr-defined]
    launch._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        "a kernel called plainly breaks the graph; make an operator of it, as with `ninetoothed.op`"
    )
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame._FrameExecStrategy(
            eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP
        )
        eval_frame.set_code_exec_strategy(launch.__code__, skip)


FRONTEND = Frontend(
    name="torch",
    owns=owns_types(("torch", "Tensor")),
    dtypes=_dtypes,
    owns_dtype=owns_types(("torch", "dtype")),
    device_of=_device_of,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=_namespace,
    # Not looked up on the tensor: that costs a sixth of it.
    pointer="data_ptr({x})",
    strides="{x}.stride()",
    stream="current_stream({index})",
    jagged=JaggedExpressions(
        test="{x}.is_nested",
        values="{x}._values",
        offsets="jagged_offsets({x})",
        ragged_dim="{x}._ragged_idx",
        shape="jagged_shape({x})",
        strides="(0, *{x}._values.stride())",
    ),
    state=_state,
    state_tells_types=True,
    refused=refused,
    remark=remark,
    stored=stored,
    guard=_guard,
    # Of a nested tensor with the strided layout the comparison asks strides, and ends the process.
    unguarded="{x}.is_nested",
    # A tangent of forward-mode differentiation is none of a tensor's dispatch keys, nor is who watches
    # operations, as make_fx does.
    unguarded_now="forward_ad._current_level >= 0 or dispatch_modes()",
    event=_event,
    operator=_operator,
    vmap=_vmap,
    opaque=_opaque,
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """PyTorch."""
    return (FRONTEND,)
