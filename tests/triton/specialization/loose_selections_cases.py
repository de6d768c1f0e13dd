"""Selections that no number of a call keeps in their level: of other sizes of its class, of another loop."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.triton.specialization.selections_cases import DEVICE, within


def in_fours(tensor):
    return tensor.tile((4,)).tile((-1,))


def case_a_count_beyond_some_sizes_of_a_class():
    """Of 20, 24 and 28 elements the greatest has seven tiles."""

    def application(input, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(6):
            total += input[k]
        output = total  # noqa: F841

    kernel = ninetoothed.make(
        lambda input, output: (in_fours(input), output.tile((4,))),
        application,
        (Tensor(1), Tensor(1)),
    )
    for size, expected in ((20, 5), (24, 6), (28, 6)):
        output = torch.full((4,), torch.nan, device=DEVICE)
        kernel(within(size)[0], output)
        assert bool((output == expected).all()), (size, output)


def case_a_count_that_falls_as_a_size_grows():
    def application(input, other, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(13 - other.source.shape[0]):
            total += input[k]
        output = total + ntl.sum(other, 0)  # noqa: F841

    kernel = ninetoothed.make(
        lambda input, other, output: (in_fours(input), other.tile((8,)), output.tile((4,))),
        application,
        (Tensor(shape=(24,)), Tensor(1), Tensor(1)),
    )
    for size in (7, 6, 5):
        output = torch.full((4,), torch.nan, device=DEVICE)
        kernel(within(24)[0], within(size)[0], output)
        assert bool((output == 6 + size).all()), (size, output)


def case_positions_of_tiles_beyond_their_level_are_compared():
    def arrangement(input, other, output):
        return in_fours(input), in_fours(other), output.tile((4,))

    def over_the_others(input, other, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(other.shape[0]):
            total += ntl.where(input[k].offsets(0) < 16, other[k], 0.0)
        output = total  # noqa: F841

    def over_a_number(input, other, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(8):
            total += ntl.where(input[k].offsets(0) < 16, other[k], 0.0)
        output = total  # noqa: F841

    def ahead(input, other, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(input.shape[0]):
            total += ntl.where(input[k + 4].offsets(0) < 16, 1.0, other[k])
        output = total + 1  # noqa: F841

    tensors = (Tensor(1), Tensor(1), Tensor(1))
    for application, expected in ((over_the_others, 4), (over_a_number, 4), (ahead, 5)):
        kernel = ninetoothed.make(arrangement, application, tensors)
        output = torch.full((4,), torch.nan, device=DEVICE)
        kernel(within(16)[0], within(32)[0], output)
        assert bool((output == expected).all()), (application.__name__, output)


def case_two_selections_along_one_dimension():
    """A round is whole where the tile around it is one of the tensor's."""

    def arrangement(input, other, output):
        arranged = input.tile((12,)).tile((-1,))
        arranged.dtype.dtype = arranged.dtype.dtype.tile((4,))
        return arranged, in_fours(other), output.tile((4,))

    def application(input, other, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for j in range(other.shape[0]):
            for k in range(3):
                total += input[j][k]
        output = total  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    for size, expected in ((24, [6, 6, 6, 6]), (22, [6, 6, 5, 5])):
        output = torch.full((4,), torch.nan, device=DEVICE)
        kernel(within(size)[0], within(16)[0], output)
        assert output.tolist() == expected, (size, output)


def case_a_place_whose_elements_no_32_bits_reach():
    """Times the tile's size it is a small number again, or one far before the tensor."""

    def application(input, places, output):
        output = input[ntl.maximum(ntl.sum(places), 0)] + 0 * output.offsets(0)

    def arrangement(input, places, output):
        outer = output.tile((4,))
        blocks = input.tile((4,)).tile((-1,)).expand(outer.shape)
        return blocks, places.tile((1,)), outer

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    _take_far_places(kernel)


def case_the_same_beside_a_jagged_tensor():
    """What is used of which is where the first sequence begins: offsets need no 64 bits for it."""

    def application(input, places, output, jagged):
        output = input[ntl.maximum(ntl.sum(places), 0)] * jagged.source[0, 0]

    def arrangement(input, places, output, jagged):
        outer = output.tile((4,))
        blocks = input.tile((4,)).tile((-1,)).expand(outer.shape)
        return blocks, places.tile((1,)), outer, jagged

    tensors = (Tensor(1), Tensor(1), Tensor(1), Tensor(2, jagged_dim=1))
    offsets = torch.tensor([0, 3, 4], device=DEVICE)
    jagged = torch.nested.nested_tensor_from_jagged(within(4)[0], offsets)
    _take_far_places(ninetoothed.make(arrangement, application, tensors), jagged)


def _take_far_places(kernel, *others):
    wanted = torch.tensor([0, 2, 5, 2**29, 2**30 + 1, -3], dtype=torch.int32, device=DEVICE)
    output = torch.full((24,), torch.nan, device=DEVICE)
    kernel(within(16)[0], wanted, output, *others)
    expected = torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0, 1.0], device=DEVICE)
    assert torch.equal(output, expected.repeat_interleave(4)), output


def case_one_element_of_a_tile_beyond_its_level():
    """A tile's own condition keeps all of its elements in the tensor, that of its first says nothing."""

    def arrangement(input, output):
        return input.tile((2,)).tile((-1,)), output.tile((4,))

    def first_of_each(input, output):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(input.shape[0]):
            total += input[k + 2][0]
        output = total  # noqa: F841

    def set_first_of_each(input, output):
        for k in range(input.shape[0]):
            input[k + 2][0] = 2.0
        output = ntl.full((4,), 1.0, ntl.float32)  # noqa: F841

    def add_to_first_of_each(input, output):
        for k in range(input.shape[0]):
            ntl.atomic_add(input[k + 2][0], 1.0)
        output = ntl.full((4,), 1.0, ntl.float32)  # noqa: F841

    for size, expected in ((13, 5), (12, 4), (1, 0)):
        for application in (first_of_each, set_first_of_each, add_to_first_of_each):
            kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
            input, whole = within(size)
            output = torch.full((4,), torch.nan, device=DEVICE)
            kernel(input, output)
            is_read = application is first_of_each
            wanted = expected if is_read else 1
            assert bool((output == wanted).all()), (size, application.__name__, output)
            assert int(whole.isnan().sum()) == whole.numel() - size, application.__name__
            assert int(input.sum()) == size + (0 if is_read else expected), input
