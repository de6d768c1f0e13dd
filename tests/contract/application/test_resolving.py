"""LANGUAGE.md, "Application": names resolve as Python would; `ntl` has every name of Triton's language."""

from __future__ import annotations

import enum
import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ApplicationError, UnresolvedNameError
from tests.contract.kernels import B, arange, empty, matrices, run, tiles, vectors

# "names resolve as Python would"


OFFSET = 7


class Mode(enum.IntEnum):
    FAST = 1
    EXACT = 2


class Place(enum.Enum):
    SECOND = 1
    THIRD = 2


class Activation(enum.Enum):
    RELU = "relu"
    NONE = "none"


def test_closures():
    """closures"""
    for factor in (2, 3):

        def application(x, y):
            y = x * factor  # noqa: F841, B023

        assert torch.equal(run(application, arange(5), empty(5)), arange(5) * factor)


def test_module_globals():
    """module globals"""

    def application(x, y):
        y = x + OFFSET  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 7)


def test_math_pi():
    """`math.pi`"""

    def application(x, y):
        y = x * math.pi  # noqa: F841

    torch.testing.assert_close(run(application, arange(5), empty(5)), arange(5) * math.pi)


def test_enum_members():
    """enum members"""

    def application(x, mode, activation, y):
        value = x
        if mode == Mode.EXACT:
            value = value + Mode.EXACT
        if activation is Activation.RELU:
            y = ntl.maximum(value, 0.0)  # noqa: F841
        else:
            y = value  # noqa: F841

    tensors = (Tensor(1), *(Tensor(0, constexpr=True),) * 2, Tensor(1))
    kernel = ninetoothed.make(tiles, application, tensors)
    x = arange(5) - 5
    for mode in Mode:
        for activation in Activation:
            y = empty(5)
            kernel(x, mode, activation, y, B=4)
            expected = x + 2 if mode is Mode.EXACT else x
            assert torch.equal(y, expected.relu() if activation is Activation.RELU else expected)


def test_an_enum_member_counts_as_its_value():
    """enum members"""

    def application(x, y):
        step = Place.THIRD
        first = x.source[Place.SECOND]
        size = (7, x.shape[-1], x.ndim)[Place.SECOND]
        chosen = {Place.THIRD: 10, Place.SECOND: size}[Place.SECOND]
        value = -Place.THIRD * x + step * (x < Place.THIRD) + x[Place.SECOND] * first
        y = value + chosen  # noqa: F841

    x, y = arange(5), empty(5)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((-1,)), y.tile((-1,))), application, (Tensor(1), Tensor(1))
    )
    kernel(x, y)
    assert torch.equal(y, -2 * x + 2 * (x < 2) + 4 + 5)


def test_default_arguments():
    """default arguments"""

    def application(x, y, factor=3, offset=OFFSET):
        y = x * factor + offset  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles, application, vectors(2))(arange(5), y, B=4)
    assert torch.equal(y, arange(5) * 3 + 7)


def test_what_lists_and_dictionaries_hold_is_as_it_was_when_the_kernel_was_made():
    factors, named = [2], {"offset": 3}

    def application(x, y):
        y = x * factors[0] + named["offset"]  # noqa: F841

    kernel, y = ninetoothed.make(tiles, application, vectors(2)), empty(5)
    factors[0], named["offset"] = 9, 9
    kernel(arange(5), y, B=4)
    assert torch.equal(y, arange(5) * 2 + 3)


def test_a_kernel_or_an_operator_is_not_called_by_a_program():
    def doubled(x, y):
        y = x * 2  # noqa: F841

    kernel = ninetoothed.make(tiles, doubled, vectors(2))
    operator = ninetoothed.op("tests::doubled_in", kernel, {"y": ninetoothed.like("x")})

    def by_kernel(x, y):
        kernel(x, y)

    def by_operator(x, y):
        y = operator(x, B=4)  # noqa: F841

    for application in (by_kernel, by_operator):
        with pytest.raises(ApplicationError, match="is launched from Python.*Call its application"):
            ninetoothed.make(tiles, application, vectors(2))


