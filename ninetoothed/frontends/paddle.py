"""PaddlePaddle's dynamic-graph tensors, 2.6 and 3.x. Paddle is imported only once one has arrived.

Paddle's dtypes and places cost more to hash than everything else about a tensor costs to read, so
the launch functions know them by something cheaper: see `_dtype_key` and `_place_key`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.frontends.paddle_autograd import remark, stored
from ninetoothed.frontends.paddle_guard import Keys, guard
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from ninetoothed.kernels.call import Device
    from ninetoothed.kernels.operator import OperatorDefinition

NINETOOTHED_CONTRACT = 1

#: Our name -> Paddle's, where they differ.
_RENAMED = {"float8_e4m3": "float8_e4m3fn"}

#: Paddle cannot make tensors of these; it makes one of the second and looks at it as the first.
_MADE_AS = {dtypes.uint16: "int16", dtypes.uint32: "int32", dtypes.uint64: "int64"}

#: Paddle's dtypes that no kernel takes, for messages.
_NOT_OURS = ("complex64", "complex128", "pstring", "raw")


@functools.cache
def _native_dtypes() -> dict[dtypes.DType, Any]:
    """Our element types, each with Paddle's dtype; 2.6 has fewer of them than 3.x."""
    import paddle

    # By name, and from NumPy, `uint16` is Paddle's bfloat16; the object is a type of its own.
    names = {name: _RENAMED.get(name, name) for name in dtypes.NAMES}
    return {
        dtypes.by_name(name): getattr(paddle, native)
        for name, native in names.items()
        if hasattr(paddle, native)
    }


def _dtypes() -> Mapping[Any, dtypes.DType]:
    natives = _native_dtypes()
    # The expression `dtype` gives our own objects: they are hashed in no time.
    return {
        **{native: ours for ours, native in natives.items()},
        **{ours: ours for ours in natives},
    }


@functools.cache
def _dtype_key() -> Callable[[Any], int]:
    """What tells Paddle's dtypes apart in the least time.

    In 3.x each is one object for good, and so are tensors' dtypes; in 2.6 a tensor makes a new one
    each time it is asked.
    """
    import paddle

    tensor = paddle.to_tensor([0.0], place=paddle.CPUPlace())
    # Called with the object, a class's own method is found and bound in less time than by `int`.
    is_one_object = tensor.dtype is paddle.float32 and tensor.dtype is tensor.dtype
    return id if is_one_object else type(tensor.dtype).__int__


def _element_types() -> dict[int, Any]:
    """Our element type for the key of each of Paddle's dtypes; the others stand for themselves."""
    import paddle

    key = _dtype_key()
    others = [getattr(paddle, name) for name in _NOT_OURS if hasattr(paddle, name)]
    known = {native: ours for ours, native in _native_dtypes().items()}
    return {key(native): known.get(native, native) for native in (*known, *others)}


@functools.cache
def _place_key() -> Callable[[Any], Any]:
    """What tells this machine's places apart in the least time."""
    places = [_generic(place) for _, place in _devices()]
    kinds = [place._type() for place in places]
    if len(set(kinds)) == len(kinds):
        return type(places[0])._type  # type: ignore[no-any-return]
    # In 2.6 places have no hash of their own, and each is another object.
    return hash if _generic(_devices()[0][1]) == places[0] else _place_parts


def _place_parts(place: Any) -> tuple[int, int]:
    return place._type(), place.gpu_device_id()


def _generic(place: Any) -> Any:
    """A place as tensors give it: `paddle.CPUPlace()` and the like are of other classes."""
    from paddle.base import core

    generic = core.Place()
    generic.set_place(place)
    return generic


@functools.cache
def _gpu_kind() -> str:
    import paddle

    return "hip" if paddle.is_compiled_with_rocm() else "cuda"


@functools.cache
def _devices() -> list[tuple[Device, Any]]:
    """The devices of this machine that Paddle can use, the CPU first, each with its place."""
    import paddle

    from ninetoothed.kernels.call import Device

    found = [(Device("cpu", 0), paddle.CPUPlace())]
    if paddle.is_compiled_with_cuda():
        count = paddle.device.cuda.device_count()
        found += [(Device(_gpu_kind(), index), paddle.CUDAPlace(index)) for index in range(count)]
    for name in paddle.device.get_available_custom_device() or ():
        kind, _, index = name.partition(":")
        found.append((Device(kind, int(index or 0)), paddle.CustomPlace(kind, int(index or 0))))
    return found


def _only_place() -> Any:
    """The key of every tensor's place where there is one place, so that no tensor is asked."""
    (_, place), *others = _devices()
    return None if others else _place_key()(_generic(place))


@functools.cache
def _devices_by_key() -> dict[Any, Device]:
    key = _place_key()
    return {key(_generic(place)): device for device, place in _devices()}


def _device_of(key: Any) -> Device:
    try:
        return _devices_by_key()[key]
    except KeyError:
        raise DeviceError(
            "The tensor is on a place of Paddle that kernels cannot run on, such as pinned memory. "
            "Move it, as with `tensor.cpu()` or `tensor.cuda()`."
        ) from None


