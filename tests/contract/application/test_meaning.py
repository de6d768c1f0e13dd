"""LANGUAGE.md, "Numbers": small programs that mean what Python and NumPy say, on every backend.

A case is an application over whole vectors in one program, the arguments before its last one, and what
the last one holds afterwards, as plain NumPy says it. Run in Triton's interpreter too, by
`tests.contract.on_interpreter`.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import NineToothedError
from tests.contract.application.meanings import CASES, FLOATS, made, whole

FACTOR = 2.0


def by_factor(value):
    return value * FACTOR


def test_names_mean_what_they_did_when_the_kernel_was_made():
    global FACTOR, by_factor
    factor, shift = 3.0, np.float32(1).item()

    def application(x, out):
        out = by_factor(x) * factor + shift

    kernel = ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))
    helper = by_factor
    try:
        FACTOR, factor, shift = 100.0, 100.0, 100.0
        by_factor = None
        out = torch.zeros(8)
        kernel(torch.tensor(FLOATS), out)
    finally:
        FACTOR, by_factor = 2.0, helper
    np.testing.assert_allclose(out.cpu().numpy(), FLOATS * 6 + 1)


@pytest.mark.parametrize("name", CASES)
def test_it_means_what_plain_numpy_says(name):
    kernel, arguments, expected = made(CASES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # NumPy's, about what Triton's interpreter does at the end of a `range`.
        warnings.filterwarnings("ignore", "Conversion of an array with ndim > 0")
        kernel(*arguments)
    tolerance = 1e-15 if expected.dtype == np.float64 else 1e-6
    got = arguments[-1].cpu().numpy()
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_triton_compiles_it_without_a_warning(name):
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    kernel, arguments, _ = made(CASES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]


# What one backend alone would take is refused on both, with the place.


def named_in_one_branch(x, n, y):
    if n > 0:
        v = x * 2
    y = v


def named_in_a_loop(x, n, y):
    for k in range(n):
        v = x * k
    y = v


def a_size_of_the_running_kernel(x, n, y):
    y = ntl.zeros((n,), ntl.float32)


def a_range_of_the_running_kernel(x, n, y):
    y = x + ntl.arange(0, n)


def a_loop_that_changes_a_type(x, n, y):
    total = 0
    for _ in range(n):
        total += ntl.sum(x)
    y = x + total


def a_loop_that_changes_a_shape(x, n, y):
    total = 0.0
    for _ in range(n):
        total += x
    y = total


def a_condition_that_changes_a_shape(x, n, y):
    value, k = x, 0
    while k < n:
        value = value[:, None] + x[None, :]
        k += 1
    y = ntl.sum(value, axis=1)


def a_product_of_too_few(x, n, y):
    matrix = x[:, None] + x[None, :]
    y = ntl.sum(ntl.dot(matrix, matrix), axis=1)


def branches_of_two_shapes(x, n, y):
    if n > 0:
        v = x[:, None]
    else:
        v = x
    y = ntl.sum(v) + x


def a_branch_with_a_number(x, n, y):
    if n > 0:
        v = x * 2
    else:
        v = 1.0
    y = v + x


def a_branch_that_changes_a_type(x, n, y):
    v = 0
    if n > 0:
        v = 2.5
    y = x + v


def a_branch_of_the_tensors_type(x, n, y):
    if n > 0:
        v = x.to(ntl.int32)
    else:
        v = x
    y = v * 2


def an_axis_that_is_not_there(x, n, y):
    y = x + ntl.sum(x, axis=1)


def a_scan_along_no_axis(x, n, y):
    y = ntl.cumsum(x, axis=1)


def a_flip_along_no_axis(x, n, y):
    y = ntl.flip(x, 1)


def too_many_slices(x, n, y):
    y = ntl.sum((x * 2)[:, :]) + x


def a_reduction_of_a_number(x, n, y):
    y = x + ntl.sum(ntl.sum(x))


def sizes_that_do_not_meet(x, n, y):
    y = ntl.sum(ntl.zeros((4,), ntl.float32) + ntl.zeros((8,), ntl.float32)) + x


def a_reshape_to_another_count(x, n, y):
    y = ntl.sum(ntl.reshape(ntl.zeros((4, 8), ntl.float32), (4, 4))) + x


def dimensions_given_twice(x, n, y):
    y = ntl.sum(ntl.permute(x[:, None], (0, 0))) + x


def an_accumulator_of_another_shape(x, n, y):
    a, c = ntl.zeros((16, 16), ntl.float16), ntl.zeros((16, 32), ntl.float32)
    y = x + ntl.sum(ntl.dot(a, a, c))


def a_product_of_inner_sizes_that_differ(x, n, y):
    a, b = ntl.zeros((16, 16), ntl.float16), ntl.zeros((32, 16), ntl.float16)
    y = x + ntl.sum(ntl.dot(a, b))


def a_store_of_more_dimensions(x, n, y):
    y = x[:, None] + x[None, :]


def names_for_one_value(x, n, y):
    a, b = ntl.max(x, 0)
    y = x + a + b


def names_for_more_values(x, n, y):
    a, b, c = ntl.split(ntl.join(x, x))
    y = a + b + c


def one_element_for_a_number(x, n, y):
    y[0] = ntl.sum(x[None, :], 1)


def one_element_for_a_number_of_the_source(x, n, y):
    y.source[0] = ntl.sum(x[None, :], 1)


def one_element_added_to_a_number(x, n, y):
    ntl.atomic_add(y[0], ntl.sum(x[None, :], 1))


def a_mask_of_more_dimensions(x, n, y):
    ntl.atomic_add(y.source[0], 1, mask=x > 0)


def a_tile_through_one_pointer(x, n, y):
    ntl.store(y.data_ptr(), x)


def a_mask_for_one_pointer(x, n, y):
    y = ntl.load(x.data_ptr(), mask=x > 0)


def a_statement_for_a_value(x, n, y):
    y = ntl.device_print("x", x)


def nothing_stored(x, n, y):
    y = None


def a_string_added(x, n, y):
    v = x
    v += "1"
    y = v


def a_type_as_a_factor(x, n, y):
    y = x * ntl.float32


def compared_with_a_string(x, n, y):
    y = ntl.where(x == "x", x, 0)


def compared_with_a_pair(x, n, y):
    y = x if n != (1, 2) else 0


def a_pair_stored_to_elements(x, n, y):
    y[1:] = 1, 2


def a_constant_stored(x, c, y):
    y = c


def a_constant_added(x, c, y):
    y = x + c


def a_row_for_each_element(x, n, y):
    y[1:] = x[None, :] + 1


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (one_element_for_a_number, "elements of `y`, which is one number: `.item..` makes"),
        (one_element_for_a_number_of_the_source, "elements of `y.source`, which is one number"),
        (one_element_added_to_a_number, "what `ntl.atomic_add` is given, which is one number"),
        (a_mask_of_more_dimensions, "`mask` of .* `ntl.atomic_add` is given, which is one number"),
        (a_tile_through_one_pointer, "what the pointer names, which is one number"),
        (a_mask_for_one_pointer, "`mask` .* what the pointer names, which is one number"),
        (a_statement_for_a_value, "a call that gives no value"),
        (nothing_stored, "A tile or a number is needed here, but got None"),
        (a_string_added, "A tile or a number is needed here, but got '1'"),
        (a_type_as_a_factor, "A tile or a number is needed here, but got the type float32"),
        (compared_with_a_string, "A tile or a number is needed here, but got 'x'"),
        (compared_with_a_pair, "A tile or a number is needed here, but got a tuple"),
        (a_pair_stored_to_elements, "A tile or a number is needed here, but got a tuple"),
        (a_row_for_each_element, "cannot be stored to elements of `y`, which is of shape"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
def test_what_does_not_fit_is_refused_when_the_kernel_is_made(application, message):
    with pytest.raises(NineToothedError, match=message) as raised:
        ninetoothed.make(whole, application, (Tensor(1), Tensor(0), Tensor(1)))
    assert __file__ in str(raised.value)


@pytest.mark.parametrize("constant", [None, "abc", ntl.float32])
@pytest.mark.parametrize("application", [a_constant_stored, a_constant_added])
def test_a_constant_that_is_no_number_is_not_computed_with(application, constant):
    tensors = Tensor(1), Tensor(0, constexpr=True), Tensor(1)
    kernel = ninetoothed.make(whole, application, tensors)
    with pytest.raises(NineToothedError, match="A tile or a number is needed here, but") as raised:
        kernel(torch.ones(4), constant, torch.zeros(4))
    assert __file__ in str(raised.value)


def test_a_tile_of_more_dimensions_is_refused_when_the_kernel_is_made():
    def copy(x, y):
        y = x

    def arrangement(x, y):
        return x.tile((1, 4)), y.tile((4,))

    with pytest.raises(
        NineToothedError, match="cannot be stored to `y`, which is of shape .4."
    ) as it:
        ninetoothed.make(arrangement, copy, (Tensor(2), Tensor(1)))
    assert __file__ in str(it.value)


def test_the_number_that_a_tile_of_one_element_holds_fits():
    def application(x, y):
        y[0] = ntl.sum(x[None, :], 1).item()
        ntl.atomic_add(y[1], ntl.sum(x[None, :], 1, keep_dims=True).item())
        y[2:4] = ntl.sum(x[None, :], 1)

    y = torch.zeros(5)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))(torch.arange(5.0), y)
    assert y.tolist() == [10, 10, 10, 10, 0]


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (branches_of_two_shapes, "`if` give 'v' different shapes"),
        (a_branch_with_a_number, "`if` give 'v' different shapes"),
        (a_branch_that_changes_a_type, "`if` give 'v' different element types: float32 .* int32"),
        (a_branch_of_the_tensors_type, "`if` give 'v' different element types: int32.* float32"),
        (an_axis_that_is_not_there, "Axis 1 is out of range for a tile of 1"),
        (a_scan_along_no_axis, "Axis 1 is out of range for a tile of 1"),
        (a_flip_along_no_axis, "Axis 1 is out of range for a tile of 1"),
        (too_many_slices, "too many `:`"),
        (a_reduction_of_a_number, "takes a tile, but got one number"),
        (sizes_that_do_not_meet, r"shapes match or are 1, but got \[4\] and \[8\]"),
        (a_reshape_to_another_count, "has 32 elements and cannot become"),
        (dimensions_given_twice, "each of 2 dimensions"),
        (an_accumulator_of_another_shape, "accumulator"),
        (a_product_of_inner_sizes_that_differ, "needs shapes"),
        (a_store_of_more_dimensions, "cannot be stored to `y`"),
        (names_for_one_value, "One value is given to 2 names"),
        (names_for_more_values, "2 values are given to 3 names"),
        (named_in_one_branch, "'v' is read before it is assigned"),
        (named_in_a_loop, "'v' is read before it is assigned"),
        (a_size_of_the_running_kernel, "size of a tile is needed at compile time"),
        (a_range_of_the_running_kernel, "size of a tile is needed at compile time"),
        (a_loop_that_changes_a_type, "total"),
        (a_loop_that_changes_a_shape, "total"),
        (a_condition_that_changes_a_shape, "value"),
        (a_product_of_too_few, "inner size is 16 or more.* in place of -1 with a constexpr Symbol"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
@pytest.mark.parametrize("way", ["numpy", "triton"])
def test_it_is_refused_where_it_stands(application, message, way):
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("Triton's interpreter is Python, which takes it")
    x, y = torch.arange(8.0), torch.zeros(8)
    with pytest.raises(NineToothedError, match=message) as raised:
        kernel = ninetoothed.make(whole, application, (Tensor(1), Tensor(0), Tensor(1)))
        if way == "numpy":
            kernel(x, 3, y)
        else:
            pytest.importorskip("triton")
            kernel.compile(x, 3, y, target=("cuda", 90))
    assert __file__ in str(raised.value)


def test_a_loops_own_variable_ends_with_it():
    """Two loops may each have one of a name, of different shapes."""

    def application(x, y):
        total = ntl.zeros((1,), dtype=ntl.float32)
        for i in range(x.shape[0]):
            part = x[i] * 2
            total += ntl.sum(part)
        for i in range(x.shape[0]):
            part = ntl.sum(x[i])
            total += part
        y = total  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)).tile((-1,)), y.tile((1,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.randn(11), torch.full((1,), float("nan"))
    kernel(x, y)

    torch.testing.assert_close(y, 3 * x.sum()[None])


def test_what_a_round_has_no_element_for_is_what_it_was_before_the_round():
    """Also where the same round first gave the variable a whole value."""

    def application(x, y):
        total = ntl.full((3,), 1.0, ntl.float32)
        for k in range(x.shape[0]):
            total += 10
            total = total * x[k]
        y = total  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (x.tile((3,)).tile((-1,)), y.tile((3,))), application, (Tensor(1), Tensor(1))
    )
    x, y = torch.tensor([2.0, 3, 4, 5]), torch.full((3,), float("nan"))
    kernel(x, y)

    # The second round has one element alone.
    torch.testing.assert_close(y, torch.tensor([(22 + 10) * 5.0, 33, 44]))
