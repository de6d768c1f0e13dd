"""The debug mode: elements of outputs that nothing is stored to."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.numpy.execution.checking import check
from ninetoothed.errors import UnwrittenOutputError
from tests.numpy.execution.test_checking import copy, make

torch = pytest.importorskip("torch", reason="needs PyTorch")


def test_elements_that_nothing_is_stored_to_are_reported():
    def arrangement(x, out):
        return x.tile((4,)), out[:-3].tile((4,))

    x, out = torch.arange(5.0), torch.empty(8)
    with (
        check(),
        pytest.raises(
            UnwrittenOutputError, match=r"(?s)`out`.*3 of its 8 elements.*\(5,\).*out = x"
        ),
    ):
        make(copy, arrangement)(x, out)


def test_an_output_of_which_no_element_is_stored_to_is_reported():
    def beyond(x, out):
        out = x[5]

    kernel = ninetoothed.make(
        lambda x, out: (x.tile((8,)), out.tile((4,))), beyond, (Tensor(1), Tensor(1))
    )
    with check(), pytest.raises(UnwrittenOutputError, match="4 of its 4 elements"):
        kernel(torch.arange(3.0), torch.empty(4))


def test_an_output_that_no_program_stores_to_is_reported():
    def never(x, out):
        if ntl.sum(x) < 0:
            out = x

    def through_a_pointer(x, out):
        if ntl.sum(x) < 0:
            ntl.store(out.data_ptr() + x.offsets(0), x)

    for application in (never, through_a_pointer):
        with check(), pytest.raises(UnwrittenOutputError, match=r"`out`.*8 of its 8 elements"):
            make(application)(torch.arange(8.0), torch.empty(8))
        with check():
            make(application)(-torch.ones(8), torch.empty(8))


def test_what_data_choose_to_change_in_place_may_stay():
    def clip(gradient, norm, most):
        if norm[0] > most:
            gradient = gradient * (most / norm[0])

    kernel = ninetoothed.make(
        lambda gradient, norm, most: (
            gradient.tile((4,)),
            norm.tile((1,)).expand((gradient.tile((4,)).shape[0],)),
            most,
        ),
        clip,
        (Tensor(1), Tensor(1), Tensor(0)),
    )
    for norm, expected in ((0.5, 1.0), (2.0, 0.5)):
        gradient = torch.ones(8)
        with check():
            kernel(gradient, torch.tensor([norm]), 1.0)
        assert (gradient == expected).all()


def test_what_a_variable_of_the_calls_numbers_chooses_not_to_store_is_no_output():
    def by_numbers(x, number, out):
        limit = 2 * number
        other = limit + 1
        if other > 4:
            out = x

    def by_data(x, number, out):
        limit = number
        if ntl.sum(x) > 0:
            limit = number + 1
        if limit > 4:
            out = x

    def by_rounds(x, number, out):
        limit = 0
        for _ in range(number):
            limit += 1
        if limit > 4:
            out = x

    def called(application, number):
        kernel = ninetoothed.make(
            lambda x, number, out: (x.tile((4,)), number, out.tile((4,))),
            application,
            (Tensor(1), Tensor(0, dtype=ninetoothed.int32), Tensor(1)),
        )
        with check():
            kernel(torch.ones(8), number, torch.empty(8))

    called(by_numbers, 1)
    for application in (by_data, by_rounds):
        called(application, 5)
        with pytest.raises(UnwrittenOutputError, match="8 of its 8 elements"):
            called(application, 1)


def test_an_output_of_an_empty_grid_is_reported_where_it_has_elements():
    def arrangement(x, out):
        return x.tile((5,), strides=(1,)), out.tile((5,), strides=(1,))

    kernel = make(copy, arrangement)
    with check(), pytest.raises(UnwrittenOutputError, match="(?s)2 of its 2 elements.*out = x"):
        kernel(torch.ones(2), torch.empty(2))
    with check():
        make(copy)(torch.ones(0), torch.empty(0))


def test_what_a_call_chooses_not_to_store_is_no_output_of_it():
    def application(x, flag, out, more):
        out = x
        if flag > 0:
            more = x
        if x.dtype == ntl.float64:
            more = x

    kernel = ninetoothed.make(
        lambda x, flag, out, more: (x.tile((4,)), flag, out.tile((4,)), more.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1), Tensor(1)),
    )
    with check():
        kernel(torch.arange(8.0), 0, torch.empty(8), torch.empty(8))
        kernel(torch.arange(8.0), 1, torch.empty(8), torch.empty(8))


def test_what_atomics_alone_change_need_not_be_met():
    def application(x, out):
        if ntl.sum(x) < 0:
            ntl.atomic_add(out.data_ptr() + x.offsets(0), x)

    with check():
        make(application)(torch.arange(8.0), torch.zeros(8))


def test_a_histogram_with_an_empty_bin_is_right():
    def application(x, out):
        ntl.atomic_add(out.data_ptr() + ntl.cast(x, ntl.int32), 1.0 + 0 * x)

    x, out = torch.tensor([0.0, 3, 3, 1, 3]), torch.zeros(5)
    with check():
        make(application, lambda x, out: (x.tile((-1,)), out.tile((-1,))))(x, out)
    assert out.tolist() == [1, 1, 0, 3, 0]
