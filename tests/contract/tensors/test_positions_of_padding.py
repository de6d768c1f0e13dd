"""LANGUAGE.md, "Padding": a position that does not exist names nothing.

Nothing is loaded from it, whatever `pad` adds beside what it is taken from, and nothing is stored of what
is made of it; nor is anything stored to it. Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

#: What an element is before anything is stored.
OLD = -9.0

#: The positions, of four: the first does not exist.
POSITIONS = [2, 1, 3]


def from_a_tile(q, p, y):
    y = p[q] + 1


def from_the_source(q, p, y):
    y = p.source[q] + 1


def gathered(q, p, y):
    y = ntl.gather(p, q, 0) + 1


def changed_at_once(q, p, y):
    y = ntl.atomic_add(p[q], 0.0) + 1


def changed_in_the_source(q, p, y):
    y = ntl.atomic_add(p.source[q], 0.0) + 1


def from_what_was_computed(q, p, y):
    y = p[(q + 4) % 4] + 1  # noqa: F841


LOADED = {
    from_a_tile: [OLD, 4, 3, 5],
    from_the_source: [OLD, 4, 3, 5],
    gathered: [OLD, 4, 3, 5],
    changed_at_once: [OLD, 4, 3, 5],
    changed_in_the_source: [OLD, 4, 3, 5],
    from_what_was_computed: [OLD, 4, 3, 5],
}


@pytest.mark.parametrize("other", [None, 7.0])
@pytest.mark.parametrize("added", [0, 4])
@pytest.mark.parametrize("application", LOADED, ids=lambda application: application.__name__)
def test_nothing_is_loaded_from_it(application, added, other):
    def arrangement(q, p, y):
        p = p.pad(((0, added),)) if added else p
        return q.pad(((1, 0),)).tile((4,)), p.tile((4 + added,)), y.tile((4,))

    q, p, y = torch.tensor(POSITIONS), torch.arange(1.0, 5), torch.full((4,), OLD)
    tensors = (Tensor(1), Tensor(1, other=other), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(q, p, y)
    assert y.tolist() == LOADED[application]


def to_a_tile(q, y):
    y[q] = ntl.full((4,), 5.0, ntl.float32)


def one_number_to_a_tile(q, y):
    y[q] = 5.0


def to_the_source(q, y):
    y.source[q] = ntl.full((4,), 5.0, ntl.float32)


def changed(q, y):
    ntl.atomic_max(y[q], 5.0)


def changed_to_the_source(q, y):
    ntl.atomic_max(y.source[q], ntl.full((4,), 5.0, ntl.float32))


@pytest.mark.parametrize(
    "application", [to_a_tile, one_number_to_a_tile, to_the_source, changed, changed_to_the_source]
)
@pytest.mark.parametrize("added", [0, 1])
def test_nothing_is_stored_to_it(application, added):
    def arrangement(q, y):
        y = y.pad(((0, added),)) if added else y
        return q.pad(((1, 0),)).tile((4,)), y.tile((-1,))

    q, y = torch.tensor(POSITIONS), torch.full((6,), OLD)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(q, y)
    assert y.tolist() == [OLD, 5, 5, 5, OLD, OLD]


# The rest of a row or a column of what was selected.


def rows(q, p, y):
    y = p[q, :] * 2


def rows_of_the_source(q, p, y):
    y = p.source[q[:, None], ntl.arange(0, 4)[None, :]] * 2


def sums_of_rows(q, p, y):
    y = ntl.sum(p[q, :], axis=1)[:, None] + 0 * p[q, :]


def sums_of_columns(q, p, y):
    y = ntl.sum(p[q, :] + 1, axis=0)[None, :] + 0 * p[q, :]  # noqa: F841


@pytest.mark.parametrize("application", [rows, rows_of_the_source, sums_of_rows, sums_of_columns])
@pytest.mark.parametrize("added", [0, 2])
def test_nothing_is_stored_of_its_row(application, added):
    def arrangement(q, p, y):
        p = p.pad(((0, 0), (0, added))) if added else p
        return q.pad(((1, 0),)).tile((4,)), p.tile((-1, 4)), y.tile((4, 4))

    columns = 4 - added
    q, y = torch.tensor(POSITIONS), torch.full((4, 4), OLD)
    p = torch.arange(1.0, 1 + 6 * columns).reshape(6, columns)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(2), Tensor(2)))(q, p, y)
    found = p.cpu()[POSITIONS]
    by_application = {
        rows: 2 * found,
        rows_of_the_source: 2 * found,
        sums_of_rows: found.sum(1, keepdim=True).expand(3, columns),
        sums_of_columns: (found + 1).sum(0, keepdim=True).expand(3, columns),
    }
    assert y[0].tolist() == [OLD] * 4
    assert y[1:, :columns].tolist() == by_application[application].tolist()


# Another tile of a tensor, which has fewer elements than the one that is stored to.


def by_the_next(q, p, y):
    for k in range(y.shape[0]):
        y[k] = p.source[q[k + 1]] + 1


def test_a_tile_of_positions_that_has_fewer_stores_fewer():
    def arrangement(q, p, y):
        return q.tile((4,)).tile((-1,)), p, y.tile((4,)).tile((-1,))

    q, p, y = torch.tensor([2, 1, 3, 0, 5, 4, 1]), torch.arange(1.0, 7), torch.full((7,), OLD)
    ninetoothed.make(arrangement, by_the_next, (Tensor(1), Tensor(1), Tensor(1)))(q, p, y)
    assert y.tolist() == [7, 6, 3, OLD, OLD, OLD, OLD]
