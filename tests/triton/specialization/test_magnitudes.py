"""Arithmetic on sizes has 64 bits where a call's numbers need them, and nothing of it elsewhere."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="needs Triton")

import ninetoothed  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from ninetoothed.backends.triton.ahead.variants import edition_of  # noqa: E402
from ninetoothed.backends.triton.specialization.call_facts import facts_of  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.kernels.ahead import Fixed, Within  # noqa: E402
from ninetoothed.kernels.call import Argument, Call, Device  # noqa: E402

MOST = 2**31 - 1


def copy(x, y):
    y = x  # noqa: F841


def every_second(x, y):
    return x[::2].tile((1000,)), y.tile((1000,))


def in_rows(x, y):
    return x.tile((1, 1024)), y.tile((1, 1024))


def called(arrangement, *shapes):
    """A kernel, and a call with contiguous tensors of these shapes, but that the first has stride 0."""
    ndim = len(shapes[0])
    kernel = ninetoothed.make(arrangement, copy, (Tensor(ndim), Tensor(ndim))).definition
    arguments = {
        name: Argument(shape, (0,) * (ndim - 1) + (1,), ninetoothed.float32)
        for name, shape in zip(kernel.call_names, shapes)
    }
    return kernel, Call(arguments, device=Device("cuda"))


@pytest.mark.parametrize(
    ("arrangement", "shapes", "is_wide"),
    [
        (every_second, ((1000,), (500,)), False),
        (every_second, ((MOST - 2050,), (2**30 - 1025,)), False),
        (every_second, ((MOST - 1,), (2**30 - 1,)), False),
        (every_second, ((MOST,), (2**30,)), True),
        # The size itself is an int64.
        (every_second, ((MOST + 1,), (2**30,)), False),
        (in_rows, ((3, MOST - 1023), (3, MOST - 1023)), False),
        (in_rows, ((3, MOST), (3, MOST)), True),
    ],
)
def test_what_is_computed_of_a_size_has_64_bits_where_32_do_not_hold_it(
    arrangement, shapes, is_wide
):
    kernel, call = called(arrangement, *shapes)
    text = specialize(kernel, call, None).emitted.text
    assert ("tl.cast(x_size_" in text) is is_wide, text


def test_nothing_is_known_of_the_numbers_where_32_bits_hold_all():
    for size in (1000, MOST - 2050):
        kernel, call = called(every_second, (size,), (-(-size // 2),))
        environment = kernel.environment(call)
        facts = facts_of(kernel, environment, kernel.verified_grid(environment))
        assert facts.magnitudes == frozenset()


def test_ahead_of_time_what_is_divided_must_fit_as_well():
    kernel, _ = called(every_second, (MOST,), (2**30,))
    fixed = Fixed({name: ninetoothed.float32 for name in kernel.call_names}, {})
    variants = edition_of(kernel, fixed, "sm_90", None).variants
    asked = {
        condition.expression
        for variant in variants
        if variant.name == "narrow"
        for condition in variant.added
        if isinstance(condition, Within)
    }
    (size,) = kernel.program.parameter("x").source.shape
    assert size + 1 in asked
