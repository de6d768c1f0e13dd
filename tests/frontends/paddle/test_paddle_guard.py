"""A call with PaddlePaddle's tensors that is like the last one makes no key; all else is seen."""

from __future__ import annotations

import ctypes
import dataclasses
import types
import weakref

import numpy
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor, plugins

paddle = pytest.importorskip("paddle", reason="needs PaddlePaddle")

from ninetoothed.frontends import paddle_guard  # noqa: E402


@pytest.fixture
def frontend():
    return plugins.frontend_named("paddle")


@pytest.fixture(params=["samples", "attributes", "samples on a GPU", "attributes on a GPU"])
def way(request, monkeypatch):
    """How tensors are compared: with samples, and where Paddle would not do that, by attributes; on
    a GPU addresses tell the device."""
    if request.param.startswith("attributes"):
        monkeypatch.setattr(paddle_guard, "_sample_of_shape", lambda tensor: None)
        monkeypatch.setattr(paddle_guard, "_samples_of_dtypes", lambda keys: {})
    if request.param.endswith("GPU"):
        monkeypatch.setattr(paddle_guard, "_on_device", lambda *given: lambda *addresses: True)
    return request.param


def given(frontend, *tensors):
    return [*tensors, *(frontend.evaluate("pointer", tensor) for tensor in tensors)]


def alike(frontend, one, other):
    return frontend.guard(*given(frontend, one))(*given(frontend, other))


def ones(*shape, dtype="float32"):
    return paddle.ones(list(shape), dtype=dtype)


def test_samples_are_used(frontend):
    """Where this fails this release of Paddle does something else, and calls cost more."""
    x = ones(4, 6, dtype="float16")
    sample = paddle_guard._sample_of_shape(x)
    assert sample is not None and not sample._is_initialized()
    compare = frontend.guard(*given(frontend, x))
    values = [cell.cell_contents for cell in compare.__closure__]
    held = dict(zip(compare.__code__.co_freevars, values))
    same_shape, same_strides, differs = held["same_0_0"], held["same_0_1"], held["differs_0"]
    assert same_shape.__name__ == "is_same_shape"
    assert same_strides is paddle.Tensor.is_contiguous
    assert differs.__name__ == "_copy_gradient_from"


def test_on_a_gpu_the_driver_is_asked_about_all_addresses(monkeypatch):
    pytest.importorskip("triton", reason="needs Triton, which compiles the question to the driver")
    from ninetoothed.backends.triton.runtime import device_addresses
    from ninetoothed.frontends import paddle as frontend

    x, y, other, elsewhere = (ones(8, 4) for _ in range(4))
    half = ones(8, 4, dtype="float16")
    of_device = {tensor.data_ptr(): 0 for tensor in (x, y, other, half)}
    of_device[elsewhere.data_ptr()] = 1

    @ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_uint64,
    )
    def ask(count, attributes, answers, address):
        kind_of_memory = 2 if address in of_device else 0
        for place, value in enumerate((kind_of_memory, of_device.get(address, -2))):
            ctypes.memmove(answers[place], ctypes.byref(ctypes.c_int(value)), 4)
        return 0

    driver = types.SimpleNamespace(address_of=lambda name: ctypes.cast(ask, ctypes.c_void_p).value)
    monkeypatch.setattr(device_addresses, "runtime", lambda backend: driver)
    device_addresses._connected.cache_clear()
    keys = dataclasses.replace(frontend._guard_keys(), cuda_index=lambda tensor: 0)

    def compare(*tensors):
        return paddle_guard.guard(keys, tensors, [tensor.data_ptr() for tensor in tensors])

    try:
        alike = compare(x, y)
        assert alike(other, x, other.data_ptr(), x.data_ptr())
        assert not alike(x, elsewhere, x.data_ptr(), elsewhere.data_ptr())
        assert not alike(x, y, x.data_ptr(), 0)
        assert not alike(x, half, x.data_ptr(), half.data_ptr())
        assert alike(x, y, x.data_ptr(), y.data_ptr())
        # What is in nobody's memory is told apart by its place.
        assert paddle_guard._on_device(keys, (x, elsewhere), [0, 1]) is None
    finally:
        device_addresses._connected.cache_clear()


