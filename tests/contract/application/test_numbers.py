"""LANGUAGE.md, "Numbers"."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.kernels import arange, empty, matrices, run


def products(x, y, out):
    return x.tile((16, -1)), y.tile((-1, 16)), out.tile((16, 16))


def test_dot_accumulates_in_float32():
    """`ntl.dot` accumulates in float32"""

    def application(x, y, out):
        out = ntl.dot(x, y)  # noqa: F841

    # In float16 the sum would stand still at 2048, its first term.
    x = torch.ones(16, 1024, dtype=torch.float16)
    y = torch.ones(1024, 16, dtype=torch.float16)
    x[:, 0] = 2048
    out = empty(16, 16)
    ninetoothed.make(products, application, matrices(3))(x, y, out)
    assert torch.equal(out, torch.full((16, 16), 2048.0 + 1023.0))


def test_dots_result_is_float32():
    def application(x, y, out):
        product = ntl.dot(x, y)
        if product.dtype is ntl.float32:
            out = product  # noqa: F841

    out = empty(16, 16)
    x = torch.eye(16, dtype=torch.float16)
    ninetoothed.make(products, application, matrices(3))(x, x, out)
    assert torch.equal(out, torch.eye(16))


def test_dot_takes_float32_operands_in_ieee_precision():
    """and takes fp32 operands in IEEE precision unless `input_precision` says otherwise"""

    def application(x, y, out):
        out = ntl.dot(x, y)  # noqa: F841

    # Lost in TF32, whose mantissa has ten bits.
    x = torch.full((16, 16), 1 + 2**-20)
    out = empty(16, 16)
    kernel = ninetoothed.make(products, application, matrices(3))
    kernel(x, torch.eye(16), out)
    assert torch.equal(out, x)
    assert 'input_precision="ieee"' in kernel.source.replace("'", '"')


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_input_precision_may_say_otherwise(precision):
    def application(x, y, out):
        out = ntl.dot(x, y, input_precision=precision)  # noqa: F841

    kernel = ninetoothed.make(products, application, matrices(3))
    assert f'input_precision="{precision}"' in kernel.source.replace("'", '"')


def copied(x, y):
    y = x  # noqa: F841


def emitted_for(*arguments, application=copied, arrangement=None):
    """The Triton source for float16 matrices of these shapes and strides; no memory is needed."""
    pytest.importorskip("triton")
    from ninetoothed.backends.base import Argument, Call, Device
    from ninetoothed.backends.triton.translation import specialize

    def in_blocks(x, y):
        return x.tile((16, 16)), y.tile((16, 16))

    kernel = ninetoothed.make(arrangement or in_blocks, application, matrices(len(arguments)))
    described = {
        name: Argument(shape, strides, ninetoothed.float16)
        for name, (shape, strides) in zip(kernel.definition.call_names, arguments)
    }
    return specialize(kernel.definition, Call(described, device=Device("cuda")), None).emitted.text


ROW = 2**16


@pytest.mark.parametrize(
    ("rows", "columns", "wide"),
    [
        (64, 64, False),
        # The last element of 2 ** 31 is at 2 ** 31 - 1.
        (2**15, ROW, False),
        (2**15 + 16, ROW, True),
        (2**16, ROW, True),
    ],
)
def test_offsets_have_32_bits_where_every_reachable_offset_fits_and_64_where_not(
    rows, columns, wide
):
    """Integer offsets are 32-bit where every reachable offset fits and 64-bit where not"""
    contiguous = ((rows, columns), (columns, 1))

    assert ("int64" in emitted_for(contiguous, contiguous)) is wide


def test_a_large_stride_of_a_small_tensor_needs_64_bits():
    small, spread = ((32, 32), (32, 1)), ((32, 32), (2**27, 1))

    assert "int64" not in emitted_for(small, small)
    assert "int64" in emitted_for(spread, small)
    assert "int64" in emitted_for(small, spread)


def test_a_step_back_in_memory_counts_as_well():
    small, back = ((32, 32), (32, 1)), ((32, 32), (-(2**27), 1))

    assert "int64" in emitted_for(back, small)


def test_the_width_is_decided_from_the_arguments_of_each_call():
    """decided from the arguments of each call"""
    pytest.importorskip("triton")
    from ninetoothed.backends.base import Argument, Call
    from ninetoothed.backends.triton.translation import specialize

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((16, 16)), y.tile((16, 16))), copied, matrices(2)
    )
    sources = []
    for rows in (64, 2**16, 64):
        matrix = Argument((rows, ROW), (ROW, 1), ninetoothed.float16)
        sources.append(
            specialize(kernel.definition, Call({"x": matrix, "y": matrix}), None).emitted.text
        )
    assert ["int64" in source for source in sources] == [False, True, False]
    assert sources[0] == sources[2]


def test_integer_scalars_keep_their_value():
    """A number past 32 bits arrives whole."""

    def application(x, number, y):
        y = x + number  # noqa: F841

    def arrangement(x, number, y):
        return x.tile((4,)), number, y.tile((4,))

    y = torch.empty(3, dtype=torch.int64)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    for number in (5, 2**40, -(2**40)):
        kernel(torch.arange(3), number, y)
        assert torch.equal(y, torch.arange(3) + number)


def test_offsets_reach_far_elements_on_the_cpu():
    """The same through a view whose rows lie far apart; nothing of it is allocated but its pages."""

    def application(x, y):
        y = x  # noqa: F841

    memory = torch.empty(2**31 + 2**20, dtype=torch.int8)
    x = memory.as_strided((2, 4), (2**31 + 16, 1))
    x[0], x[1] = torch.arange(4), torch.arange(4, 8)
    y = torch.zeros(2, 4, dtype=torch.int8)
    ninetoothed.make(lambda x, y: (x.tile((1, 4)), y.tile((1, 4))), application, matrices(2))(x, y)
    assert torch.equal(y, torch.arange(8, dtype=torch.int8).reshape(2, 4))


# Arithmetic on shapes.


def of_source(x, y):
    return x, y.tile((1,))


def product_of_sizes(x, y):
    n = x.source.shape[0]
    y = n * n * 5000000 // 7  # noqa: F841


def remainder_of_a_product(x, y):
    y = x.source.shape[0] * 100000 % 1000003  # noqa: F841


def a_range_between_large_numbers(x, y):
    total = 0
    for i in range(x.source.shape[0] * 100000 - 6999999997):
        total += i
    y = total  # noqa: F841


def compared_with_a_large_number(x, y):
    n = x.source.shape[0]
    y = 1 if n * n > 4000000000 else 0  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (product_of_sizes, 70000**2 * 5000000 // 7),
        (remainder_of_a_product, 70000 * 100000 % 1000003),
        (a_range_between_large_numbers, 3),
        (compared_with_a_large_number, 1),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_arithmetic_on_shapes_cannot_overflow(application, expected):
    kernel = ninetoothed.make(of_source, application, (Tensor(2), Tensor(1)))
    # 32 bits hold the size, and not what is computed of it.
    x, y = torch.zeros(1, 1).expand(70000, 1), empty(1, dtype=torch.int64)
    kernel(x, y)
    assert y.tolist() == [expected]


def test_a_whole_power_is_products():
    exponent = 4

    def application(x, n, y):
        value = x
        value **= 2
        y = value + (x + 1) ** 3 - x**exponent + x * n**3 + x.shape[0] ** 2
        y **= 2

    x = arange(4)
    expected = (x**2 + (x + 1) ** 3 - x**4 + x * 27 + 16) ** 2
    assert run(application, x, 3, empty(4)).tolist() == expected.tolist()
