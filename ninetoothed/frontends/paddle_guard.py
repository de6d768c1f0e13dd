"""Compares PaddlePaddle's tensors with those of an earlier call, making no object of Paddle's.

A tensor's shape, dtype and place are new objects whenever they are asked for, and 2.6's dtypes and
places take longer to compare than a kernel takes to launch. Paddle compares shapes and dtypes of
two tensors itself, in C++. So each tensor is compared with samples: one of the same shape that has
no memory, and one element of the same dtype. The driver tells which device an address is on.

Each shortcut is tried before it is used. Where Paddle does not do what is expected of it, the
attribute itself is compared.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Keys:
    """What tells Paddle's dtypes and places apart.

    Attributes:
        dtype: of a dtype, something to compare.
        place: likewise of a place, or None where there is only one.
        dtypes: all dtypes that a tensor may have.
        cuda_index: of a tensor, the index of the CUDA device that it is on, or None.
    """

    dtype: Callable[[Any], Any]
    place: Callable[[Any], Any] | None
    dtypes: Sequence[Any]
    cuda_index: Callable[[Any], int | None]


@dataclass(frozen=True)
class _Checks:
    """What tells whether a tensor is alike another.

    Attributes:
        class_: asked for first.
        same: functions of it that say yes where it is alike.
        differs: one that says no, for what is not dense too.
        careful: another such, which takes longer and never raises for another dtype.
    """

    class_: type
    same: tuple[Callable[[Any], Any], ...]
    differs: Callable[[Any], Any]
    careful: Callable[[Any], Any]


def guard(keys: Keys, tensors: Sequence[Any], addresses: Sequence[int]) -> Callable[..., bool]:
    """What says of as many tensors and their addresses whether they are alike these tensors.

    See `ninetoothed.frontends.base.Frontend.guard`.
    """
    on_device = _on_device(keys, tensors, addresses)
    checks = [_checks(keys, tensor, on_device is None) for tensor in tensors]
    make = _maker(tuple(len(each.same) for each in checks), on_device is not None)
    values = [value for each in checks for value in (each.class_, *each.same, each.differs)]
    careful = [each.careful for each in checks]
    return make([*values, on_device], careful)  # type: ignore[no-any-return]


def _checks(keys: Keys, tensor: Any, with_place: bool) -> _Checks:
    same = [_same_shape(tensor), _same_strides(tensor)]
    if with_place and keys.place is not None:
        same.append(_same_place(keys.place, tensor))
    careful = _by_dtype(keys, tensor)
    sample = _samples_of_dtypes(keys).get(keys.dtype(tensor.dtype))
    differs = careful if sample is None else sample._copy_gradient_from
    return _Checks(type(tensor), tuple(same), differs, careful)


def _same_shape(tensor: Any) -> Callable[[Any], Any]:
    sample = _sample_of_shape(tensor)
    if sample is not None:
        return sample.is_same_shape  # type: ignore[no-any-return]
    shape = tensor.shape
    return lambda other: other.shape == shape


def _same_strides(tensor: Any) -> Callable[[Any], Any]:
    if _is_contiguous(tensor):
        return type(tensor).is_contiguous  # type: ignore[no-any-return]
    strides = tensor.strides
    return lambda other: other.strides == strides


def _same_place(key_of: Callable[[Any], Any], tensor: Any) -> Callable[[Any], Any]:
    wanted = key_of(tensor.place)
    return lambda other: key_of(other.place) == wanted


@functools.lru_cache(maxsize=256)
def _maker(counts: tuple[int, ...], asks_driver: bool) -> Callable[..., Any]:
    """Makes guards of what is checked and of the careful ways.

    Args:
        counts: of each tensor, how many functions must say yes.
        asks_driver: whether its address is looked at, too.
    """
    places = range(len(counts))
    tensors = ", ".join(f"tensor_{place}" for place in places)
    addresses = ", ".join(f"address_{place}" for place in places)
    names, parts = [], []
    for place, count in enumerate(counts):
        same = [f"same_{place}_{number}" for number in range(count)]
        names += [f"class_{place}", *same, f"differs_{place}"]
        parts.append(f"tensor_{place}.__class__ is class_{place}")
        parts += [f"{name}(tensor_{place})" for name in same]
        parts.append(f"not differs_{place}(tensor_{place})")
    if asks_driver:
        parts.append(f"on_device({addresses})")
    differs = "".join(f"differs_{place}, " for place in places)
    joined = "\n                and ".join(parts)
    text = (
        "def make(values, careful):\n"
        f"    {''.join(f'{name}, ' for name in names)}on_device = values\n"
        f"    def alike({tensors}, {addresses}):\n"
        f"        nonlocal {differs.rstrip(', ')}\n"
        "        try:\n"
        f"            return (\n                {joined}\n            )\n"
        "        except Exception:\n"
        # Paddle told of another dtype by an error, which takes long to make: never again.
        f"            {differs}= careful\n"
        "            return False\n"
        "    return alike\n"
    )
    made: dict[str, Any] = {}
    exec(text, made)
    return made["make"]  # type: ignore[no-any-return]


def _by_dtype(keys: Keys, tensor: Any) -> Callable[[Any], bool]:
    key_of, wanted = keys.dtype, keys.dtype(tensor.dtype)
    # Paddle's own way tells distributed tensors from others too.
    return lambda other: key_of(other.dtype) != wanted or not other.is_dense()


def _is_contiguous(tensor: Any) -> bool:
    """Whether being contiguous tells the strides."""
    shape = tuple(tensor.shape)
    strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
    # The stride of a dimension of size 1 may be anything, whatever Paddle takes for contiguous.
    return 1 not in shape and tuple(tensor.strides) == strides and tensor.is_contiguous()


def _sample_of_shape(tensor: Any) -> Any:
    """A tensor of the same shape that has no memory; None where there cannot be one."""
    from paddle.base import core

    kinds = core.VarDesc.VarType
    try:
        kind = kinds.DENSE_TENSOR if hasattr(kinds, "DENSE_TENSOR") else kinds.LOD_TENSOR
        shape = list(tensor.shape)
        sample, other = (
            core.eager.Tensor(kinds.FP32, sizes, "ninetoothed_shape", kind, False)
            for sizes in (shape, [*shape, 1])
        )
        is_usable = (
            not sample._is_initialized()
            and sample.is_same_shape(tensor) is True
            and other.is_same_shape(tensor) is False
        )
    except Exception:  # Whatever a release of Paddle's has against it.
        return None
    return sample if is_usable else None


_samples: dict[Any, Any] = {}


def _samples_of_dtypes(keys: Keys) -> Mapping[Any, Any]:
    """By dtypes' keys, tensors whose `_copy_gradient_from(x)` raises where x has another dtype.

    It does nothing else where they have no gradient, and these never get one.
    """
    if not _samples:
        made = {keys.dtype(dtype): _one_element(dtype) for dtype in keys.dtypes}
        known = {key: sample for key, sample in made.items() if sample is not None}
        _samples.update(
            (key, sample)
            for key, sample in known.items()
            if _accepts(sample, sample)
            and not any(_accepts(sample, other) for other in known.values() if other is not sample)
            and sample._grad_ivar() is None
        )
    return _samples


def _one_element(dtype: Any) -> Any:
    import paddle

    try:
        # What an operation without a gradient gives has no place for one.
        return paddle._C_ops.empty([1], dtype, paddle.CPUPlace())
    except Exception:  # Paddle makes no tensors of some dtypes, in some releases.
        return None


def _accepts(sample: Any, tensor: Any) -> bool:
    try:
        return sample._copy_gradient_from(tensor) is None
    except Exception:
        return False


def _on_device(
    keys: Keys, tensors: Sequence[Any], addresses: Sequence[int]
) -> Callable[..., bool] | None:
    """What says whether all addresses are on the CUDA device that the tensors are on, if it can."""
    indices = {keys.cuda_index(tensor) for tensor in tensors}
    (index, *others) = indices
    if index is None or others:
        return None
    from ninetoothed.plugins import backend_for

    return backend_for("cuda").on_device(index, addresses)