def _place_of(device: Device) -> Any:
    for known, place in _devices():
        if known == device:
            return place
    listed = ", ".join(str(known) for known, _ in _devices())
    raise DeviceError(f"Paddle has no device {device} here; it has {listed}.")


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> Any:
    import paddle

    native = FRONTEND.native_dtype(dtype)
    made = getattr(paddle, _MADE_AS[dtype]) if dtype in _MADE_AS else native
    # `paddle.empty` takes no place in 2.6, and the current one is the whole process's.
    tensor = paddle._C_ops.empty(list(shape), made, _place_of(device))
    return tensor.view(native) if dtype in _MADE_AS else tensor


def _no_pointer(tensor: Any) -> int:
    """The pointer 0 of a tensor that has no elements; `ArgumentError` for what has no memory."""
    if tensor.is_sparse() or tensor.is_dist():
        _not_dense(tensor)
    if 0 in tensor.shape:
        return 0
    raise ArgumentError(
        f"The Paddle tensor of shape {tuple(tensor.shape)} has no memory: nothing has been written "
        "to it yet, or it was cleared."
    )


def _not_dense(tensor: Any) -> NoReturn:
    """Refuses a tensor: a distributed one has the sizes of the whole, and the address of the local part."""
    raise ArgumentError(
        "A kernel takes dense Paddle tensors, and this one is sparse or distributed. Call "
        "`.to_dense()` on it, or give the kernel its local part."
    )


@contextmanager
def _current_device(index: int) -> Iterator[None]:
    import paddle

    before = paddle.device.get_device()
    paddle.device.set_device(f"gpu:{index}")
    try:
        yield
    finally:
        paddle.device.set_device(before)


def _synchronize(index: int) -> None:
    import paddle

    paddle.device.synchronize(f"gpu:{index}")


def _event() -> Any:
    import paddle

    if paddle.__version__.startswith("2."):
        raise DeviceError("Paddle 2's events do not tell the time between them; use Paddle 3.")
    return paddle.device.Event(enable_timing=True)


def _current_stream() -> Callable[[int], int]:
    """Gives the current stream's handle on the device of an index.

    Paddle has one object for a stream as long as there is one, and a stream's handle is the same
    for good. So only a stream that was not the current one before is asked for its handle.
    """
    from paddle.base import core

    stream_of = core._get_current_stream
    known = (None, 0)

    def current_stream(index: int) -> int:
        nonlocal known
        stream, handle = known
        current = stream_of(index)
        if current is stream:
            return handle
        # Both at once: another thread may be here too. 0, the default stream, comes as None.
        known = current, handle = current, current.cuda_stream or 0
        return handle

    return current_stream


def _namespace() -> Mapping[str, object]:
    import paddle

    raw_stream = getattr(paddle.base.libpaddle, "_get_current_raw_stream", None)
    return {
        "element_types": _element_types(),
        "dtype_key": _dtype_key(),
        "place_key": _place_key(),
        "only_place": _only_place(),
        "no_pointer": _no_pointer,
        "not_dense": _not_dense,
        "current_stream": raw_stream or _current_stream(),
    }


@functools.cache
def _guard_keys() -> Keys:
    return Keys(
        _dtype_key(),
        None if _only_place() is not None else _place_key(),
        tuple(_native_dtypes().values()),
        _cuda_index,
    )


def _cuda_index(tensor: Any) -> int | None:
    device = _device_of(_place_key()(tensor.place))
    return device.index if device.kind == "cuda" else None


def _guard(*tensors_and_addresses: Any) -> Callable[..., bool]:
    count = len(tensors_and_addresses) // 2
    return guard(_guard_keys(), tensors_and_addresses[:count], tensors_and_addresses[count:])


def _operator(definition: OperatorDefinition, functions: Callable[..., Any]) -> Any:
    from ninetoothed.frontends.paddle_autograd import registered

    def empty(beside: Any, shape: Any, dtype: Any) -> Any:
        device = _device_of(FRONTEND.evaluate("device", beside))
        return _empty(tuple(shape), FRONTEND.dtype_of(dtype), device)

    return registered(definition, functions, empty)


FRONTEND = Frontend(
    name="paddle",
    owns=owns_types(("paddle", "Tensor")),
    dtypes=_dtypes,
    owns_dtype=owns_types(("paddle", "dtype")),
    device_of=_device_of,
    empty=_empty,
    device_guard=_current_device,
    synchronize=_synchronize,
    namespace=_namespace,
    # Lists, or in 3.x a `paddle.Size`, and neither can be hashed.
    shape="tuple({x}.shape)",
    strides="tuple({x}.strides if {x}.is_dense() else not_dense({x}))",
    pointer="({x}.data_ptr() or no_pointer({x}))",
    dtype="element_types[dtype_key({x}.dtype)]",
    device="(only_place or place_key({x}.place))",
    remark=remark,
    stored=stored,
    stream="current_stream({index})",
    guard=_guard,
    guard_addresses=True,
    event=_event,
    operator=_operator,
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """PaddlePaddle."""
    return (FRONTEND,)
