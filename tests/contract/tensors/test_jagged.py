"""LANGUAGE.md, "Tensor": jagged tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ArgumentError, ArrangementError
from tests.contract.kernels import arange, empty

# Jagged tensors.


def nested(*lengths, width=None):
    shape = () if width is None else (width,)
    parts = [
        torch.arange(1.0, 1 + length * (width or 1)).reshape(length, *shape) for length in lengths
    ]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


def jagged_rows(x, y):
    return x.tile((1, 4)), y.tile((1, 4))


@pytest.mark.parametrize("lengths", [(3, 5), (5, 0, 2), (0, 0, 1), (4, 8)], ids=str)
def test_a_jagged_tensor_is_a_packed_pair_of_values_and_offsets(lengths):
    """Its size in that dimension is the longest sequence's for the grid and, for bounds, that of the
    sequence at hand; empty sequences are fine"""

    def application(x, y):
        y = x  # noqa: F841

    x, y = nested(*lengths), empty(len(lengths), max(lengths))
    kernel = ninetoothed.make(
        jagged_rows, application, (Tensor(2, jagged_dim=1, other=-1), Tensor(2))
    )
    kernel(x, y)

    expected = torch.full((len(lengths), max(lengths)), -1.0)
    for row, length in enumerate(lengths):
        expected[row, :length] = torch.arange(1.0, 1 + length)
    assert torch.equal(y, expected)


def test_a_jagged_tensor_may_be_written_to():
    """it may be written to"""

    def application(x, y):
        y = x + 100  # noqa: F841

    x, y = arange(3, 5), nested(2, 0, 5)
    kernel = ninetoothed.make(jagged_rows, application, (Tensor(2), Tensor(2, jagged_dim=1)))
    kernel(x, y)

    assert y.values().tolist() == [101, 102, 111, 112, 113, 114, 115]


def test_a_jagged_tensor_of_three_dimensions():
    def arrangement(x, y):
        x = x.tile((1, 4, -1)).tile((1, -1, 1))
        x.dtype = x.dtype.squeeze((0, 2))
        x.dtype.dtype = x.dtype.dtype.squeeze(0)
        y = y.tile((1, -1))
        y = y.unsqueeze(1)
        y.dtype = y.dtype.squeeze(0)
        return x, y

    def summed(x, y):
        total = ntl.zeros(y.shape, dtype=ntl.float32)
        for k in range(x.shape[0]):
            total += ntl.sum(x[k], axis=0)
        y = total  # noqa: F841

    x, y = nested(2, 6, 0, width=3), empty(3, 3)
    ninetoothed.make(arrangement, summed, (Tensor(3, jagged_dim=1), Tensor(2)))(x, y)

    assert torch.equal(y, torch.stack([part.sum(0) for part in x.unbind()]))


def whole_sequences(x, y):
    return x.tile((1, -1)), y.tile((1, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("lengths", [(3, 5, 1), (5, 0, 2), (1,), (0, 7)], ids=str)
def test_a_jagged_sources_size_is_that_of_the_sequence_at_hand(lengths, dtype):
    """for bounds, that of the sequence at hand"""

    def mean(x, y):
        y = ntl.sum(ntl.cast(x, ntl.float32)) / ntl.maximum(x.source.shape[1], 1)  # noqa: F841

    def counted(x, y):
        total = 0
        for _ in range(x.source.size(-1)):
            total += 2
        y = total + x.source.shape[0] * 100  # noqa: F841

    parts = [torch.arange(1, 1 + length).to(dtype) for length in lengths]
    x, y = torch.nested.nested_tensor(parts, layout=torch.jagged), empty(len(lengths), 1)
    tensors = (Tensor(2, jagged_dim=1), Tensor(2))
    ninetoothed.make(whole_sequences, mean, tensors)(x, y)
    assert y[:, 0].tolist() == [(1 + length) / 2 if length else 0 for length in lengths]

    ninetoothed.make(whole_sequences, counted, tensors)(x, y)
    assert y[:, 0].tolist() == [2 * length + 100 * len(lengths) for length in lengths]


def test_a_mask_by_a_jagged_sources_size_is_that_of_the_sequence():
    """as attention masks its keys, in a loop over blocks of them and in one tile of all"""

    def blocks(x, y):
        x = x.tile((1, 4)).tile((1, -1))
        x.dtype = x.dtype.squeeze(0)
        x.dtype.dtype = x.dtype.dtype.squeeze(0)
        return x, y.tile((1, 1))

    def in_blocks(x, y):
        total = ntl.zeros((1, 1), dtype=ntl.float32)
        for k in range(x.shape[0]):
            is_seen = x[k].offsets(1) < x.source.shape[1]
            total += ntl.sum(ntl.where(is_seen, ntl.exp(x[k]), 0.0))
        y = total  # noqa: F841

    def in_one(x, y):
        is_seen = x.offsets(1)[None, :] < x.source.shape[1]
        y = ntl.sum(ntl.where(is_seen, ntl.exp(x), 0.0))  # noqa: F841

    lengths = (3, 0, 9, 1, 8)
    x, y = nested(*lengths), empty(len(lengths), 1)
    expected = torch.stack([part.exp().sum() for part in x.unbind()])
    for arrangement, application in ((blocks, in_blocks), (whole_sequences, in_one)):
        tensors = (Tensor(2, jagged_dim=1, other=0), Tensor(2))
        ninetoothed.make(arrangement, application, tensors)(x, y)
        torch.testing.assert_close(y[:, 0], expected)


def test_the_sequence_may_be_found_by_dividing_the_programs_position_or_be_none():
    def heads(x, y):
        return x.tile((1, -1, 1)).flatten(start_dim=0), y.tile((1,))

    def padded(x, y):
        return x.pad(((1, 2), (0, 0))).tile((1, -1)), y.tile((1, 1))

    def length(x, y):
        y = x.source.shape[1]  # noqa: F841

    y = empty(6)
    ninetoothed.make(heads, length, (Tensor(3, jagged_dim=1), Tensor(1)))(nested(2, 5, width=3), y)
    assert y.tolist() == [2, 2, 2, 5, 5, 5]

    y = empty(5, 1)
    ninetoothed.make(padded, length, (Tensor(2, jagged_dim=1), Tensor(2)))(nested(4, 3), y)
    assert y[:, 0].tolist() == [0, 4, 3, 0, 0]


def test_a_loop_goes_as_far_as_the_sequence_at_hand():
    def arrangement(x, y):
        x = x.tile((1, 4)).tile((1, -1))
        return x, y.tile((1, 1)).tile((1, 1))

    def summed(x, y):
        total = ntl.zeros((1, 1), dtype=ntl.float32)
        blocks = 0
        for k in range(ntl.cdiv(x.source.shape[1], 4)):
            total += ntl.sum(x[0, k])
            blocks += 1
        length = 100
        if x.source.shape[1] < length:
            length = x.source.shape[1]
        y[0, 0] = total + 1000 * blocks + 10000 * length

    lengths = (3, 0, 9, 8)
    x, y = nested(*lengths), empty(len(lengths), 1)
    ninetoothed.make(arrangement, summed, (Tensor(2, jagged_dim=1), Tensor(2)))(x, y)
    assert y[:, 0].tolist() == [31006, 0, 93045, 82036]


def test_the_length_of_a_sequence_is_no_tiles_size():
    def application(x, y):
        y = x + ntl.zeros((1, x.source.shape[1]), dtype=ntl.float32)  # noqa: F841

    with pytest.raises(ApplicationError, match="the size of a tile is the same in every program"):
        ninetoothed.make(whole_sequences, application, (Tensor(2, jagged_dim=1), Tensor(2)))


def test_no_position_in_a_jagged_source_counts_from_the_end():
    def last(x, y):
        y = x.source[y.offsets(0)[:, None], -1]  # noqa: F841

    def own_last(x, y):
        y = x.source[y.offsets(0)[:, None], x.source.shape[1] - 1]  # noqa: F841

    tensors = (Tensor(2, jagged_dim=1, other=-1), Tensor(2))
    with pytest.raises(ApplicationError, match=r"indexed with -1 .* `x.source.shape\[1\] - 1`"):
        ninetoothed.make(whole_sequences, last, tensors)

    x, y = nested(2, 0, 3), empty(3, 1)
    ninetoothed.make(whole_sequences, own_last, tensors)(x, y)
    assert y[:, 0].tolist() == [2, -1, 3]


@pytest.mark.parametrize(
    "key", [np.s_[:, -1], np.s_[:, :-1], np.s_[:, -2:], np.s_[:, ::-1], np.s_[..., -1]], ids=str
)
@pytest.mark.parametrize("tensor", [Tensor(2, jagged_dim=1), Tensor(2, (4, 5), jagged_dim=1)])
def test_no_subscript_counts_from_the_end_of_sequences(tensor, key):
    with pytest.raises(ArrangementError, match="counts from the end of dimension 1") as error:
        tensor[key]
    assert error.value.location is not None


def test_nor_where_a_size_is_made_of_the_longest_ones():
    x = Tensor(2, jagged_dim=1)
    for arranged in (x.pad(((0, 0), (1, 0))), x.tile((1, 2)), x.tile((1, -1)).dtype):
        with pytest.raises(ArrangementError, match="counts from the end of dimension 1"):
            arranged[:, ::-1]
    assert x.tile((1, 2)).dtype[:, ::-1].shape == (1, 2)


def test_other_subscripts_are_of_the_sequence_at_hand():
    def arrangement(x, y):
        return x[::-1, 1:3].tile((1, 2)), y.tile((1, 2))

    def application(x, y):
        y = x  # noqa: F841

    x, y = nested(2, 0, 5), empty(3, 2)
    ninetoothed.make(arrangement, application, (Tensor(2, jagged_dim=1), Tensor(2)))(x, y)
    assert y.tolist() == [[2, 3], [0, 0], [2, 0]]


def test_a_length_where_there_are_several_sequences_is_an_error():
    def arrangement(x, y):
        return x.tile((2, -1)), y.tile((2, 1))

    def mean(x, y):
        y = ntl.sum(x, axis=1, keep_dims=True) / x.source.shape[1]  # noqa: F841

    def summed(x, y):
        _, _ = x.source.shape
        y = ntl.sum(x, axis=1, keep_dims=True) + x.source.shape[0]  # noqa: F841

    tensors = (Tensor(2, jagged_dim=1), Tensor(2))
    with pytest.raises(ApplicationError, match="of several sequences.*tile dimension 0 by 1") as e:
        ninetoothed.make(arrangement, mean, tensors)
    assert e.value.location is not None

    x, y = nested(2, 0, 3), empty(3, 1)
    ninetoothed.make(arrangement, summed, tensors)(x, y)
    assert y[:, 0].tolist() == [6, 3, 9]


def test_a_tensor_that_is_not_declared_jagged_is_an_error_and_the_other_way_round():
    def application(x, y):
        y = x  # noqa: F841

    plain = ninetoothed.make(jagged_rows, application, (Tensor(2), Tensor(2)))
    with pytest.raises(ArgumentError, match="`x` is a jagged tensor.*jagged_dim"):
        plain(nested(2, 3), empty(2, 3))
    jagged = ninetoothed.make(jagged_rows, application, (Tensor(2, jagged_dim=1), Tensor(2)))
    with pytest.raises(ArgumentError, match="`x` was declared with jagged_dim=1.*not jagged"):
        jagged(empty(2, 3), empty(2, 3))


@pytest.mark.parametrize("dim", [None, 1], ids=["plain", "jagged"])
def test_what_is_not_touched_may_be_a_jagged_tensor(dim):
    """a parameter that the compiled program never touches may be given any argument with a shape"""

    def application(first, x, y, z):
        if first:
            z = x
        else:
            z = y

    def arrangement(first, x, y, z):
        return first, *(t.tile((1, 4)) for t in (x, y, z))

    tensors = (Tensor(0, constexpr=True), Tensor(2, jagged_dim=dim), Tensor(2), Tensor(2))
    kernel = ninetoothed.make(arrangement, application, tensors)
    for _ in range(2):
        z = empty(3, 5)
        kernel(False, nested(2, 0, 4), arange(3, 5), z)
        assert torch.equal(z, arange(3, 5))


def test_elements_of_a_jagged_tensors_source_are_those_of_its_sequences():
    """`x.source[i, j]` … loads or stores arbitrary elements; bounds are those of the sequence"""

    def arrangement(x, y, z):
        return x.tile((1, 4)), y.tile((1, 4)), z.tile((1, 4))

    def application(x, y, z):
        sequence, place = y.offsets(0)[:, None], y.offsets(1)[None, :]
        y = x.source[sequence, 3 - place]  # noqa: F841
        z.source[sequence, 3 - place] = place + 10 * sequence

    x, z = nested(2, 0, 4), nested(2, 0, 4)
    y = empty(3, 4)
    tensors = (Tensor(2, jagged_dim=1, other=-1), Tensor(2), Tensor(2, jagged_dim=1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    kernel(x, y, z)

    assert y.tolist() == [[-1, -1, 2, 1], [-1, -1, -1, -1], [4, 3, 2, 1]]
    assert z.values().tolist() == [3, 2, 23, 22, 21, 20]


def test_arithmetic_on_lengths_of_sequences_cannot_overflow():
    def application(x, y):
        counted = ntl.cast(0, ntl.int64)
        for k in range(0, x.source.shape[1], 2**30):
            counted += k // 2**30
        y = x.source.shape[1] * 4 + counted  # noqa: F841

    def arrangement(x, y):
        return x.tile((1, 4, 1))[:, :1, :].squeeze((1, 2)), y.tile((1,))

    lengths = (2**31 - 1, 3, 2**30)
    offsets = torch.tensor([0, *np.cumsum(lengths)])
    x = torch.nested.nested_tensor_from_jagged(
        torch.ones(1, 1).expand(int(offsets[-1]), 1), offsets
    )
    y = torch.empty(3, dtype=torch.int64)
    ninetoothed.make(arrangement, application, (Tensor(3, jagged_dim=1), Tensor(1)))(x, y)
    assert y.tolist() == [2**33 - 3, 12, 2**32]


@pytest.mark.parametrize("lengths", [(9, 3), (8, 3), (7, 3), (1, 1), (2, 0, 17)], ids=str)
@pytest.mark.parametrize("size", [8, 16])
def test_a_dense_tensor_is_at_least_as_long_as_the_longest_sequence(lengths, size):
    def arranged(*tensors):
        return tuple(tensor.tile((1, size)) for tensor in tensors)

    def add(x, p, y):
        y = x + p  # noqa: F841

    def store(p, y):
        y = p  # noqa: F841

    sequences = Tensor(2, jagged_dim=1)
    added = ninetoothed.make(arranged, add, (sequences, Tensor(2), Tensor(2, jagged_dim=1)))
    stored = ninetoothed.make(arranged, store, (Tensor(2), Tensor(2, jagged_dim=1)))
    x = nested(*lengths)
    p = 100 * arange(len(lengths), max(lengths))
    expected = [p[row, :length] for row, length in enumerate(lengths)]

    y = torch.nested.nested_tensor_from_jagged(torch.full((sum(lengths),), -1.0), x.offsets())
    added(x, p, y)
    assert torch.equal(y.values(), x.values() + torch.cat(expected))
    stored(p, y)
    assert torch.equal(y.values(), torch.cat(expected))

    short = p[:, : max(lengths) - 1].contiguous()
    for call in (lambda: added(x, short, y), lambda: stored(short, y)):
        with pytest.raises((ArgumentError, ArrangementError), match="(not|be) the same"):
            call()
