"""A kernel as an object that is called."""

from __future__ import annotations

import functools
import inspect
import sys

import pytest

from ninetoothed import plugins
from ninetoothed.launch.kernel import Kernel
from tests.launch.arrays import Array, Plugin, called, make

#: `Py_TPFLAGS_HAVE_VECTORCALL`.
_TAKES_ARGUMENTS_AS_THEY_LIE = 1 << 11


@pytest.fixture(autouse=True)
def arrays():
    plugins.register(Plugin)
    yield
    plugins.unregister(Plugin)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12, where it is inherited")
def test_arguments_are_handed_on_as_they_lie():
    assert Kernel.__flags__ & _TAKES_ARGUMENTS_AS_THEY_LIE


def test_an_attribute_of_a_class_is_the_kernel_itself():
    class Layer:
        kernel = make()

    assert Layer().kernel is Layer.kernel is vars(Layer)["kernel"]


def test_a_call_reaches_the_launch_function_and_nothing_else():
    kernel = make()
    called(kernel)
    launch = kernel.func

    assert launch is kernel.launch_function(plugins.find_frontend(Array))


def test_a_partial_of_a_kernel_calls_the_kernel_whatever_it_calls_by_then():
    kernel = make()

    assert functools.partial(kernel, flag=True).func is kernel


def test_the_signature_is_the_applications():
    kernel = make()

    assert inspect.signature(kernel) == inspect.signature(kernel.__wrapped__)
    assert repr(kernel).startswith("<kernel ")


def test_its_name_is_what_tables_and_wrappers_ask_for():
    kernel = make()
    wrapped = functools.wraps(kernel)(lambda *arguments: kernel(*arguments))
    assert kernel.__name__ == kernel.name == wrapped.__name__
