"""Layer normalisation with weight and bias. Ba, Kiros and Hinton, 2016."""

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


def forward_arrangement(input, scale, shift, eps, output, mean, inverse):
    rows = row(input)
    weights = weight(scale, rows), weight(shift, rows)

    return rows, *weights, eps, row(output), statistic(mean), statistic(inverse)


def forward(input, scale, shift, eps, output, mean, inverse):
    x = precise(input)
    m = ntl.sum(x) / input.shape[-1]
    centred = x - m
    r = ntl.rsqrt(ntl.sum(centred * centred) / input.shape[-1] + eps)

    mean = m
    inverse = r
    output = centred * r * precise(scale) + precise(shift)


def backward_arrangement(gradient, input, scale, mean, inverse, input_gradient):
    rows = row(input)
    statistics = statistic(mean), statistic(inverse)

    return row(gradient), rows, weight(scale, rows), *statistics, row(input_gradient)


def backward(gradient, input, scale, mean, inverse, input_gradient):
    g = precise(gradient) * precise(scale)
    normal = (precise(input) - mean) * inverse
    along = normal * (ntl.sum(g * normal) / input.shape[-1])

    input_gradient = (g - ntl.sum(g) / input.shape[-1] - along) * inverse


def scale_gradients(gradient, input, mean, inverse, sums):
    total = ntl.zeros((gradient.dtype.shape[1],), dtype=ntl.float32)

    for i in range(gradient.shape[0]):
        normal = (precise(input[i]) - mean[i][:, None]) * inverse[i][:, None]
        total += ntl.cast(ntl.sum(precise(gradient[i]) * normal, axis=0), ntl.float32)

    sums = total[None, :]


def shift_gradients(gradient, sums):
    total = ntl.zeros((gradient.dtype.shape[1],), dtype=ntl.float32)

    for i in range(gradient.shape[0]):
        total += ntl.cast(ntl.sum(precise(gradient[i]), axis=0), ntl.float32)

    sums = total[None, :]


def gradients(output_gradient, _mean, _inverse, input, scale, mean, inverse):
    return (
        backward_operator(output_gradient, input, scale, mean, inverse),
        scale_sums(output_gradient, input, mean, inverse).to(scale.dtype),
        shift_sums(output_gradient).to(scale.dtype),
    )


backward_operator = operator(
    "layer_norm_backward",
    backward_arrangement,
    backward,
    (matrix(), matrix(), vector(), vector(), vector(), matrix()),
    {"input_gradient": like("input")},
)

scale_sums = sum_over_rows("layer_norm_scale", scale_gradients, matrices=2, statistics=2)
shift_sums = sum_over_rows("layer_norm_shift", shift_gradients, matrices=1)

input = matrix()
statistics = (input.shape[0],), ninetoothed.float32

forward_operator = operator(
    "layer_norm",
    forward_arrangement,
    forward,
    (input, vector(), vector(), Tensor(0, dtype=ninetoothed.float32), matrix(), vector(), vector()),
    {"output": like("input"), "mean": statistics, "inverse": statistics},
    backward=gradients,
    saved=("input", "scale", "mean", "inverse"),
)


def layer_norm(input, scale, shift, eps=1e-5):
    """Rows of a tensor (..., n) of mean 0 and variance 1, times a vector (n,) plus another."""
    output, *_ = forward_operator(input.flatten(end_dim=-2), scale, shift, eps)

    return output.view(input.shape)
