"""Rows of a table by their numbers: `table[index]`, where the index is a loaded value."""

import ninetoothed
from ninetoothed import Tensor


def arrangement(input, table, output):
    output_arranged = output.tile((1, -1))

    # Every program has all rows of the table, and loads the one that it chooses.
    table_arranged = table.tile((1, -1)).tile((-1, -1)).expand((output_arranged.shape[0], -1))
    table_arranged.dtype = table_arranged.dtype.squeeze(1)

    return input.tile((1,)), table_arranged, output_arranged


def application(input, table, output):
    output = table[input]


tensors = (Tensor(1), Tensor(2), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="embedding")


def embedding(input, table):
    """The rows of (rows, columns) with the numbers (...), as a new tensor (..., columns)."""
    output = table.new_empty((input.numel(), table.shape[1]))

    kernel(input.flatten(), table, output)

    return output.reshape(*input.shape, table.shape[1])
