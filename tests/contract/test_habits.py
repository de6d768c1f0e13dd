"""Programs as people write them who make kernels for many shapes and types: premake functions.

Each gives ``(arrangement, application, tensors)`` for `make`; declarations are frameworks' types, bounds
and constant sizes, kept to or not; numbers and None stand among the tensors.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import DeclarationWarning, Symbol, Tensor, block_size
from tests.contract.kernels import arange, empty

OPTIONS = {"max_num_configs": 2, "num_warps": (4, 8), "num_stages": [2, 3]}


def random(*shape, dtype=torch.float32):
    generator = torch.Generator("cpu").manual_seed(0)
    values = torch.randn(shape, generator=generator, device="cpu")
    return values.to(torch.get_default_device(), dtype)


def elementwise(*tensors, size=None):
    size = block_size() if size is None else size
    return tuple(
        t.flatten().tile((size,)) if isinstance(t, Tensor) and t.ndim else t for t in tensors
    )


# Element by element, for any number of dimensions.


def addition(input, other, alpha, output):
    output = input + alpha * other  # noqa: F841


def premake_add(ndim, dtype=None, size=None):
    tensors = (*(Tensor(ndim, dtype=dtype) for _ in range(2)), Tensor(0, dtype=dtype))
    return (
        functools.partial(elementwise, size=size),
        addition,
        (*tensors, Tensor(ndim, dtype=dtype)),
    )


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, np.float32, "float32", None])
def test_addition(shape, dtype):
    kernel = ninetoothed.make(*premake_add(len(shape), dtype), **OPTIONS)
    input, other, output = random(*shape), random(*shape), empty(*shape)
    with warnings.catch_warnings(action="error"):
        kernel(input, other, 0.5, output)

    torch.testing.assert_close(output, input + 0.5 * other)


def test_addition_of_another_type_than_was_declared():
    kernel = ninetoothed.make(*premake_add(1, torch.float32, 16), **OPTIONS)
    input, output = arange(21).to(torch.int32), torch.empty(21, dtype=torch.int32)
    with pytest.warns(DeclarationWarning, match="declared with dtype=float32; it is given int32"):
        kernel(input, input, 3, output)

    assert torch.equal(output, input * 4)


# A whole row in a program, its size constant; the bound is too small.


def softmax(input, output):
    exponentials = ntl.exp(input - ntl.max(input))
    output = exponentials / ntl.sum(exponentials)  # noqa: F841


def premake_softmax(options):
    def arrangement(input, output):
        def row(tensor):
            tensor = tensor.tile((1, -1))
            tensor.dtype = tensor.dtype.squeeze(0)
            return tensor

        return row(input), row(output)

    tensors = (
        Tensor(2, other=float("-inf"), shape_options=options, dtype="float32"),
        Tensor(2, shape_options=options),
    )
    return arrangement, softmax, tensors


@pytest.mark.parametrize(
    "options",
    [
        {"constexpr": True},
        {"constexpr": True, "upper_bound": 16},
        (None, {"constexpr": True, "upper_bound": 16}),
        ({"upper_bound": 2}, {"upper_bound": 16, "power_of_two": True}),
        (None, None),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::ninetoothed.DeclarationWarning")
def test_softmax_of_rows_of_any_length(options):
    kernel = ninetoothed.make(*premake_softmax(options), **OPTIONS)
    for shape in ((3, 16), (3, 17), (1, 1), (5, 50)):
        input, output = random(*shape), empty(*shape)
        kernel(input, output)
        torch.testing.assert_close(output, torch.softmax(input, -1))


# Pooling: what is the size of a window, of a step and of the padding is constant and given.


def pooling(input, output):
    output = ntl.max(input, axis=1)  # noqa: F841


def premake_pooling(bounded):
    keywords = {"lower_bound": 2, "upper_bound": 3} if bounded else {}
    window, step, padding = (
        Symbol(name, constexpr=True, **keywords) for name in ("WINDOW", "STEP", "PADDING")
    )
    size = Symbol("SIZE", constexpr=True)

    def arrangement(input, output):
        input = input.pad(((0, 0), (padding, padding)))
        input = input.tile((1, window), strides=(-1, step))
        input = input.ravel().flatten(end_dim=3).tile((size, -1))
        return input, output.flatten().tile((size,))

    return arrangement, pooling, (Tensor(2, other=float("-inf")), Tensor(2))


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("window", "step", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 0), (4, 3, 2), (1, 1, 0)]
)
@pytest.mark.filterwarnings("ignore::ninetoothed.DeclarationWarning")
def test_pooling_with_any_padding(bounded, window, step, padding):
    kernel = ninetoothed.make(*premake_pooling(bounded), **OPTIONS)
    input = random(3, 11)
    expected = torch.max_pool1d(input[None], window, step, padding, ceil_mode=True)[0]
    # The published count rounds up, and has no window less for what lies beyond.
    count = math.ceil((11 + 2 * padding - window) / step) + 1
    output = empty(3, count)
    kernel(input, output, WINDOW=window, STEP=step, PADDING=padding, SIZE=8)

    assert torch.equal(output[:, : expected.shape[1]], expected)


# Numbers and None among the tensors, a constant among the parameters.


def normalization(input, weight, bias, eps, output):
    mean = ntl.sum(input) / input.source.shape[1]
    centred = input - mean
    variance = ntl.sum(centred * centred) / input.source.shape[1]
    value = centred / ntl.sqrt(variance + eps) * weight
    if bias is not None:
        value += bias
    output = value  # noqa: F841


def premake_normalization(has_bias):
    def arrangement(input, weight, bias, eps, output):
        def row(tensor):
            tensor = tensor.tile((1, -1))
            tensor.dtype = tensor.dtype.squeeze(0)
            return tensor

        def spread(vector):
            if vector is None:
                return None
            return vector.tile((-1,)).expand((input.shape[0],)).unsqueeze(1)

        return row(input), spread(weight), spread(bias), eps, row(output)

    bias = Tensor(1, dtype=torch.float32) if has_bias else None
    weight = Tensor(1, dtype=torch.float32, shape_options={"constexpr": True})
    return arrangement, normalization, (Tensor(2), weight, bias, 1e-5, Tensor(2))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 8), (2, 13)])
def test_normalization_with_or_without_a_bias(has_bias, shape):
    kernel = ninetoothed.make(*premake_normalization(has_bias), **OPTIONS)
    input, weight, bias, output = random(*shape), random(shape[1]), random(shape[1]), empty(*shape)
    kernel(input, weight, *([bias] if has_bias else []), output)

    expected = torch.layer_norm(input, shape[1:], weight, bias if has_bias else None, 1e-5)
    torch.testing.assert_close(output, expected)


# A product, its block sizes the tuner's or given.


def product(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total += ntl.dot(input[k], other[k], input_precision="ieee")
    output = total.to(output.dtype)  # noqa: F841


def premake_product(dtype=None, m=None, n=None, k=None):
    m, n, k = (block_size(16, 64) if size is None else size for size in (m, n, k))

    def arrangement(input, other, output):
        output = output.tile((m, n))
        input = input.tile((m, k)).tile((1, -1)).expand((-1, output.shape[1]))
        input.dtype = input.dtype.squeeze(0)
        other = other.tile((k, n)).tile((-1, 1)).expand((output.shape[0], -1))
        other.dtype = other.dtype.squeeze(1)
        return input, other, output

    options = ({"upper_bound": 32}, {"upper_bound": 32})
    tensors = tuple(Tensor(2, dtype=dtype, shape_options=options) for _ in range(3))
    return arrangement, product, tensors


@pytest.mark.parametrize("sizes", [{}, {"m": 16, "n": 16, "k": 16}])
@pytest.mark.parametrize("dtype", [torch.float16, None])
@pytest.mark.filterwarnings("ignore::ninetoothed.DeclarationWarning")
def test_a_product_larger_than_was_declared(sizes, dtype):
    kernel = ninetoothed.make(*premake_product(dtype, **sizes), **OPTIONS)
    for shape in ((16, 16, 16), (33, 40, 21)):
        a, b = random(shape[0], shape[2]), random(shape[2], shape[1])
        output = empty(shape[0], shape[1])
        kernel(a, b, output)
        torch.testing.assert_close(output, a @ b, rtol=1e-5, atol=1e-5)


# Per channel, the statistics of fewer dimensions than the data.


def centred(input, mean, output):
    output = input - mean  # noqa: F841


def premake_centred():
    def arrangement(input, mean, output):
        def plane(tensor):
            tensor = tensor.flatten(start_dim=2).tile((1, 1, -1))
            tensor.dtype = tensor.dtype.squeeze((0, 1))
            return tensor

        mean = mean.tile((1, 1))
        mean.dtype = mean.dtype.squeeze(0)
        return plane(input), mean, plane(output)

    return arrangement, centred, (Tensor(4), Tensor(2), Tensor(4))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 3, 2, 2), (3, 1, 1, 7)])
def test_statistics_of_fewer_dimensions(shape):
    """`(n, c, 1)` and `(n, c)` agree."""
    kernel = ninetoothed.make(*premake_centred(), **OPTIONS)
    input, output = random(*shape), empty(*shape)
    mean = input.mean((2, 3))
    kernel(input, mean, output)

    torch.testing.assert_close(output, input - mean[:, :, None, None])


@pytest.mark.parametrize("stray", [256, "c_float"])
def test_a_slip_in_a_declaration_runs(stray):
    """`Tensor(ndim, …, 256)` puts a block size where the element type stands."""
    with pytest.warns(DeclarationWarning, match="is no element type"):
        arrangement, application, tensors = premake_add(2, stray)
    kernel = ninetoothed.make(arrangement, application, tensors, **OPTIONS)
    input, output = random(3, 4), empty(3, 4)
    kernel(input, input, 1, output)

    assert torch.equal(output, input * 2)
