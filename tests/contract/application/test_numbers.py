"""LANGUAGE.md, "Numbers"."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
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


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32, torch.float64])
def test_dot_adds_to_what_has_its_products_type(dtype):
    def application(x, y, out):
        sums = ntl.dot(x, y)
        sums = ntl.dot(x, y, sums)
        out = ntl.dot(x, y, acc=sums)  # noqa: F841

    x = arange(16 * 32).reshape(16, 32).remainder(7).to(dtype)
    exact = torch.int32 if dtype is torch.int8 else torch.float64
    out = torch.empty(16, 16, dtype=exact)
    ninetoothed.make(products, application, matrices(3))(x, x.T.contiguous(), out)
    assert torch.equal(out, (3 * (x.double() @ x.T.double())).to(exact))


def test_dot_refuses_to_add_to_another_type():
    def application(x, y, out):
        sums = ntl.zeros(out.shape, ntl.float16)
        out = ntl.dot(x, y, sums)  # noqa: F841

    kernel = ninetoothed.make(products, application, matrices(3))
    x, out = torch.eye(16, dtype=torch.float16), empty(16, 16)
    with pytest.raises(ApplicationError, match=r"type of the product, float32.*is float16"):
        kernel(x, x, out)


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


def test_truth_values_that_a_call_gives_count():
    """bool + bool counts"""

    def application(x, b, y):
        count = b
        count -= x[0] > 0
        y[0] = b + b
        y[1] = count + 0
        y[2] = ntl.max((x > 0) + b)

    def arrangement(x, b, y):
        return x.tile((-1,)), b, y.tile((-1,))

    x, y = torch.tensor([-1.0, 2.0]), torch.zeros(3, dtype=torch.int32)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))(x, True, y)
    assert y.tolist() == [2, 1, 2]


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


# Sizes beside elements.


def whole(x, y):
    return x.tile((-1,)), y.tile((-1,))


def in_blocks(x, y):
    return x.tile((4,)), y.tile((4,))


def with_a_size_added(x, y):
    y = x + x.source.shape[0]  # noqa: F841


def with_a_size_in_a_variable(x, y):
    n = x.source.shape[0] - 1
    value = x
    value -= -n
    y = value + 1  # noqa: F841


def where_a_size_is_chosen(x, y):
    y = ntl.where(x > 0, x.source.shape[0] + 100, x)  # noqa: F841


def with_a_stride_added(x, y):
    y = x + x.source.stride(0) * 100  # noqa: F841


def with_a_negative_number_made_of_a_stride(x, y):
    y = x + (x.source.stride(0) - 101) + 200  # noqa: F841


@pytest.mark.parametrize("arrangement", [whole, in_blocks])
@pytest.mark.parametrize(
    "application",
    [
        *(with_a_size_added, with_a_size_in_a_variable, where_a_size_is_chosen),
        *(with_a_stride_added, with_a_negative_number_made_of_a_stride),
    ],
)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.uint32])
@pytest.mark.parametrize("is_declared", [False, True])
def test_a_size_beside_elements_is_an_integer_of_32_bits(
    application, arrangement, dtype, is_declared
):
    """a size or a stride is int32, as an integer argument"""
    source = Tensor(1, dtype=dtype if is_declared else None)
    kernel = ninetoothed.make(arrangement, application, (source, Tensor(1)))
    x, y = torch.full((100,), 100, dtype=dtype), empty(100, dtype=torch.int32)
    kernel(x, y)
    assert y.tolist() == [200] * 100


def test_a_constant_size_beside_elements_takes_their_type():
    def application(x, y):
        y = x + x.shape[0]  # noqa: F841

    tensors = Tensor(1, shape=(4,)), Tensor(1)
    kernel = ninetoothed.make(whole, application, tensors)
    x, y = torch.full((4,), 127, dtype=torch.int8), empty(4, dtype=torch.int32)
    kernel(x, y)
    assert y.tolist() == [-125] * 4


def by_a_quotient(x, y):
    y = x * (1 / x.source.shape[0])  # noqa: F841


def by_a_floats_quotient(x, y):
    y = x * (1.0 / x.source.shape[0])  # noqa: F841


def by_a_floats_product(x, y):
    y = x / (-1.0 * -x.source.shape[0])  # noqa: F841


def by_what_is_written_after_a_size(x, y):
    y = x / (x.source.shape[0] * 1.0)  # noqa: F841


def by_a_logarithm(x, y):
    y = x / ntl.exp(ntl.log(1.0 * x.source.shape[0]))  # noqa: F841


@pytest.mark.parametrize("arrangement", [whole, in_blocks])
@pytest.mark.parametrize(
    "application",
    [
        by_a_quotient,
        by_a_floats_quotient,
        by_a_floats_product,
        by_what_is_written_after_a_size,
        by_a_logarithm,
    ],
)
def test_what_is_made_of_a_size_and_a_float_is_a_float32(application, arrangement):
    x, y = torch.full((3,), 2.5, dtype=torch.float16), empty(3)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(x, y)
    # In float16 it would be 0.8330078.
    assert y.tolist() == pytest.approx([2.5 / 3] * 3, rel=1e-6)


def divided_by_a_size(x, y):
    y = x // (x.source.shape[0] - 3)  # noqa: F841


def the_rest_of_a_division(x, y):
    y = x % x.source.shape[0]  # noqa: F841


@pytest.mark.parametrize("arrangement", [whole, in_blocks])
@pytest.mark.parametrize("application", [divided_by_a_size, the_rest_of_a_division])
def test_unsigned_elements_are_not_divided_by_a_size(application, arrangement):
    """operands of a division that rounds down have one signedness"""
    x, y = torch.full((4,), 100, dtype=torch.uint8), empty(4)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    with pytest.raises(
        ApplicationError, match="one signedness, but got uint8 and a size .int32.; cast"
    ) as info:
        kernel(x, y)
    assert info.value.location.line == application.__code__.co_firstlineno + 1
    declared = ninetoothed.make(arrangement, application, (Tensor(1, dtype=torch.uint8), Tensor(1)))
    with pytest.raises(
        ApplicationError, match="one signedness, but got uint8 and a size .int32.; cast"
    ):
        declared(x, y)


def test_unsigned_elements_are_divided_by_a_size_that_was_cast():
    def application(x, y):
        y = x // ntl.cast(x.source.shape[0], ntl.uint8) + x.to(ntl.int32) // x.source.shape[0]  # noqa: F841

    x, y = torch.full((4,), 103, dtype=torch.uint8), empty(4)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))(x, y)
    assert y.tolist() == [50.0] * 4


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_least_and_the_greatest_integers_are_divided_as_others(dtype):
    def application(x, z, y):
        y = x // z  # noqa: F841

    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([least, least + 1, most, most, least], dtype=dtype)
    z = torch.tensor([3, 3, -3, 2, -3], dtype=dtype)
    y = torch.zeros(5, dtype=dtype)
    arrangement = lambda *tensors: tuple(tensor.tile((-1,)) for tensor in tensors)  # noqa: E731
    ninetoothed.make(arrangement, application, (Tensor(1),) * 3)(x, z, y)
    assert y.tolist() == [a // b for a, b in zip(x.tolist(), z.tolist())]


def test_the_larger_of_halves_of_two_kinds_is_float32():
    def application(x, z, y):
        larger = ntl.maximum(x, z)
        for _ in range(2):
            larger = larger + ntl.zeros(y.shape, ntl.float32)
        y = larger  # noqa: F841

    x, z = torch.tensor([1.5, -2, 3]).half(), torch.tensor([1, 2, -3]).bfloat16()
    y = empty(3)
    arrangement = lambda *tensors: tuple(tensor.tile((-1,)) for tensor in tensors)  # noqa: E731
    ninetoothed.make(arrangement, application, (Tensor(1),) * 3)(x, z, y)
    assert y.tolist() == [1.5, 2, 3]
