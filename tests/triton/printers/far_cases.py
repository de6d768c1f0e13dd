"""Elements more than 2**31 apart in one tile, or in tiles that a number selects: of a few rows, far apart."""

from __future__ import annotations

import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

#: The last of four rows begins at three times that.
STEP = 2**30


def rows(count):
    """Rows of 1, 2, …, of eight elements each; of what is between them no page is ever touched."""
    found = torch.empty(count * STEP, dtype=torch.int8).as_strided((count, 8), (STEP, 1))
    for row in range(count):
        found[row] = row + 1
    return found


def check(arrangement, application, declared, expected):
    kernel = ninetoothed.make(arrangement, application, (Tensor(shape=declared), Tensor(1)))
    output = torch.zeros(8, dtype=torch.int32)
    kernel(rows(4), output)
    assert bool((output == expected).all()), output


def case_rows_of_one_tile():
    def application(input, output):
        output = ntl.sum(input.to(ntl.int32), 0)  # noqa: F841

    for declared in ((4, 8), (None, None)):
        check(
            lambda input, output: (input.tile((4, 8)).squeeze(0), output.tile((8,))),
            application,
            declared,
            10,
        )


def case_a_row_that_a_number_selects():
    def application(input, output):
        output = input[3].to(ntl.int32)  # noqa: F841

    def arrangement(input, output):
        arranged = input.tile((1, 8)).tile((-1, 1)).squeeze(0)
        arranged.dtype = arranged.dtype.squeeze(1)
        arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)
        return arranged, output.tile((8,))

    for declared in ((4, 8), (None, None)):
        check(arrangement, application, declared, 4)


def case_an_element_of_a_tile():
    def application(input, output):
        output = input[3].to(ntl.int32) + ntl.sum(input[2:].to(ntl.int32), 0)  # noqa: F841

    check(
        lambda input, output: (input.tile((4, 8)).squeeze(0), output.tile((8,))),
        application,
        (4, 8),
        11,
    )