def test_a_name_that_is_nowhere_is_a_located_error():
    def application(x, y):
        y = x * facotr  # noqa: F821, F841

    factor = 2
    with pytest.raises(UnresolvedNameError, match="'facotr'") as caught:
        ninetoothed.make(tiles, application, vectors(2))
    assert caught.value.location.file == __file__
    assert "y = x * facotr" in str(caught.value)
    assert factor == 2


def test_constexpr_symbols_resolve_too():
    scale = Symbol("SCALE", constexpr=True)

    def application(x, y):
        y = x * scale + B  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles, application, vectors(2))(arange(5), y, B=4, SCALE=3)
    assert torch.equal(y, arange(5) * 3 + 4)


# "ntl.X is every public function, type and constant of Triton's language"


def test_every_name_of_tritons_language():
    """`ntl.X` is every public function, type and constant of Triton's language under the same name"""
    triton_language = pytest.importorskip("triton.language")
    missing = []
    for name in triton_language.__all__:
        if not hasattr(ntl, name):
            missing.append(name)
    assert missing == []


def test_libdevice():
    """and `ntl.libdevice.X`"""

    def application(x, y):
        y = ntl.libdevice.tanh(x) + ntl.libdevice.pow(x, 2.0)  # noqa: F841

    x = arange(5) / 5
    torch.testing.assert_close(run(application, x, empty(5)), x.tanh() + x**2)


def test_methods_and_subscripts_of_values():
    """`tile.to(dtype)`, `tile.T`, `tile[:, None]`, `x.dtype is ntl.float16` work as there"""

    def application(x, y):
        turned = x.T.to(ntl.float16)
        column = ntl.sum(turned, axis=1)
        y = (column[:, None] + ntl.zeros((4, 4), ntl.float16)).to(ntl.float32).T  # noqa: F841

    y = empty(4, 4)
    ninetoothed.make(lambda x, y: (x.tile((4, 4)), y.tile((4, 4))), application, matrices(2))(
        arange(4, 4), y
    )
    assert torch.equal(y, arange(4, 4).sum(0).expand(4, 4))


def test_cast_is_a_method_as_to_is():
    def application(x, y):
        cast = (x + 1).cast
        y = cast(ntl.int32) / 3 + x.cast(dtype=ntl.int32, bitcast=True) * 0.0  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), (arange(5) + 1) / 3)


def test_a_method_that_a_variable_holds_is_of_the_value_that_it_was():
    def called(method):
        return method(ntl.int32)

    def application(x, y):
        x = x + 1
        cast, methods = x.cast, (x.to, x.sum)
        x = x * 100
        y = called(cast) / 3 + methods[1](0) + called(methods[0])  # noqa: F841

    x = arange(4) + 1
    assert torch.equal(run(application, arange(4), empty(4)), x / 3 + x.sum() + x)


def test_a_method_that_run_time_chooses_is_refused():
    def by_an_expression(x, y, n):
        y = (x.to if n > 0 else x.cast)(ntl.int32)  # noqa: F841

    def by_a_branch(x, y, n):
        to = x.to
        if n > 0:
            to = (x + 1).to
        y = to(ntl.int32)  # noqa: F841

    def by_a_loop(x, y, n):
        to = x.to
        for _ in range(n):
            to = (to(ntl.float32) + 1).to
        y = to(ntl.int32)  # noqa: F841

    for application in (by_an_expression, by_a_branch, by_a_loop):
        with pytest.raises(ApplicationError, match="`to` is a method"):
            ninetoothed.make(
                lambda x, y, n: (*tiles(x, y), n), application, (*vectors(2), Tensor(0))
            )


def test_a_name_that_triton_does_not_have_is_an_error_with_the_near_one():
    def application(x, y):
        y = ntl.sqrtt(x)  # noqa: F841

    with pytest.raises(ApplicationError, match="sqrtt.*sqrt"):
        ninetoothed.make(tiles, application, vectors(2))
