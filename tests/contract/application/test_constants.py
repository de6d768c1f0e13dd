"""LANGUAGE.md, "Application": a constant's value decides branches while the application is parsed."""

from __future__ import annotations

import enum
import os

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError, ArgumentError, UnresolvedNameError


class Mode(enum.Enum):
    PLAIN = 1
    SQUARED = 2


class Precision(enum.IntEnum):
    EXACT = 2
    FAST = 3


def elementwise(x, y, constant):
    return x.tile((4,)), y.tile((4,)), constant


def made(application, arrangement=elementwise, **constant):
    return ninetoothed.make(
        arrangement, application, (Tensor(1), Tensor(1), Tensor(0, constexpr=True, **constant))
    )


def result_of(kernel, *constant, **named):
    x, y = torch.arange(1.0, 8.0), torch.full((7,), float("nan"))
    kernel(x, y, *constant, **named)
    return y.cpu()


SQUARES, VALUES = torch.arange(1.0, 8.0) ** 2, torch.arange(1.0, 8.0)


def test_a_constant_chooses_the_precision_of_a_product():
    def arrangement(a, b, c, variant):
        return a.tile((16, 16)), b.tile((16, 16)), c.tile((16, 16)), variant

    def application(a, b, c, variant):
        if variant == 2:
            precision: ntl.constexpr = "ieee"
        else:
            precision: ntl.constexpr = "tf32"
        c = ntl.dot(a, b, input_precision=precision)  # noqa: F841

    tensors = (*(Tensor(2) for _ in range(3)), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    a, b = torch.randn(13, 11), torch.randn(11, 14)
    for variant in (2, 3, Precision.EXACT):
        c = torch.full((13, 14), float("nan"))
        kernel(a, b, c, variant)
        exact = None if variant == 2 else 1e-2
        torch.testing.assert_close(c, a @ b, rtol=exact, atol=exact)
    assert "tf32" in kernel.specializations.of({"variant": 3}).program.__str__()
    assert "tf32" not in kernel.specializations.of({"variant": 2}).program.__str__()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Mode.SQUARED, SQUARES),
        (Mode.PLAIN, VALUES),
        ("squared", SQUARES),
        ("plain", VALUES),
        (None, VALUES + 1),
        (True, VALUES + 2),
        (False, VALUES + 3),
        (2.5, VALUES * 2.5),
        (7, VALUES * 7),
        ((2, 3), VALUES * 5),
    ],
)
def test_a_value_of_any_kind_decides_which_branch_there_is(value, expected):
    def application(x, y, kind):
        if kind is Mode.SQUARED or kind == "squared":
            y = x * x
        elif kind in (Mode.PLAIN, "plain"):
            y = x
        elif kind is None:
            y = x + 1
        elif isinstance(kind, bool):
            y = x + 2 if kind else x + 3
        elif isinstance(kind, tuple):
            y = x * (kind[0] + kind[1])
        else:
            y = x * kind  # noqa: F841

    torch.testing.assert_close(result_of(made(application), value), expected)


def test_a_branch_that_is_not_taken_need_not_make_sense():
    def application(x, y, is_simple):
        if is_simple:
            y = x
        else:
            y = ntl.there_is_no_such_function(no_such_name, x.source[1, 2, 3])  # noqa: F821, F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, True), VALUES)
    with pytest.raises(ApplicationError, match="there_is_no_such_function"):
        result_of(kernel, False)
    torch.testing.assert_close(result_of(kernel, True), VALUES)


def test_what_makes_no_sense_is_told_with_its_place():
    def application(x, y, flag):
        y = x if flag else missing  # noqa: F821, F841

    with pytest.raises(UnresolvedNameError, match="missing") as raised:
        result_of(made(application), False)
    assert raised.value.location.file == __file__


def test_a_default_is_used_where_the_constant_is_left_out():
    def application(x, y, squares):
        y = x * x if squares else x  # noqa: F841

    kernel = made(application, value=True)
    torch.testing.assert_close(result_of(kernel), SQUARES)
    torch.testing.assert_close(result_of(kernel, False), VALUES)
    torch.testing.assert_close(result_of(kernel, squares=False), VALUES)
    torch.testing.assert_close(result_of(kernel), SQUARES)


def test_a_constant_decides_in_helpers_loops_and_conditions():
    def repeated(value, times):
        result = value
        round = 0
        while round < times:
            result = result * 2
            round += 1
        return result

    def application(x, y, options):
        times, is_negated = options
        value = repeated(x, times)
        y = -value if is_negated and times != 3 else value  # noqa: F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, (2, True)), VALUES * -4)
    torch.testing.assert_close(result_of(kernel, (3, True)), VALUES * 8)
    torch.testing.assert_close(result_of(kernel, (0, False)), VALUES)


