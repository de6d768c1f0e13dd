"""LANGUAGE.md, "Application": atomic operations on accesses are masked as a store."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def made(application, *ranks, block=4):
    """A kernel of vectors in blocks, and of tensors of which only the source is used."""

    def arrangement(*tensors):
        return tuple(t.tile((block,)) if rank == 1 else t for t, rank in zip(tensors, ranks))

    return ninetoothed.make(arrangement, application, tuple(Tensor(abs(rank)) for rank in ranks))


def test_a_histogram():
    def application(x, counts):
        ntl.atomic_add(counts.source[x], 1)

    def arrangement(x, counts):
        return x.tile((8,)), counts.tile((-1,)).expand((x.tile((8,)).shape[0],))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    x = torch.randint(0, 7, (29,), dtype=torch.int32)
    counts = torch.zeros(7, dtype=torch.int32)
    kernel(x, counts)
    assert counts.tolist() == torch.bincount(x, minlength=7).tolist()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (ntl.atomic_add, lambda y, x: y + x),
        (ntl.atomic_max, torch.maximum),
        (ntl.atomic_min, torch.minimum),
        (ntl.atomic_and, torch.bitwise_and),
        (ntl.atomic_or, torch.bitwise_or),
        (ntl.atomic_xor, torch.bitwise_xor),
        (ntl.atomic_xchg, lambda y, x: x),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 8, 11])
def test_on_a_tile_it_gives_what_was_there(operation, expected, size):
    def application(x, y, old):
        old = operation(y, x)  # noqa: F841

    x, y = (torch.randint(-50, 50, (size,), dtype=torch.int32) for _ in range(2))
    old, before = torch.full((size,), 999, dtype=torch.int32), y.clone()
    made(application, 1, 1, 1, block=3)(x, y, old)
    assert y.tolist() == expected(before, x).tolist()
    assert old.tolist() == before.tolist()


def test_an_exchange_where_the_element_is_as_expected():
    def application(x, y, old):
        old = ntl.atomic_cas(y, x, 100)  # noqa: F841

    x = torch.tensor([0, 5, 2, 7, 4], dtype=torch.int32)
    y, old = torch.arange(5, dtype=torch.int32), torch.full((5,), -1, dtype=torch.int32)
    made(application, 1, 1, 1, block=3)(x, y, old)
    assert y.tolist() == [100, 1, 100, 3, 100]
    assert old.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int16, torch.float32, torch.bool])
def test_an_exchange_casts_to_the_elements_type(dtype, size):
    def application(x, z, y):
        ntl.atomic_cas(y, x, z)

    z = torch.tensor([1, 2, 1, 0, 1])[:size].to(dtype)
    x, y = torch.tensor([0, 5, 2, 7, 4], dtype=torch.int16)[:size], torch.arange(size) * 1.0
    made(application, 1, 1, 1, block=4)(x, z, y)
    expected = torch.where(x == torch.arange(size), z.to(torch.float32), torch.arange(size) * 1.0)
    assert torch.equal(y, expected)


def exchanged_for_a_number(x, y):
    ntl.atomic_cas(y, x, 7)


def exchanged_for_numbers(x, y):
    ntl.atomic_cas(y, 5, x.shape[0])


@pytest.mark.parametrize("size", [3, 4])
def test_an_exchange_takes_numbers(size):
    x, y = torch.tensor([0, 3, 5, 5])[:size], torch.tensor([0, 1, 5, 2], dtype=torch.int32)[:size]
    made(exchanged_for_a_number, 1, 1)(x, y)
    assert y.tolist() == [7, 1, 7, 2][:size]
    y = torch.tensor([0, 1, 5, 2], dtype=torch.int32)[:size]
    made(exchanged_for_numbers, 1, 1)(x, y)
    assert y.tolist() == [0, 1, 4, 2][:size]


def test_what_is_beyond_is_left_alone():
    def application(x, y):
        ntl.atomic_add(y, x + 1.0)
        ntl.atomic_add(y[ntl.arange(0, 4) + 1], 10.0)

    y = torch.zeros(8)
    made(application, 1, 1, block=3)(torch.arange(5.0), y[:5])
    assert y.tolist() == [1.0, 12.0, 13.0, 4.0, 15.0, 0.0, 0.0, 0.0]


def test_padding_of_the_value_takes_no_part():
    def application(x, y):
        ntl.atomic_min(y[ntl.arange(0, 4)], x)

    def arrangement(x, y):
        return x.tile((-1,)), y.tile((-1,))

    y = torch.full((4,), 9, dtype=torch.int32)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    kernel(torch.tensor([5, 6, 7], dtype=torch.int32), y)
    assert y.tolist() == [5, 6, 7, 9]


def test_a_mask_of_ones_own_is_joined():
    def application(x, y):
        ntl.atomic_add(y, x, mask=x > 1)

    y = torch.zeros(5)
    made(application, 1, 1)(torch.arange(5.0), y)
    assert y.tolist() == [0.0, 0.0, 2.0, 3.0, 4.0]


def test_elements_of_the_source_outside_of_it_are_left_out():
    def application(x, y):
        ntl.atomic_add(y.source[x], 1.0)

    storage = torch.zeros(6)
    kernel = made(application, 1, 1, block=8)
    kernel(torch.tensor([-1, 0, 2, 2, 4, 5, 100], dtype=torch.int32)[:7], storage[:4])
    assert storage.tolist() == [1.0, 0.0, 2.0, 0.0, 0.0, 0.0]


def test_in_a_loop_over_tiles_and_seen_by_a_load():
    def application(x, y):
        for k in range(x.shape[1]):
            ntl.atomic_add(y[k], ntl.sum(x[0, k], 0))
            y[k][0] = y[k][0] * 2.0

    x, y = torch.arange(20.0).reshape(2, 10), torch.zeros(10)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((2, 4)).tile((1, -1)), y.tile((4,)).tile((-1,)).unsqueeze(0)),
        application,
        (Tensor(2), Tensor(1)),
    )
    kernel(x, y)
    expected = x.sum(0)
    expected[::4] *= 2
    torch.testing.assert_close(y, expected)


def test_what_a_kernel_changes_atomically_is_stored_to():
    def application(x, y):
        ntl.atomic_add(y, x)

    from ninetoothed.program.written import written

    assert written(made(application, 1, 1).program) == {"y"}


def whole_slice(x, y):
    ntl.atomic_max(y[:], x)


def whole_slice_of_a_slice(x, y):
    ntl.atomic_max(y[:][:], x)


def ellipsis(x, y):
    ntl.atomic_max(y[...], x[...])


def by_name(x, y):
    ntl.atomic_max(pointer=y[:], val=x)


@pytest.mark.parametrize("application", [whole_slice, whole_slice_of_a_slice, ellipsis, by_name])
def test_all_elements_of_a_tile_are_its_place(application):
    y = torch.tensor([5.0, 0.0, 2.0, -1.0, 9.0])
    made(application, 1, 1)(torch.arange(5.0), y)
    assert y.tolist() == [5.0, 1.0, 2.0, 3.0, 9.0]


def in_each_tile(x, y):
    for k in range(y.shape[0]):
        ntl.atomic_add(y[k][:], x[k])


def test_all_elements_of_a_selected_tile_are_its_place():
    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y.tile((4,)).tile((-1,))

    y = torch.ones(5)
    ninetoothed.make(arrangement, in_each_tile, (Tensor(1), Tensor(1)))(torch.arange(5.0), y)
    assert y.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def a_sum(x, y):
    ntl.atomic_add(y + 1.0, x)


def a_new_axis(x, y):
    ntl.atomic_add(y[:, None], x[:, None])


def a_number(x, y):
    ntl.atomic_add(3, x)


def no_place(x, y):
    ntl.atomic_add()


def too_many_dimensions(x, y):
    ntl.atomic_add(y[:, :], x)


def no_value(x, y):
    ntl.atomic_add(y[:])


def nothing_to_compare_with(x, y):
    ntl.atomic_cas(y, x)


def two_places(x, y):
    ntl.atomic_add(y, pointer=y, val=x)


@pytest.mark.parametrize(
    ("application", "words"),
    [
        (a_sum, "changes a tensor"),
        (a_new_axis, "changes a tensor"),
        (a_number, "changes a tensor"),
        (no_place, "changes a tensor"),
        (too_many_dimensions, "'y' is indexed with 2 indices"),
        (no_value, "needs `pointer`, `val`, but got no `val`"),
        (nothing_to_compare_with, "needs `pointer`, `cmp`, `val`, but got no `val`"),
        (two_places, "got `val` twice"),
    ],
)
def test_what_is_no_place_or_no_value_is_refused_when_the_kernel_is_made(application, words):
    with pytest.raises(ApplicationError, match=words) as caught:
        made(application, 1, 1)
    assert caught.value.location.file == __file__


def a_variable(x, y):
    value = y[1:]
    ntl.atomic_add(value, x[1:])


def a_mask_of_numbers(x, y):
    ntl.atomic_add(y, x, y)


@pytest.mark.parametrize(
    ("application", "words"),
    [(a_variable, "this is a value"), (a_mask_of_numbers, "made of truth values")],
)
def test_what_types_tell_is_refused_at_the_call(application, words):
    kernel = made(application, 1, 1)
    with pytest.raises(ApplicationError, match=words) as caught:
        kernel(torch.ones(3), torch.ones(3))
    assert caught.value.location.file == __file__


def pointers_in_a_variable(x, y):
    place = y.data_ptr()
    place += ntl.arange(0, 4)
    ntl.atomic_add(place, 1.0)


def test_pointers_in_a_variable_are_a_place():
    y = torch.zeros(6)
    made(pointers_in_a_variable, 1, 2)(torch.ones(3), y.view(1, 6))
    assert y.tolist() == [1.0] * 4 + [0.0] * 2


def all_of_a_value(x, y):
    value = x + 1
    y = value[...]  # noqa: F841


def test_an_ellipsis_stands_for_axes_of_a_parameter_alone():
    with pytest.raises(ApplicationError, match="write `:` for each axis"):
        made(all_of_a_value, 1, 1)


def test_several_tiles_are_no_place():
    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y.tile((4,)).tile((-1,))

    def application(x, y):
        ntl.atomic_add(y, x[0])

    with pytest.raises(ApplicationError, match="one tile is needed"):
        ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))


def added(x, y):
    ntl.atomic_add(x, y)


def added_where_large(x, y):
    ntl.atomic_add(x, y, mask=y > 2)


@pytest.mark.parametrize("rows", [19, 20])
@pytest.mark.parametrize(("application", "least"), [(added, 0), (added_where_large, 3)])
def test_a_row_is_added_to_each_row_of_a_tile(application, least, rows):
    def arrangement(x, y):
        x = x.tile((4, -1))
        return x, y.tile((-1,)).expand((x.shape[0],))

    x, y = torch.ones(rows, 5), torch.arange(5.0)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))(x, y)
    assert torch.equal(x, (1 + y * (y >= least)).expand(rows, 5))


def a_row_at_chosen_columns(x, y, n):
    places = ntl.arange(0, 4)
    ntl.atomic_add(y[:, places + n], x[places])


def a_number_at_chosen_columns(x, y, n):
    ntl.atomic_add(y[::-1, ntl.arange(0, 4) + n], 10)


def chosen_columns_of_themselves(x, y, n):
    places = ntl.arange(0, 4) + n
    ntl.atomic_add(y[::-1, places], y[:, places])


def a_row_at_chosen_places(x, y, n):
    places = ntl.arange(0, 4)
    ntl.atomic_add(y[places[:, None], places + n], x[places], mask=x[places] > 1)


def a_row_at_places_of_the_source(x, y, n):
    places = ntl.arange(0, 4)
    ntl.atomic_add(y.source[places[:, None], places + n], x[places], mask=x[places] > 1)


@pytest.mark.parametrize(
    ("application", "row"),
    [
        (a_row_at_chosen_columns, [0, 0, 1, 2]),
        (a_number_at_chosen_columns, [0, 10, 10, 10]),
        (chosen_columns_of_themselves, [0, 1, 1, 1]),
        (a_row_at_chosen_places, [0, 0, 0, 2]),
        (a_row_at_places_of_the_source, [0, 0, 0, 2]),
    ],
)
def test_what_is_along_some_dimensions_of_the_elements_is_so_in_each_of_the_others(
    application, row
):
    y = torch.ones(3, 4, dtype=torch.int32)
    kernel = ninetoothed.make(
        lambda x, y, n: (x.tile((4,)), y.tile((3, 4)).squeeze(0), n),
        application,
        (Tensor(1), Tensor(2), Tensor(0)),
    )
    kernel(torch.arange(4, dtype=torch.int32), y, 1)
    assert y.tolist() == [[1 + added for added in row]] * 3


def masked_by_the_user(x, y, old):
    old = ntl.atomic_add(y, x, mask=x > 1)  # noqa: F841


def least_where_values_exist(x, y, old):
    old = ntl.min(ntl.atomic_add(y.source[ntl.arange(0, 8) % 5], x)) + 0 * x  # noqa: F841


def least_of_places_outside(x, y, old):
    old = ntl.min(ntl.atomic_add(y.source[x.offsets(0) + 2], 1)) + 0 * x  # noqa: F841


def exchanged_where_a_place_is_outside(x, y, old):
    old = ntl.atomic_cas(y.source[x.offsets(0) + 2], 13, 1)  # noqa: F841


def of_positions_beyond_the_tile(x, y, old):
    old = ntl.atomic_add(y[ntl.arange(0, 8) + 2], 1)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "without", "with_other"),
    [
        (masked_by_the_user, [0, 0, 13, 14, 15], [5, 5, 13, 14, 15]),
        (least_where_values_exist, [11] * 5, [11] * 5),
        (least_of_places_outside, [0] * 5, [5] * 5),
        (exchanged_where_a_place_is_outside, [13, 14, 15, 0, 0], [13, 14, 15, 5, 5]),
        (of_positions_beyond_the_tile, [13, 14, 15, -7, -7], [13, 14, 15, 5, 5]),
    ],
)
@pytest.mark.parametrize("other", [None, 5])
def test_what_takes_no_part_is_read_as_beyond_the_tensor(application, without, with_other, other):
    x, y = torch.arange(5, dtype=torch.int32), torch.arange(11, 16, dtype=torch.int32)
    old = torch.full((5,), -7, dtype=torch.int32)
    ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((-1,)) for tensor in tensors),
        application,
        (Tensor(1), Tensor(1, other=other), Tensor(1)),
    )(x, y, old)
    assert old.tolist() == (without if other is None else with_other)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_half_of_a_tile_is_what_it_holds(size):
    """Its elements do not lie side by side, which Triton's own interpreter takes them to do."""

    def application(x):
        _, half = ntl.split(ntl.join(x, ntl.full((3,), 3.0, ntl.float32)))
        ntl.atomic_max(x, half)
        ntl.atomic_add(x, half)

    x = torch.arange(1.0, size + 1)
    ninetoothed.make(lambda x: (x.tile((3,)),), application, (Tensor(1),))(x)
    assert x.tolist() == [max(value, 3) + 3 for value in range(1, size + 1)]
