"""A residual that the input is added to in place, and its normalisation by the root mean square."""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def arrangement(input, residual, weight, eps, output):
    def arrange_row(tensor):
        arranged = tensor.tile((1, -1))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    weight_arranged = weight.tile((-1,)).expand((input.shape[0],))

    return arrange_row(input), arrange_row(residual), weight_arranged, eps, arrange_row(output)


def application(input, residual, weight, eps, output):
    residual += input

    row = ntl.cast(residual, ntl.float32)
    mean = ntl.sum(row * row) / residual.shape[0]
    output = row * ntl.rsqrt(mean + eps) * weight


tensors = (Tensor(2), Tensor(2), Tensor(1), Tensor(0), Tensor(2))

kernel = ninetoothed.make(arrangement, application, tensors, kernel_name="rms_norm_with_residual")


def rms_norm_with_residual_(input, residual, weight, eps=1e-6):
    """Add (rows, columns) to the residual, and return that normalised, times the weight (columns,)."""
    output = input.new_empty(input.shape)

    kernel(input, residual, weight, eps, output)

    return output