def test_a_constant_is_an_argument_of_the_language_and_an_index():
    def application(x, y, options):
        dtype, place = options
        factors = (2, 3, 5)
        y = ntl.cast(x, dtype) * ntl.full((4,), factors[place], dtype)  # noqa: F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, (ntl.int32, 1)), VALUES * 3)
    torch.testing.assert_close(result_of(kernel, (ntl.float32, -1)), VALUES * 5)


def test_an_enumeration_s_member_is_no_number():
    def application(x, y, mode):
        y = x * x if mode == 2 else x  # noqa: F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, Mode.SQUARED), VALUES)
    torch.testing.assert_close(result_of(kernel, Precision.EXACT), SQUARES)


def test_a_tensor_that_no_taken_branch_uses_may_be_anything_with_a_shape():
    def arrangement(x, mask, y, masked):
        return x.tile((4,)), mask.tile((4,)), y.tile((4,)), masked

    def application(x, mask, y, masked):
        if masked:
            y = ntl.where(mask, x, 0)
        else:
            y = x  # noqa: F841

    tensors = (Tensor(1), Tensor(1), Tensor(1), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, y = torch.arange(5.0), torch.full((5,), float("nan"))
    kernel(x, torch.empty(5, dtype=torch.complex64), y, False)
    torch.testing.assert_close(y, x)
    kernel(x, torch.tensor([True, False, True, False, True]), y, True)
    assert y.tolist() == [0, 0, 2, 0, 4]


def test_each_value_is_parsed_once():
    def application(x, y, factor):
        y = x * factor  # noqa: F841

    kernel = made(application)
    result_of(kernel, 2)
    first = kernel.specializations.of({"factor": 2})
    result_of(kernel, 3)
    assert kernel.specializations.of({"factor": 2}) is first
    assert kernel.specializations.of({"factor": 2.0}) is not first
    assert kernel.specializations.of({"factor": True}) is not kernel.specializations.of(
        {"factor": 1}
    )


def test_few_definitions_are_kept():
    from ninetoothed.kernels.definition import MOST_DEFINITIONS

    def application(x, y, factor):
        y = x * factor  # noqa: F841

    kernel = made(application)
    first = kernel.specializations.of({"factor": -1})
    for factor in range(MOST_DEFINITIONS):
        kernel.specializations.of({"factor": factor})
    assert kernel.specializations.of({"factor": -1}) is not first
    torch.testing.assert_close(result_of(kernel, -1), -VALUES)


def test_the_source_is_that_of_the_defaults():
    def application(x, y, squares):
        y = x * x if squares else x  # noqa: F841

    assert "if squares" not in str(made(application, value=True).program)
    assert "* x" in str(made(application, value=True).program)
    assert "squares" in made(application).source


def test_a_source_that_needs_the_constants_says_so():
    def application(x, y, is_simple):
        y = x if is_simple else no_such_name  # noqa: F821, F841

    kernel = made(application)
    with pytest.raises(ApplicationError, match=r"`is_simple`.*`Tensor\(0, constexpr=True, value"):
        print(kernel.source)
    assert "y" in made(application, value=True).source


def test_an_error_that_no_constant_can_make_good_is_raised_by_make():
    def application(x, y):
        y = x + no_such_name  # noqa: F821, F841

    with pytest.raises(UnresolvedNameError, match="no_such_name"):
        ninetoothed.make(
            lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
        )


def test_a_constant_that_is_not_hashable_is_refused_by_name():
    def application(x, y, sizes):
        y = x * sizes[0]  # noqa: F841

    with pytest.raises(ArgumentError, match=r"`sizes`.*hashable.*Give \(1, 2\)"):
        result_of(made(application), [1, 2])


class Unwilling:
    """Refuses to be hashed, and to be shown."""

    def __hash__(self):
        raise KeyError("hash")

    def __repr__(self):
        raise KeyError("repr")


def test_a_constant_whose_hash_raises_is_refused_by_name():
    def application(x, y, size):
        y = x * size  # noqa: F841

    with pytest.raises(ArgumentError, match=r"`size`.*hashable.*Unwilling"):
        result_of(made(application), Unwilling())


def test_a_function_may_be_the_constant():
    def doubled(value):
        return value * 2

    def application(x, y, function):
        y = function(x)  # noqa: F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, doubled), VALUES * 2)
    torch.testing.assert_close(result_of(kernel, ntl.sqrt), VALUES.sqrt())


def test_only_what_the_taken_branch_stores_counts_as_stored():
    def arrangement(x, y, inplace):
        return x.tile((4,)), y.tile((4,)), inplace

    def application(x, y, inplace):
        if inplace:
            x = x + 1
        else:
            y = x + 1  # noqa: F841

    kernel = ninetoothed.make(
        arrangement, application, (Tensor(1), Tensor(1), Tensor(0, constexpr=True))
    )
    x = torch.arange(5.0, requires_grad=True)
    y = torch.zeros(5, requires_grad=True)
    with torch.no_grad():
        for flag in (False, False, False, True, True, False, False, True, True, True):
            before = x._version, y._version
            kernel(x, y, flag)
            assert (x._version, y._version) == (before[0] + flag, before[1] + (not flag))


def test_a_tuple_equals_nothing_but_a_tuple():
    def application(x, y, kind):
        if kind == 2 or kind == "squared" or kind is None:
            y = x * x
        else:
            y = x * kind[0]  # noqa: F841

    kernel = made(application)
    torch.testing.assert_close(result_of(kernel, (3, 1)), VALUES * 3)
    # What was decided is no comparison of the running kernel.
    assert "==" not in str(kernel.specializations.of({"kind": (3, 1)}).program)


# Symbols decide as well.

MODE = Symbol("MODE", constexpr=True)
SIZE = Symbol("SIZE", constexpr=True)


def by_symbol(application, count=2):
    """A kernel over vectors in blocks of SIZE."""

    def arrangement(*tensors):
        return tuple(tensor.tile((SIZE,)) for tensor in tensors)

    return ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(count)))


