"""The ten kernels of the paper, and rope in place, on any framework's tensors, each with its reference in NumPy.

No framework is imported here: tensors are made and read by whoever runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from examples import add, addmm, bmm, conv2d, mm, rms_norm, rope, rope_in_place, sdpa, silu, softmax
from examples.demo import in_numpy

Shape = tuple[int, ...]


@dataclass(frozen=True)
class PaperKernel:
    """One kernel and what it is run on.

    Attributes:
        name: the example's.
        kernel: the example's kernel.
        small: the inputs' shapes where a program runs at a time.
        large: the inputs' shapes on a GPU; sizes that no block size divides.
        result: the inputs' shapes to the output's; None where the first input is turned in place.
        reference: the inputs in float64 to the output.
        arguments: (inputs, output) -> the call's arguments.
        constants: what a call gives by keyword.
    """

    name: str
    kernel: Any
    small: tuple[Shape, ...]
    large: tuple[Shape, ...]
    result: Callable[..., Shape] | None
    reference: Callable[..., numpy.ndarray]
    arguments: Callable[..., tuple[Any, ...]] = lambda inputs, output: (*inputs, output)
    constants: tuple[tuple[str, int], ...] = ()

    def run(
        self, shapes: tuple[Shape, ...], dtype: Any, put: Callable[[numpy.ndarray], Any]
    ) -> tuple[Callable[[], None], Any, numpy.ndarray]:
        """What launches it, the tensor that the result is in, and the result as it should be.

        Args:
            dtype: the NumPy dtype of the inputs and the output.
            put: makes a tensor of the framework.
        """
        random = numpy.random.default_rng(0)
        arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
        expected = self.reference(*(array.astype(numpy.float64) for array in arrays))
        inputs = [put(array) for array in arrays]
        if self.result is None:
            given, output = tuple(inputs), inputs[0]
        else:
            output = put(numpy.full(self.result(*shapes), -77, dtype))
            given = self.arguments(inputs, output)
        return lambda: self.kernel(*given, **dict(self.constants)), output, expected


def relative_error(found: numpy.ndarray, expected: numpy.ndarray) -> float:
    """The largest difference, relative to the largest element of what should be."""
    return float(
        numpy.abs(found.astype(numpy.float64) - expected).max() / numpy.abs(expected).max()
    )


def _same(first: Shape, *others: Shape) -> Shape:
    return first


def _product(first: Shape, second: Shape) -> Shape:
    return (*first[:-1], second[-1])


_BLOCK = (("BLOCK_SIZE", 1024),)

PAPER_KERNELS = (
    PaperKernel(
        "add",
        add.kernel,
        ((2051,), (2051,)),
        ((1_000_003,), (1_000_003,)),
        _same,
        lambda x, y: x + y,
        constants=_BLOCK,
    ),
    PaperKernel(
        "silu", silu.kernel, ((2051,),), ((1_000_003,),), _same, in_numpy.silu, constants=_BLOCK
    ),
    PaperKernel("softmax", softmax.kernel, ((13, 78),), ((1823, 781),), _same, in_numpy.softmax),
    PaperKernel(
        "rms_norm",
        rms_norm.kernel,
        ((13, 78),),
        ((1823, 781),),
        _same,
        in_numpy.rms_norm,
        lambda inputs, output: (inputs[0], 1e-6, output),
    ),
    PaperKernel(
        "rope",
        rope.kernel,
        ((2, 5, 3, 10), (5, 5), (5, 5)),
        ((3, 517, 7, 90), (517, 45), (517, 45)),
        _same,
        in_numpy.rope,
    ),
    PaperKernel(
        "rope in place",
        rope_in_place.kernel,
        ((2, 5, 3, 10), (5, 5), (5, 5)),
        ((3, 517, 7, 90), (517, 45), (517, 45)),
        None,
        in_numpy.rope,
    ),
    PaperKernel(
        "mm",
        mm.kernel,
        ((33, 17), (17, 35)),
        ((1001, 777), (777, 515)),
        _product,
        lambda x, y: x @ y,
    ),
    PaperKernel(
        "addmm",
        addmm.kernel,
        ((33, 35), (33, 17), (17, 35)),
        ((1001, 515), (1001, 777), (777, 515)),
        _same,
        lambda z, x, y: in_numpy.addmm(z, x, y, 0.5, -1.5),
        lambda inputs, output: (*inputs, 0.5, -1.5, output),
    ),
    PaperKernel(
        "bmm",
        bmm.kernel,
        ((3, 33, 17), (3, 17, 35)),
        ((5, 333, 517), (5, 517, 129)),
        _product,
        lambda x, y: x @ y,
    ),
    PaperKernel(
        "conv2d",
        conv2d.kernel,
        ((2, 3, 7, 9), (5, 3, 3, 3)),
        ((3, 17, 45, 51), (37, 17, 5, 3)),
        lambda x, f: (x[0], f[0], x[2] - f[2] + 1, x[3] - f[3] + 1),
        in_numpy.conv2d,
    ),
    PaperKernel(
        "sdpa",
        sdpa.kernel,
        ((2, 2, 33, 16), (2, 2, 37, 16), (2, 2, 37, 16)),
        ((2, 6, 777, 72), (2, 6, 1111, 72), (2, 6, 1111, 72)),
        _same,
        in_numpy.sdpa,
        lambda inputs, output: (*inputs, inputs[0].shape[-1] ** -0.5, False, output),
    ),
)
