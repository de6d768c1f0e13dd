"""The kernels that the kit runs, each with its reference in NumPy: eight ways to reach memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.records import dataclass

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)


def arrange_blocks(*tensors):
    """Vectors in blocks; what has no dimension is handed through."""
    return tuple(tensor.tile((BLOCK_SIZE,)) if tensor.ndim else tensor for tensor in tensors)


def _vectors_and_constant() -> tuple[Tensor, ...]:
    return Tensor(1), Tensor(1), Tensor(0, constexpr=True), Tensor(1)


def arrange_rows(*tensors):
    return tuple(tensor.tile((1, -1)) for tensor in tensors)


def arrange_totals(input, output):
    return input.tile((8, -1)), output.unsqueeze(1).tile((8, 1))


def arrange_squares(input, output):
    return input.permute((1, 0)).tile((8, 8)), output.tile((8, 8))


def arrange_windows(input, output):
    """Windows of 4 that begin every 2 elements, a block of them to a program."""
    windows = input.tile((4,), strides=(2,), floor_mode=True).ravel()
    return windows.tile((BLOCK_SIZE, -1)), output.unsqueeze(1).tile((BLOCK_SIZE, 1))


def arrange_product(input, other, output):
    output_arranged = output.tile((16, 16))
    input_arranged = input.tile((16, 16)).tile((1, -1))
    input_arranged = input_arranged.expand((-1, output_arranged.shape[1]))
    input_arranged.dtype = input_arranged.dtype.squeeze(0)
    other_arranged = other.tile((16, 16)).tile((-1, 1))
    other_arranged = other_arranged.expand((output_arranged.shape[0], -1))
    other_arranged.dtype = other_arranged.dtype.squeeze(1)
    return input_arranged, other_arranged, output_arranged


def copy(input, output):
    output = input  # noqa: F841


def increment(output):
    output = output + 1


def add(input, other, output):
    output = input + other  # noqa: F841


def add_where(input, other, adds, output):
    output = input + other if adds else input  # noqa: F841


def scale(input, factor, offset, output):
    output = input * factor + offset  # noqa: F841


def greater(input, other, output):
    output = input > other  # noqa: F841


def softmax(input, output):
    numerator = ntl.exp(input - ntl.max(input))
    output = numerator / ntl.sum(numerator)  # noqa: F841


def total(input, output):
    output = ntl.sum(input, axis=1, keep_dims=True)  # noqa: F841


def largest(input, output):
    output = ntl.max(input, axis=1, keep_dims=True)  # noqa: F841


def product(input, other, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k])
    output = accumulator


#: name -> (arrangement, application, the tensors).
_KERNELS: dict[str, tuple[Any, Any, Callable[[], tuple[Tensor, ...]]]] = {
    "copy": (arrange_blocks, copy, lambda: (Tensor(1), Tensor(1))),
    "increment": (arrange_blocks, increment, lambda: (Tensor(1),)),
    "add": (arrange_blocks, add, lambda: (Tensor(1), Tensor(1), Tensor(1))),
    "add where": (arrange_blocks, add_where, _vectors_and_constant),
    "scale": (arrange_blocks, scale, lambda: (Tensor(1), Tensor(0), Tensor(0), Tensor(1))),
    "greater": (arrange_blocks, greater, lambda: (Tensor(1), Tensor(1), Tensor(1))),
    "softmax": (arrange_rows, softmax, lambda: (_rows(), _rows())),
    "total": (arrange_totals, total, lambda: (_rows(), Tensor(1))),
    "transpose": (arrange_squares, copy, lambda: (Tensor(2), Tensor(2))),
    "windows": (arrange_windows, largest, lambda: (Tensor(1), Tensor(1))),
    "product": (arrange_product, product, lambda: (Tensor(2), Tensor(2), Tensor(2))),
}


def _rows() -> Tensor:
    """A matrix whose rows are a tile each."""
    return Tensor(2, shape_options=(None, {"constexpr": True}))


class Kernels:
    """The kernels of one kit, by name, each made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            if name not in self._made:
                arrangement, application, tensors = _KERNELS[name]
                self._made[name] = ninetoothed.make(
                    arrangement, application, tensors(), kernel_name=name.replace(" ", "_")
                )
            return self._made[name]


@dataclass(frozen=True)
class Task:
    """A kernel and what it is run on.

    Attributes:
        name: the kernel's.
        shapes: the inputs' shapes.
        result: the output's shape.
        reference: the inputs, in float64, to the output.
        scalars: numbers between the inputs and the output.
        has_block_size: whether a call gives BLOCK_SIZE.
        is_bool: whether the output is of bool.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    reference: Callable[..., numpy.ndarray]
    scalars: tuple[float, ...] = ()
    has_block_size: bool = True
    is_bool: bool = False

    def constants(self, block_size: int) -> dict[str, int]:
        """What a call gives by keyword."""
        return {"BLOCK_SIZE": block_size} if self.has_block_size else {}


def _softmax_reference(input: numpy.ndarray) -> numpy.ndarray:
    numerator = numpy.exp(input - input.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


def _windows_reference(input: numpy.ndarray) -> numpy.ndarray:
    return numpy.lib.stride_tricks.sliding_window_view(input, 4)[::2].max(axis=1)


TASKS = (
    Task("add", ((1000,), (1000,)), (1000,), lambda x, y: x + y),
    Task(
        "scale",
        ((1000,),),
        (1000,),
        lambda x, factor, offset: x * factor + offset,
        scalars=(-1.5, 3),
    ),
    Task("greater", ((777,), (777,)), (777,), lambda x, y: x > y, is_bool=True),
    Task("softmax", ((7, 37),), (7, 37), _softmax_reference, has_block_size=False),
    Task("total", ((21, 33),), (21,), lambda x: x.sum(axis=1), has_block_size=False),
    Task("transpose", ((19, 27),), (27, 19), lambda x: x.T, has_block_size=False),
    Task("windows", ((101,),), (49,), _windows_reference),
    Task("product", ((33, 20), (20, 35)), (33, 35), lambda x, y: x @ y, has_block_size=False),
)
