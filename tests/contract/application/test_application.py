"""LANGUAGE.md, "Application": control flow, and what a program does not touch."""

from __future__ import annotations

import math
import types

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.kernels import arange, empty, rows, run, tiles, vectors

# "for, while, if, local variables, …"


def test_for_over_a_symbolic_range():
    """`for k in range(x.shape[0])`"""

    def application(x, y):
        total = ntl.zeros(x.dtype.shape, dtype=ntl.float32)
        for k in range(x.shape[0]):
            total += x[k]
        y = total  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y.tile((4,))

    y = empty(4)
    ninetoothed.make(arrangement, application, vectors(2))(arange(12), y)
    assert torch.equal(y, arange(3, 4).sum(0))


@pytest.mark.parametrize("arguments", [(2, 5), (0, 6, 2), (5, -1, -1)], ids=str)
def test_for_with_start_and_step(arguments):
    start, stop, step = (*arguments, 1)[:3]

    def application(x, y):
        total = 0
        for k in range(start, stop, step):
            total = total * 7 + k
        y = x * 0 + total  # noqa: F841

    expected = 0
    for k in range(*arguments):
        expected = expected * 7 + k
    assert torch.equal(run(application, arange(3), empty(3)), torch.full((3,), float(expected)))


def test_while():
    """`while`"""

    def application(x, limit, y):
        value = 1
        steps = 0
        while value < limit:
            value *= 2
            steps += 1
        y = x * 0 + steps  # noqa: F841

    assert torch.equal(run(application, arange(3), 100, empty(3)), torch.full((3,), 7.0))


def test_if_on_a_run_time_scalar():
    """`if` on run-time scalars"""

    def application(x, flag, y):
        if flag > 0:
            y = x  # noqa: F841
        elif flag == 0:
            y = x * 0  # noqa: F841
        else:
            y = -x  # noqa: F841

    for flag in (2, 0, -1):
        y = run(application, arange(5), flag, empty(5))
        assert torch.equal(y, arange(5) * (flag > 0) - arange(5) * (flag < 0))


def test_if_on_a_constant_has_only_the_taken_branch():
    """and on compile-time constants (then only the taken branch exists)"""
    has_bias = False

    def application(x, causal, y):
        if has_bias:
            y = x + no_such_name  # noqa: F821, F841
        elif x.shape[0] > 100:
            y = ntl.no_such_function(x)  # noqa: F841
        else:
            y = x  # noqa: F841

    y = empty(5)
    ninetoothed.make(tiles4, application, (Tensor(1), True, Tensor(1)))(arange(5), y)
    assert torch.equal(y, arange(5))


def tiles4(x, constant, y):
    return x.tile((4,)), constant, y.tile((4,))


def test_if_on_a_constant_of_the_call_has_only_the_taken_branch():
    """What the other branch would do to shapes and types does not matter."""

    def application(x, reduces, y):
        if reduces:
            value = ntl.sum(x, axis=0)
        else:
            value = ntl.trans(ntl.expand_dims(x, 0))
            value = ntl.reshape(value, (4,))
        y = value  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    for reduces in (True, False):
        y = empty(8)
        ninetoothed.make(tiles4, application, tensors)(arange(8), reduces, y)
        sums = arange(8).reshape(2, 4).sum(1).repeat_interleave(4)
        assert torch.equal(y, sums if reduces else arange(8))


def test_local_variables_and_constexpr_annotations():
    """local variables, `v: ntl.constexpr = …`"""

    def application(x, y):
        half: ntl.constexpr = x.shape[0] // 2
        low = ntl.arange(0, half)
        y = x + ntl.sum(low)  # noqa: F841

    assert torch.equal(run(application, arange(5), empty(5)), arange(5) + 1)


def test_tuples():
    """tuples"""

    def application(x, y):
        pair = (x + 1, x + 2)
        a, (b, c) = pair[0], (pair[1], 3)
        a, b = b, a
        y = a * 10 + b + c  # noqa: F841

    x = arange(5)
    assert torch.equal(run(application, x, empty(5)), (x + 2) * 10 + x + 1 + 3)


