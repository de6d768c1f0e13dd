"""Frontends for the toy framework, each broken in one place: what the kit is there to find."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ninetoothed.backends.base import Device
from ninetoothed.frontends.base import guard_by
from ninetoothed.language import dtypes
from tests.frontends import toy_framework as toy


@dataclass(frozen=True)
class Broken:
    """A broken frontend.

    Attributes:
        name: what is wrong with it.
        changes: makes the fields that differ from the toy's; each test has its own.
        check: the check of the kit that must fail.
        words: what the message must say.
    """

    name: str
    changes: Callable[[], dict[str, Any]]
    check: str
    words: tuple[str, ...] = field(default=())


class _Kind:
    def __repr__(self) -> str:
        return "toy.kind"


def _names(**functions: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"current_stream": toy.current_stream, **functions}


def _stale_pointer() -> dict[str, Any]:
    known: dict[int, int] = {}

    def pointer_of(x: toy.Array) -> int:
        return known.setdefault(id(x), x.address or 0)

    return {"namespace": _names(pointer_of=pointer_of), "pointer": "pointer_of({x})"}


def _kept_arguments() -> dict[str, Any]:
    kept: list[toy.Array] = []

    def pointer_of(x: toy.Array) -> int:
        kept.append(x)
        return x.address or 0

    return {"namespace": _names(pointer_of=pointer_of), "pointer": "pointer_of({x})"}


def _stream_of_the_first_call() -> dict[str, Any]:
    first: list[int] = []

    def stream() -> int:
        first.append(toy.current_stream())
        return first[0]

    return {"namespace": _names(stream=stream), "stream": "stream()"}


class _Place:
    """Compares by identity, as a framework's place may."""


def _wrong_dtypes() -> dict[Any, dtypes.DType]:
    swapped = {dtypes.float16: dtypes.bfloat16, dtypes.bfloat16: dtypes.float16}
    return {native: swapped.get(ours, ours) for native, ours in toy._dtypes().items()}


def _few_dtypes() -> dict[Any, dtypes.DType]:
    return {dtypes.float64.numpy: dtypes.float64}


BROKEN = (
    Broken(
        "strides in bytes",
        lambda: {"strides": "{x}.steps"},
        "test_strides",
        ("(4,)", "bytes", "count elements"),
    ),
    Broken(
        "wrong dtype",
        lambda: {"dtypes": _wrong_dtypes},
        "test_dtypes",
        ("a tensor of float16 is read as bfloat16", "wrong dtype"),
    ),
    Broken(
        "dtypes of nobody's",
        lambda: {"dtypes": lambda: {_Kind(): dtypes.float32, **toy.FIELDS["dtypes"]()}},
        "test_dtypes_can_be_declared",
        ("Tensor(dtype=toy.kind) means None", "`owns_dtype`"),
    ),
    Broken(
        "stale pointer",
        _stale_pointer,
        "test_pointers_of_temporaries",
        ("stale", "a tensor that is gone"),
    ),
    Broken(
        "wrong stream",
        lambda: {"stream": "1"},
        "test_launches_are_in_the_order_of_the_current_stream",
        ("0.0 to 0.0 after", "wrong stream"),
    ),
    Broken(
        "the stream of the first call",
        _stream_of_the_first_call,
        "test_the_current_stream_is_followed",
        ("wrong stream", "current when it is read"),
    ),
    Broken(
        "wrong order of the shape",
        lambda: {"shape": "{x}.sizes[::-1]"},
        "test_shape",
        ("(3, 2)", "wrong order"),
    ),
    Broken(
        "wrong device",
        lambda: {"device_of": lambda place: Device("toy", 1)},
        "test_device",
        ("toy:0", "toy:1", "wrong device"),
    ),
    Broken(
        "a pointer that is made to look aligned",
        lambda: {"pointer": "(({x}.address or 0) & ~15)"},
        "test_offset_views",
        ("must lie 4 bytes after it", "however that is aligned"),
    ),
    Broken(
        "the pointer of what a view looks at",
        lambda: {"pointer": "{x}.data.base.ctypes.data"},
        "test_offset_views",
        ("view's first element",),
    ),
    Broken(
        "item is no Python number",
        lambda: {"item": "{x}.data[()]"},
        "test_item",
        ("int64", "Python's own int"),
    ),
    Broken(
        "no pointer for an empty tensor",
        lambda: {"pointer": "{x}.address"},
        "test_zero_size",
        ("empty tensor", "None", "must be an int"),
    ),
    Broken(
        "a shape that can change",
        lambda: {"shape": "list({x}.sizes)"},
        "test_shape",
        ("a list", "not hashable", "tuple(...)"),
    ),
    Broken(
        "a device that is another each time",
        lambda: {
            "namespace": _names(Place=_Place),
            "device": "(Place() if {x} else None)",
            "device_of": lambda place: toy.DEVICE,
        },
        "test_keys_are_equal_for_equal_tensors",
        ("`device`", "not equal", "planned anew"),
    ),
    Broken(
        "arguments are kept", _kept_arguments, "test_arguments_are_not_kept", ("keeps references",)
    ),
    Broken(
        "an element type is missing",
        lambda: {"dtypes": _few_dtypes, "dtype": "{x}.kind.name"},
        "test_dtypes",
        ("float64", "which `dtypes` does not have"),
    ),
    Broken(
        "empty forgets the element type",
        lambda: {"empty": lambda shape, dtype, device: toy.empty(shape, dtypes.float32.numpy)},
        "test_empty_makes_tensors",
        ("`empty` of bool gave a tensor of float32",),
    ),
    Broken(
        "a guard of the shape alone",
        lambda: {"guard": guard_by(dict, "{x}.sizes")},
        "test_guard",
        ("differ in the dtype", "run on the other"),
    ),
    Broken(
        "a guard that compares addresses",
        lambda: {"guard": guard_by(dict, "{x}.address")},
        "test_guard",
        ("says no to another of its sort",),
    ),
    Broken(
        "a guard that always says yes",
        lambda: {"guard": lambda *tensors: lambda *others: True},
        "test_the_kernel_add",
        ("nothing was launched", "differ in the shape"),
    ),
    Broken(
        "a guard that is no function of functions",
        lambda: {"guard": lambda *tensors: True},
        "test_guard",
        ("must give a function", "'bool' object is not callable"),
    ),
    Broken(
        "owns everything",
        lambda: {"owns": lambda type_: True},
        "test_the_frontend_owns_its_tensors_and_nothing_else",
        ("which is no tensor",),
    ),
    Broken(
        "a device guard on another device",
        lambda: {
            "device_guard": lambda index: contextlib.nullcontext(),
            "empty": lambda shape, dtype, device: None,
        },
        "test_device_guard",
        ("raises",),
    ),
)
