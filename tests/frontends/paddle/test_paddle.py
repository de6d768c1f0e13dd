"""PaddlePaddle's frontend on CPU tensors, 2.6 and 3.x, with PyTorch in the process and without."""

from __future__ import annotations

import itertools
import os
import threading
import time

import numpy
import pytest

import ninetoothed
from benchmarks.common.fresh import figures
from ninetoothed import plugins
from ninetoothed.backends.base import Device
from ninetoothed.backends.numpy.backend import NumpyBackend
from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.language import dtypes

paddle = pytest.importorskip("paddle", reason="needs PaddlePaddle")

from examples import add, mm  # noqa: E402


@pytest.fixture
def frontend():
    return plugins.frontend_named("paddle")


def test_tensors_and_parameters_are_owned(frontend):
    parameter = paddle.create_parameter([2], "float32")
    for tensor in (paddle.ones([2]), parameter):
        assert plugins.frontend_of(type(tensor)) is frontend


def test_the_expressions_read_a_view(frontend):
    base = paddle.zeros([4, 6], dtype="float16")
    view = base.transpose([1, 0])[1:, ::2]
    assert frontend.evaluate("shape", view) == (5, 2)
    assert frontend.evaluate("strides", view) == (1, 12)
    assert frontend.evaluate("pointer", view) == base.data_ptr() + 2
    assert frontend.dtype_of(frontend.evaluate("dtype", view)) is dtypes.float16
    assert frontend.device_of(frontend.evaluate("device", view)) == Device("cpu", 0)


@pytest.mark.parametrize("shape", [[0], [0, 3], [3, 0]])
def test_an_empty_tensor_has_the_pointer_0(frontend, shape):
    assert frontend.evaluate("pointer", paddle.zeros(shape)) == 0


@pytest.mark.parametrize("value", [3, 2.5, True])
def test_a_zero_dimensional_tensor_gives_its_python_number(frontend, value):
    item = frontend.evaluate("item", paddle.to_tensor(value))
    assert item == value
    assert type(item) is type(value)


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_element_types(frontend, name):
    native = {"float8_e4m3": "float8_e4m3fn"}.get(name, name)
    if not hasattr(paddle, native):
        pytest.skip(f"Paddle {paddle.__version__} has no {native}")
    dtype = dtypes.by_name(name)
    made = frontend.empty((2, 3), dtype, Device("cpu", 0))
    assert frontend.native_dtype(dtype) == getattr(paddle, native)
    assert made.dtype == getattr(paddle, native)
    assert made.element_size() == dtype.itemsize
    assert frontend.dtype_of(frontend.evaluate("dtype", made)) is dtype


def test_numpys_uint16_is_paddles_bfloat16_and_paddles_a_type_of_its_own(frontend):
    tensor = paddle.to_tensor(numpy.ones([2], numpy.uint16))
    assert frontend.dtype_of(frontend.evaluate("dtype", tensor)) is dtypes.bfloat16
    if not hasattr(paddle, "uint16"):
        pytest.skip(f"Paddle {paddle.__version__} has no uint16")
    tensor = paddle.to_tensor([0, 40000, 65535]).astype(paddle.uint16)
    total = paddle.empty([3], "int64")
    add.kernel(tensor, tensor.astype("int64"), total, BLOCK_SIZE=4)
    assert total.tolist() == [0, 80000, 131070]


def test_a_dtype_that_kernels_cannot_take_is_named():
    tensors = [paddle.zeros([4], dtype="complex64") for _ in range(3)]
    with pytest.raises(ArgumentError, match="`input`: Tensors of paddle.complex64"):
        add.kernel(*tensors, BLOCK_SIZE=64)


def test_a_sparse_tensor_is_refused():
    sparse = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    dense = paddle.zeros([2, 2])
    with pytest.raises(ArgumentError, match="sparse.*to_dense"):
        mm.kernel(sparse, dense, dense)


def test_a_place_that_kernels_cannot_run_on_is_refused(frontend):
    with pytest.raises(DeviceError, match=r"cpu\(\)"):
        frontend.device_of("pinned")


def test_a_device_that_is_not_there_is_named(frontend):
    with pytest.raises(DeviceError, match="no device npu:3 here; it has cpu:0"):
        frontend.empty((2,), dtypes.float32, Device("npu", 3))


