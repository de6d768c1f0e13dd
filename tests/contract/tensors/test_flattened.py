"""Indices and slices of flattened tensors that count from the end, or go backwards: each element is the right one."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArrangementError

torch = pytest.importorskip("torch")


def copy(x, out):
    out = x  # noqa: F841


#: What is taken of a matrix, as NumPy does it of an array.
TAKEN = {
    "last": lambda t: t.flatten()[-1:],
    "backwards": lambda t: t.flatten()[::-1],
    "backwards in steps": lambda t: t.flatten()[-1:-9:-3],
    "backwards from beyond": lambda t: t.flatten()[100:-100:-1],
    "beyond both ends": lambda t: t.flatten()[-100:100],
    "nothing": lambda t: t.flatten()[5:2],
    "of what was cut and turned": lambda t: t.flatten()[:-1][::-1][1::2],
    "turned twice": lambda t: t.flatten()[::-1][::-1],
    "turned before": lambda t: t[::-1].flatten()[2:-2],
    "turned before and after": lambda t: t[:, ::-1].flatten()[::-2],
}


@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize("row", TAKEN)
def test_what_is_taken_from_the_end_is_as_in_numpy(row, is_declared):
    take, source = TAKEN[row], torch.arange(15.0).reshape(3, 5)
    expected = torch.tensor(take(source.cpu().numpy()).copy())
    shape = {"shape": (3, 5)} if is_declared else {"ndim": 2}
    kernel = ninetoothed.make(
        lambda x, out: (take(x).tile((4,)), out.tile((4,))), copy, (Tensor(**shape), Tensor(1))
    )
    out = torch.full(expected.shape, float("nan"))

    kernel(source, out)

    assert torch.equal(out, expected)


@pytest.mark.parametrize("is_declared", [False, True])
def test_the_last_element_is_the_last(is_declared):
    source, out = torch.arange(15.0).reshape(3, 5), torch.full((4,), float("nan"))
    shape = {"shape": (3, 5)} if is_declared else {"ndim": 2}
    kernel = ninetoothed.make(
        lambda x, out: (x.flatten()[-1:].expand(out.shape).tile((4,)), out.tile((4,))),
        copy,
        (Tensor(**shape), Tensor(1)),
    )

    kernel(source, out)

    assert out.tolist() == [14.0] * 4


def test_an_index_before_the_first_is_told_as_it_was_given():
    kernel = ninetoothed.make(
        lambda x, out: (x[-4].tile((4,)), out.tile((4,))), copy, (Tensor(2), Tensor(1))
    )

    with pytest.raises(ArrangementError, match="index -4; it needs an index from -3 to 2"):
        kernel(torch.zeros(3, 5), torch.zeros(5))


@pytest.mark.parametrize("amount", [0, 1, 3, 7])
def test_padding_has_one_number_of_tiles_as_a_number_and_as_a_symbol(amount):
    symbol = Symbol("PADDING", constexpr=True)
    grids = []
    for padding, given in ((amount, {}), (symbol, {"PADDING": amount})):
        kernel = ninetoothed.make(
            lambda x, out, padding=padding: (
                x.pad(((padding, padding),)).tile((4,)),
                out.tile((4,)),
            ),
            copy,
            (Tensor(1), Tensor(1)),
        )
        source, out = torch.arange(1.0, 11.0), torch.full((10 + 2 * amount,), float("nan"))
        kernel(source, out, **given)
        grids.append(torch.nan_to_num(out, nan=-1.0))
    assert torch.equal(*grids)
    assert torch.equal(grids[0], torch.nn.functional.pad(source, (amount, amount)))


def test_of_what_a_flattened_tile_has_beyond_its_tensor_nothing_is_stored():
    def arrangement(y):
        arranged = y.tile((2, 3, -1))
        arranged.dtype = arranged.dtype.flatten(end_dim=-1)
        arranged.dtype = arranged.dtype.flatten()
        arranged = arranged.pad(((0, 0), (0, 3), (2, 1)))
        arranged.dtype = arranged.dtype.flatten()
        arranged.dtype = arranged.dtype.pad(((0, 3),))
        arranged.dtype = arranged.dtype[None, None, 18:]
        return (arranged,)

    def application(y):
        y = ntl.full(y.shape, 1.0, ntl.float32)  # noqa: F841

    memory = torch.zeros(60)
    ninetoothed.make(arrangement, application, (Tensor(3),))(memory[:15].view(3, 1, 5))
    assert memory.nonzero().flatten().tolist() == [8, 9]
