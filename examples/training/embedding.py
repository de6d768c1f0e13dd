"""Rows of a table by their indices; in backward, rows that were taken twice get two gradients."""

import ninetoothed.language as ntl
from examples.training.common import matrix, operator, row, statistic, vector


def forward_arrangement(index, table, output):
    rows = row(output)

    return statistic(index), table.tile((1, -1))[:1].expand((rows.shape[0], -1)), rows


def forward(index, table, output):
    output = table.source[index, output.offsets(-1)]


def backward_arrangement(gradient, index, table_gradient):
    rows = row(gradient)

    return rows, statistic(index), table_gradient.tile((1, -1))[:1].expand((rows.shape[0], -1))


def backward(gradient, index, table_gradient):
    column = gradient.offsets(-1)[None, :]
    row_start = table_gradient.data_ptr() + index * table_gradient.stride(0)

    ntl.atomic_add(
        row_start + column * table_gradient.stride(1),
        gradient,
        mask=column < gradient.source.shape[-1],
    )


scatter = operator(
    "embedding_backward", backward_arrangement, backward, (matrix(), vector(), matrix()), {}
)


def gradients(gradient, index, table):
    table_gradient = table.new_zeros(table.shape)
    scatter(gradient, index, table_gradient)

    return None, table_gradient


index, table = vector(), matrix()

gather = operator(
    "embedding",
    forward_arrangement,
    forward,
    (index, table, matrix()),
    {"output": ((index.shape[0], table.shape[1]), "table")},
    backward=gradients,
    saved=("index", "table"),
)


def embedding(index, table):
    """The rows (..., n) of a table (m, n) at indices (...)."""
    if index.ndim == 1:
        return gather(index, table)

    return gather(index.flatten(), table).view(*index.shape, table.shape[1])
