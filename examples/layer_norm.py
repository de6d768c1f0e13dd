"""Layer normalisation along the last dimension, with a weight and a bias."""

import ninetoothed
import ninetoothed.language as ntl
from examples.fused_rms_norm import arrange_rows, arrange_vector, matrix, vector
from ninetoothed import Tensor


def arrangement(input, weight, bias, eps, output):
    return (
        arrange_rows(input),
        arrange_vector(weight, input),
        arrange_vector(bias, input),
        eps,
        arrange_rows(output),
    )


def application(input, weight, bias, eps, output):
    row = ntl.cast(input, ntl.float32)
    centered = row - ntl.sum(row) / input.shape[-1]
    variance = ntl.sum(centered * centered) / input.shape[-1]
    output = centered * ntl.rsqrt(variance + eps) * weight + bias


tensors = (matrix(), vector(), vector(), Tensor(0), matrix())

kernel = ninetoothed.make(arrangement, application, tensors)


def layer_norm(input, weight, bias, eps=1e-5):
    """Layer normalisation of a tensor (..., columns); weight and bias are (columns,)."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(end_dim=-2), weight, bias, eps, output.flatten(end_dim=-2))

    return output
