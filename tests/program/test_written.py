"""Which parameters a program may write to."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.program.written import outputs, written


def kernel_of(application, count=2):
    def arrangement(*tensors):
        return tuple(tensor.tile((16,)) for tensor in tensors)

    return ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(count)))


def assigned(x, y):
    y = x + 1


def assigned_in_a_helper(x, y):
    store(y, x)


def store(target, value):
    target = value


def stored_in_the_source(x, y):
    y.source[x.offsets(0)] = x


def stored_through_a_pointer(x, y):
    ntl.store(y.data_ptr() + x.offsets(), x)


def added_atomically(x, y):
    ntl.atomic_add(y.data_ptr() + x.offsets(), x)


def stored_through_a_variable(x, y):
    base = y.data_ptr()
    place = base + x.offsets()
    ntl.store(place, x)


@pytest.mark.parametrize(
    "application",
    [
        assigned,
        assigned_in_a_helper,
        stored_in_the_source,
        stored_through_a_pointer,
        added_atomically,
        stored_through_a_variable,
    ],
    ids=lambda application: application.__name__,
)
def test_what_is_stored_to_is_written_and_nothing_else(application):
    assert written(kernel_of(application).program) == {"y"}


def test_what_is_loaded_through_a_pointer_is_not_written():
    def application(x, y):
        place = x.data_ptr() + y.offsets()
        y = ntl.load(place)

    assert written(kernel_of(application).program) == {"y"}


def test_both_of_two_outputs_are_written():
    def application(x, y, z):
        y = x
        z += x

    assert written(kernel_of(application, 3).program) == {"y", "z"}


def test_a_program_that_stores_nothing_writes_nothing():
    def application(x, y):
        ntl.device_print("x", x)

    assert written(kernel_of(application).program) == set()


def stored_where_elements_say(x, y):
    if ntl.sum(x) > 0:
        y = x


def stored_where_types_say(x, y):
    if x.dtype == ntl.float32 and x.source.shape[0] > 7:
        y = x


@pytest.mark.parametrize(
    "application, expected",
    [
        (assigned, {"y"}),
        (assigned_in_a_helper, {"y"}),
        (stored_in_the_source, {"y"}),
        (stored_through_a_pointer, {"y"}),
        (stored_through_a_variable, {"y"}),
        (stored_where_elements_say, {"y"}),
        (stored_where_types_say, set()),
        (added_atomically, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_output_is_what_each_call_is_to_store_to(application, expected):
    assert outputs(kernel_of(application).program).keys() == expected
