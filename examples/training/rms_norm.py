"""Root mean square normalisation with a weight. Zhang and Sennrich, 2019."""

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import by_rows, matrix, operator, precise, row, vector, weight
from ninetoothed import Tensor, like


def arrangement(input, scale, eps, output):
    rows = row(input)

    return rows, weight(scale, rows), eps, row(output)


def application(input, scale, eps, output):
    x = precise(input)

    output = x * ntl.rsqrt(ntl.sum(x * x) / input.shape[-1] + eps) * precise(scale)


normalized = operator(
    "rms_norm",
    arrangement,
    application,
    (matrix(), vector(), Tensor(0, dtype=ninetoothed.float32), matrix()),
    {"output": like("input")},
    backward="derive",
)


def rms_norm(input, scale, eps=1e-6):
    """Rows of a tensor (..., n) over their root mean square, times a vector (n,)."""
    return by_rows(normalized, input, scale, eps)
