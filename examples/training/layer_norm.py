"""Layer normalisation with weight and bias. Ba, Kiros and Hinton, 2016."""

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import by_rows, matrix, operator, precise, row, vector, weight
from ninetoothed import Tensor, like


def arrangement(input, scale, shift, eps, output):
    rows = row(input)

    return rows, weight(scale, rows), weight(shift, rows), eps, row(output)


def application(input, scale, shift, eps, output):
    x = precise(input)
    centred = x - ntl.sum(x) / input.shape[-1]
    inverse = ntl.rsqrt(ntl.sum(centred * centred) / input.shape[-1] + eps)

    output = centred * inverse * precise(scale) + precise(shift)


normalized = operator(
    "layer_norm",
    arrangement,
    application,
    (matrix(), vector(), vector(), Tensor(0, dtype=ninetoothed.float32), matrix()),
    {"output": like("input")},
    backward="derive",
)


def layer_norm(input, scale, shift, eps=1e-5):
    """Rows of a tensor (..., n) of mean 0 and variance 1, times a vector (n,) plus another."""
    return by_rows(normalized, input, scale, shift, eps)