DIFFERENT = {
    "longer": lambda: ones(9, 4),
    "transposed": lambda: ones(4, 8),
    "another rank": lambda: ones(32),
    "one more dimension": lambda: ones(8, 4, 1),
    "empty": lambda: ones(0, 4),
    "of no dimensions": lambda: paddle.to_tensor(1.0),
    "half": lambda: ones(8, 4, dtype="float16"),
    "bfloat16": lambda: ones(8, 4, dtype="bfloat16"),
    "int32": lambda: ones(8, 4, dtype="int32"),
    "strided": lambda: ones(4, 8).transpose([1, 0]),
    "every second": lambda: ones(16, 4)[::2],
    "a parameter": lambda: paddle.create_parameter([8, 4], "float32"),
    "no tensor": lambda: numpy.ones((8, 4), numpy.float32),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_seen(frontend, way, what):
    tensor, other = ones(8, 4), DIFFERENT[what]()
    if what == "no tensor":
        assert not frontend.guard(*given(frontend, tensor))(other, other.ctypes.data)
        return
    for one, two in ((tensor, other), (other, tensor)):
        compare = frontend.guard(*given(frontend, one))
        # The first no may have changed how dtypes are compared.
        for _ in range(2):
            assert not compare(*given(frontend, two))
            assert compare(*given(frontend, one))


@pytest.mark.parametrize("shape", [[], [3], [0], [0, 4], [1], [2, 1, 3]], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool"])
def test_another_of_its_sort_is_alike(frontend, way, shape, dtype):
    one, other = (paddle.zeros(shape, dtype=dtype) for _ in range(2))
    assert alike(frontend, one, other)
    assert alike(frontend, one, one)


def test_the_stride_of_a_dimension_of_size_1_is_seen(frontend, way):
    base = ones(8)
    one, other = (paddle.as_strided(base, [1, 4], [stride, 1]) for stride in (4, 2))
    assert alike(frontend, one, one)
    assert not alike(frontend, one, other)


def test_views_of_one_memory_with_other_strides_are_seen(frontend, way):
    base = ones(16)
    views = [paddle.as_strided(base, [2, 2], strides) for strides in ([2, 1], [4, 1], [1, 2])]
    for one in views:
        for other in views:
            assert alike(frontend, one, other) is (one is other)


IN_PLACE = {
    "reshape_": lambda x: x.reshape_([4, 8]),
    "cast_": lambda x: x.cast_("int32"),
    "data, of another dtype at the same address": lambda x: setattr(x, "data", x.view("int32")),
    "data, of other strides": lambda x: setattr(x, "data", ones(4, 8).transpose([1, 0])),
    "what is below it is set": lambda x: (
        x.value().get_tensor().set(numpy.ones((8, 4), numpy.int32), paddle.CPUPlace())
    ),
}


@pytest.mark.parametrize("what", IN_PLACE)
def test_a_tensor_that_was_changed_in_place_is_seen(frontend, way, what):
    x = ones(8, 4)
    compare = frontend.guard(*given(frontend, x))
    assert compare(*given(frontend, x))
    IN_PLACE[what](x)
    assert not compare(*given(frontend, x))


def test_new_values_are_alike(frontend, way):
    x = ones(8, 4)
    compare = frontend.guard(*given(frontend, x))
    x.set_value(numpy.zeros((8, 4), numpy.float32))
    assert compare(*given(frontend, x))


def test_each_of_several_tensors_is_compared(frontend, way):
    tensors = [ones(8), ones(8, dtype="float16"), ones(3, 4)]
    compare = frontend.guard(*given(frontend, *tensors))
    assert compare(*given(frontend, *tensors))
    for place in range(3):
        others = [*tensors]
        others[place] = ones(5)
        assert not compare(*given(frontend, *others))


def test_a_guard_keeps_no_tensor_and_no_memory_alive(frontend, way):
    x = ones(8, 4)
    alive = weakref.ref(x)
    compare = frontend.guard(*given(frontend, x))
    assert compare(*given(frontend, x))
    assert compare(*given(frontend, x))
    del x
    assert alive() is None
    assert all(sample._grad_ivar() is None for sample in paddle_guard._samples.values())


def test_comparing_changes_no_gradient(frontend):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x * x).sum().backward()
    compare = frontend.guard(*given(frontend, x))
    assert compare(*given(frontend, x))
    assert x.grad.numpy().tolist() == [2.0, 4.0]


def test_element_types_in_turns_are_computed_right(way):
    BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)

    def arrangement(x, y):
        return x.tile((BLOCK_SIZE,)), y.tile((BLOCK_SIZE,))

    def application(x, y):
        y = x * 2

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    for round_ in range(12):
        # Runs of two, so that guards are made and asked.
        dtype = ("float32", "int32", "float16")[round_ // 2 % 3]
        x = paddle.arange(round_ // 6, 8 + round_ // 6).astype(dtype)
        y = paddle.zeros_like(x)
        kernel(x, y, BLOCK_SIZE=4)
        assert numpy.array_equal(y.numpy(), x.numpy() * 2)


def test_each_stream_is_asked_for_its_handle_once_while_it_is_the_current_one(monkeypatch):
    from paddle.base import core

    from ninetoothed.frontends import paddle as frontend

    class Stream:
        def __init__(self, handle):
            self.handle, self.asked = handle, 0

        @property
        def cuda_stream(self):
            self.asked += 1
            return self.handle

    default, own = Stream(None), Stream(0x5000)
    current = {0: default, 1: own}
    monkeypatch.setattr(core, "_get_current_stream", current.__getitem__)
    handle_of = frontend._current_stream()
    assert [handle_of(0) for _ in range(3)] == [0, 0, 0]
    current[0] = own
    assert [handle_of(0) for _ in range(3)] == [0x5000] * 3
    assert (default.asked, own.asked) == (1, 1)
    current[0] = default
    assert [handle_of(index) for index in (0, 1, 0, 1)] == [0, 0x5000, 0, 0x5000]
