"""Views of tiles: each element of one is the tile's element at the position that it stands for."""

import itertools

import pytest

from ninetoothed import Symbol, Tensor
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.access import access_of
from ninetoothed.tensors.views import Chosen, Fixed, Run, View, run_of, viewed


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize(
    "bounds",
    [
        *map(slice, [None, 1, 2, -1, -3], [None, 5, -1, 100, 3], [None, 1, 2, 3, 2]),
        *itertools.starmap(slice, itertools.product([None, 1, -2], [None, -1, 4], [None, 2])),
        slice(None, None, -1),
        slice(None, None, -2),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_slice_is_pythons(size, bounds, is_known):
    given = size if is_known else Symbol("size", lower_bound=1)
    expected = list(range(size))[bounds]
    try:
        run = run_of(bounds, given)
    except ValueError:
        assert not expected
        return
    values = {} if is_known else {given: size}
    start, count = (as_symbol(each).evaluate(values) for each in (run.start, run.count))
    # What begins before the dimension, or after it, is beyond the tile in a kernel.
    found = [start + run.step * lane for lane in range(count)]
    assert [place for place in found if 0 <= place < size] == expected


def _elements(access, environment, lanes):
    """The offset of each element by its lanes, None where it does not exist."""
    found = {}
    for chosen in itertools.product(*map(range, lanes)):
        values = {**environment, **dict(zip(access.coordinates, chosen))}
        exists = all(condition.evaluate(values) for condition in access.conditions)
        found[chosen] = int(access.offset.evaluate(values)) if exists else None
    return found


def test_elements_of_a_view_are_the_tiles():
    tensor = Tensor(2).tile((3, 4))
    source = tensor.source
    access = access_of(tensor)
    environment = dict(zip(map(as_symbol, (*source.shape, *source.strides)), (5, 6, 6, 1)))
    environment |= dict.fromkeys(access.programs, 1)
    whole = _elements(access, environment, (4, 4))

    view = View((Chosen(), Run(1, 2, 2)))
    part = viewed(access, (3, 4), view, source)
    (position,) = part.selections
    for row in range(5):
        found = _elements(part, {**environment, position: row}, (2,))
        for (lane,), offset in found.items():
            assert offset == (whole[row, 1 + 2 * lane] if row < 3 else None)

    corner = viewed(access, (3, 4), View((Fixed(1), Fixed(0))), source)
    assert _elements(corner, environment, ()) == {(): whole[1, 0]}


def test_conditions_of_the_tile_keep_their_places():
    access = access_of(Tensor(1).tile((5,)))
    view = viewed(access, (5,), View((Run(1, 1, 3),)), Tensor(1))

    assert len(view.conditions) == len(access.conditions) + 1
