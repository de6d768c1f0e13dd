"""Root mean square normalisation with a weight. Zhang and Sennrich, 2019."""

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import (
    matrix,
    operator,
    precise,
    row,
    statistic,
    sum_over_rows,
    vector,
    weight,
)
from ninetoothed import Tensor, like


def forward_arrangement(input, scale, eps, output, inverse):
    rows = row(input)

    return rows, weight(scale, rows), eps, row(output), statistic(inverse)


def forward(input, scale, eps, output, inverse):
    x = precise(input)
    r = ntl.rsqrt(ntl.sum(x * x) / input.shape[-1] + eps)

    inverse = r
    output = x * r * precise(scale)


def backward_arrangement(gradient, input, scale, inverse, input_gradient):
    rows = row(input)

    return row(gradient), rows, weight(scale, rows), statistic(inverse), row(input_gradient)


def backward(gradient, input, scale, inverse, input_gradient):
    g = precise(gradient) * precise(scale)
    normal = precise(input) * inverse

    input_gradient = (g - normal * (ntl.sum(g * normal) / input.shape[-1])) * inverse


def scale_gradients(gradient, input, inverse, sums):
    total = ntl.zeros((gradient.dtype.shape[1],), dtype=ntl.float32)

    for i in range(gradient.shape[0]):
        normal = precise(input[i]) * inverse[i][:, None]
        total += ntl.cast(ntl.sum(precise(gradient[i]) * normal, axis=0), ntl.float32)

    sums = total[None, :]


def gradients(output_gradient, _, input, scale, inverse):
    gradient = backward_operator(output_gradient, input, scale, inverse)

    return gradient, scale_sums(output_gradient, input, inverse).to(scale.dtype)


input = matrix()

backward_operator = operator(
    "rms_norm_backward",
    backward_arrangement,
    backward,
    (matrix(), matrix(), vector(), Tensor(1), matrix()),
    {"input_gradient": like("input")},
)

scale_sums = sum_over_rows("rms_norm", scale_gradients, matrices=2, statistics=1)

forward_operator = operator(
    "rms_norm",
    forward_arrangement,
    forward,
    (input, vector(), Tensor(0, dtype=ninetoothed.float32), matrix(), Tensor(1)),
    {"output": like("input"), "inverse": ((input.shape[0],), ninetoothed.float32)},
    backward=gradients,
    saved=("input", "scale", "inverse"),
)


def rms_norm(input, scale, eps=1e-6):
    """Rows of a tensor (..., n) over their root mean square, times a vector (n,)."""
    output, _ = forward_operator(input.flatten(end_dim=-2), scale, eps)

    return output.view(input.shape)
