"""What is no tensor that a kernel could read or write, a row each: what it is, and what its refusal says.

Each row is given for an input and for an output, to a kernel that was never called and to one that was,
and right calls in between go on being right. PyTorch's here; those of other frameworks beside their tests.
"""

from __future__ import annotations

import array
import os
import weakref

import numpy as np
import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError, NineToothedError

torch = pytest.importorskip("torch", reason="needs PyTorch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def doubled(x, y):
    y = x * 2  # noqa: F841


def make():
    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,))

    return ninetoothed.make(arrangement, doubled, (Tensor(1), Tensor(1)))


def ones(dtype=torch.float32):
    return torch.ones(6, dtype=dtype)


class Wrapper(torch.Tensor):
    """A tensor that holds another, as the documentation of `__torch_dispatch__` makes one."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        raise NotImplementedError(str(function))


class Flattened(Wrapper):
    def __tensor_flatten__(self):
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Flattened(inner["held"])


class Unwilling(torch.Tensor):
    """Answers no question."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        raise KeyError(str(function))


class Larger(torch.Tensor):
    """Tells of more elements than it has."""

    @property
    def shape(self):
        return torch.Size((600,))


class Steep(torch.Tensor):
    """Tells of other strides than it has."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.stride:
            return (100,)
        return super().__torch_function__(function, types, arguments, keywords)


class Elsewhere(torch.Tensor):
    """Tells of another address."""

    def data_ptr(self):
        return super().data_ptr() + 4096


class Wider(torch.Tensor):
    """Tells of another element type."""

    @property
    def dtype(self):
        return torch.float64


class Duck:
    """Has all that a tensor is asked for, and is none."""

    shape, dtype, device, requires_grad = (6,), torch.float32, torch.device("cpu"), False

    def stride(self):
        return (1,)

    def data_ptr(self):
        return 1 << 20


def fake(make=ones):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return make()


def two_tensors():
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(ones(), ones())


def masked():
    from torch.masked import masked_tensor

    return masked_tensor(ones(), torch.tensor([True] * 6))


def distributed():
    from torch import distributed as parallel
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh

    os.environ |= {"MASTER_ADDR": "localhost"}
    store = parallel.HashStore()
    parallel.init_process_group("gloo", rank=0, world_size=1, store=store)
    try:
        return DTensor.from_local(ones(), init_device_mesh("cpu", (1,)), [Replicate()])
    finally:
        parallel.destroy_process_group()


def awaited():
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    return AsyncCollectiveTensor(ones())


def freed(offset=0):
    tensor = torch.ones(6 + offset)[offset:]
    tensor.untyped_storage().resize_(0)
    return tensor


def without_address():
    tensor = ones()
    torch._C._set_throw_on_mutable_data_ptr(tensor)
    return tensor


def kept_from(transformation):
    """The stand-in that a transformation hands to its function."""
    kept = []
    transformation(lambda x: (kept.append(x), x.sum())[1])(torch.ones(6, 6))
    return kept[0]


def sparse(layout, **options):
    return torch.eye(6).to_sparse(layout=layout, **options)


def nested(**options):
    return torch.nested.nested_tensor([torch.ones(3), torch.ones(3)], **options)


def with_holes():
    return torch.nested.narrow(
        torch.ones(2, 6), 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged
    )


def quantized(dtype):
    return torch.quantize_per_tensor(ones(), 1.0, 0, dtype)


def dtype(name):
    if not hasattr(torch, name):
        pytest.skip(f"this PyTorch has no {name}")
    return torch.empty(6, dtype=getattr(torch, name))


ANY = "must be a tensor, not "
UNKNOWN = "torch.{} cannot be passed to a kernel"

#: What makes it, and what is said after its name.
ROWS = {
    # Not what their memory holds.
    "negated": (lambda: torch._neg_view(ones()), "is a negated view.*resolve_neg"),
    "imaginary": (lambda: ones(torch.complex64).conj().imag, "is a negated view.*resolve_neg"),
    "negated, requires grad": (
        lambda: torch._neg_view(ones().requires_grad_()),
        "is a negated view",
    ),
    "conjugated": (lambda: ones(torch.complex64).conj(), "is a conjugated view.*resolve_conj"),
    "zeros of autograd": (lambda: torch._efficientzerotensor(6), "is a tensor of zeros.*clone"),
    "quantized": (lambda: quantized(torch.qint8), "is quantized.*int_repr"),
    "quantized, 32 bits": (lambda: quantized(torch.qint32), "is quantized.*int_repr"),
    "quantized by channels": (
        lambda: torch.quantize_per_channel(
            torch.ones(6, 2), torch.ones(6), torch.zeros(6), 0, torch.quint8
        ),
        "is quantized.*int_repr",
    ),
    # Without memory of their own.
    "fake": (fake, "is a FakeTensor"),
    "fake parameter": (lambda: fake(lambda: torch.nn.Parameter(ones())), "is a FakeTensor"),
    "functional": (lambda: torch._to_functional_tensor(ones()), "is a functional tensor"),
    "meta": (lambda: ones().to("meta"), "meta device"),
    "meta parameter": (
        lambda: torch.nn.Parameter(ones().to("meta"), requires_grad=False),
        "meta device",
    ),
    "freed": (freed, "of shape.*needs 24 bytes.*has 0"),
    "view of freed": (lambda: freed(50), "of shape.*needs 224 bytes.*has 0"),
    "without an address": (without_address, "has no memory that a kernel could reach"),
    "uninitialized parameter": (
        lambda: torch.nn.UninitializedParameter(),
        "has no memory.*lazy module",
    ),
    "uninitialized buffer": (lambda: torch.nn.UninitializedBuffer(), "has no memory.*lazy module"),
    "kept from vmap": (lambda: kept_from(torch.vmap), "is a stand-in of.*vmap"),
    "kept from grad": (lambda: kept_from(torch.func.grad), "is a stand-in of.*grad"),
    # Wrappers.
    "wrapper": (lambda: Wrapper(ones()), "has no memory|of shape.*needs 24 bytes"),
    "flattened": (lambda: Flattened(ones()), "is of a class that wraps other tensors"),
    "two tensors": (two_tensors, "is of a class that wraps other tensors"),
    "distributed": (distributed, "is of a class that wraps other tensors.*to_local"),
    "awaited": (awaited, "is of a class that wraps other tensors"),
    "masked": (masked, "has no memory|only wraps others"),
    "larger": (lambda: ones().as_subclass(Larger), "tells another shape"),
    "steep": (lambda: ones().as_subclass(Steep), "tells another shape, stride"),
    "elsewhere": (lambda: ones().as_subclass(Elsewhere), "tells another shape, stride, address"),
    "wider": (lambda: ones().as_subclass(Wider), "or element type than the tensor has"),
    "unwilling": (lambda: ones().as_subclass(Unwilling), "Unwilling cannot be read: KeyError"),
    # Layouts.
    "coo": (lambda: ones().to_sparse(), "is sparse.*to_dense"),
    "hybrid": (lambda: torch.ones(6, 2).to_sparse(1), "is sparse.*to_dense"),
    "uncoalesced": (
        lambda: torch.sparse_coo_tensor([[0, 0]], [1.0, 1.0], (6,)),
        "is sparse.*to_dense",
    ),
    "csr": (lambda: sparse(torch.sparse_csr), "is sparse.*to_dense"),
    "csc": (lambda: sparse(torch.sparse_csc), "is sparse.*to_dense"),
    "bsr": (lambda: sparse(torch.sparse_bsr, blocksize=(2, 2)), "is sparse.*to_dense"),
    "bsc": (lambda: sparse(torch.sparse_bsc, blocksize=(2, 2)), "is sparse.*to_dense"),
    "mkldnn": (lambda: ones().to_mkldnn(), "is sparse, or of another layout.*to_dense"),
    "jagged": (lambda: nested(layout=torch.jagged), "is a jagged tensor; declare it"),
    "nested": (nested, "is a jagged tensor; declare it"),
    "nested with holes": (with_holes, "is a jagged tensor; declare it"),
    # Element types.
    "complex32": (lambda: ones(torch.complex32), UNKNOWN.format("complex32")),
    "complex64": (lambda: ones(torch.complex64), UNKNOWN.format("complex64")),
    "complex128": (lambda: ones(torch.complex128), UNKNOWN.format("complex128")),
    "bits8": (lambda: dtype("bits8"), UNKNOWN.format("bits8")),
    "uint4": (lambda: dtype("uint4"), UNKNOWN.format("uint4")),
    "int4": (lambda: dtype("int4"), UNKNOWN.format("int4")),
    "uint1": (lambda: dtype("uint1"), UNKNOWN.format("uint1")),
    "float8_e8m0fnu": (lambda: dtype("float8_e8m0fnu"), UNKNOWN.format("float8_e8m0fnu")),
    "float4": (lambda: dtype("float4_e2m1fn_x2"), UNKNOWN.format("float4_e2m1fn_x2")),
    # Ranks and sizes.
    "no dimensions": (lambda: torch.tensor(1.0), "has 0 dimensions.*declared with 1"),
    "two dimensions": (lambda: torch.ones(2, 3), "has 2 dimensions.*declared with 1"),
    "seven dimensions": (lambda: torch.ones(1, 1, 1, 1, 1, 1, 1), "has 7 dimensions"),
    # PyTorch's, and no tensors.
    "storage": (lambda: ones().untyped_storage(), f"{ANY}torch.storage"),
    "size": (lambda: torch.Size([6]), f"{ANY}torch.Size"),
    "element type": (lambda: torch.float32, f"{ANY}torch.dtype"),
    "module": (lambda: torch.nn.Linear(2, 2), f"{ANY}torch.nn"),
    "packed sequence": (
        lambda: torch.nn.utils.rnn.pack_sequence([ones()]),
        f"{ANY}torch.nn.utils.rnn",
    ),
    "proxy": (lambda: torch.fx.Proxy(torch.fx.Graph().placeholder("x")), f"{ANY}torch.fx"),
    "the class": (lambda: torch.Tensor, f"{ANY}torch._C._TensorMeta"),
    # Anything.
    "duck": (Duck, f"{ANY}.*Duck"),
    "nothing": (lambda: None, f"{ANY}builtins.NoneType"),
    "number": (lambda: 1.0, f"{ANY}builtins.float"),
    "text": (lambda: "x", f"{ANY}builtins.str"),
    "list": (lambda: [1.0] * 6, f"{ANY}builtins.list"),
    "tuple": (lambda: (1.0,) * 6, f"{ANY}builtins.tuple"),
    "bytes": (lambda: bytes(24), f"{ANY}builtins.bytes"),
    "memory": (lambda: memoryview(bytes(24)), f"{ANY}builtins.memoryview"),
    "array": (lambda: array.array("f", [1.0] * 6), f"{ANY}array.array"),
    "NumPy's": (lambda: np.ones(6, np.float32), f"{ANY}numpy.ndarray"),
    "NumPy's number": (lambda: np.float32(1), f"{ANY}numpy.float32"),
    "weak reference": (lambda: weakref.ref(ones), f"{ANY}weakref"),
    "our own": (lambda: Tensor(1), f"{ANY}ninetoothed"),
    "symbol": (lambda: Symbol("a"), f"{ANY}ninetoothed"),
}

#: What may be read and not written.
OUTPUTS = {
    "expanded": (lambda: torch.zeros(1).expand(6), "is stored to, and several.*expand"),
    "leaf": (lambda: ones().requires_grad_(), "is stored to, and is a leaf"),
    "parameter": (lambda: torch.nn.Parameter(ones()), "is stored to, and is a leaf"),
    "view of a leaf": (lambda: torch.ones(9).requires_grad_()[3:], "is stored to.*a view of one"),
}


def checked(kernel, x, y, words):
    for _ in range(3):
        with pytest.raises(NineToothedError, match=f"(?s){words}"):
            kernel(x(), y())
        out = torch.full((6,), float("nan"))
        kernel(ones(), out)
        assert out.tolist() == [2.0] * 6


def test_there_are_enough_rows():
    assert len(ROWS) + len(OUTPUTS) >= 60


@pytest.mark.parametrize("row", ROWS)
def test_an_input_is_refused_by_name_known_kernel_or_not(row):
    build, words = ROWS[row]
    value = build()
    checked(make(), lambda: value, ones, f"`x`.*{words}")


@pytest.mark.parametrize("row", [*ROWS, *OUTPUTS])
def test_an_output_is_refused_by_name_known_kernel_or_not(row):
    build, words = {**ROWS, **OUTPUTS}[row]
    value = build()
    checked(make(), ones, lambda: value, f"`y`.*{words}")


def test_an_output_whose_windows_overlap_is_refused():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((1, 4)), y.tile((1, 4))), doubled, (Tensor(2), Tensor(2))
    )
    windows = torch.zeros(8).as_strided((2, 3), (1, 1))
    for _ in range(3):
        with pytest.raises(ArgumentError, match=r"`y` is stored to, and several.*strides \(1, 1\)"):
            kernel(torch.ones(2, 3), windows)
        kernel(windows, torch.ones(2, 3))


#: Odd, and right.
RIGHT = {
    "every second": lambda: torch.rand(12)[::2],
    "a column": lambda: torch.rand(6, 5)[:, 2],
    "from an odd address": lambda: torch.rand(7)[1:],
    "expanded": lambda: torch.rand(1).expand(6),
    "of one that overlaps": lambda: torch.rand(9).as_strided((6,), (1,), 2),
    "diagonal": lambda: torch.rand(6, 6).diagonal(),
    "flipped": lambda: torch.rand(6).flip(0),
    "parameter": lambda: torch.nn.Parameter(torch.rand(6)),
    "buffer": lambda: torch.nn.Buffer(torch.rand(6)),
    "requires grad": lambda: torch.rand(6).requires_grad_() * 1,
    "subclass": lambda: torch.rand(6).as_subclass(type("Named", (torch.Tensor,), {})),
    "shared": lambda: torch.rand(6).share_memory_(),
    "NumPy's memory": lambda: torch.from_numpy(np.random.rand(6).astype(np.float32)),
    "real part": lambda: torch.rand(6, dtype=torch.complex64).real,
    "viewed as real": lambda: torch.view_as_real(torch.rand(6, dtype=torch.complex64))[:, 1],
    "resolved": lambda: torch._neg_view(torch.rand(6)).resolve_neg(),
    "values of jagged": lambda: nested(layout=torch.jagged).values(),
    "another element type": lambda: torch.rand(6).half(),
}


@pytest.mark.parametrize("row", RIGHT)
def test_what_is_odd_and_holds_its_elements_is_right(row):
    kernel, x = make(), RIGHT[row]()
    for _ in range(3):
        out = torch.full((6,), float("nan"))
        kernel(x, out)
        assert torch.equal(out, 2 * x.detach().float().as_subclass(torch.Tensor))


@pytest.mark.parametrize("row", ["every second", "a column", "from an odd address", "diagonal"])
def test_what_is_odd_is_written_where_it_is(row):
    kernel, x = make(), torch.rand(6)
    for _ in range(3):
        out = RIGHT[row]()
        kernel(x, out)
        assert torch.equal(out, 2 * x)
