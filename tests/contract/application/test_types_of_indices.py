"""An index is a position whatever integer type it has: no address or mask wraps in the index's type."""

from __future__ import annotations

import os

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import NineToothedError

UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
NARROW = [torch.int8, torch.int16]
TYPES = [*UNSIGNED, *NARROW]

#: How a tensor of 900 elements becomes one vector.
VECTORS = {
    "padded": lambda t: t.pad(((1, 0),)),
    "in steps": lambda t: t[::3],
    "backwards": lambda t: t[::-1],
    "flattened": lambda t: t.flatten(),
}


def element(x, z, out):
    out = x[z]  # noqa: F841


def arrangement(vector):
    return lambda x, z, out: (vector(x).tile((-1,)), z.tile((4,)), out.tile((4,)))


def taken(row, indices):
    x = torch.arange(1.0, 901.0)
    x = x.reshape(30, 30) if row == "flattened" else x
    out = torch.full((4,), float("nan"))
    kernel = ninetoothed.make(
        arrangement(VECTORS[row]), element, (Tensor(x.ndim), Tensor(1), Tensor(1))
    )
    kernel(x, indices, out)
    return out.tolist()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("padded", [0.0, 1.0, 2.0, 120.0]),
        ("in steps", [1.0, 4.0, 7.0, 361.0]),
        ("backwards", [900.0, 899.0, 898.0, 780.0]),
        ("flattened", [1.0, 2.0, 3.0, 121.0]),
    ],
)
def test_an_element_is_found_by_an_index_of_any_type(row, expected, dtype):
    assert taken(row, torch.tensor([0, 1, 2, 120]).to(dtype)) == expected


@pytest.mark.parametrize("dtype", [torch.uint32, torch.uint64], ids=str)
@pytest.mark.parametrize("row", VECTORS)
def test_an_index_beyond_what_is_signed_names_no_element(row, dtype):
    beyond = torch.tensor([-1, -2, -(2**31), -900]).to(dtype)
    # What does not exist is not stored, and padding is 0; every element is greater.
    assert not any(value > 0 for value in taken(row, beyond))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_tile_is_selected_by_an_index_of_any_type(dtype):
    def application(x, z, out):
        out = x[z[0]]  # noqa: F841

    x, out = torch.arange(500.0), torch.full((100,), float("nan"))
    kernel = ninetoothed.make(
        lambda x, z, out: (x.tile((100,)).tile((-1,)), z.tile((1,)), out.tile((100,))),
        application,
        (Tensor(1), Tensor(1), Tensor(1)),
    )
    kernel(x, torch.tensor([4]).to(dtype), out)
    assert torch.equal(out, x[400:])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_an_element_of_a_source_is_found_by_an_index_of_any_type(dtype):
    def application(x, z, out):
        out = x.source[z, z]  # noqa: F841

    x, out = torch.arange(40000.0).reshape(200, 200), torch.full((4,), float("nan"))
    kernel = ninetoothed.make(
        lambda x, z, out: (x, z.tile((4,)), out.tile((4,))),
        application,
        (Tensor(2), Tensor(1), Tensor(1)),
    )
    indices = torch.tensor([0, 1, 2, 120])
    kernel(x, indices.to(dtype), out)
    assert torch.equal(out, x[indices, indices])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_stores_and_atomics_reach_the_same_elements(dtype):
    def application(x, y, z):
        x[z] = ntl.full((4,), 1.0, ntl.float32)
        ntl.atomic_add(y[z], 1.0)

    x, y = torch.zeros(2, 30, 30)
    kernel = ninetoothed.make(
        lambda x, y, z: (x.flatten().tile((-1,)), y.flatten().tile((-1,)), z.tile((4,))),
        application,
        (Tensor(2), Tensor(2), Tensor(1)),
    )
    kernel(x, y, torch.tensor([0, 1, 2, 120]).to(dtype))
    assert x.flatten().nonzero().flatten().tolist() == [0, 1, 2, 120]
    assert torch.equal(x, y)


def corner(t):
    """The last two columns, the last first, of two rows of a flattened tensor, transposed."""
    return t.flatten(start_dim=1, end_dim=3)[-3:-1, :-3:-1].permute((-1, 0)).tile((2, 4))


def first_to_chosen(x, z):
    x[z, :] = x[0, 0]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_an_index_is_taken_apart_where_dimensions_were_flattened(dtype):
    x = torch.arange(1.0, 28.0).reshape(3, 3, 3)
    expected = x.clone()
    expected[1, 2, 2] = x[0, 2, 2]
    kernel = ninetoothed.make(
        lambda x, z: (corner(x), corner(z)), first_to_chosen, (Tensor(3), Tensor(3))
    )
    kernel(x, torch.zeros(3, 3, 3, dtype=dtype))
    assert torch.equal(x, expected)


@pytest.mark.skipif(
    bool(os.environ.get("TRITON_INTERPRET")), reason="the interpreter compiles nothing"
)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_takes_a_flattened_index_apart_compiles(dtype):
    pytest.importorskip("triton")
    kernel = ninetoothed.make(
        lambda x, z: (corner(x), corner(z)), first_to_chosen, (Tensor(3), Tensor(3))
    )
    arguments = torch.zeros(5, 6, 7), torch.zeros(5, 6, 7, dtype=dtype)
    assert kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]


def of_a_tile(x, y):
    y = x[x > 0]  # noqa: F841


def of_a_source(x, y):
    y = x.source[x > 0]  # noqa: F841


def stored_to_a_tile(x, y):
    y[x > 0] = 1.0


def stored_to_a_source(x, y):
    y.source[x > 0] = 1.0


@pytest.mark.parametrize(
    "application", [of_a_tile, of_a_source, stored_to_a_tile, stored_to_a_source]
)
def test_truth_values_are_no_positions(application):
    def whole(x, y):
        return x.tile((-1,)), y.tile((-1,))

    with pytest.raises(NineToothedError, match=r"(?s)`ntl.where` chooses.*test_types_of_indices"):
        ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))