def test_a_symbol_of_the_call_decides_which_branch_there_is():
    def application(x, y):
        if MODE == 1:
            y = x * x
        elif MODE == 2 and SIZE >= 4:
            y = x * no_such_name  # noqa: F821
        else:
            y = -x if MODE else x  # noqa: F841

    kernel = by_symbol(application)
    for mode, expected in {1: SQUARES, 0: VALUES, 3: -VALUES}.items():
        assert torch.equal(result_of(kernel, MODE=mode, SIZE=4), expected)
    assert torch.equal(result_of(kernel, MODE=2, SIZE=2), -VALUES)
    with pytest.raises(UnresolvedNameError, match="no_such_name"):
        result_of(kernel, MODE=2, SIZE=4)


def test_what_a_symbol_decides_against_needs_no_valid_argument():
    def application(x, y, bias):
        value = x
        if MODE > 0:
            value += bias[99]
        y = value  # noqa: F841

    kernel = by_symbol(application, 3)
    complex_numbers = torch.ones(2, 3, 4, dtype=torch.complex64)
    assert torch.equal(result_of(kernel, complex_numbers, MODE=0, SIZE=4), VALUES)


def test_the_branch_that_a_symbol_takes_is_the_only_one():
    def application(x, y):
        is_squared = MODE == 1
        y = x * x if is_squared else x  # noqa: F841

    kernel = by_symbol(application)
    known = kernel.specializations
    assert "x * x" in str(known.of({"MODE": 1, "SIZE": 4}).program)
    assert "x * x" not in str(known.of({"MODE": 0, "SIZE": 4}).program)
    assert "MODE" in kernel.source


def test_a_symbol_that_decides_nothing_makes_no_new_program():
    def application(x, y):
        y = x * SIZE if MODE == 0 else x  # noqa: F841

    known = by_symbol(application).specializations
    first = known.of({"MODE": 0, "SIZE": 4})
    assert known.of({"MODE": 0, "SIZE": 8}) is first
    assert known.of({"MODE": 1, "SIZE": 8}) is not first


def test_a_source_that_needs_a_symbol_says_so():
    def application(x, y):
        y = x if MODE == 0 else no_such_name  # noqa: F821, F841

    with pytest.raises(ApplicationError, match=r"only known with its constants \(`MODE`\)"):
        print(by_symbol(application).source)


def test_a_number_that_a_kernel_computes_has_the_members_of_a_tile():
    def application(x, y, factor):
        length = x.source.shape[0]
        share = factor * length
        count = factor
        count *= length
        y = share.to(ntl.float32) + count.to(ntl.float32) + x.source.stride(0).to(ntl.float32)  # noqa: F841

    for options in ({}, {"shape_options": {"constexpr": True}}):
        tensors = (Tensor(1, **options), Tensor(1), Tensor(0, constexpr=True))
        kernel = ninetoothed.make(elementwise, application, tensors)
        assert result_of(kernel, 0.5).tolist() == [8.0] * 7


@pytest.mark.parametrize("options", [{}, {"shape_options": {"constexpr": True}}])
def test_its_members_compile_where_the_compiler_knows_it(options):
    def application(x, y):
        length = x.source.shape[0]
        y = (length // 2).to(ntl.float32) + (length * 0.5).exp()  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1, **options), Tensor(1)))
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    assert kernel.compile(torch.ones(7), torch.ones(7), target=("cuda", 90)).asm["cubin"]
    y = torch.full((7,), float("nan"))
    kernel(torch.ones(7), y)
    assert torch.allclose(y, (3 + torch.tensor(3.5).exp()).expand(7))


def test_a_constant_times_a_size_is_a_float_of_the_kernels():
    def application(x, y, factor):
        y = (factor * x.source.shape[0]).to(ntl.float64) + x * 0  # noqa: F841

    kernel = made(application)
    x, y = torch.ones(7, dtype=torch.float64), torch.full((7,), float("nan"), dtype=torch.float64)
    kernel(x, y, 0.1)
    assert torch.equal(y, torch.full((7,), 0.1 * 7, dtype=torch.float64))