def test_launches_on_tensors_of_one_sort_find_their_plan_again():
    plans = add.kernel.launch_function(plugins.frontend_named("paddle")).__globals__["plans_"]
    before = len(plans)
    for _ in range(5):
        tensors = [paddle.ones([311]) for _ in range(3)]
        add.kernel(*tensors, BLOCK_SIZE=64)
    assert len(plans) == before + 1


def test_a_parameter_that_learns_is_read_in_place():
    parameter = paddle.create_parameter([40], "float32")
    output = paddle.zeros([40])
    add.kernel(parameter, parameter, output, BLOCK_SIZE=64)
    assert numpy.array_equal(output.numpy(), 2 * parameter.detach().numpy())


_WITHOUT_TORCH = """
import json, sys
sys.modules["torch"] = None  # importing it fails
import numpy, paddle
from tests.frontends.paper_kernels import PAPER_KERNELS, relative_error

errors = {}
for paper in PAPER_KERNELS:
    launch, output, expected = paper.run(paper.small, numpy.float32, paddle.to_tensor)
    launch()
    errors[paper.name] = relative_error(output.numpy(), expected)
touched = [name for name in sys.modules if name.partition(".")[0] == "torch"]
print(json.dumps({"errors": errors, "torch": touched}))
"""


def test_the_ten_kernels_run_in_a_process_that_cannot_import_torch():
    found = figures(_WITHOUT_TORCH)
    assert found["torch"] == ["torch"]
    assert len(found["errors"]) == 11
    assert {name: error for name, error in found["errors"].items() if not error < 1e-5} == {}


def test_the_frontend_is_listed_without_paddle_being_imported():
    program = (
        "import json, sys; from ninetoothed import plugins; plugins.frontend_named('paddle'); "
        "print(json.dumps('paddle' in sys.modules))"
    )
    assert figures(program) is False


def _copies_of(framework):
    """What makes a tensor of a framework and what brings it back, both by way of NumPy."""
    if framework == "paddle":
        return paddle.to_tensor, lambda tensor: tensor.numpy()
    import torch

    return torch.tensor, lambda tensor: tensor.numpy()


#: How long eight threads go on at least; ``NINETOOTHED_TEST_SECONDS=60`` has them take a minute.
_SECONDS = float(os.environ.get("NINETOOTHED_TEST_SECONDS", "0"))
_TURNS = 60


def test_torch_and_paddle_take_turns_in_eight_threads(monkeypatch):
    """Right results, one plan for each framework and key, and each goes to its launch at once."""
    pytest.importorskip("torch", reason="needs PyTorch beside Paddle")
    kernel = ninetoothed.make(add.arrangement, add.application, add.tensors)
    planned, dispatched = [], []
    plan, dispatch = NumpyBackend.plan, kernel.dispatch

    def counted_plan(backend, kernel, call, values=None):
        planned.append((call.frontend.name, str(call.arguments)))
        return plan(backend, kernel, call, values)

    def counted_dispatch(*arguments, **keywords):
        dispatched.append(arguments)
        return dispatch(*arguments, **keywords)

    monkeypatch.setattr(NumpyBackend, "plan", counted_plan)
    kernel.dispatch = counted_dispatch
    kernel.forget_launches()

    sizes, failed, taken = (64, 129, 300), [], [0] * 8
    start = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            start.wait()
            end = time.monotonic() + _SECONDS
            for turn in itertools.count():
                if turn >= _TURNS and time.monotonic() >= end:
                    return
                put, fetch = _copies_of(("torch", "paddle")[(number + turn) % 2])
                array = numpy.full([sizes[turn % 3]], (number + turn) % 1000, numpy.float32)
                tensors = [put(array), put(array + 1), put(array)]
                kernel(*tensors, BLOCK_SIZE=64)
                assert numpy.array_equal(fetch(tensors[2]), 2 * array + 1), (number, turn)
                taken[number] += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    print(f"{sum(taken)} calls")
    assert failed == []
    assert min(taken) >= _TURNS
    assert len(planned) == len(set(planned)) == 2 * len(sizes)
    # Each thread may come before the first tensor of each framework was seen; none later.
    assert len(dispatched) <= 8 * 3
