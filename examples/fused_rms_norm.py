"""RMS normalisation with a weight, and the same with the residual addition before it fused in."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrange_rows(matrix):
    """A matrix (rows, columns) as one row a program."""
    return matrix.tile((1, -1))


def arrange_vector(vector, matrix):
    """A vector (columns,) as the same row for each row of the matrix."""
    return vector.unsqueeze(0).expand((matrix.shape[0], -1)).tile((1, -1))


def normalize(row, size, eps):
    return row * ntl.rsqrt(ntl.sum(row * row) / size + eps)


def arrangement(input, weight, eps, output):
    return arrange_rows(input), arrange_vector(weight, input), eps, arrange_rows(output)


def application(input, weight, eps, output):
    row = ntl.cast(input, ntl.float32)
    output = normalize(row, input.shape[-1], eps) * weight


def residual_arrangement(input, residual, weight, eps, output, total):
    return (
        arrange_rows(input),
        arrange_rows(residual),
        arrange_vector(weight, input),
        eps,
        arrange_rows(output),
        arrange_rows(total),
    )


def residual_application(input, residual, weight, eps, output, total):
    row = ntl.cast(input, ntl.float32) + residual
    total = row
    output = normalize(row, input.shape[-1], eps) * weight


def matrix():
    return Tensor(2, shape_options=(None, {"constexpr": True}))


def vector():
    return Tensor(1, shape_options={"constexpr": True})


tensors = (matrix(), vector(), Tensor(0), matrix())
kernel = ninetoothed.make(arrangement, application, tensors)

residual_tensors = (matrix(), matrix(), vector(), Tensor(0), matrix(), matrix())
residual_kernel = ninetoothed.make(
    residual_arrangement, residual_application, residual_tensors, kernel_name="fused_add_rms_norm"
)


def fused_rms_norm(input, weight, eps=1e-6):
    """``rms_norm(input) * weight`` for a tensor (..., columns) and a weight (columns,)."""
    output = input.new_empty(input.shape)

    kernel(input.flatten(end_dim=-2), weight, eps, output.flatten(end_dim=-2))

    return output


def fused_add_rms_norm(input, residual, weight, eps=1e-6):
    """``total = input + residual`` and ``rms_norm(total) * weight``, as (normalised, total)."""
    output = input.new_empty(input.shape)
    total = input.new_empty(input.shape)

    residual_kernel(
        input.flatten(end_dim=-2),
        residual.flatten(end_dim=-2),
        weight,
        eps,
        output.flatten(end_dim=-2),
        total.flatten(end_dim=-2),
    )

    return output, total
