"""Paddle's guard and stream in C, by functions of no framework: what is asked, and what goes wrong."""

from __future__ import annotations

import sys
import threading

import pytest

from ninetoothed.frontends import paddle_native


class Array:
    """Of a shape and an element type; comparing the latter may raise, as Paddle's does."""

    def __init__(self, shape, dtype="float32"):
        self.shape, self.dtype = shape, dtype

    def same(self, other):
        return self.shape == other.shape

    def differs(self, other):
        if self.dtype != other.dtype:
            raise ValueError("another element type")


@pytest.fixture
def native():
    found = paddle_native.functions()
    if found is None:
        pytest.skip("needs Triton and a C compiler")
    return found


@pytest.fixture
def uncached():
    paddle_native.functions.cache_clear()
    yield
    paddle_native.functions.cache_clear()


def guard_of(native, *arrays, differs=None, are_on_device=lambda *addresses: True):
    quick = tuple((Array, array.same, differs or array.differs) for array in arrays)
    careful = tuple(
        (Array, array.same, lambda other, array=array: array.dtype != other.dtype)
        for array in arrays
    )
    return native.guard(quick, careful, are_on_device)


def test_each_array_is_asked_about_and_all_addresses_at_once(native):
    asked = []

    def are_on_device(*addresses):
        asked.append(addresses)
        return 3 not in addresses

    arrays = [Array((4,)), Array((5,))]
    alike = guard_of(native, *arrays, are_on_device=are_on_device)
    assert alike(Array((4,)), Array((5,)), 1, 2) is True
    assert alike(*arrays, 1, 3) is False
    assert asked == [(1, 2), (1, 3)]
    assert alike(Array((5,)), arrays[1], 1, 2) is False
    assert alike(arrays[0], Array((4,)), 1, 2) is False
    assert alike(arrays[0], "text", 1, 2) is False
    assert len(asked) == 2


def test_after_an_error_the_careful_way_is_gone(native):
    raised = []

    class Counting(Array):
        def differs(self, other):
            raised.append(other.dtype)
            super().differs(other)

    alike = guard_of(native, Counting((4,)))
    for _ in range(3):
        assert alike(Array((4,)), 1) is True
        assert alike(Array((4,), "int32"), 1) is False
    assert raised == ["float32", "int32"]


def test_an_error_of_the_driver_says_no(native):
    def fails(*addresses):
        raise OverflowError("no address")

    alike = guard_of(native, Array((4,)), are_on_device=fails)
    for _ in range(2):
        assert alike(Array((4,)), -1) is False


def test_being_interrupted_is_no_answer(native):
    def interrupted(other):
        raise KeyboardInterrupt

    alike = guard_of(native, Array((4,)), differs=interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            alike(Array((4,)), 1)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arguments_is_an_error(native, count):
    with pytest.raises(TypeError, match="1 tensors and their addresses"):
        guard_of(native, Array((4,)))(*[Array((4,))] * count)


#: Functions of the kinds that Paddle's are of, and of others, each with what it says yes and no of.
FUNCTIONS = {
    "in C, of a tuple, bound": ("{0}".format, "x", ""),
    "in C, of a tuple, of a class": (str.format, "x", ""),
    "in C, of one argument": ("x".__eq__, "x", "y"),
    "in C, of one argument, of a class": (str.__len__, "x", ""),
    "in C, of none, of a class": (str.isalpha, "x", "1"),
    "in Python": (lambda text: text == "x", "x", "y"),
    "a class": (bool, "x", ""),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_any_function_may_be_asked(native, what):
    function, yes, no = FUNCTIONS[what]
    alike = native.guard(((str, function, lambda text: False),), (), lambda address: True)
    assert alike(yes, 1) is True
    assert alike(no, 1) is False
    opposite = native.guard(((str, function),), (), lambda address: True)
    assert opposite(yes, 1) is False
    assert opposite(no, 1) is True


def test_a_method_of_another_class_is_an_error_and_says_no(native):
    careful = ((int, lambda number: False),)
    alike = native.guard(((int, str.format, lambda number: False),), careful, lambda address: True)
    assert alike(5, 1) is False
    assert alike(5, 1) is True


def test_nothing_asked_about_is_kept(native):
    array, handle = Array((4,)), object()
    stream = object()
    alike = guard_of(native, array, differs=lambda other: None)
    current = native.stream(lambda index: stream, lambda stream: (stream, handle))
    other, index = Array((4,)), object()
    assert alike(other, 1) and current(index) is handle
    before = [sys.getrefcount(each) for each in (other, stream, handle, index)]
    for _ in range(1000):
        alike(other, 1)
        current(index)
    assert [sys.getrefcount(each) for each in (other, stream, handle, index)] == before


def test_threads_compare_while_one_goes_over_to_the_careful_way(native):
    wrong = []

    def compare(alike, start):
        start.wait()
        for number in range(300):
            dtype = ("float32", "int32")[number % 2]
            if alike(Array((4,), dtype), 1) is not (dtype == "float32"):
                wrong.append(dtype)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            start = threading.Barrier(4)
            alike = guard_of(native, Array((4,)))
            threads = [threading.Thread(target=compare, args=(alike, start)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_an_error_of_a_stream_is_told_and_nothing_is_known_of_it(native):
    streams = [LookupError("no device"), "one", "bad", "one"]

    def stream_of(index):
        if isinstance(streams[index], Exception):
            raise streams[index]
        return streams[index]

    def with_handle(stream):
        if stream == "bad":
            raise RuntimeError("no handle")
        return stream, 16

    current = native.stream(stream_of, with_handle)
    with pytest.raises(LookupError, match="no device"):
        current(0)
    assert current(1) == 16
    with pytest.raises(RuntimeError, match="no handle"):
        current(2)
    assert current(3) == 16


@pytest.mark.parametrize("error", [RuntimeError, FileNotFoundError, ImportError])
def test_without_a_compiler_there_are_none_and_that_is_known(uncached, monkeypatch, error, recwarn):
    build = pytest.importorskip("triton.runtime.build", reason="needs Triton")
    tried = []

    def fails(*given):
        tried.append(given)
        raise error("Failed to find C compiler.")

    monkeypatch.setattr(build, "compile_module_from_src", fails)
    assert [paddle_native.functions() for _ in range(3)] == [None] * 3
    assert len(tried) == 1 and not recwarn


def test_without_triton_there_are_none(uncached, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.runtime.build", None)
    assert paddle_native.functions() is None
