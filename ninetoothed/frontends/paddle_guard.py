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
from dataclasses import dataclass, field
from typing import Any


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


@dataclass
class _Comparison:
    """Conditions in terms of ``{x}``, the tensor, and of names, with what these stand for."""

    conditions: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def add(self, condition: str, name: str, value: Any) -> None:
        self.conditions.append(condition)
        self.names[name] = value


def guard(keys: Keys, tensors: Sequence[Any], addresses: Sequence[int]) -> Callable[..., bool]:
    """What says of as many tensors and their addresses whether they are alike these tensors.

    See `ninetoothed.frontends.base.Frontend.guard`.
    """
    on_device = _on_device(keys, tensors, addresses)
    compared = [
        _comparison(keys, tensor, place, on_device is None) for place, tensor in enumerate(tensors)
    ]
    names = {"on_device": on_device} if on_device is not None else {}
    for each in compared:
        names |= each.names
    careful = [_by_dtype(keys, tensor) for tensor in tensors]
    make = _maker(tuple(tuple(each.conditions) for each in compared), tuple(names))
    return make(tuple(names.values()), careful)  # type: ignore[no-any-return]


def _comparison(keys: Keys, tensor: Any, place: int, with_place: bool) -> _Comparison:
    found = _Comparison()
    found.add(f"{{x}}.__class__ is class_{place}", f"class_{place}", type(tensor))
    sample = _sample_of_shape(tensor)
    if sample is not None:
        found.add(f"same_shape_{place}({{x}})", f"same_shape_{place}", sample.is_same_shape)
    else:
        found.add(f"{{x}}.shape == shape_{place}", f"shape_{place}", tensor.shape)
    if _is_contiguous(tensor):
        found.conditions.append("{x}.is_contiguous()")
    else:
        found.add(f"{{x}}.strides == strides_{place}", f"strides_{place}", tensor.strides)
    sample = _samples_of_dtypes(keys).get(keys.dtype(tensor.dtype))
    differs = _by_dtype(keys, tensor) if sample is None else sample._copy_gradient_from
    found.add(f"not differs_{place}({{x}})", f"differs_{place}", differs)
    if with_place and keys.place is not None:
        found.names["place_key"] = keys.place
        wanted = keys.place(tensor.place)
        found.add(f"place_key({{x}}.place) == place_{place}", f"place_{place}", wanted)
    return found


@functools.lru_cache(maxsize=256)
def _maker(conditions: tuple[tuple[str, ...], ...], names: tuple[str, ...]) -> Callable[..., Any]:
    """Makes guards of these conditions, of what the names stand for and of the careful ways."""
    places = range(len(conditions))
    tensors = ", ".join(f"tensor_{place}" for place in places)
    addresses = ", ".join(f"address_{place}" for place in places)
    parts = [
        condition.format(x=f"tensor_{place}")
        for place, each in enumerate(conditions)
        for condition in each
    ]
    if "on_device" in names:
        parts.append(f"on_device({addresses})")
    differs = "".join(f"differs_{place}, " for place in places)
    joined = "\n                and ".join(parts)
    text = (
        "def make(values, careful):\n"
        f"    {''.join(f'{name}, ' for name in names)}= values\n"
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
    return lambda other: key_of(other.dtype) != wanted


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
    from ninetoothed.backends.triton.memory import on_device

    return on_device(index, addresses)
