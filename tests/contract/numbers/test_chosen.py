"""A number that only the running kernel chooses is one of the kernel's: of 32 bits, where a literal takes a tile's type."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.numbers.test_literals import result

CASES = {}


def case(expected):
    """What a case adds to int8 elements, for a number of 0 and one of 1."""

    def register(application):
        CASES[application.__name__] = application, expected
        return application

    return register


@case((101, 100))
def by_a_choice(x, n, y):
    y = x + (100 if n > 0 else 101)  # noqa: F841


@case((100, 101))
def by_a_statement(x, n, y):
    v = 100
    if n > 0:
        v = 101
    y = x + v  # noqa: F841


@case((103, 100))
def by_several(x, n, y):
    if n > 1:
        v = 1
    elif n > 0:
        v = 100
    else:
        v = 103
    y = x + v  # noqa: F841


@case((50, 100))
def in_a_tuple(x, n, y):
    v = (0, 50)
    if n > 0:
        v = (0, 100)
    y = x + v[1]  # noqa: F841


def picked(n):
    if n > 0:
        return 100
    return 101


@case((102, 101))
def by_a_helper(x, n, y):
    y = x + (picked(n) + 1)  # noqa: F841


@case((99, 100))
def at_the_end_of_a_way(x, n, y):
    v = 100
    if n < 1:
        v = 99
    else:
        if n > 1:
            v = 101
    y = x + v  # noqa: F841


@case((100, 101))
def in_rounds_that_are_unrolled(x, n, y):
    v = 100
    for _ in ntl.static_range(2):
        y = x + v
        if n > 0:
            v = 101
    y = x + v  # noqa: F841


@case((100, 101))
def in_rounds(x, n, y):
    v = 100
    for _ in range(2):
        if n > 0:
            v = 101
    y = x + v  # noqa: F841


@pytest.mark.parametrize("name", CASES)
def test_beside_narrower_integers_it_has_32_bits(name):
    application, expected = CASES[name]
    x = torch.tensor([100, -3, 0, 4, 127], dtype=torch.int8)
    for n, added in enumerate(expected):
        found = result(application, x, n, out=torch.zeros(5, dtype=torch.int32))
        assert found.tolist() == (x.int() + added).tolist()


def a_float_or_an_integer(x, n, y):
    y = x + (0.1 if n > 0 else 1)  # noqa: F841


def a_float_in_a_variable(x, n, y):
    v = 1.0
    if n > 0:
        v = 0.1
    y = x + v  # noqa: F841


@pytest.mark.parametrize("application", [a_float_or_an_integer, a_float_in_a_variable])
def test_beside_narrower_floats_it_is_float32_or_float64_where_the_call_has_such(application):
    x = torch.tensor([1.3, -2.7, 0.0, 900.0], dtype=torch.float16)
    for wide in (torch.float32, torch.float64):
        for n, added in ((0, 1.0), (1, 0.1)):
            expected = x.to(wide) + torch.tensor(added, dtype=wide)
            found = result(application, x, n, out=torch.zeros(4, dtype=wide))
            assert found.tolist() == expected.tolist()


def quotients(x, s, y):
    chosen = s if s > 9 else 0
    y = 7 // chosen + 5 % chosen + 10 * (chosen + x)


def negated(x, s, y):
    chosen, truth = s if s > 9 else 1, False if s > 2 else x[0] > 2
    y = 10 * (~(chosen == 1)).to(ntl.int32) + ~truth


def wrapped(x, s, y):
    chosen = s if s > 9 else 2147483647
    y = (chosen + 1) + (ntl.max(x, 0) if s > 9 else 1 << 2)


def shifted(x, s, y):
    chosen = ntl.max(x, 0) if s > 9 else 1
    y = (chosen << 40) + chosen.dtype.primitive_bitwidth


def of_tuples(x, s, y):
    one, other = (0, s) if s > 2 else (s, 0)
    y = 7 // one + other


def by_a_size(x, s, y):
    y = 7 // (0 if x.source.shape[0] > 2 else s) + 3


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (quotients, [10, 20, 30]),
        (negated, [1] * 3),
        (wrapped, [4 - 2**31] * 3),
        (shifted, [32] * 3),
        (of_tuples, [3] * 3),
        (by_a_size, [3] * 3),
    ],
)
def test_of_a_literal_and_a_number_of_the_kernel_either_is_the_kernels(application, expected):
    def arrangement(x, s, y):
        return x.tile((4,)), s, y.tile((4,))

    x, y = torch.tensor([1, 2, 3], dtype=torch.int32), torch.zeros(3, dtype=torch.float64)
    tensors = Tensor(1), Tensor(0), Tensor(1)
    ninetoothed.make(arrangement, application, tensors)(x, 3, y)
    assert y.tolist() == expected


def by_exclusive_or(x, s, y):
    y = (~ntl.xor_sum(x > 1, 0)).to(ntl.int32) + 10 * (~ntl.reduce_or(x > 2, 0)).to(ntl.int32)


def of_kinds(x, s, y):
    if x.dtype.is_int_signed():
        y = 1
    elif x.dtype.is_int_unsigned():
        y = 2
    else:
        y = 3


def test_bits_of_truth_values_are_one():
    for size in (3, 4, 5):
        x = torch.arange(1, size + 1)
        found = ninetoothed.make(
            lambda x, s, y: (x.tile((-1,)), s, y.tile((1,))),
            by_exclusive_or,
            (Tensor(1, shape=(size,)), Tensor(0), Tensor(1)),
        )
        y = torch.zeros(1)
        found(x, 0, y)
        assert y.tolist() == [(size - 1) % 2 == 0]


def test_an_integer_type_says_whether_it_has_a_sign():
    kernel = ninetoothed.make(
        lambda x, s, y: (x.tile((4,)), s, y.tile((4,))), of_kinds, (Tensor(1), Tensor(0), Tensor(1))
    )
    for dtype, expected in ((torch.int8, 1), (torch.uint8, 2), (torch.bool, 2), (torch.float16, 3)):
        y = torch.zeros(1)
        kernel(torch.ones(1, dtype=dtype), 0, y)
        assert y.tolist() == [expected], dtype


def of_two_scalars(x, s, t, y):
    y = (s if s > 5 else t) + 1


def of_a_scalar_and_a_literal(x, s, t, y):
    y = (s if s > 5 else 2.5) + 1


@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize("application", [of_two_scalars, of_a_scalar_and_a_literal])
def test_scalars_of_two_kinds_are_brought_to_one(application, is_declared):
    dtypes = (ninetoothed.int32, ninetoothed.float32) if is_declared else (None, None)
    s, t = (Tensor(0, dtype=dtype) for dtype in dtypes)
    kernel = ninetoothed.make(
        lambda x, s, t, y: (x.tile((4,)), s, t, y.tile((4,))),
        application,
        (Tensor(1), s, t, Tensor(1)),
    )
    x, y = torch.zeros(3), torch.empty(3, dtype=torch.float64)
    # An integer of 32 bits would come round to the least one.
    for given, expected in ((2**31 - 1, 2.0**31), (5, 3.5)):
        kernel(x, given, 2.5, y)
        assert y.tolist() == [expected] * 3


def by_or(x, s, y):
    y = (s or 100) + 100


def by_and(x, s, y):
    y = (s and 100) + 100


def by_a_literal(x, s, y):
    y = (100 if s > 5 else s) + 100


@pytest.mark.parametrize(
    "application, expected",
    [(by_or, (-56, 105, -56)), (by_and, (100, -56, -56)), (by_a_literal, (100, 105, -56))],
)
def test_a_literal_beside_a_narrow_scalar_is_of_its_type(application, expected):
    kernel = ninetoothed.make(
        lambda x, s, y: (x.tile((4,)), s, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0, dtype=ninetoothed.int8), Tensor(1)),
    )
    for s, value in zip((0, 5, 100), expected, strict=True):
        y = torch.full((3,), torch.nan)
        kernel(torch.zeros(3), s, y)
        assert y.tolist() == [value] * 3, s


def far(x):
    """An element that is not there."""
    return ntl.load(x.data_ptr() + 1000000)


def beside_what_moved(x, s, y):
    y = (ntl.gather(x, ntl.arange(0, 4) ^ s, 0) if s < 1 else 100) + 100


def beside_what_is_loaded(x, s, y):
    y = (100 if s > 0 else ntl.load(x.data_ptr())) + 100


def beside_what_is_not_there(x, s, y):
    y = (far(x) if s > 9 else 100) + (100 if s < 9 else ntl.load(x.data_ptr() + s * 1000000))


def behind_or(x, s, y):
    y = (ntl.max(x, 0).to(ntl.int8) or far(x).to(ntl.int32)) + 100


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (beside_what_moved, -56),
        (beside_what_is_loaded, -56),
        (beside_what_is_not_there, -56),
        (behind_or, 200),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_not_chosen_gives_its_type_though_it_is_not_loaded(application, expected):
    kernel = ninetoothed.make(
        lambda x, s, y: (x.tile((4,)), s, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.tensor([1, 2, 3, 100], dtype=torch.int8), torch.zeros(4)
    kernel(x, 1, y)
    assert y.tolist() == [expected] * 4


def beside_an_element(x, s, y):
    y = (100 if s > 0 else x[s]) + 100


def beside_an_element_in_a_variable(x, s, y):
    value = x[s] * 1 if s < 1 else 100
    y = x * 0 + value + 100


@pytest.mark.parametrize("application", [beside_an_element, beside_an_element_in_a_variable])
def test_beside_an_element_it_has_its_type_whether_that_is_there_or_not(application):
    kernel = ninetoothed.make(
        lambda x, s, y: (x.tile((4,)), s, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    x, y = torch.tensor([1, 2, 3, 100], dtype=torch.int8), torch.zeros(4)
    for s, expected in ((0, 101), (3, -56), (11, -56)):
        kernel(x, s, y)
        assert y.tolist() == [expected] * 4
