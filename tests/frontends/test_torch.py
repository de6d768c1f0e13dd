"""The PyTorch frontend on CPU tensors."""

from __future__ import annotations

import pytest

from ninetoothed import plugins
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError
from ninetoothed.language import dtypes

torch = pytest.importorskip("torch", reason="needs PyTorch")


@pytest.fixture
def frontend():
    return plugins.frontend_named("torch")


@pytest.mark.parametrize(
    "tensor",
    [torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.nn.Buffer(torch.ones(2))],
    ids=lambda tensor: type(tensor).__name__,
)
def test_tensors_and_what_derives_from_them_are_owned(frontend, tensor):
    assert plugins.frontend_of(type(tensor)) is frontend


def test_the_expressions_read_a_view(frontend):
    base = torch.zeros(4, 6, dtype=torch.float16)
    view = base.T[1:, ::2]
    assert tuple(frontend.evaluate("shape", view)) == (5, 2)
    assert frontend.evaluate("strides", view) == (1, 12)
    assert frontend.evaluate("pointer", view) == base.data_ptr() + 2
    assert frontend.dtype_of(frontend.evaluate("dtype", view)) is dtypes.float16
    assert frontend.device_of(frontend.evaluate("device", view)) == Device("cpu", 0)
    for field in ("shape", "strides", "dtype", "device"):
        hash(frontend.evaluate(field, view))


def test_a_tensor_that_requires_a_gradient_has_a_pointer(frontend):
    parameter = torch.ones(3, requires_grad=True)
    assert frontend.evaluate("pointer", parameter) == parameter.data_ptr()


@pytest.mark.parametrize("value", [3, 2.5, True])
def test_a_zero_dimensional_tensor_gives_its_python_number(frontend, value):
    item = frontend.evaluate("item", torch.tensor(value))
    assert item == value
    assert type(item) is type(value)


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_every_element_type_has_a_torch_dtype_of_its_size(frontend, name):
    dtype = dtypes.by_name(name)
    native = frontend.native_dtype(dtype)
    assert frontend.dtype_of(native) is dtype
    assert native.itemsize == dtype.itemsize
    assert frontend.empty((2, 3), dtype, Device("cpu", 0)).dtype is native


def test_a_dtype_that_kernels_cannot_take_is_named(frontend):
    with pytest.raises(ArgumentError, match="torch.complex64"):
        frontend.dtype_of(torch.complex64)


def test_an_empty_tensor_has_the_asked_shape(frontend):
    tensor = frontend.empty((2, 0, 3), dtypes.bfloat16, Device("cpu", 0))
    assert tensor.shape == (2, 0, 3)
    assert tensor.device.type == "cpu"


def _jagged(*lengths, width=4):
    sequences = [torch.randn(length, width) for length in lengths]
    return torch.nested.nested_tensor(sequences, layout=torch.jagged)


def test_a_jagged_tensor_is_read_as_values_and_offsets(frontend):
    tensor = _jagged(3, 0, 5)
    assert plugins.frontend_of(type(tensor)) is frontend
    assert frontend.evaluate("jagged.test", tensor)
    assert not frontend.evaluate("jagged.test", torch.ones(2))
    assert frontend.evaluate("jagged.ragged_dim", tensor) == 1
    assert frontend.evaluate("jagged.shape", tensor) == (3, 5, 4)
    assert frontend.evaluate("jagged.strides", tensor) == (0, 4, 1)
    assert frontend.evaluate("jagged.values", tensor).shape == (8, 4)
    assert frontend.evaluate("jagged.offsets", tensor).tolist() == [0, 3, 3, 8]


def test_a_transposed_jagged_tensor_keeps_its_ragged_dimension(frontend):
    tensor = _jagged(3, 5).transpose(1, 2)
    assert frontend.evaluate("jagged.ragged_dim", tensor) == 2
    assert frontend.evaluate("jagged.shape", tensor) == (2, 4, 5)
    assert frontend.evaluate("jagged.strides", tensor) == (0, 1, 4)


def test_sequences_may_all_be_empty(frontend):
    assert frontend.evaluate("jagged.shape", _jagged(0, 0)) == (2, 0, 4)


def test_a_nested_tensor_of_another_layout_is_refused(frontend):
    tensor = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(2, 4)])
    with pytest.raises(ArgumentError, match="jagged layout, got torch.strided"):
        frontend.evaluate("jagged.shape", tensor)


def test_a_jagged_tensor_with_holes_is_refused(frontend):
    starts, lengths = torch.tensor([0, 1]), torch.tensor([3, 2])
    tensor = torch.nested.narrow(torch.ones(2, 9, 4), 1, starts, lengths, layout=torch.jagged)
    with pytest.raises(ArgumentError, match="holes"):
        frontend.evaluate("jagged.offsets", tensor)


def test_offsets_of_another_type_are_refused(frontend):
    offsets = torch.tensor([0, 2, 6], dtype=torch.int32)
    tensor = torch.nested.nested_tensor_from_jagged(torch.ones(6, 2), offsets)
    with pytest.raises(ArgumentError, match="int64, got torch.int32"):
        frontend.evaluate("jagged.offsets", tensor)