def test_chained_and_nested_calls():
    """chained and nested calls"""

    def application(x, y):
        y = ntl.exp(ntl.maximum(x, 0.0)).to(ntl.float32).sum(axis=0).to(y.dtype)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y

    y = empty(2)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(-arange(8), y)
    assert torch.equal(y, torch.full((2,), 4.0))


def test_a_bare_expression():
    """a bare expression"""

    def application(x, y):
        """A docstring."""
        x + 1
        ntl.atomic_add(y.data_ptr() + y.offsets(), x, mask=y.offsets() < y.source.shape[0])

    y = arange(5)
    run(application, arange(5), y)
    assert torch.equal(y, arange(5) * 2)


def test_early_return_and_conditional_expressions():
    def application(x, flag, y):
        if flag:
            y = x + 1
            return
        y = x if x.shape[0] == 4 else x * 2  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    for flag in (True, False):
        y = empty(5)
        ninetoothed.make(tiles, application, tensors)(arange(5), flag, y, B=4)
        assert torch.equal(y, arange(5) + flag)


# "a parameter that the compiled program never touches …"


def test_an_untouched_parameter_may_be_given_any_argument_with_a_shape():
    """a parameter that the compiled program never touches may be given any argument with a shape"""

    def application(x, bias, has_bias, y):
        if has_bias:
            y = x + bias  # noqa: F841
        else:
            y = x  # noqa: F841

    tensors = (Tensor(2), Tensor(2), Tensor(0, constexpr=True), Tensor(2))
    kernel = ninetoothed.make(rows, application, tensors)
    for bias in (
        torch.empty(3, 0, dtype=torch.int8),
        torch.empty(3, 5, device="meta"),
        np.empty((3, 5)),
        types.SimpleNamespace(shape=(3, 5)),
    ):
        y = empty(3, 5)
        kernel(arange(3, 5), bias, False, y)
        assert torch.equal(y, arange(3, 5))
    kernel(arange(3, 5), arange(3, 5), True, y)
    assert torch.equal(y, arange(3, 5) * 2)


def test_an_element_is_loaded_before_what_is_added_to_it():
    """``x += y`` on a parameter is a load, an add and a store"""

    def bump(tile):
        tile = tile + 1
        return tile

    def application(x):
        for k in range(x.shape[0]):
            x[k] += bump(x[k])

    x = arange(6)
    ninetoothed.make(lambda x: x.tile((4,)).tile((-1,)), application, (Tensor(1),))(x)
    assert torch.equal(x, arange(6) * 2 + 1)


def test_what_is_read_for_nothing_is_read_as_what_it_is():
    """a parameter that the compiled program never touches may be given any argument with a shape"""

    def swapped(a, b):
        return b, a

    def application(x, other, y):
        value, unused = swapped(other * 0.5, x + 1)
        if ntl.sum(other) > 1:
            unused = unused + 1  # noqa: F841
        y = value  # noqa: F841

    def first(x, other, y):
        y = swapped(swapped(x, other)[0], x)[0] + 1  # noqa: F841

    for function in (application, first):
        kernel = ninetoothed.make(tiles, function, vectors(3))
        for other in (arange(5), arange(10)[::2], arange(5).to(torch.float64)):
            y = empty(5)
            kernel(arange(5), other, y, B=4)
            assert torch.equal(y, arange(5) + 1)


@pytest.mark.parametrize("is_copied", [False, True])
def test_a_program_that_touches_no_tensor_does_nothing(is_copied):
    def application(x, is_copied, y):
        if is_copied:
            y = x  # noqa: F841

    tensors = (Tensor(1), Tensor(0, constexpr=True), Tensor(1))
    y = empty(5)
    ninetoothed.make(tiles, application, tensors)(arange(5), is_copied, y, B=4)
    assert torch.equal(y, arange(5) if is_copied else empty(5))


def test_pythons_prod_of_sizes_that_a_call_gives():
    def application(x, y):
        y = ntl.sum(x) / math.prod(x.shape)  # noqa: F841

    x = arange(3, 4, 5)
    y = run(application, x, empty(3), arrangement=matrices_of_a_batch)
    assert torch.equal(y, x.mean((1, 2)))


def matrices_of_a_batch(x, y):
    return x.tile((1, -1, -1)), y.tile((1,)).unsqueeze(1).unsqueeze(2)
